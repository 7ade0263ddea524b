#!/usr/bin/env bash
# Generates the Kotlin sources, compiles them with Maven and takes a first lock over JNA on this JVM: bindings-uniffi/kotlin.sh FOLDER
# Exit 2: this machine lacks something, the last line says what.
set -euo pipefail
folder=$(mkdir -p "$1" && cd "$1" && pwd)
cd "$(dirname "$0")"
command -v javac >/dev/null && command -v mvn >/dev/null || { echo "no JDK with Maven: install them"; exit 2; }
rm -rf "$folder/src"
./generate.sh kotlin "$folder/src/main/kotlin"
mkdir -p "$folder/src/main/resources/linux-x86-64"
mv "$folder"/src/main/kotlin/*.so "$folder/src/main/resources/linux-x86-64"
cp kotlin/First.kt "$folder/src/main/kotlin"
cp kotlin/pom.xml "$folder"
mvn --quiet --batch-mode --file "$folder/pom.xml" compile dependency:build-classpath -Dmdep.outputFile="$folder/path"
java -cp "$folder/target/classes:$(cat "$folder/path")" FirstKt
