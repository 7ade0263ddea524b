#!/usr/bin/env bash
# Writes the workspace's version, which Cargo.toml has, wherever else a version stands: scripts/version.sh [VERSION]
#
# With a VERSION it is written into Cargo.toml and Cargo.lock first. What the changelog calls unreleased gets the version and the day.
# With --check it changes nothing, and ends with 1 if something is not in step.
set -euo pipefail
cd "$(dirname "$0")/.."

spread() { # a version
  v=$1 perl -0pi -e 's{("name": "fencelock(?:-wasm)?",\s+"version": ")[^"]+}{$1$ENV{v}}g' bindings-{node,wasm}/package{,-lock}.json
  v=$1 perl -0pi -e 's{("fencelock(?:-wasm)?": ")\d[^"]*}{$1$ENV{v}}g' examples/*/node/package.json
  v=$1 perl -0pi -e 's{(<artifactId>fencelock(?:-\w+)?</artifactId>\s+<version>)\d[^<]*}{$1$ENV{v}}g' \
    bindings-jvm/pom.xml bindings-jvm/*/pom.xml bindings-jvm/README.md docs/tutorial/jvm.md
  v=$1 perl -pi -e 's{(gem\.version = .)[^\x27]+}{$1$ENV{v}}' bindings-uniffi/ruby/fencelock.gemspec
  v=$1 perl -0pi -e 's{(io\.github\.fencelock:fencelock(?:-kotlin)?:)\d[\w.-]*\w}{$1$ENV{v}}g' README.md bindings-jvm/README.md docs/tutorial/jvm.md
}
current() { sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml; }

if [ "${1:-}" = --check ]; then
  copy=$(mktemp -d)
  trap 'rm -rf "$copy"' EXIT
  git ls-files -z README.md docs/tutorial 'bindings-*/package*.json' 'bindings-jvm/*.xml' bindings-jvm/README.md bindings-uniffi/ruby/fencelock.gemspec 'examples/*.json' |
    xargs -0 tar -c | tar -x -C "$copy"
  version=$(current)
  (cd "$copy" && spread "$version")
  cd "$copy"
  find . -type f | while read -r file; do diff "$OLDPWD/$file" "$file" || { echo "$file: run scripts/version.sh"; exit 1; }; done
  exit
fi
if [ $# -gt 0 ]; then
  old=$(current) new=$1 perl -pi -e 's{version = "\Q$ENV{old}\E"}{version = "$ENV{new}"}' Cargo.toml
  cargo update --workspace --offline --quiet
fi
version=$(current)
spread "$version"
if ! grep -q "^## \[$version\]" CHANGELOG.md; then
  sed -i "s/^## \[Unreleased\]$/&\n\n## [$version] - $(date -u +%F)/" CHANGELOG.md
fi
