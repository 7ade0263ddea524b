#!/usr/bin/env bash
# Builds the natives and runs Maven over them: bindings-jvm/build.sh GOAL... Exit 2, with one last line: what this machine
# lacks. FENCELOCK_PROFILE names the profile of the natives, instead of `release`.
set -euo pipefail
cd "$(dirname "$0")/.."
target=${CARGO_TARGET_DIR:-target}
mkdir -p "$target" && target=$(cd "$target" && pwd)

command -v cargo >/dev/null || { echo "there is no cargo; install a Rust toolchain"; exit 2; }
command -v javac >/dev/null || { echo "there is no JDK; install version 17 or newer"; exit 2; }
command -v mvn >/dev/null || { echo "there is no Maven; install it"; exit 2; }
case "$(uname -s)-$(uname -m)" in
  Linux-x86_64) platform=linux-x86_64 ;;
  *) echo "the jar is built on Linux x86-64 so far"; exit 2 ;;
esac

# One at a time: all write into the same folders.
if [ -z "${FENCELOCK_JVM_TURN:-}" ] && command -v flock >/dev/null; then
  FENCELOCK_JVM_TURN=1 exec flock --close "$target/jvm.turn" bindings-jvm/build.sh "$@"
fi

profile=${FENCELOCK_PROFILE:-release}
"${FENCELOCK_BUILDER:-cargo}" build --quiet --profile "$profile" -p fencelock-jvm --lib
library=$target/$profile/libfencelock_jvm.so natives=$target/jvm/natives/$platform
mkdir -p "$natives"
built=$target/jvm/natives-profile
if [ "$library" -nt "$natives/fencelock" ] || [ "$(cat "$built" 2>/dev/null)" != "$profile" ]; then
  cp "$library" "$natives/fencelock.new"
  # Names of functions nobody looks for are a third of it.
  if command -v strip >/dev/null; then strip --strip-unneeded "$natives/fencelock.new"; fi
  mv "$natives/fencelock.new" "$natives/fencelock"
  echo "$profile" >"$built"
fi

# A release is compiled from nothing. Otherwise Kotlin compiles what has changed: all of it takes half a minute.
incremental=true
if [ "$profile" = release ]; then
  incremental=false
  rm -rf "$target/jvm/fencelock-kotlin"/{classes,kotlin-ic}
fi
# Maven ends before Java's optimizing compiler is worth its time.
export MAVEN_OPTS="${MAVEN_OPTS--XX:TieredStopAtLevel=1 -XX:+UseSerialGC}"
# The Kotlin compiler stays in memory for the modules of this run, and not for hours.
mvn --quiet --batch-mode -Dkotlin.compiler.incremental=$incremental -Dkotlin.compiler.daemon.shutdownDelayMs=1000 --file bindings-jvm/pom.xml -Dbuild.folder="$target/jvm" "$@"
