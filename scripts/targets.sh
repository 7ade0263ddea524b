#!/usr/bin/env bash
# Checks core, command line and bindings for every platform. Zig is the C compiler for all of them; where it is missing, pip
# installs it in target/.
# With `build`, the command line is also linked where that takes no files of the platform's maker.
set -euo pipefail
cd "$(dirname "$0")/.."
if ! command -v cargo-zigbuild >/dev/null; then
  python3 -m venv target/zig
  target/zig/bin/pip install --quiet ziglang cargo-zigbuild
  export PATH=$PWD/target/zig/bin:$PATH
fi
# Of the interpreter only the version is asked for, and none is looked for.
export PYO3_CROSS_PYTHON_VERSION=3.11 PYO3_NO_PYTHON=1
# On Windows the crate for Node.js asks for its library before anything is linked; nothing is, so an empty file does.
mkdir -p target/libnode && touch target/libnode/libnode.dll
export LIBNODE_PATH=$PWD/target/libnode
for target in {x86_64,aarch64}-unknown-linux-{gnu,musl} {x86_64,aarch64}-apple-darwin x86_64-pc-windows-gnu; do
  echo "target: $target"
  rustup target add "$target"
  # The oldest glibc that the packages are for.
  case $target in *-gnu) [[ $target = *linux* ]] && target+=.2.17 ;; esac
  packages=(-p fencelock-cli -p fencelock-node -p fencelock-jvm)
  # Zig does not link the wheel of another kind of processor for glibc (bindings-python/build.rs).
  [[ $target = aarch64-unknown-linux-gnu* ]] || packages+=(-p fencelock-python)
  # The gem waits by a pipe, which Windows has not.
  [[ $target = *-windows-* ]] || packages+=(-p fencelock-uniffi)
  cargo-zigbuild check --profile quick --target "$target" "${packages[@]}"
  if [[ ${1:-} = build && $target != *darwin ]]; then
    cargo-zigbuild build --profile quick --target "$target" -p fencelock-cli
  fi
done
