#!/usr/bin/env bash
# Copies the core, the simulator and the worlds below the target folder, and puts every breakage into the copy as a switch.
# `apply.sh [FOLDER]` prints the folder. It fails with the name of a patch that does not apply.
set -euo pipefail
export LC_ALL=C

here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
copy=${1:-${CARGO_TARGET_DIR:-$root/target}/breakages/tree}

rm -rf "$copy"
mkdir -p "$copy"
copy=$(cd "$copy" && pwd)
cp -r "$root"/{Cargo.lock,rust-toolchain.toml,clippy.toml,core,sim,worlds} "$copy"
rm -rf "$copy/worlds/breakages"
cp "$here/violation.rs" "$copy/worlds/tests"
# What waits for programs, and what only that needs, stays behind.
rm "$copy/worlds/tests/sim.rs"
sed 's/^members = .*/members = ["core", "sim", "worlds"]/' "$root/Cargo.toml" >"$copy/Cargo.toml"
sed '/^\[dev-dependencies\]/,/^$/d' "$root/worlds/Cargo.toml" >"$copy/worlds/Cargo.toml"

# The copy may lie in a work tree, whose root is not what the patches' paths begin at.
export GIT_CEILING_DIRECTORIES=$(dirname "$copy")
for patch in "$here"/*.patch; do
    git -C "$copy" apply "$patch" || {
        echo "worlds/breakages/$(basename "$patch") does not apply" >&2
        exit 1
    }
done
echo "$copy"
