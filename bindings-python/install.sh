#!/usr/bin/env bash
# Builds the wheel and installs it into the folder given, as a virtual environment of its own. Exit 2: the machine lacks
# what it takes, and the last line says what. FENCELOCK_PROFILE names the profile it is built with, instead of `release`.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
folder=$(mkdir -p "$1" && cd "$1" && pwd)
cd "$here/.."
target=$(mkdir -p "${CARGO_TARGET_DIR:-target}" && cd "${CARGO_TARGET_DIR:-target}" && pwd)

# One at a time, and nothing to do if no source is newer than what was installed.
exec 9>"$folder.turn" && flock 9
profile=${FENCELOCK_PROFILE:-release}
stamp=$folder/installed-$profile
sources=(Cargo.lock Cargo.toml LICENSE-* core/src core/Cargo.toml bindings-python/{Cargo.toml,README.md,build.rs,pyproject.toml,install.sh,requirements.txt,src,python})
if [ -e "$stamp" ] && [ -z "$(find "${sources[@]}" -type f -newer "$stamp" -print -quit)" ]; then
  cat "$stamp"
  exit
fi

command -v cargo >/dev/null || { echo "there is no cargo: install a Rust toolchain"; exit 2; }
command -v python3 >/dev/null || { echo "no python3: install CPython 3.11 or newer"; exit 2; }
python3 -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "python3 is older than 3.11"; exit 2; }
rm -rf "$folder" && mkdir -p "$folder"
# The builder in an environment of its own: the package must do without it.
tools=$target/doors/python-tools
if ! [ -x "$tools/bin/maturin" ]; then
  python3 -m venv --clear "$tools" >/dev/null || { echo "no virtual environments: install python3-venv"; exit 2; }
  "$tools/bin/python" -m pip install --quiet 'maturin>=1.16,<2'
fi
# A release is linked for the oldest glibc there is a way to (docs/design/python.md), everything else for the one that is here.
oldest=()
if [ "$profile" = release ] && [ "$(uname -s)" = Linux ]; then
  "$tools/bin/python" -m pip install --quiet 'ziglang==0.17.1'
  oldest=(--zig --compatibility manylinux_2_17)
fi
touch "$folder.begun"
CARGO=${FENCELOCK_BUILDER:-cargo} PATH=$tools/bin:$PATH maturin build --profile "$profile" "${oldest[@]}" --quiet --manifest-path bindings-python/Cargo.toml \
  --target-dir "$target" --out "$folder/wheel" >&2
# Tests and examples need more than users do.
python3 -m venv --without-pip "$folder/venv"
"$tools/bin/python" -m pip --python "$folder/venv/bin/python" install --quiet -r bindings-python/requirements.txt "$folder"/wheel/*.whl
wheel=$(ls "$folder"/wheel/*.whl)
said=size
[ "$profile" = release ] || said="with $profile"
echo "$said: $(basename "$wheel") $(($(stat -c %s "$wheel") / 1024)) KiB" | tee "$stamp"
# Whatever changed while it was built is newer.
touch -r "$folder.begun" "$stamp"
