#include "client/cli/call/ledger_chain.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "holdfast/v1/ledger.pb-c.h"
#include "runtime/base/base64.h"
#include "runtime/base/check.h"
#include "runtime/base/hex.h"
#include "runtime/crypto/sha256.h"

#define ENTRY_VERSION          1u
#define ENTRY_VERSION_EXTENDED 2u /* docs/ledger.md says of which entries. */
#define ENTRY_VERSION_NAMED    3u
#define GENESIS_TEXT           "holdfast.ledger.1:player:"
#define UID_BYTES              16u
#define FAULT_SIZE             512u

void chain_genesis(const char *player, uint8_t ret_hash[CHAIN_HASH_BYTES])
{
    sha256_pair(SLICE_LITERAL(GENESIS_TEXT), slice_from_text(player), ret_hash);
}

/* ---- bytes(entry) of docs/ledger.md ---- */

/* An integer as proto3's JSON writes it: a number, a string, or nothing for 0. */
static bool read_integer(const json_t *object, const char *name, uint64_t *ret_value)
{
    const json_t *value = json_object_get(object, name);
    const char *text = json_string_value(value);
    char *end = NULL;

    *ret_value = 0;
    if (value == NULL)
        return true;
    if (json_is_integer(value)) {
        *ret_value = (uint64_t)json_integer_value(value);
        return true;
    }
    if (text == NULL || text[0] == 0)
        return false;
    *ret_value = text[0] == '-' ? (uint64_t)strtoll(text, &end, 10) : strtoull(text, &end, 10);
    return *end == 0;
}

static bool put_integer(const json_t *object, const char *name, struct buf *out)
{
    uint64_t value;
    bool good = read_integer(object, name, &value);

    buf_put_u64(out, value);
    return good;
}

static const char *read_text(const json_t *object, const char *name)
{
    const json_t *value = json_object_get(object, name);

    return value == NULL ? "" : json_string_value(value);
}

static bool put_text(const json_t *object, const char *name, struct buf *out)
{
    const char *text = read_text(object, name);

    if (text == NULL || strlen(text) > UINT8_MAX)
        return false;
    buf_put_u8(out, (uint8_t)strlen(text));
    buf_append(out, text, strlen(text));
    return true;
}

static bool read_kind(const json_t *entry, uint8_t *ret_kind)
{
    const char *text = read_text(entry, "kind");

    const ProtobufCEnumValue *kind = text == NULL
                                         ? NULL
                                         : protobuf_c_enum_descriptor_get_value_by_name(
                                               &holdfast__v1__ledger_kind__descriptor, text);

    if (kind == NULL)
        return false;
    *ret_kind = (uint8_t)kind->value;
    return true;
}

static bool put_dot(const json_t *entry, struct buf *out)
{
    const json_t *dot = json_object_get(entry, "dot");

    return json_is_object(dot) && put_integer(dot, "epoch", out) &&
           put_integer(dot, "owner", out) && put_integer(dot, "counter", out);
}

static bool put_changes(const json_t *entry, bool extended, struct buf *out)
{
    const json_t *changes = json_object_get(entry, "changes");
    const json_t *change;
    size_t i;

    if (json_array_size(changes) > UINT8_MAX)
        return false;
    buf_put_u8(out, (uint8_t)json_array_size(changes));
    json_array_foreach(changes, i, change)
    {
        if (!put_text(change, "currency", out) || !put_integer(change, "amount", out) ||
            !put_integer(change, "balanceAfter", out))
            return false;
        if (extended &&
            (!put_integer(change, "reserved", out) || !put_integer(change, "reservedAfter", out)))
            return false;
    }
    return true;
}

static bool put_uid(const json_t *item, struct buf *out)
{
    const char *text = read_text(item, "uid");
    uint8_t uid[UID_BYTES];

    if (text == NULL || hex_parse(slice_from_text(text), sizeof uid, uid) != ERR_OK)
        return false;
    buf_append(out, uid, sizeof uid);
    return true;
}

static bool put_step(const json_t *item, struct buf *out)
{
    uint64_t step;
    bool good = read_integer(item, "step", &step) && step <= UINT32_MAX;

    buf_put_u32(out, (uint32_t)step);
    return good;
}

static bool put_items(const json_t *entry, bool extended, struct buf *out)
{
    const json_t *items = json_object_get(entry, "items");
    const json_t *item;
    size_t i;

    if (json_array_size(items) > UINT8_MAX)
        return false;
    buf_put_u8(out, (uint8_t)json_array_size(items));
    json_array_foreach(items, i, item)
    {
        const char *attributes = read_text(item, "attributes");
        if (attributes == NULL || !put_uid(item, out) || !put_text(item, "kind", out))
            return false;
        buf_put_bytes(out, slice_from_text(attributes));
        if (extended && (!put_integer(item, "mintedAtMs", out) || !put_step(item, out)))
            return false;
    }
    return true;
}

