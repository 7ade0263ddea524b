#!/bin/sh
# Ten nodes of one job, of which the first is killed in the middle of its run: the others go on, one run in each period.
#
#   examples/scheduled-job/scheduled-job.sh [URL [COMMAND...]]
#
# Each COMMAND starts a node in one of the languages, and the ten are dealt out among them, for instance
# `target/debug/scheduled_job "python scheduled_job.py" "node dist/scheduled-job.js"`. Without any, `scheduled_job` has to be
# on the path. Without a URL the store is a file. On etcd a dead run's lease is its client's session: `etcd://host?ttl=2s`.
set -eu
folder=$(mktemp -d)
runs="$folder/runs" nodes=
trap 'for node in $nodes; do kill "$node" || true; done 2>/dev/null; rm -r "$folder"' EXIT
trap 'exit 1' INT TERM
url=${1:-sqlite:$folder/jobs.db}
[ $# -eq 0 ] || shift
[ $# -gt 0 ] || set -- scheduled_job
period=3 part=10

# Waits until a file has a line of the process that was started last.
told() {
  until [ -s "$1" ]; do
    kill -0 $! || { echo "a node has ended before its time"; exit 1; }
    sleep 0.05
  done
}

# Starts a node: its name, how long its runs take, its command, which may be several words.
start() {
  # shellcheck disable=SC2086
  $3 --url "$url" --name "$1" --period $period --for $part --work "$2" --output "$runs" >"$folder/$1" &
  nodes="$nodes $!"
  told "$folder/$1"
}

# The first node has the first run, at once and alone, and would take longer for it than everything else does.
start node-1 60 "$1"
told "$runs"
victim=$!
for number in 2 3 4 5 6 7 8 9 10; do
  command=$1 && shift && set -- "$@" "$command"
  start "node-$number" 0 "$1"
done
kill -KILL $victim
killed=$(date +%s)
for node in $nodes; do
  [ "$node" = $victim ] || wait "$node"
done
nodes=

# A line is instant, token, node. No instant comes twice, and tokens rise. The killed run is the first. In the period after the
# kill there is one again, since a dead run's lease ends before that is over; from then on there is one in each.
sort -n "$runs" | awk -v step=$((period * 1000)) -v killed=$((killed - killed % period))000 '
  function say(what) { print what; wrong = 1 }
  NR > 1 && $1 == last { say("two starts at " $1) }
  NR > 1 && $2 <= token { say("an older token at " $1) }
  NR == 2 && $1 > (last > killed ? last : killed) + step { say("no run in the period after the kill") }
  NR > 2 && $1 > last + step { say("no run between " last " and " $1) }
  { last = $1; token = $2 }
  END {
    if (NR < 4) say("too few runs")
    print "ten nodes, node-1 was killed in its run; then " NR - 1 " runs, " (wrong ? "not " : "") "one in each period"
    exit wrong
  }' || { cat "$runs"; exit 1; }
