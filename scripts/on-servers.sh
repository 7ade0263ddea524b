#!/usr/bin/env bash
# Runs the faults, the cases and the scripts of Redis on each server that scripts/servers.sh has brought.
set -euo pipefail
cd "$(dirname "$0")/.."
target=${CARGO_TARGET_DIR:-$PWD/target}
# The server of 6.2 is built without TLS, and cannot be made to answer while it loads.
no_tls=(a_cluster_over_tls_knows_the_user a_server_may_ask_who_we_are a_server_that_cannot_prove_itself_is_refused
  a_server_with_our_own_authority_gives_locks certificates_without_tls_are_refused loading_is_waited_out
  no_provider_is_installed_for_the_process sentinels_over_tls_lead_a_user_to_the_master
  the_nodes_of_a_quorum_are_spoken_to_over_tls)
for name in redis-6.2 redis-8 valkey-8; do
  echo "server: $name"
  export FENCELOCK_REDIS_SERVER=$target/servers/$name/server
  skip=()
  [ "$name" != redis-6.2 ] || skip=("${no_tls[@]/#/--skip=}")
  cargo test --profile=quick --workspace --test stores -- redis:: topologies:: "${skip[@]}"
  cargo test --profile=quick --workspace --test cases -- redis/rust
  cargo test --profile=quick --workspace --test stores -- --exact equivalence::redis equivalence::redisson
done