static bool put_reference(const json_t *entry, struct buf *out)
{
    bool good = put_integer(entry, "refersTo", out);

    buf_put_u8(out, json_is_true(json_object_get(entry, "itemsTaken")));
    return good;
}

static bool is_named(const json_t *entry)
{
    const char *mail_op_id = read_text(entry, "mailOpId");

    return json_array_size(json_object_get(entry, "counterparts")) > 0 ||
           (mail_op_id != NULL && mail_op_id[0] != 0);
}

static bool put_other_side(const json_t *entry, struct buf *out)
{
    const json_t *names = json_object_get(entry, "counterparts");
    const json_t *name;
    size_t i;

    if (json_array_size(names) > UINT8_MAX)
        return false;
    buf_put_u8(out, (uint8_t)json_array_size(names));
    json_array_foreach(names, i, name)
    {
        const char *text = json_string_value(name);
        if (text == NULL || strlen(text) > UINT8_MAX)
            return false;
        buf_put_short(out, slice_from_text(text));
    }
    return put_text(entry, "mailOpId", out);
}

static uint8_t version_of(const json_t *entry, uint8_t kind)
{
    uint64_t refers_to = 0;
    bool refers = read_integer(entry, "refersTo", &refers_to) && refers_to > 0;
    bool spends_items = kind == HOLDFAST__V1__LEDGER_KIND__LEDGER_KIND_SPEND &&
                        json_array_size(json_object_get(entry, "items")) > 0;

    if (is_named(entry))
        return ENTRY_VERSION_NAMED;
    return kind >= HOLDFAST__V1__LEDGER_KIND__LEDGER_KIND_CONSUME || refers || spends_items
               ? ENTRY_VERSION_EXTENDED
               : ENTRY_VERSION;
}

static err put_entry(const json_t *entry, struct buf *out, const char **ret_why)
{
    const char *why = NULL;
    uint8_t kind = 0;
    bool known = read_kind(entry, &kind);
    uint8_t version = version_of(entry, kind);
    bool extended = version != ENTRY_VERSION;

    buf_put_u8(out, version);
    if (!put_integer(entry, "seq", out))
        why = "seq";
    buf_put_u8(out, kind);
    if (why != NULL || !known)
        why = why != NULL ? why : "kind";
    else if (!put_integer(entry, "atMs", out))
        why = "atMs";
    else if (!put_dot(entry, out))
        why = "dot";
    else if (!put_text(entry, "opId", out))
        why = "opId";
    else if (!put_text(entry, "authority", out))
        why = "authority";
    else if (!put_text(entry, "reason", out))
        why = "reason";
    else if (extended && !put_reference(entry, out))
        why = "refersTo";
    else if (!put_changes(entry, extended, out))
        why = "changes";
    else if (!put_items(entry, extended, out))
        why = "items";
    else if (version == ENTRY_VERSION_NAMED && !put_other_side(entry, out))
        why = "counterparts";
    *ret_why = why;
    return why == NULL ? ERR_OK : ERR_INVALID;
}

err chain_hash(const uint8_t previous[CHAIN_HASH_BYTES], const json_t *entry,
               uint8_t ret_hash[CHAIN_HASH_BYTES], const char **ret_why)
{
    struct buf bytes = { 0 };
    err e = put_entry(entry, &bytes, ret_why);

    if (e == ERR_OK)
        sha256_pair((struct slice){ previous, CHAIN_HASH_BYTES }, buf_slice(&bytes), ret_hash);
    buf_deinit(&bytes);
    return e;
}

/* ---- a file, line by line ---- */

