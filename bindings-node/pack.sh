#!/bin/sh
# Packs what is built into FOLDER: fencelock.tgz, JavaScript and types, and a tarball with the native part for each platform.
#
#   bindings-node/pack.sh FOLDER [NATIVES]
#
# NATIVES has the native parts for all platforms, as a release has them. Without it there is this machine's alone, from dist/, and
# fencelock.tgz knows of no other.
set -eu
here=$(CDPATH= cd -- "$(dirname "$0")" && pwd)
folder=$(CDPATH= cd -- "${1:?a folder}" && pwd)
natives=$(CDPATH= cd -- "${2:-$here/dist}" && pwd)
stage=$(mktemp -d)
trap 'rm -rf "$stage"' EXIT

cd "$here"
cp -R package.json README.md ../LICENSE-APACHE ../LICENSE-MIT dist "$stage"
rm -f "$stage"/dist/*.node
cd "$stage"
if [ $# -lt 2 ]; then
  npm pkg set --json "napi.targets=[\"$(rustc --version --verbose | sed -n 's/^host: //p')\"]"
fi
napi() { "$here/node_modules/.bin/napi" "$@" >napi.log 2>&1 || { cat napi.log >&2; exit 1; }; }
napi create-npm-dirs
napi artifacts --output-dir "$natives"
napi pre-publish --tag-style npm --skip-optional-publish --no-gh-release
version=$(npm pkg get version | tr -d '"')
for package in npm/* .; do
  cd "$stage/$package"
  if [ "$package" != . ]; then
    cp "$stage"/LICENSE-* .
    npm pkg set 'files[]=LICENSE-*'
  fi
  tarball=$(npm pack --silent --pack-destination "$folder")
  mv "$folder/$tarball" "$folder/${tarball%-"$version".tgz}.tgz"
done
