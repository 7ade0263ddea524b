#!/usr/bin/env bash
# Checks core, command line and bindings for every platform. Zig is the C compiler for all of them; where it is missing, pip
# installs it in target/.
# `scripts/targets.sh build FOLDER` also makes there what a release has for Linux, under the names that `smoke.sh` knows. For ARM64 that
# takes an emulator (qemu-user-static) for the manual, and the compiler gcc-aarch64-linux-gnu for the wheel.
set -euo pipefail
folder=${2:+$(mkdir -p "$2" && cd "$2" && pwd)}
cd "$(dirname "$0")/.."
if ! command -v cargo-zigbuild >/dev/null || ! command -v maturin >/dev/null; then
  python3 -m venv target/zig
  target/zig/bin/pip install --quiet ziglang cargo-zigbuild 'maturin>=1.16,<2'
  export PATH=$PWD/target/zig/bin:$PATH
fi
# Of the interpreter only the version is asked for, and none is looked for.
export PYO3_CROSS_PYTHON_VERSION=3.11 PYO3_NO_PYTHON=1
export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_{GNU,MUSL}_RUNNER="qemu-aarch64-static -L /usr/aarch64-linux-gnu"
# On Windows the crate for Node.js asks for its library before anything is linked; nothing is, so an empty file does.
mkdir -p target/libnode && touch target/libnode/libnode.dll
export LIBNODE_PATH=$PWD/target/libnode
for target in {x86_64,aarch64}-unknown-linux-{gnu,musl} {x86_64,aarch64}-apple-darwin x86_64-pc-windows-gnu; do
  echo "target: $target"
  rustup target add "$target"
  # The oldest glibc that the packages are for.
  oldest=
  case $target in *-linux-gnu) oldest=.2.17 ;; esac
  packages=(-p fencelock-cli -p fencelock-node -p fencelock-jvm)
  # For glibc the wheel takes a compiler of its processor (bindings-python/build.rs).
  wheel=yes
  case $target in aarch64-*-gnu) command -v aarch64-linux-gnu-gcc >/dev/null || wheel= ;; esac
  [ -z "$wheel" ] || packages+=(-p fencelock-python)
  # The gem waits by a pipe, which Windows has not.
  [[ $target = *-windows-* ]] || packages+=(-p fencelock-uniffi)
  cargo-zigbuild check --profile quick --target "$target$oldest" "${packages[@]}"
  if [[ ${1:-} = build && $target = *-linux-* ]]; then
    FENCELOCK_BUILDER=cargo-zigbuild scripts/natives.sh "$folder/natives-$target" "$target"
    [ -z "$wheel" ] || maturin build --profile "${FENCELOCK_PROFILE:-release}" --locked --zig --target "$target" \
      --manifest-path bindings-python/Cargo.toml --out "$folder/wheel-$target"
  fi
done
