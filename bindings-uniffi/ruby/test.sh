#!/usr/bin/env bash
# The tests of the gem, as it is installed into an empty folder. What stands behind is told to minitest (`-n /fork/`). Exit 2: this
# machine lacks something, the last line says what.
set -euo pipefail
cd "$(dirname "$0")"
target=$(mkdir -p "${CARGO_TARGET_DIR:-../../target}" && cd "${CARGO_TARGET_DIR:-../../target}" && pwd)
./install.sh "$target/doors/uniffi/ruby"
ruby -e 'require "minitest"' 2>/dev/null || { echo "there is no gem minitest: install it (gem install minitest, or ruby-minitest of Debian)"; exit 2; }
for file in test/*_test.rb; do
  timeout 300 "$target/doors/uniffi/ruby/ruby" "$file" "$@"
done
