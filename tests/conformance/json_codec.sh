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
mkdir "$work/json"
failures=0
cases=0
compared=0

fail() {
    printf 'FAILED line %d: %s\n' "$line" "$1"
    failures=$((failures + 1))
}

# different DIRECTORY: the lines whose LINE.ours and LINE.theirs are not the same JSON value, whatever the
# spaces and the order of fields; one process for all of them.
different() {
    node -e 'const fs = require("fs");
        const sort = (v) => v && typeof v === "object" && !Array.isArray(v)
            ? Object.fromEntries(Object.keys(v).sort().map((k) => [k, sort(v[k])]))
            : Array.isArray(v) ? v.map(sort) : v;
        const canonical = (name) => JSON.stringify(sort(JSON.parse(fs.readFileSync(name, "utf8"))));
        for (const name of fs.readdirSync(process.argv[1]).filter((name) => name.endsWith(".ours"))) {
            const stem = process.argv[1] + "/" + name.slice(0, -".ours".length);
            const [ours, theirs] = [canonical(stem + ".ours"), canonical(stem + ".theirs")];
            if (ours !== theirs)
                console.log(name.slice(0, -".ours".length), "ours", ours, "and theirs", theirs);
        }' "$1"
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
        "$ours" "$type" proto json <"$work/theirs.bin" >"$work/json/$line.ours"
        "$buf" convert "$work/image.binpb" --type "$type" --from "$work/theirs.bin#format=binpb" \
            --to "$work/json/$line.theirs#format=json"
        compared=$((compared + 1))
        ;;
    both-refuse:0:0 | ours-refuses:0:1 | ours-takes:1:0) ;;
    *) fail "ours $takes_ours, buf $takes_theirs: $text $(cat "$work/ours.err" "$work/theirs.err")" ;;
    esac
done <json_codec_cases.txt
different "$work/json" >"$work/different"
while IFS= read -r text; do
    line=${text%% *}
    fail "other JSON: ${text#* }"
done <"$work/different"
[ "$(find "$work/json" -name '*.ours' | wc -l)" = "$compared" ] || fail "not all were compared"
[ "$failures" -eq 0 ] || exit 1
echo "json_codec: $cases cases as buf convert has them"
