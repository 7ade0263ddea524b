#!/usr/bin/env bash
# Builds what a release has for a platform, this machine's by default, into FOLDER: scripts/natives.sh FOLDER [TRIPLE]
#
#   cli/   the archive of the command line: the program, the manual, the completions
#   jvm/   the library of the jar, in the folder of its platform
#   node/  the native part of the npm package, under the name that napi knows it by
#   ruby/  the native part of the gem, in the folder of its platform; there is none for Windows
#
# FENCELOCK_PROFILE names the profile, instead of `release`. The workflow of the release runs it on each platform. With
# FENCELOCK_BUILDER=cargo-zigbuild one machine builds for others; CARGO_TARGET_…_RUNNER, as cargo knows it, runs their programs.
set -euo pipefail
mkdir -p "${1:?a folder}" && folder=$(cd "$1" && pwd)
cd "$(dirname "$0")/.."
profile=${FENCELOCK_PROFILE:-release}
# Names of functions that nobody looks for are a third of a library.
export CARGO_PROFILE_RELEASE_STRIP=symbols

host=$(rustc --version --verbose | sed -n 's/^host: //p')
triple=${2:-$host}
builder=${FENCELOCK_BUILDER:-cargo}
built=${CARGO_TARGET_DIR:-target}/$profile
build() { "$builder" build --locked --profile "$profile" "$@"; }
if [ "$triple" != "$host" ] || [ "$builder" != cargo ]; then
  rustup target add "$triple"
  built=${CARGO_TARGET_DIR:-target}/$triple/$profile
  target=$triple
  # Zig has the symbols of every glibc, a container of the release those of an old one.
  case $builder-$triple in cargo-zigbuild-*-linux-gnu) target=$triple.2.17 ;; esac
  build() { "$builder" build --locked --profile "$profile" --target "$target" "$@"; }
fi
runner=$(tr a-z- A-Z_ <<<"CARGO_TARGET_${triple}_RUNNER")
runner=${!runner:-}
version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml)
processor=${triple%%-*}
node=$processor
[ "$processor" = x86_64 ] && node=x64
[ "$processor" = aarch64 ] && node=arm64
case $triple in
  *-linux-gnu) jvm=linux-$processor node=linux-$node-gnu ruby=$processor-linux ;;
  *-linux-musl) jvm=linux-$processor-musl node=linux-$node-musl ruby=$processor-linux-musl ;;
  *-apple-darwin) jvm=macos-$processor node=darwin-$node ruby=${processor/aarch64/arm64}-darwin ;;
  *-windows-msvc) jvm=windows-$processor node=win32-$node-msvc ruby= ;;
  *) echo "no release is made for $triple"; exit 2 ;;
esac

# The command line. With musl it is one static program.
build -p fencelock-cli
stem=fencelock-$version-$triple
stage=$(mktemp -d)
trap 'rm -rf "$stage"' EXIT
mkdir -p "$stage/$stem"/{man/man1,completions} "$folder/cli"
program=fencelock
case $triple in *-windows-*) program=fencelock.exe ;; esac
cp "$built/$program" cli/README.md CHANGELOG.md LICENSE-APACHE LICENSE-MIT "$stage/$stem"
$runner "$stage/$stem/$program" manual "$stage/$stem/man/man1"
while read -r shell file; do
  $runner "$stage/$stem/$program" completions "$shell" >"$stage/$stem/completions/$file"
done <<'SHELLS'
bash fencelock.bash
elvish fencelock.elv
fish fencelock.fish
powershell _fencelock.ps1
zsh _fencelock
SHELLS
tar -C "$stage" -czf "$folder/cli/$stem.tar.gz" "$stem"

# A library has the C library of the process that loads it.
case $triple in *-musl) export RUSTFLAGS="${RUSTFLAGS:-} -C target-feature=-crt-static" ;; esac
build -p fencelock-jvm -p fencelock-node ${ruby:+-p fencelock-uniffi} --lib
mkdir -p "$folder/jvm/$jvm" "$folder/node"
for name in jvm node ${ruby:+uniffi}; do
  library=
  for file in "$built"/{libfencelock_$name.so,libfencelock_$name.dylib,fencelock_$name.dll}; do
    [ ! -e "$file" ] || library=$file
  done
  case $name in
    jvm) cp "$library" "$folder/jvm/$jvm/fencelock" ;;
    node) cp "$library" "$folder/node/fencelock.$node.node" ;;
    uniffi) mkdir -p "$folder/ruby/$ruby" && cp "$library" "$folder/ruby/$ruby" ;;
  esac
done
(cd "$folder" && find . -type f -exec ls -l {} + | awk '{print $5, $9}')
