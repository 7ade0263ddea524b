#!/usr/bin/env bash
# Packs a gem for each platform into FOLDER: bindings-uniffi/ruby/pack.sh FOLDER NATIVES
#
# NATIVES has a folder for each platform with the native part, as scripts/natives.sh leaves them. Everything else is what install.sh
# has left in the target folder.
set -euo pipefail
folder=$(mkdir -p "$1" && cd "$1" && pwd)
natives=$(cd "$2" && pwd)
cd "$(dirname "$0")/../.."
cd "${CARGO_TARGET_DIR:-target}/gem"
for native in "$natives"/*; do
  rm -f lib/fencelock/native/libfencelock_uniffi.* ./*.gem
  cp "$native"/libfencelock_uniffi.* lib/fencelock/native
  FENCELOCK_GEM_PLATFORM=$(basename "$native") gem build --quiet fencelock.gemspec
  mv fencelock-*.gem "$folder"
done
