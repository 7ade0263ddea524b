#!/bin/sh
# Installs a package from the artefacts of the release and takes a first lock with it, on a machine that has the language and nothing
# else.
#
#   PLATFORM=x86_64-unknown-linux-musl scripts/smoke.sh python|node|wasm|java|ruby|cli ARTEFACTS
set -eu
artefacts=$2
folder=$(mktemp -d)
cd "$folder"
case $1 in
  python)
    python -m pip install --quiet --no-index --find-links "$artefacts/wheel-$PLATFORM" fencelock
    cat >first.py <<'PY'
import fencelock

for url in "memory:", "sqlite:locks.db":
    with fencelock.connect(url) as client, client.lock("orders:42", wait="5s") as guard:
        print(url, guard.token, guard.is_held)
PY
    python first.py
    ;;
  node)
    case $PLATFORM in
      *-windows-msvc) platform=win32-$(node --print process.arch)-msvc ;;
      *-apple-darwin) platform=darwin-$(node --print process.arch) ;;
      *) platform=linux-$(node --print process.arch)-${PLATFORM##*-} ;;
    esac
    cp "$artefacts/npm/fencelock.tgz" "$artefacts/npm/fencelock-$platform.tgz" .
    npm install --no-audit --no-fund --offline ./fencelock.tgz "./fencelock-$platform.tgz"
    cat >first.mjs <<'JS'
import { connect } from 'fencelock';

for (const url of ['memory:', 'sqlite:locks.db']) {
  const client = await connect(url);
  await client.lock('orders:42').using(async (guard) => console.log(url, guard.token, guard.isHeld), { wait: 5000 });
  await client.close();
}
JS
    node first.mjs
    ;;
  wasm)
    cp "$artefacts"/npm/fencelock-wasm-*.tgz fencelock-wasm.tgz
    npm install --no-audit --no-fund --offline ./fencelock-wasm.tgz
    cat >first.mjs <<'JS'
import { connect } from 'fencelock-wasm';

const client = await connect('memory:', { ttl: 10_000 });
await client.lock('orders:42').using(async (guard) => console.log(guard.token, guard.isHeld));
await client.close();
JS
    node first.mjs
    ;;
  ruby)
    case $PLATFORM in
      *-windows-*) echo "no gem there" && exit ;;
      *-apple-darwin) platform=$(echo "${PLATFORM%%-*}" | sed s/aarch64/arm64/)-darwin ;;
      *-gnu) platform=${PLATFORM%%-*}-linux ;;
      *) platform=${PLATFORM%%-*}-linux-musl ;;
    esac
    # The one gem that it needs comes from the registry.
    gem install --no-document ffi
    gem install --no-document --local "$artefacts"/gems/fencelock-*-"$platform.gem"
    cat >first.rb <<'RUBY'
require 'fencelock'

['memory:', 'sqlite:locks.db'].each do |url|
  client = Fencelock.connect(url)
  client.lock('orders:42', ttl: 30, wait: 5) { |guard| puts "#{url} #{guard.token} #{guard.held?}" }
  client.close
end
RUBY
    ruby first.rb
    ;;
  java)
    processor=${PLATFORM%%-*}
    case $PLATFORM in
      *-linux-gnu) platform=linux-$processor ;;
      *-linux-musl) platform=linux-$processor-musl ;;
      *-apple-darwin) platform=macos-$processor ;;
      *) platform=windows-$processor ;;
    esac
    jars=$(echo "$artefacts"/jars/io/github/fencelock/fencelock/*/)
    version=$(basename "$jars")
    cat >First.java <<'JAVA'
import io.github.fencelock.Fencelock;

public class First {
    public static void main(String[] words) throws Exception {
        for (String url : new String[] {"memory:", "sqlite:locks.db"}) {
            try (var client = Fencelock.connect(url); var guard = client.lock("orders:42").acquire()) {
                System.out.println(url + " " + guard.token() + " " + guard.isHeld());
            }
        }
    }
}
JAVA
    for jar in "fencelock-$version.jar" "fencelock-$version-$platform.jar"; do
      cp "$jars/$jar" .
      java -cp "$jar" First.java
    done
    ;;
  cli)
    tar -xzf "$artefacts/natives-$PLATFORM/cli/"fencelock-*.tar.gz --strip-components=1
    ./fencelock --version
    HOME=$folder ./fencelock run orders:42 --wait 5s -- sh -c 'echo "token $FENCELOCK_TOKEN"'
    ;;
esac
cd / && rm -rf "$folder"
