#!/bin/sh
# The tests of the package for WebAssembly, over the package as it is installed: those of the Node package, which has the same
# face, and its own.
#
#   bindings-wasm/test.sh [FOLDER] [what node --test takes...]
set -eu
here=$(CDPATH= cd -- "$(dirname "$0")" && pwd)
folder=${1:-${CARGO_TARGET_DIR:-$here/../target}/doors/wasm}
[ $# -eq 0 ] || shift
"$here/install.sh" "$folder"
rm -rf "$folder/test"
cp -R "$here/test" "$folder/test"
# What depends on an addon is Node's own; processes end here in a way of their own.
for name in cancel cells error flat forgotten lock loss storm tarball types using worker; do
  cp "$here/../bindings-node/test/$name.test.js" "$folder/test"
done
cp -R "$here/../bindings-node/test/support" "$here/../bindings-node/test/types" "$folder/test"
# They know the package by its other name, and stores by URLs.
mkdir -p "$folder/node_modules/fencelock"
echo '{ "type": "module", "exports": "./index.js" }' >"$folder/node_modules/fencelock/package.json"
echo "export * from '../../door.js';" >"$folder/node_modules/fencelock/index.js"
echo "export * from 'fencelock-wasm';" >"$folder/node_modules/fencelock/index.d.ts"
export FENCELOCK_SOURCES="$here" FENCELOCK_STORES=memory,redis FENCELOCK_LANGUAGE=wasm
cd "$folder"
# The first length: what waits for no fault, no collection and no browser.
first="cells error lock tarball types using"
timeout=300000
# The first length mostly waits, so four files run at once. The rest measures, alone.
at_once=4
files=
if [ -n "${FENCELOCK_FULL:-}" ]; then
  timeout=3600000
  at_once=1
  files=test/
  # Bundlers, other runtimes, and what Cloudflare runs Workers on.
  mkdir -p "$folder/bundlers"
  (cd "$folder/bundlers" && echo '{ "private": true }' >package.json &&
    npm install --loglevel=error --no-audit --no-fund --no-package-lock esbuild@0.28.2 miniflare@4.20260730.0 webpack@5.113.0 \
      bun@1.4.5 deno@2.9.6 next@16.4.6 react@19.3.1 react-dom@19.3.1)
else
  for name in $first; do files="$files test/$name.test.js"; done
fi
# shellcheck disable=SC2086
exec node --test --test-concurrency="$at_once" --test-timeout="$timeout" --test-reporter=spec --expose-gc "$@" $files
