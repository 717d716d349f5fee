#!/bin/bash
# Compares runtime/codec with `buf convert` over json_codec_cases.txt: bytes made from JSON, JSON
# made from those bytes, and what is refused.
set -eu
cd "$(dirname "$0")"
ours=${HOLDFAST_BIN:-../../build/release/bin}/json_codec_convert
[ -d node_modules ] || npm ci --no-audit --no-fund
buf=node_modules/.bin/buf
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$buf" build ../../idl -o "$work/image.binpb"
failures=0
cases=0

fail() {
    printf 'FAILED line %d: %s\n' "$line" "$1"
    failures=$((failures + 1))
}

# The same JSON value, whatever the spaces and the order of fields.
canonical() {
    node -e 'const sort = (v) => v && typeof v === "object" && !Array.isArray(v)
        ? Object.fromEntries(Object.keys(v).sort().map((k) => [k, sort(v[k])]))
        : Array.isArray(v) ? v.map(sort) : v;
        console.log(JSON.stringify(sort(JSON.parse(require("fs").readFileSync(0, "utf8")))))'
}

line=0
while IFS= read -r text; do
    line=$((line + 1))
    case $text in '#'* | '') continue ;; esac
    verdict=${text%% *}
    rest=${text#* }
    type=holdfast.v1.${rest%% *}
    printf '%s' "${rest#* }" >"$work/in.json"
    cases=$((cases + 1))
    rm -f "$work/ours.bin" "$work/theirs.bin"
    takes_ours=0
    takes_theirs=0
    "$ours" "$type" json proto <"$work/in.json" >"$work/ours.bin" 2>"$work/ours.err" && takes_ours=1
    "$buf" convert "$work/image.binpb" --type "$type" --from "$work/in.json#format=json" \
        --to "$work/theirs.bin#format=binpb" >/dev/null 2>"$work/theirs.err" && takes_theirs=1
    case $verdict:$takes_ours:$takes_theirs in
    same:1:1)
        cmp -s "$work/ours.bin" "$work/theirs.bin" || { fail "other bytes: $text"; continue; }
        "$ours" "$type" proto json <"$work/theirs.bin" | canonical >"$work/ours.json"
        "$buf" convert "$work/image.binpb" --type "$type" --from "$work/theirs.bin#format=binpb" \
            --to "$work/theirs.raw#format=json"
        canonical <"$work/theirs.raw" >"$work/theirs.json"
        cmp -s "$work/ours.json" "$work/theirs.json" ||
            fail "other JSON: $(cat "$work/ours.json") and $(cat "$work/theirs.json")"
        ;;
    both-refuse:0:0 | ours-refuses:0:1 | ours-takes:1:0) ;;
    *) fail "ours $takes_ours, buf $takes_theirs: $text $(cat "$work/ours.err" "$work/theirs.err")" ;;
    esac
done <json_codec_cases.txt
[ "$failures" -eq 0 ] || exit 1
echo "json_codec: $cases cases as buf convert has them"
