#!/usr/bin/env bash
# Installs the package and runs its own tests; what stands behind is told to pytest (`-k forks --durations=9`). Exit 2: this
# machine lacks something, the last line says what.
set -euo pipefail
cd "$(dirname "$0")"
target=$(mkdir -p "${CARGO_TARGET_DIR:-../target}" && cd "${CARGO_TARGET_DIR:-../target}" && pwd)
./install.sh "$target/doors/python"
# The first length mostly waits, so four run at once. The rest measures, alone.
if [ -n "${FENCELOCK_FULL:-}" ]; then
  words=(--timeout=3600)
  "$target/doors/python-tools/bin/python" -m pip --python "$target/doors/python/venv/bin/python" install --quiet -r requirements-full.txt
else
  words=(--timeout=300 -n 4)
fi
code=0
"$target/doors/python/venv/bin/python" -B -m pytest -q -p no:cacheprovider "${words[@]}" tests "$@" || code=$?
# pytest's 2 is an error in the tests, not a lack of the machine.
[ "$code" != 2 ] || code=1
exit "$code"
