#!/bin/bash
# Stock clients against the public endpoint.
#   run.sh                      the stub server, tests/bench/http_bench_server.c (build it first)
#   run.sh http://host:port     a running router; HOLDFAST_API_KEY if it wants one
# Needs openssl; installs the npm packages that package.json pins.
set -eu
cd "$(dirname "$0")"
bin=${HOLDFAST_BIN:-../../build/release/bin}
work=$(mktemp -d)
pids=()
stop() {
    for pid in "${pids[@]}"; do kill "$pid" 2>/dev/null || true; done
    rm -rf "$work"
}
trap stop EXIT

# start_stub NAME args..: leaves the port in $port.
start_stub() {
    local name=$1
    shift
    : >"$work/$name" # There before it is looked into.
    "$bin/http_bench_server" 0 "$@" >"$work/$name" &
    pids+=($!)
    for _ in $(seq 1200); do
        port=$(head -1 "$work/$name")
        [ -z "$port" ] || return 0
        sleep 0.05
    done
    echo "the stub server did not start" >&2
    exit 1
}

./generate
url=${1:-}
export HOLDFAST_STUB=0
if [ -z "$url" ]; then
    start_stub plain
    url=http://127.0.0.1:$port
    export HOLDFAST_STUB=1
    openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 \
        -subj /CN=localhost -addext subjectAltName=IP:127.0.0.1 \
        -keyout "$work/key" -out "$work/cert" 2>/dev/null
    start_stub tls "$work/cert" "$work/key"
    ./http_curl.sh "https://127.0.0.1:$port" "$work/cert"
fi
./http_curl.sh "$url"
HOLDFAST_URL=$url node --test --test-reporter=spec connect.test.mjs grpc.test.mjs rest.test.mjs
curl -sS "$url/openapi.json" >"$work/openapi.json"
REDOCLY_TELEMETRY=off REDOCLY_SUPPRESS_UPDATE_NOTICE=true npx redocly lint --config redocly.yaml \
    --max-problems 20 "$work/openapi.json"
