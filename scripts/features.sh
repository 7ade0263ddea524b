#!/usr/bin/env bash
# Lints the core with each store alone, with TLS for each, and without any.
set -euo pipefail
cd "$(dirname "$0")/.."
for features in '' cron host redis sqlite etcd zookeeper postgres mysql tls etcd,tls zookeeper,tls postgres,tls mysql,tls tokio; do
  echo "features: $features"
  cargo clippy --profile quick -p fencelock --lib --no-default-features --features "$features" -- -D warnings
done