static void fault(struct chain_check *check, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static void fault(struct chain_check *check, const char *format, ...)
{
    char text[FAULT_SIZE];
    va_list arguments;

    va_start(arguments, format);
    (void)vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    check->faults++;
    check->fault(check->user, text);
}

static bool read_hash(const json_t *object, uint8_t ret_hash[CHAIN_HASH_BYTES])
{
    const char *text = read_text(object, "hash");
    uint8_t bytes[64];
    size_t size = 0;

    if (text == NULL || base64_size_max(strlen(text)) > sizeof bytes ||
        !base64_decode(slice_from_text(text), bytes, &size) || size != CHAIN_HASH_BYTES)
        return false;
    memcpy(ret_hash, bytes, CHAIN_HASH_BYTES);
    return true;
}

static void player_end(struct chain_check *check)
{
    if (check->player[0] != 0)
        fault(check, "player %s: the file ends at entry %" PRIu64 ", without the ledger's head",
              check->player, check->seq);
    check->player[0] = 0;
}

static void player_begin(struct chain_check *check, const char *player)
{
    player_end(check);
    (void)snprintf(check->player, sizeof check->player, "%s", player);
    check->seq = 0;
    chain_genesis(player, check->hash);
    check->hash_known = true;
    check->players++;
}

/* True: `seq` is where an entry may be judged. */
static bool order_check(struct chain_check *check, uint64_t seq)
{
    if (seq == check->seq + 1)
        return true;
    if (seq <= check->seq) {
        fault(check, "player %s: entry %" PRIu64 " stands after entry %" PRIu64, check->player, seq,
              check->seq);
        return false;
    }
    if (seq == check->seq + 2)
        fault(check, "player %s: entry %" PRIu64 " is missing", check->player, check->seq + 1);
    else
        fault(check, "player %s: entries %" PRIu64 " to %" PRIu64 " are missing", check->player,
              check->seq + 1, seq - 1);
    check->hash_known = false;
    return true;
}

static bool is_lost(const json_t *entry)
{
    uint8_t kind;
    return read_kind(entry, &kind) && kind == HOLDFAST__V1__LEDGER_KIND__LEDGER_KIND_LOST;
}

static void entry_check(struct chain_check *check, const json_t *entry)
{
    uint8_t stored[CHAIN_HASH_BYTES];
    uint8_t hash[CHAIN_HASH_BYTES];
    const char *why = NULL;
    uint64_t seq;

    check->entries++;
    if (!read_integer(entry, "seq", &seq) || seq == 0) {
        fault(check, "player %s: line %" PRIu64 " is an entry without its seq", check->player,
              check->lines);
        return;
    }
    if (!order_check(check, seq))
        return;
    check->seq = seq;
    if (!read_hash(entry, stored)) {
        fault(check, "player %s: entry %" PRIu64 " has no hash", check->player, seq);
        check->hash_known = false;
        return;
    }
    if (check->hash_known && chain_hash(check->hash, entry, hash, &why) != ERR_OK)
        fault(check, "player %s: entry %" PRIu64 " was edited: its %s cannot be", check->player,
              seq, why);
    else if (check->hash_known && memcmp(hash, stored, sizeof hash) != 0)
        fault(check,
              "player %s: entry %" PRIu64 " was edited: its hash does not follow from what it says "
              "and from the entry before",
              check->player, seq);
    memcpy(check->hash, stored, sizeof stored);
    /* The next one chains to what was lost, not to what stands in its place. */
    check->hash_known = !is_lost(entry);
}

static void head_check(struct chain_check *check, const json_t *head)
{
    uint8_t hash[CHAIN_HASH_BYTES];
    uint64_t seq;

    if (!read_integer(head, "seq", &seq)) {
        fault(check, "player %s: the ledger's head has no seq", check->player);
    } else if (seq != check->seq) {
        fault(check,
              "player %s: the ledger has %" PRIu64 " entries, the file ends at entry %" PRIu64,
              check->player, seq, check->seq);
    } else if (seq > 0 && (!read_hash(head, hash) || memcmp(hash, check->hash, sizeof hash) != 0)) {
        fault(check, "player %s: entry %" PRIu64 " is not the one the ledger ended in",
              check->player, seq);
    }
    check->player[0] = 0;
}

void chain_check_line(struct chain_check *check, struct slice line)
{
    check->lines++;
    json_t *row = json_loadb((const char *)line.data, line.size, JSON_REJECT_DUPLICATES, NULL);
    const char *player = json_string_value(json_object_get(row, "playerId"));
    const json_t *entry = json_object_get(row, "entry");
    const json_t *head = json_object_get(row, "head");

    if (player == NULL || player[0] == 0 || strlen(player) >= CHAIN_PLAYER_SIZE ||
        json_is_object(entry) == json_is_object(head)) {
        fault(check, "line %" PRIu64 " is no line of an export", check->lines);
    } else {
        if (strcmp(player, check->player) != 0)
            player_begin(check, player);
        if (entry != NULL)
            entry_check(check, entry);
        else
            head_check(check, head);
    }
    json_decref(row);
}

void chain_check_end(struct chain_check *check)
{
    player_end(check);
    if (check->lines == 0)
        fault(check, "the file is empty");
}
