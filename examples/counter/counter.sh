#!/bin/sh
# A number in a file, counted up by a thousand processes, a hundred at a time: exact under a lock, and not without.
#
#   examples/counter/counter.sh [URL [COUNT]]
#
# The same as counter.rs in the shell. It wants `fencelock` on the path, and no server: without a URL locks are in a file.
set -eu
folder=$(mktemp -d)
trap 'rm -r "$folder"' EXIT
export FENCELOCK_URL="${1:-sqlite:$folder/locks.db}" number="$folder/number"
count=${2:-1000}

# Reading a number and writing the next one: whoever else reads in between counts the same again.
next='read -r value <"$number"; echo $((value + 1)) >"$number.$$"; mv "$number.$$" "$number"'

for way in no_lock lock; do
  echo 0 >"$number"
  case $way in
    no_lock) seq "$count" | xargs -n 1 -P 100 sh -c "$next" ;;
    lock) seq "$count" | xargs -n 1 -P 100 fencelock run fencelock-example:number -- sh -c "$next" ;;
  esac
  echo "$way counted $(cat "$number") of $count"
done
