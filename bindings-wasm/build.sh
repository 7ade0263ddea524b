#!/bin/sh
# Builds dist/: the compiled core, its glue, and the face of the Node package over them. Exits with 2, and one last line that says
# what the machine lacks, where that cannot be.
set -eu
here=$(CDPATH= cd -- "$(dirname "$0")" && pwd)
cd "$here"
triple=wasm32-unknown-unknown
rm -rf dist stage
mkdir -p dist stage

# Small before fast: it is loaded over networks, and waits for them.
export CARGO_PROFILE_RELEASE_OPT_LEVEL=s CARGO_PROFILE_RELEASE_LTO=fat CARGO_PROFILE_RELEASE_CODEGEN_UNITS=1
profile=${FENCELOCK_PROFILE:-release}
# What makes the glue compiles beside the core: each alone leaves a processor idle at its end.
glue() { CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-../target}/glue cargo "$@"; }
glue build --quiet --manifest-path glue/Cargo.toml &
target=$(../scripts/wasm.sh build --package fencelock-wasm --profile "$profile")
wait $!
module=$target/$triple/$profile/fencelock_wasm.wasm
glue run --quiet --manifest-path glue/Cargo.toml -- "$module" dist

# The face is the Node package's; what differs is here.
cp ../bindings-node/lib/*.ts stage
cp lib/*.ts stage
npx --no-install tsc
# What bundlers make of the file is for `connect` to see.
echo 'declare const module: object; export default module;' >dist/core.wasm.d.ts
rm -r stage
