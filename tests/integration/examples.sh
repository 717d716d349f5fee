#!/usr/bin/env bash
# Runs the examples of client/examples against a cluster of its own, and checks what each left.
#   examples.sh HOLDFAST HOLDFAST_EXAMPLE    the two programs; the others stand beside the first
set -euo pipefail
holdfast=$(realpath "$1")
example=$(realpath "$2")
examples=$(realpath "$(dirname "$0")/../../client/examples")
work=$(mktemp -d)

"$holdfast" dev --data "$work/data" --port 0 >"$work/dev.log" 2>&1 &
cluster=$!
stop() {
    kill -TERM "$cluster" 2>/dev/null || true
    wait "$cluster" 2>/dev/null || true
    rm -rf "$work"
}
trap stop EXIT
fail() {
    echo "FAILED: $*" >&2
    tail -n 12 "$work/dev.log" "$work"/data/*.log | cut -c 1-300 >&2
    exit 1
}

for _ in $(seq 1200); do
    grep -q '"ready": true' "$work/data/cluster.json" 2>/dev/null && break
    kill -0 "$cluster" 2>/dev/null || fail "the cluster stopped"
    sleep 0.1
done
HOLDFAST_ENDPOINT=$(sed -n 's/^ *"endpoint": "\(.*\)",$/\1/p' "$work/data/cluster.json")
export HOLDFAST_ENDPOINT
[ -n "$HOLDFAST_ENDPOINT" ] || fail "the cluster is not ready"

has() { # has PLAYER WHAT PATTERN ...: what `holdfast` says of the player has a line like each
    local player=$1 said
    shift
    said=$("$holdfast" player show "$player"; "$holdfast" ledger list "$player" -o json)
    for pattern; do
        grep -Eq "$pattern" <<<"$said" || fail "$player: nothing like '$pattern' in: $said"
    done
}
check() { # check NAME COMMAND...: runs it for a player of that name
    local player=$1
    shift
    "$@" "$player" >"$work/$player" 2>&1 || fail "$player: $(cat "$work/$player")"
    # Granted once though sent twice, saved, released.
    has "$player" 'session free' '^gold +100$' 'progression .*"last_map":"harbour"' \
        '"reason": "match_reward"' '"authority": "session:'
    [ "$("$holdfast" ledger list "$player" -o json | grep -c '"seq"')" = 1 ] ||
        fail "$player: not one ledger entry"
    echo "ok $player"
}

check curl "$examples/curl.sh"
check c "$example"
"$holdfast" define put documents example_rooms '{"policy": "vector"}' --wait-ms 20000 >/dev/null
"$(dirname "$example")/holdfast-example-documents" guild:7 >"$work/documents" || fail "documents"
[ "$(sort "$work/documents")" = "$(printf 'first reads: %s\n' castle 'castle and harbour' harbour)" ] ||
    fail "documents: $(cat "$work/documents")"
echo "ok documents"
for package in typescript grpc-js luau; do
    [ -d "$examples/$package/node_modules" ] ||
        (cd "$examples/$package" && npm install --no-save --no-audit --no-fund --loglevel=error)
done
(cd "$examples/typescript" && npm run --silent build)
check typescript node "$examples/typescript/out/example.js"
check grpc-js node "$examples/grpc-js/example.mjs"
check luau node "$examples/luau/run.mjs"
python=$(python3 "$(dirname "$0")/python_env.py" "$examples/python")
check python "$python" "$examples/python/example.py"
"$python" "$examples/python/example_test.py"
