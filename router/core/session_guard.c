#include "router/core/session_guard.h"

#include <string.h>

#include "idl/error_code.h"
#include "router/core/authority_walk.h"
#include "router/core/refusal.h"
#include "runtime/base/check.h"
#include "runtime/cluster/authority_text.h"

/* Of no player, ever: the highest of each number. */
#define NO_SESSION "session:18446744073709551615-18446744073709551615-18446744073709551615"

#define TOKEN_FIELD 2u /* Of StartSessionResponse. */
#define WIRE_VARINT 0u
#define WIRE_64     1u
#define WIRE_BYTES  2u
#define WIRE_32     5u

struct guarding {
    struct session_guard *guard;
    struct arena *arena;
    Holdfast__V1__ErrorDetail *detail;
    struct session_guard_found found;
};

static bool is_believed(struct session_guard *guard, struct slice player,
                        const struct session_token *token)
{
    if (token->mac.size == 0) {
        guard->refused[SESSION_GUARD_NO_MAC]++;
        return false;
    }
    if (session_token_is_genuine(guard->secrets, player, token))
        return true;
    guard->refused[SESSION_GUARD_WRONG_MAC]++;
    return false;
}

static err visit(void *user, const struct authority_place *place)
{
    struct guarding *guarding = user;
    struct slice text = slice_from_text(*place->text != NULL ? *place->text : "");
    struct session_token token;
    struct slice rest;

    enum authority_text_kind kind = authority_text_read(text, &rest);
    if (kind == AUTHORITY_TEXT_SYSTEM)
        guarding->found.system = true;
    if (kind == AUTHORITY_TEXT_SYSTEM && slice_equal(rest, SLICE_LITERAL("admin")))
        guarding->found.admin = true;
    if (kind != AUTHORITY_TEXT_SESSION || !place->has_player)
        return ERR_OK;
    if (guarding->guard->secrets->count == 0) {
        refusal_make(guarding->arena, guarding->detail, CODE(UNAVAILABLE),
                     "the router has not read the secret of session tokens yet; nothing was done");
        return ERR_UNAVAILABLE;
    }
    if (session_token_parse(rest, &token) != ERR_OK)
        return ERR_OK;
    bool believed = is_believed(guarding->guard, slice_from_text(place->player), &token);
    *place->text = believed ? arena_printf(guarding->arena, "session:%.*s", (int)token.plain.size,
                                           (const char *)token.plain.data)
                            : arena_printf(guarding->arena, "%s", NO_SESSION);
    guarding->found.changed = true;
    return ERR_OK;
}

err session_guard_message(struct session_guard *guard, const ProtobufCMessage *message,
                          struct arena *arena, struct session_guard_found *ret_found,
                          Holdfast__V1__ErrorDetail *ret_detail)
{
    struct guarding guarding = { .guard = guard, .arena = arena, .detail = ret_detail };
    const struct authority_visitor visitor = { visit, &guarding, arena, ret_detail };

    err e = authority_walk(&visitor, message);
    *ret_found = guarding.found;
    return e;
}

err session_guard_token(struct session_guard *guard, struct slice player, struct slice text,
                        struct session_token *ret_token)
{
    struct session_token token;

    CHECK(guard->secrets->count > 0);
    if (session_token_parse(text, &token) != ERR_OK || !is_believed(guard, player, &token))
        return ERR_INVALID;
    *ret_token = token;
    return ERR_OK;
}

/* ---- the answer of StartSession ---- */

struct field {
    uint64_t number;
    struct slice whole; /* With its tag. */
    struct slice value; /* Of WIRE_BYTES; else empty. */
};

static struct field read_field(struct reader *reader)
{
    const uint8_t *from = reader->at;
    uint64_t tag = read_compact(reader);
    struct field field = { .number = tag >> 3 };

    switch (tag & 7) {
    case WIRE_VARINT:
        (void)read_compact(reader);
        break;
    case WIRE_64:
        (void)read_raw(reader, 8);
        break;
    case WIRE_BYTES: {
        uint64_t size = read_compact(reader);
        if (size > reader_left(reader))
            reader->bad = true;
        else
            field.value = read_raw(reader, (size_t)size);
        break;
    }
    case WIRE_32:
        (void)read_raw(reader, 4);
        break;
    default:
        reader->bad = true;
    }
    field.whole = (struct slice){ from, (size_t)(reader->at - from) };
    return field;
}

/* The last one counts, as protobuf has it; a node sends one. */
static err find_token(struct slice answer, struct field *ret_field)
{
    struct reader reader = reader_from(answer);
    struct field found = { 0 };

    while (!reader.bad && reader_left(&reader) > 0) {
        struct field field = read_field(&reader);
        if (field.number == TOKEN_FIELD)
            found = field;
    }
    if (reader.bad)
        return ERR_CORRUPT;
    *ret_field = found;
    return ERR_OK;
}

static size_t put(uint8_t *at, struct slice bytes)
{
    if (bytes.size > 0)
        memcpy(at, bytes.data, bytes.size);
    return bytes.size;
}

err session_guard_sign(const struct session_guard *guard, struct slice player, struct slice answer,
                       struct arena *arena, struct slice *ret_answer)
{
    char text[SESSION_TOKEN_TEXT_SIZE];
    struct session_token token;
    struct field field;
    err e = find_token(answer, &field);

    CHECK(guard->secrets->count > 0);
    if (e != ERR_OK)
        return e;
    if (session_token_parse(field.value, &token) != ERR_OK || token.mac.size > 0)
        return ERR_CORRUPT;
    session_token_print(guard->secrets, player, &token, text);
    struct slice signed_token = slice_from_text(text);
    const uint8_t head[] = { TOKEN_FIELD << 3 | WIRE_BYTES, (uint8_t)signed_token.size };
    size_t before = (size_t)(field.whole.data - answer.data);
    size_t after = before + field.whole.size;
    uint8_t *out = arena_alloc(arena, answer.size + sizeof head + sizeof text);

    _Static_assert(sizeof text < 128, "a length of one byte");
    size_t size = put(out, (struct slice){ answer.data, before });
    size += put(out + size, (struct slice){ head, sizeof head });
    size += put(out + size, signed_token);
    size += put(out + size, (struct slice){ answer.data + after, answer.size - after });
    *ret_answer = (struct slice){ out, size };
    return ERR_OK;
}
