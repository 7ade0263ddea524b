#!/bin/sh
# The tests of the Node package, over the package as it is installed.
#
#   bindings-node/test.sh [FOLDER] [what node --test takes...]
set -eu
here=$(CDPATH= cd -- "$(dirname "$0")" && pwd)
folder=${1:-${CARGO_TARGET_DIR:-$here/../target}/doors/node}
[ $# -eq 0 ] || shift
"$here/install.sh" "$folder"
# What the examples need beside the package.
others=$(node --print "
  const manifests = ['inventory', 'balance'].map((example) => require('$here/../examples/' + example + '/node/package.json'));
  const needs = manifests.flatMap(({ dependencies: { fencelock, ...others } }) => Object.entries(others));
  needs.map(([name, version]) => name + '@' + version).join(' ')")
for other in $others; do
  if ! (cd "$folder" && npm ls --silent "$other" >/dev/null); then
    (cd "$folder" && npm install --loglevel=error --no-audit --no-fund --no-package-lock "$other")
  fi
done
# A test finds the package beside itself only.
rm -rf "$folder/test"
cp -R "$here/test" "$folder/test"
export FENCELOCK_SOURCES="$here"
cd "$folder"
# The first length: what waits for no fault, no collection and no signal.
first="cells error lock package tarball turn types using"
timeout=300000
# The first length mostly waits, so four files run at once. The rest measures, alone.
at_once=4
files=
if [ -n "${FENCELOCK_FULL:-}" ]; then
  timeout=3600000
  at_once=1
  files=test/
else
  for name in $first; do files="$files test/$name.test.js"; done
fi
# shellcheck disable=SC2086
exec node --test --test-concurrency="$at_once" --test-timeout="$timeout" --test-reporter=spec --expose-gc "$@" $files
