#!/usr/bin/env bash
# Shows that simulator and tests see each breakage. The heads of the patches say which there are, and what catches them.
#
# `hunt.sh check` only looks whether every patch has its head and applies. `hunt.sh [NAME...]` builds the copy once, then runs
# each breakage in a process of its own: what catches it must pass as it stands, and fail with the breakage.
set -euo pipefail
export LC_ALL=C
# As many orders of threads and of events as the full length tries.
export FENCELOCK_FULL=1

here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
# In how many worlds a breakage is looked for that its own world does not show any more.
patience=20000

head_of() { sed -n "s/^$2: //p;/^---/q" "$here/$1.patch"; }

names=()
for patch in "$here"/[A-Z]*.patch; do
    name=$(basename "$patch" .patch)
    if [[ $(head_of "$name" Breakage) != "$name" || -z $(head_of "$name" Breaks) ]] ||
        ! head_of "$name" "Caught by" | grep -qE '^(sim .*--from [0-9]+ as [A-Za-z]+|test [a-z]+ [a-z0-9_:]+)$'; then
        echo "worlds/breakages/$name.patch has no head like the others" >&2
        exit 1
    fi
    names+=("$name")
done

if [[ ${1-} == check ]]; then
    folder=$(mktemp -d)
    trap 'rm -rf "$folder"' EXIT
    "$here/apply.sh" "$folder/tree" >/dev/null
    echo "${#names[@]} breakages apply"
    exit
fi

copy=$("$here/apply.sh")
cd "$copy"
export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-$root/target}/breakages
build() { cargo test --profile quick --no-run "$@" 2>&1 | tee >(cat >&2) | sed -n 's/.*Executable.*(\(.*\))$/\1/p'; }
programs=$(build -p fencelock --lib --test client && build -p fencelock-worlds --test awaits --test violation)
sim=$CARGO_TARGET_DIR/quick/sim
cd "$root"

# The program of a test target.
program() { grep -E "/$1-[0-9a-f]+$" <<<"$programs"; }

# The exit code of a command, at most 600 seconds later; what it prints is kept.
log=$(mktemp)
trap 'rm -f "$log"' EXIT
code() { timeout 600 "$@" >"$log" 2>&1 && echo 0 || echo $?; }

# Whether the test of this target passes, and fails with the breakage.
seen_by_test() {
    local run=("$(program "$2")" --exact "$3")
    [[ $(code "${run[@]}") == 0 ]] && grep -q '^test result: ok. 1 passed' "$log" &&
        [[ $(code env FENCELOCK_BREAKAGE="$1" "${run[@]}") == 101 ]] && grep -q '^test result: FAILED' "$log"
}

# Whether one of these worlds breaks this rule with the breakage.
breaks() {
    [[ $(code env FENCELOCK_BREAKAGE="$1" "$sim" "${@:3}") == 1 ]] && grep -q "^seed [0-9]*: $2 " "$log"
}

# Whether its own world keeps every promise as it stands, and breaks the rule with the breakage; or another world does.
seen_in_a_world() {
    local name=$1 rule=${*: -1} own=("${@:2:$#-3}")
    local all=("${own[@]:0:${#own[@]}-2}")
    [[ $(code "$sim" "${own[@]}" --seeds 1) == 0 ]] || return 1
    breaks "$name" "$rule" "${own[@]}" --seeds 1 && return
    breaks "$name" ".*" "${all[@]}" --seeds $patience || return
    sed -n "s/^seed \([0-9]*\): \([A-Za-z]*\) .*/$name: its world is now --from \1 as \2/p" "$log"
}

missed=()
for name in "${@:-${names[@]}}"; do
    read -ra caught <<<"$(head_of "$name" "Caught by")"
    case ${caught[0]} in
    sim) seen_in_a_world "$name" "${caught[@]:1}" ;;
    test) seen_by_test "$name" "${caught[@]:1}" ;;
    esac && echo "$name: caught" || missed+=("$name")
done

# What the simulator prints of a violation, about locks and about cells.
if [[ $# == 0 ]]; then
    violation=$(program violation)
    for run in "CancelForgets --skip cells" "SwapWithoutVersionCheck cells"; do
        read -ra words <<<"$run"
        [[ $(code env FENCELOCK_BREAKAGE="${words[0]}" "$violation" "${words[@]:1}") == 0 ]] || {
            cat "$log" >&2
            missed+=("the words of a violation")
        }
    done
fi

if [[ ${#missed[@]} != 0 ]]; then
    echo "not caught: ${missed[*]}" >&2
    exit 1
fi
echo "every breakage is caught"
