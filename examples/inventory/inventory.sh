#!/bin/sh
# The last lamps of a shop, sold by a process for each customer: with no lock, under a lock, and by one script.
#
#   examples/inventory/inventory.sh redis://127.0.0.1 etcd://127.0.0.1
#
# The first URL is the shop's, a Redis server. The second is the store of the locks, by default the same.
# The same as inventory.rs in the shell. It wants `fencelock` and `redis-cli` on the path.
set -eu
url=${1:-redis://127.0.0.1}
lamps=10 customers=25
export FENCELOCK_URL="${2:-$url}"
stock=fencelock-example:cli-lamps:stock sold=fencelock-example:cli-lamps:sold

shop() { redis-cli -u "$url" "$@"; }

# Looks at the stock, takes a moment, and writes it down.
look_and_write="
  left=\$(redis-cli -u '$url' get $stock)
  [ \"\$left\" -gt 0 ] || exit 0
  sleep 0.05
  redis-cli -u '$url' set $stock \$((left - 1)) >/dev/null
  redis-cli -u '$url' incr $sold >/dev/null"

no_lock() { sh -c "$look_and_write"; }

lock() { fencelock run fencelock-example:cli-lamps -- sh -c "$look_and_write"; }

script() {
  shop eval "if tonumber(redis.call('get', KEYS[1])) < 1 then return 0 end
    redis.call('decr', KEYS[1])
    return redis.call('incr', KEYS[2])" 2 "$stock" "$sold" >/dev/null
}

echo "$lamps lamps, $customers customers"
for way in no_lock lock script; do
  shop mset "$stock" "$lamps" "$sold" 0 >/dev/null
  all=
  for customer in $(seq "$customers"); do
    $way &
    all="$all $!"
  done
  # One by one: each customer's failure is the script's.
  for customer in $all; do wait "$customer"; done
  count=$(shop get "$sold")
  over=$((count > lamps ? count - lamps : 0))
  echo "$way sold $count, oversold $over"
done
shop del "$stock" "$sold" >/dev/null
