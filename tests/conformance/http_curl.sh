#!/bin/bash
# The public endpoint through curl: HTTP/1.1, HTTP/2 by prior knowledge, and TLS with ALPN if an
# https URL and a CA are given.
#   http_curl.sh http://127.0.0.1:8080
#   http_curl.sh https://127.0.0.1:8443 ca.crt
set -eu
url=$1
failures=0
tls=()
versions=(--http1.1 --http2-prior-knowledge)
if [ "${2:-}" != "" ]; then
    tls=(--cacert "$2")
    versions=(--http1.1 --http2)
fi
grant=$url/holdfast.v1.LedgerService/Grant
batch=$url/holdfast.v1.LedgerService/BatchGrant
many="{\"requests\":[{}$(printf ',{}%.0s' {1..60})]}" # Its answer is worth compressing.

# expect NAME STATUS PATTERN curl-arguments..: the status, and a pattern in headers or body.
expect() {
    local name=$1 status=$2 pattern=$3 answer
    shift 3
    answer=$(curl -sS -i -m 10 "${tls[@]}" "$version" -w '\ncurl-status %{http_code} %{http_version}' "$@") ||
        answer="curl failed: $answer"
    if ! grep -q "^curl-status $status " <<<"$answer" || ! grep -q -- "$pattern" <<<"$answer"; then
        printf 'FAILED %s (%s): wanted %s and "%s", got:\n%s\n' "$name" "$version" "$status" "$pattern" "$answer"
        failures=$((failures + 1))
    fi
}

json=(-H 'content-type: application/json')
for version in "${versions[@]}"; do
    expect health 200 '^ok' "$url/healthz"
    expect unknown-path 404 '"code":"unimplemented"' "$url/nothing" -d x
    expect get 405 '^allow: POST' "$grant"
    expect type 415 '^accept-post: ' "$grant" -H 'content-type: text/plain' -d x
    expect brotli 501 '^accept-encoding: gzip, identity' "$grant" "${json[@]}" -H 'content-encoding: br' -d x
    expect gzip-field 400 '"field":"currencies\[0\].amount"' "$grant" "${json[@]}" -H 'content-encoding: gzip' --data-binary @<(gzip -c <<<'{"currencies":[{"amount":"x"}]}')
    expect gzip-broken 400 'cannot be read: not a gzip stream' "$grant" "${json[@]}" -H 'content-encoding: gzip' -d 'not gzip'
    expect gzip-bomb 413 '"code":"resource_exhausted"' "$grant" "${json[@]}" -H 'content-encoding: gzip' --data-binary @<(head -c 100000000 /dev/zero | gzip -c)
    expect answer 200 '"results":\[{' "$batch" "${json[@]}" -d "$many"
    expect gzip-header 200 '^content-encoding: gzip' "$batch" "${json[@]}" --compressed -d "$many"
    expect gzip-answer 200 '"results":\[{' "$batch" "${json[@]}" --compressed -d "$many"
    expect version 400 'connect-protocol-version' "$grant" "${json[@]}" -H 'connect-protocol-version: 2' -d '{}'
    expect timeout 400 'connect-timeout-ms' "$grant" "${json[@]}" -H 'connect-timeout-ms: soon' -d '{}'
    expect field 400 '"field":"currencies\[0\].amount"' "$grant" "${json[@]}" -d '{"currencies":[{"amount":"x"}]}'
    expect internal 404 '"code":"unimplemented"' "$url/holdfast.internal.v1.NodeService/RenewTokens" "${json[@]}" -d '{}'
    expect large 413 '"code":"resource_exhausted".*"limit":"' "$grant" "${json[@]}" --data-binary @<(head -c 5000000 /dev/zero)
    expect rest-path 404 'did you mean /v1/cluster?' "$url/v1/clutser"
    expect rest-query 400 '"field":"pagesize"' "$url/v1/players/ada/items?pagesize=1"
    expect rest-verb 405 '^allow: GET' -X PUT "$url/v1/cluster"
    expect rest-head 200 '^content-type: application/json' --head "$url/v1/cluster"
    expect rest-body 400 '"field":"body"' -X GET "${json[@]}" -d '{}' "$url/v1/players/ada"
    expect rest-type 415 '^accept: application/json' -d gold=5 "$url/v1/players/ada:grant"
    expect rest-large 413 '"field":"body"' "$url/v1/players/ada:grant" "${json[@]}" --data-binary @<(head -c 5000000 /dev/zero)
    expect rest-document 200 '"openapi":"3.1.0"' "$url/openapi.json"
    expect rest-document-packed 200 '^content-encoding: gzip' --compressed "$url/openapi.json"
    expect upgrade 200 '^ok' "$url/healthz" -H 'connection: upgrade, http2-settings' -H 'upgrade: h2c' -H 'http2-settings: AAMAAABkAAQAAP__'
done
[ "$failures" -eq 0 ] || exit 1
echo "http_curl: all as expected"
