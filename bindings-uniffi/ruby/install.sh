#!/usr/bin/env bash
# Builds the gem with its native part and installs it into the folder given, an empty gem home. Exit 2: the machine lacks what it takes,
# and the last line says what. FENCELOCK_PROFILE names the profile of the native part, instead of `release`.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
folder=$(mkdir -p "$1" && cd "$1" && pwd)
cd "$here/../.."
target=$(mkdir -p "${CARGO_TARGET_DIR:-target}" && cd "${CARGO_TARGET_DIR:-target}" && pwd)

# One at a time, and nothing to do if no source is newer than what was installed.
exec 9>"$folder.turn" && flock 9
profile=${FENCELOCK_PROFILE:-release}
stamp=$folder/installed-$profile
sources=(Cargo.lock Cargo.toml LICENSE-* core/src core/Cargo.toml bindings-uniffi/{Cargo.toml,uniffi.toml,generate.sh,src} bindings-uniffi/ruby/{README.md,fencelock.gemspec,install.sh,lib})
if [ -e "$stamp" ] && [ -z "$(find "${sources[@]}" -type f -newer "$stamp" -print -quit)" ]; then
  cat "$stamp"
  exit
fi

command -v ruby >/dev/null && command -v gem >/dev/null || { echo "there is no Ruby with gem: install Ruby 3.1 or newer"; exit 2; }
ruby -e 'exit RUBY_VERSION >= "3.1"' || { echo "this Ruby is older than 3.1"; exit 2; }
ruby -e 'require "ffi"' 2>/dev/null || { echo "there is no gem ffi: install it (gem install ffi, or ruby-ffi of Debian)"; exit 2; }
rm -rf "$folder" && mkdir -p "$folder"
touch "$folder.begun"
gem=$target/gem
rm -rf "$gem" && mkdir -p "$gem"
cp -R bindings-uniffi/ruby/{lib,README.md,fencelock.gemspec} LICENSE-* "$gem"
bindings-uniffi/generate.sh ruby "$gem/lib/fencelock/native"
(cd "$gem" && gem build --quiet fencelock.gemspec) >&2
cp "$gem"/fencelock-*.gem "$folder/fencelock.gem"
# Without its dependencies: `ffi` is the one that is there.
gem install --quiet --local --ignore-dependencies --no-document --install-dir "$folder/gems" "$folder/fencelock.gem" >&2
# Ruby with this gem beside those of the machine, of which `ffi` is one.
printf '#!/bin/sh\nGEM_PATH="%s:%s" exec ruby "$@"\n' "$folder/gems" "$(gem env path)" >"$folder/ruby"
chmod +x "$folder/ruby"
said=size
[ "$profile" = release ] || said="with $profile"
echo "$said: fencelock.gem $(($(stat -c %s "$folder/fencelock.gem") / 1024)) KiB" | tee "$stamp"
# Whatever changed while it was built is newer.
touch -r "$folder.begun" "$stamp"
