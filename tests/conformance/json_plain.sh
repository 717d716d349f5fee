#!/bin/bash
# Plain JSON (docs/json.md) over json_plain_cases.txt: each case beside its canonical form, of which `buf
# convert` makes the bytes that plain JSON must come to; and what is refused, with the reason.
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
line=0

fail() {
    printf 'FAILED line %d: %s\n' "$line" "$1"
    failures=$((failures + 1))
}

while IFS= read -r text; do
    line=$((line + 1))
    case $text in '#'* | '') continue ;; esac
    cases=$((cases + 1))
    verdict=${text%% *}
    rest=${text#* }
    type=holdfast.v1.${rest%% *}
    rest=${rest#* }
    plain=${rest%% ==> *}
    expected=${rest##* ==> }
    takes=0
    printf '%s' "$plain" | "$ours" "$type" plain proto >"$work/ours.bin" 2>"$work/ours.err" && takes=1
    if [ "$verdict" = refuses ]; then
        if [ "$takes" = 1 ]; then fail "taken: $text"
        elif [ "$(cat "$work/ours.err")" != "$expected" ]; then fail "$text: $(cat "$work/ours.err")"; fi
        continue
    fi
    [ "$takes" = 1 ] || { fail "$text: $(cat "$work/ours.err")"; continue; }
    printf '%s' "$expected" >"$work/in.json"
    "$buf" convert "$work/image.binpb" --type "$type" --from "$work/in.json#format=json" \
        --to "$work/theirs.bin#format=binpb"
    cmp -s "$work/ours.bin" "$work/theirs.bin" || { fail "other bytes than buf's: $text"; continue; }
    if [ "$verdict" = is ] && [ "$("$ours" "$type" proto plain <"$work/theirs.bin")" != "$plain" ]; then
        fail "comes back as $("$ours" "$type" proto plain <"$work/theirs.bin")"
    fi
done <json_plain_cases.txt
[ "$failures" -eq 0 ] || exit 1
echo "json_plain: $cases cases"
