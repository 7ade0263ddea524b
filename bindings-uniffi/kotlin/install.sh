#!/usr/bin/env bash
# Generates the Kotlin sources, compiles them with Maven and leaves the actor over them, on this JVM by JNA, in the folder given. Exit 2:
# this machine lacks something, the last line says what. FENCELOCK_PROFILE names the profile, instead of `release`.
set -euo pipefail
folder=$(mkdir -p "$1" && cd "$1" && pwd)
cd "$(dirname "$0")/.."

# One at a time, and nothing to do if no source is newer than what was installed.
exec 9>"$folder.turn" && flock 9
stamp=$folder/installed-${FENCELOCK_PROFILE:-release}
sources=(../Cargo.lock ../core/src ../core/Cargo.toml Cargo.toml uniffi.toml generate.sh src kotlin)
if [ -e "$stamp" ] && [ -z "$(find "${sources[@]}" -type f -newer "$stamp" -print -quit)" ]; then exit; fi

command -v javac >/dev/null && command -v mvn >/dev/null || { echo "no JDK with Maven: install them"; exit 2; }
rm -rf "$folder" && mkdir -p "$folder/src/main/resources/linux-x86-64"
touch "$folder.begun"
./generate.sh kotlin "$folder/src/main/kotlin"
mv "$folder"/src/main/kotlin/*.so "$folder/src/main/resources/linux-x86-64"
cp kotlin/*.kt "$folder/src/main/kotlin"
cp kotlin/pom.xml "$folder"
mvn --quiet --batch-mode -Dkotlin.compiler.daemon.shutdownDelayMs=1000 --file "$folder/pom.xml" compile dependency:build-classpath -Dmdep.outputFile="$folder/path"
run="java -Xlog:disable -XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Xmx64m -cp $folder/target/classes:$(cat "$folder/path")"
printf '#!/bin/sh\nexec %s ActorKt\n' "$run" >"$folder/actor"
chmod +x "$folder/actor"
# Whatever changed while it was built is newer.
touch -r "$folder.begun" "$stamp"
