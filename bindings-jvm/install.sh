#!/usr/bin/env bash
# Builds the packages and installs them with the actors into an empty folder: bindings-jvm/install.sh FOLDER
#
# FOLDER/java has what a Java program needs on its class path, FOLDER/kotlin what a Kotlin program needs beside that, FOLDER/maven
# is a Maven repository of both packages. Exit 2: this machine lacks something, the last line says what. Kotlin's documentation takes
# long: it is made for a release only.
set -euo pipefail
folder=${1:?the folder to install into}
mkdir -p "$folder" && folder=$(cd "$folder" && pwd)
cd "$(dirname "$0")/.."

# One at a time, and nothing to do if no source is newer than what was installed.
exec 9>"$folder.turn" && flock 9
profile=${FENCELOCK_PROFILE:-release}
stamp=$folder/stamp-$profile
sources=(Cargo.lock Cargo.toml LICENSE-* core/Cargo.toml core/src peers/java/Course.java examples/inventory/inventory.kt bindings-jvm/{Cargo.toml,bench,build.sh,install.sh,pom.xml,src,*/pom.xml,*/src/main})
if [ -e "$stamp" ] && [ -z "$(find "${sources[@]}" -type f -newer "$stamp" -print -quit)" ]; then
  cat "$stamp"
  exit
fi
rm -rf "$folder" && mkdir "$folder"
begun=$(mktemp) && trap 'rm -f "$begun"' EXIT

words=()
[ "$profile" = release ] || words=(-Ddokka.phase=none)
bindings-jvm/build.sh -Drelease "${words[@]}" package dependency:copy-dependencies deploy:deploy \
  -DaltDeploymentRepository="folder::file://$folder/maven" -DincludeScope=runtime -DoutputDirectory="$folder/java"
target=${CARGO_TARGET_DIR:-target}
cp "$target"/jvm/actor/actor-*.jar "$folder/java"
mkdir "$folder/kotlin"
javac -d "$folder/bench" -cp "$folder/java/*" bindings-jvm/bench/FencelockBench.java peers/java/Course.java
mv "$folder"/java/{fencelock-kotlin,kotlin,annotations}* "$folder/kotlin"

# A first, short life of an actor, whose classes all later ones share.
live() { # the words that start it
  local answer
  coproc ACTOR { exec "$@" 2>/dev/null; }
  local in=${ACTOR[1]} out=${ACTOR[0]} pid=$ACTOR_PID
  while read -r request; do
    echo "$request" >&"$in"
    read -r answer <&"$out"
  done <<'REQUESTS'
{"id":1,"op":"connect","url":"memory:","options":{"ttl":20000}}
{"id":2,"op":"acquire","lock":"x","options":{}}
{"id":3,"op":"lost","guard":1}
{"id":4,"op":"token","guard":1}
{"id":5,"op":"remaining","guard":1}
{"id":6,"op":"is_held","guard":1}
{"id":7,"op":"try","lock":"x","options":{"ttl":5000}}
{"id":8,"op":"inspect","lock":"x","options":{}}
{"id":9,"op":"extend","guard":1,"ttl":30000}
{"id":10,"op":"release","guard":1}
{"id":11,"op":"acquire_all","locks":["x","y"],"options":{"ttl":300,"renew":false}}
{"id":12,"op":"remaining","guard":2}
{"id":13,"op":"drop","guard":2}
{"id":14,"op":"acquire","lock":"","options":{}}
{"id":15,"op":"with","lock":"z","options":{},"work":1}
{"id":16,"op":"load"}
{"id":17,"op":"names","prefix":""}
{"id":18,"op":"update","lock":"v","add":1,"options":{}}
{"id":19,"op":"close"}
REQUESTS
  eval "exec $in>&-"
  wait "$pid"
}

# Quick to start rather than quick in the long run.
for language in java kotlin; do
  path="$folder/java/*"
  [ "$language" = java ] || path="$path:$folder/kotlin/*"
  flags=(-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Xmx64m -Xss512k)
  main=io.github.fencelock.actor.${language^}Actor
  live java "${flags[@]}" -XX:ArchiveClassesAtExit="$folder/$language.jsa" -cp "$path" "$main"
  {
    echo '#!/bin/sh'
    echo "exec java ${flags[*]} -XX:SharedArchiveFile='$folder/$language.jsa' -Xlog:disable -cp '$path' $main"
  } >"$folder/actor-$language"
  chmod +x "$folder/actor-$language"
done

size() { du -h --apparent-size "$1" | cut -f1; }
said=size
[ "$profile" = release ] || said="with $profile"
{
  echo "$said: $(cd "$folder" && for jar in java/fencelock-[0-9]*.jar kotlin/fencelock-kotlin-*.jar; do
    printf '%s %s ' "$(basename "$jar")" "$(size "$jar")"
  done)"
} >"$begun.size"
cat "$begun.size"
touch -r "$begun" "$begun.size" && mv "$begun.size" "$stamp"
