#!/usr/bin/env bash
# join -> grant -> leave with curl alone. HOLDFAST_ENDPOINT names the router; $1 the player.
set -euo pipefail
endpoint=${HOLDFAST_ENDPOINT:-http://127.0.0.1:7400}
player=${1:-curl-player}

call() { # call SERVICE/METHOD JSON: prints the answer; on an error prints it to stderr and fails
    local body
    body=$(curl --silent --show-error --fail-with-body --max-time 12 \
        -H 'Content-Type: application/json' -H 'Connect-Timeout-Ms: 10000' \
        "$endpoint/holdfast.v1.$1" -d "$2") || { echo "$1: $body" >&2; return 1; }
    echo "$body"
}
field() { sed -n "s/.*\"$1\":\"\([^\"]*\)\".*/\1/p"; } # the one string field of that name
op_id() { # a UUIDv7: 48 bits of time, then random
    local time random
    time=$(printf '%012x' "$(date +%s%3N)")
    random=$(od -An -N10 -tx1 /dev/urandom | tr -d ' \n')
    echo "${time:0:8}-${time:8:4}-7${random:0:3}-a${random:3:3}-${random:6:12}"
}

incarnation=$(call SessionService/RegisterServer '{"name": "curl-example"}' | field incarnation)

# Join: the answer carries the token for every later write, and the whole profile.
join=$(call SessionService/StartSession "{\"playerId\": \"$player\", \"opId\": \"$(op_id)\",
    \"incarnation\": \"$incarnation\", \"mode\": \"steal\"}")
token=$(field token <<<"$join")
echo "joined: $join"

# Grant. Sent twice under one op_id, as after a lost answer: carried out once.
grant="{\"playerId\": \"$player\", \"opId\": \"$(op_id)\", \"reason\": \"match_reward\",
    \"authority\": \"session:$token\",
    \"currencies\": {\"gold\": 100}}"
granted=$(call LedgerService/Grant "$grant")
again=$(call LedgerService/Grant "$grant")
printf 'granted: %s\nagain:   %s\n' "$granted" "$again"

# Leave: a last save and the release, in one entry.
left=$(call SessionService/EndSession "{\"playerId\": \"$player\", \"opId\": \"$(op_id)\",
    \"authority\": \"session:$token\",
    \"edits\": {\"progression\": {\"schemaVersion\": 1,
                 \"merge\": {\"last_map\": \"harbour\"}}}}")
echo "left: $left"
call SessionService/UnregisterServer "{\"incarnation\": \"$incarnation\"}" >/dev/null
call LedgerService/GetBalances "{\"playerId\": \"$player\"}"
