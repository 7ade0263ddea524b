#!/bin/sh
# Builds the npm packages, the one that users name and the one with this machine's native part, and installs both from their tarballs
# into FOLDER, as a user would.
#
#   bindings-node/install.sh FOLDER
#
# FENCELOCK_PROFILE names the profile the native part is built with, instead of `release`. Prints their sizes. Exits with 2, and one last line that says what the machine lacks, where it cannot be built.
set -eu
folder=${1:?a folder}
here=$(CDPATH= cd -- "$(dirname "$0")" && pwd)
mkdir -p "$folder"
folder=$(CDPATH= cd -- "$folder" && pwd)
# One at a time.
exec 9>"$folder.turn" && flock 9
profile=${FENCELOCK_PROFILE:-release}
stamp=$folder/.installed-$profile

for tool in cargo node npm; do
  command -v "$tool" >/dev/null || { echo "\`$tool\` is not there"; exit 2; }
done
if ! node --eval 'process.exit(process.versions.node.split(".")[0] >= 20 ? 0 : 1)'; then
  echo "Node.js 20 or newer is needed, this is $(node --version)"
  exit 2
fi

sources="$here/src $here/lib $here/build.rs $here/Cargo.toml $here/pack.sh $here/package.json $here/package-lock.json $here/tsconfig.json
  $here/README.md $here/../LICENSE-APACHE $here/../LICENSE-MIT $here/../core/src $here/../core/Cargo.toml $here/../Cargo.toml $here/../Cargo.lock"
# shellcheck disable=SC2086
if [ ! -e "$stamp" ] || [ -n "$(find $sources -newer "$stamp" -print -quit)" ]; then
  cd "$here"
  began=$(mktemp)
  if [ ! node_modules/.package-lock.json -nt package-lock.json ]; then
    npm ci --loglevel=error --no-audit --no-fund
  fi
  CARGO=${FENCELOCK_BUILDER:-cargo} npm run --silent native -- --profile "$profile"
  npm run --silent face
  rm -f "$folder"/fencelock*.tgz
  ./pack.sh "$folder"
  cd "$folder"
  [ -e package.json ] || echo '{ "private": true, "type": "module" }' >package.json
  npm install --loglevel=error --no-audit --no-fund --no-package-lock ./fencelock*.tgz
  # What is changed from the beginning of the build on is newer than the stamp.
  rm -f "$folder"/.installed-*
  mv "$began" "$stamp"
fi
cp "$here"/actor/*.js "$here"/bench/*.js "$folder"
[ "$profile" = release ] || exit 0
cd "$folder"
for tarball in fencelock*.tgz; do
  name=$(basename "$tarball" .tgz)
  echo "size: $name $(($(wc -c <"$tarball") / 1024)) kB packed, $(du -sk "node_modules/$name" | cut -f1) kB installed"
done
