/*
 * Texts that callers bring, and what is logged of them (node/core/codec/text_rule.h, op.h;
 * node/core/session/authority.h; docs/grants.md): what is a name, an id, a token or an authority,
 * said for texts at the ends of what is allowed; and an operation that comes out of the log as it
 * went in.
 */
#include <stdio.h>
#include <string.h>

#include "node/core/codec/op.h"
#include "node/core/codec/text_rule.h"
#include "node/core/session/authority.h"
#include "runtime/base/check.h"
#include "tests/sim/cores/rsim.h"

#define ID_BYTES_MAX     100u /* Of a player. */
#define TYPED_REST_BYTES 150u

static struct slice of(const struct buf *text)
{
    return buf_slice(text);
}

/* ---- UTF-8 ---- */

/* In so many bytes, enough for the point or more. */
static void put_point(struct buf *out, uint32_t point, uint32_t size)
{
    static const uint8_t heads[] = { 0, 0, 0xc0, 0xe0, 0xf0 };

    if (size == 1) {
        buf_put_u8(out, (uint8_t)point);
        return;
    }
    buf_put_u8(out, (uint8_t)(heads[size] | point >> (6 * (size - 1))));
    for (uint32_t i = size - 1; i > 0; i--)
        buf_put_u8(out, (uint8_t)(0x80 | (point >> (6 * (i - 1)) & 0x3f)));
}

static uint32_t point_size(uint32_t point)
{
    return point < 0x80 ? 1 : point < 0x800 ? 2 : point < 0x10000 ? 3 : 4;
}

static bool point_is_clean(uint32_t point)
{
    bool control = point < 0x20 || (point >= 0x7f && point <= 0x9f);
    bool surrogate = point >= 0xd800 && point <= 0xdfff;

    return !control && !surrogate && point <= 0x10ffff;
}

static uint32_t any_point(struct rsim *sim)
{
    static const uint32_t ends[] = { 0x20,   0x7f,   0x80,   0xa0,    0x7ff,    0x800,    0xd7ff,
                                     0xd800, 0xdfff, 0xe000, 0xffff,  0x10000,  0x10ffff, 0xff,
                                     0x3f,   0x40,   0x400,  0xfffff, 0x100000, 0x1000 };

    if (rsim_chance(sim, 40))
        return (uint32_t)rsim_between(sim, 0x20, 0x7e);
    return (uint32_t)rsim_about(sim, RSIM_PICK(sim, ends));
}

static void utf8_turn(struct rsim *sim)
{
    struct buf text = { 0 };
    uint64_t count = rsim_between(sim, 0, 4);
    bool clean = true;

    for (uint64_t i = 0; i < count; i++) {
        uint32_t point = any_point(sim), size = point_size(point);
        bool longer = size < 4 && rsim_chance(sim, 8);
        clean &= point_is_clean(point) && !longer;
        put_point(&text, point, size + longer);
    }
    if (rsim_chance(sim, 10)) { /* Bytes that no text has, or a sequence that breaks off. */
        static const uint8_t bad[] = { 0x80, 0xbf, 0xc0, 0xc1, 0xf5, 0xff, 0xf8, 0xe2, 0xc3, 0xf0 };
        buf_put_u8(&text, RSIM_PICK(sim, bad));
        clean = false;
        if (rsim_chance(sim, 50))
            put_point(&text, 'a', 1);
    }
    PROMISE(sim, text_is_clean(of(&text)) == clean, "a text of %zu bytes is %s", text.size,
            clean ? "refused" : "taken");
    PROMISE(sim, (player_id_check(of(&text)) == ERR_OK) == (clean && text.size > 0),
            "a player's id of %zu bytes", text.size);
    buf_deinit(&text);
}

/* ---- names and ids ---- */

static void fill(struct rsim *sim, struct buf *text, uint64_t size, const char *letters)
{
    for (uint64_t i = 0; i < size; i++)
        buf_put_u8(text, (uint8_t)letters[rsim_between(sim, 0, strlen(letters) - 1)]);
}

static void names_turn(struct rsim *sim)
{
    static const char odd[] = "`{/:^A Z-.";
    struct buf text = { 0 };
    uint64_t most = rsim_between(sim, 1, 64);
    uint64_t size = rsim_chance(sim, 50) ? rsim_about(sim, most) : rsim_between(sim, 0, most);
    bool spoilt = size > 0 && rsim_chance(sim, 40);

    fill(sim, &text, size, "abmyz0589_");
    if (spoilt)
        text.data[rsim_between(sim, 0, size - 1)] =
            (uint8_t)odd[rsim_between(sim, 0, sizeof odd - 2)];
    PROMISE(sim, text_is_name(of(&text), most) == (size > 0 && size <= most && !spoilt),
            "the name %.*s of at most %llu bytes", (int)text.size, (const char *)text.data,
            (unsigned long long)most);
    buf_deinit(&text);
}

static void entities_turn(struct rsim *sim)
{
    static const char *const kinds[] = { "player:", "player:", "player", "Player:", "item:", "" };
    const char *kind = RSIM_PICK(sim, kinds), *why = NULL;
    uint64_t size = rsim_chance(sim, 50) ? rsim_about(sim, ID_BYTES_MAX) : rsim_between(sim, 0, 3);
    struct buf text = { 0 };

    buf_append(&text, kind, strlen(kind));
    fill(sim, &text, size, "abc12");
    bool good = strcmp(kind, "player:") == 0 && size >= 1 && size <= ID_BYTES_MAX;
    err e = entity_parse(of(&text), &why);
    PROMISE(sim, (e == ERR_OK) == good, "the entity %.*s", (int)text.size, (const char *)text.data);
    PROMISE(sim, good || (why != NULL && strstr(why, "player:<player_id>") != NULL),
            "refused without what is expected");
    if (good) {
        char *id = arena_printf(&sim->arena, "%.*s", (int)text.size - 7, (char *)text.data + 7);
        PROMISE(sim, slice_equal(entity_of_player(&sim->arena, id), of(&text)), "another entity");
    }
    buf_deinit(&text);
}

/* How many bytes of `rest` the front of `told` stands for, a letter or one byte as `\x0a`; 0: for
 * none. */
static size_t stands_for(const char *told, struct slice rest, size_t *ret_width)
{
    char escape[5];

    *ret_width = 1;
    if (rest.size > 0 && (uint8_t)told[0] == rest.data[0]) {
        size_t width = 1;
        while (width < rest.size && ((uint8_t)told[width] & 0xc0) == 0x80 &&
               (uint8_t)told[width] == rest.data[width])
            width++;
        *ret_width = width;
        return width;
    }
    if (rest.size == 0)
        return 0;
    (void)snprintf(escape, sizeof escape, "\\x%02x", rest.data[0]);
    *ret_width = 4;
    return strncmp(told, escape, 4) == 0 ? 1 : 0;
}

/* What is told is clean, stands for the front of the text, and for all of it if there is room. */
static void shortened(struct rsim *sim, const char *told, struct slice text)
{
    size_t at = 0, width;

    PROMISE(sim, strlen(told) <= 64, "%zu bytes are told", strlen(told));
    PROMISE(sim, text_is_clean(slice_from_text(told)), "'%s' is told, which is not clean", told);
    for (size_t i = 0; told[i] != 0; i += width) {
        size_t taken =
            stands_for(told + i, (struct slice){ text.data + at, text.size - at }, &width);
        PROMISE(sim, taken > 0, "'%s' stands for another text from byte %zu on", told, at);
        if (taken == 0)
            return;
        at += taken;
    }
    PROMISE(sim, at == text.size || strlen(told) > 60, "'%s' is told of %zu of %zu bytes", told, at,
            text.size);
}

static void shorten_turn(struct rsim *sim)
{
    static const char *const letters[] = { "\xc3\xa9", "\xe6\xbc\xa2", "\xf0\x9f\x98\x80" };
    struct buf text = { 0 };
    uint64_t size = rsim_chance(sim, 50) ? rsim_about(sim, 64) : rsim_between(sim, 0, 8);
    uint32_t odd = (uint32_t)rsim_between(sim, 0, 100);

    while (text.size < size) {
        const char *letter = RSIM_PICK(sim, letters);
        if (rsim_chance(sim, 20))
            buf_append(&text, letter, strlen(letter));
        else if (rsim_chance(sim, odd))
            buf_put_u8(&text, (uint8_t)rsim_between(sim, 0, 255));
        else
            buf_put_u8(&text, (uint8_t)rsim_about(sim, rsim_chance(sim, 50) ? 0x20 : 0x7f));
    }
    shortened(sim, text_shorten(&sim->arena, of(&text)), of(&text));
    const char *told = text_shorten_ascii(&sim->arena, of(&text));
    PROMISE(sim, strlen(told) == (text.size < 64 ? text.size : 64), "%zu bytes are told of %zu",
            strlen(told), text.size);
    for (size_t i = 0; told[i] != 0; i++) {
        bool printable = text.data[i] >= 0x20 && text.data[i] <= 0x7e;
        PROMISE(sim, (uint8_t)told[i] == (printable ? text.data[i] : '?'), "byte %u is told as %u",
                text.data[i], (uint8_t)told[i]);
    }
    buf_deinit(&text);
}

/* ---- op ids ---- */

static void typed_turn(struct rsim *sim)
{
    static const char *const kinds[] = { "receipt:", "claim:", "admin:", "season:", "key:",
                                         "keys:",    "clai",   "Claim:", "" };
    const char *kind = RSIM_PICK(sim, kinds), *why = NULL;
    uint64_t size =
        rsim_chance(sim, 50) ? rsim_about(sim, TYPED_REST_BYTES) : rsim_between(sim, 0, 4);
    bool known = strlen(kind) > 0 && strcmp(kind, "keys:") != 0 && strcmp(kind, "clai") != 0 &&
                 strcmp(kind, "Claim:") != 0;
    bool spoilt = size > 0 && rsim_chance(sim, 30);
    struct buf text = { 0 };
    struct op_id id;

    buf_append(&text, kind, strlen(kind));
    fill(sim, &text, size, "ab!~:-1");
    if (spoilt)
        text.data[text.size - 1 - rsim_between(sim, 0, size - 1)] =
            rsim_chance(sim, 50) ? 0x20 : 0x7f;
    bool good = known && size >= 1 && size <= TYPED_REST_BYTES && !spoilt;
    err e = op_id_parse(of(&text), &id, &why);
    PROMISE(sim, (e == ERR_OK) == good, "the op_id %.*s", (int)text.size, (const char *)text.data);
    if (good)
        PROMISE(sim, id.typed && id.is_key == (kind[0] == 'k') && slice_equal(id.text, of(&text)),
                "the op_id %.*s is read as another", (int)text.size, (const char *)text.data);
    else
        PROMISE(sim, why != NULL && why[0] != 0, "refused without a reason");
    sim->counts.ids_refused += !good;
    buf_deinit(&text);
}

static void ids_turn(struct rsim *sim)
{
    static const struct {
        const char *text;
        bool good;
    } all[] = { { "match:1:2", true },
                { "match:a:b:3", true },
                { "match:12", false },
                { "match::2", false },
                { "match:1:", false },
                { "match::", false },
                { "", false },
                { "01890a5d-ac96-774b-bcce-b302099a8057", true },
                { "01890a5d-ac96-474b-bcce-b302099a8057", false },
                { "01890a5d-ac96-774b-bcce-b302099a805", false },
                { "01890a5d-ac96-774b-bcce-b302099a80577", false } };
    uint64_t at = rsim_between(sim, 0, sizeof all / sizeof all[0] - 1);
    const char *why = NULL;
    struct op_id id;

    err e = op_id_parse(slice_from_text(all[at].text), &id, &why);
    PROMISE(sim, (e == ERR_OK) == all[at].good, "the op_id %s", all[at].text);
    PROMISE(sim, e != ERR_OK || id.typed == (all[at].text[0] == 'm'), "%s is typed, or not",
            all[at].text);
}

/* ---- tokens and authorities ---- */

static void tokens_turn(struct rsim *sim)
{
    static const char *const bad[] = { "",       "1",      "1-2",
                                       "1-2-0",  "1-2-03", "01-2-3",
                                       "1-02-3", "1-2-",   "-2-3",
                                       "1--3",   "1-2-3-", "1-2-x",
                                       "1-2-3 ", " 1-2-3", "1-2-18446744073709551616" };
    struct incarnation incarnation = { rsim_between(sim, 1, UINT64_MAX),
                                       rsim_between(sim, 1, UINT64_MAX) };
    uint64_t fence = rsim_chance(sim, 20) ? UINT64_MAX : rsim_between(sim, 1, 1000), got;
    struct incarnation read;
    char text[TOKEN_TEXT_SIZE];
    const char *wrong = RSIM_PICK(sim, bad);

    if (rsim_chance(sim, 50))
        incarnation = (struct incarnation){ rsim_between(sim, 1, 9), rsim_between(sim, 1, 999) };
    token_print(incarnation, fence, text);
    PROMISE(sim,
            token_parse(slice_from_text(text), &read, &got) == ERR_OK && got == fence &&
                read.generation == incarnation.generation && read.revision == incarnation.revision,
            "the token %s is read as another", text);
    PROMISE(sim, token_parse(slice_from_text(wrong), &read, &got) == ERR_INVALID,
            "the token \"%s\" is taken", wrong);
}

static void authorities_turn(struct rsim *sim)
{
    static const char *const good[] = { "unheld",       "system:payments", "system:mail",
                                        "system:match", "system:admin",    "system:moderation",
                                        "session:1-2-3" };
    static const char *const bad[] = {
        "",        "unheld ",      "Unheld",        "system:",
        "system",  "system:admi",  "system:admins", "session:",
        "session", "session:1-2",  "session:1-2-0", "held",
        "unhel",   "system:Admin", "system: admin", "session:x-2-3"
    };
    const char *text = RSIM_PICK(sim, good), *wrong = RSIM_PICK(sim, bad);
    struct authority authority = { 0 }, logged = { 0 };
    struct authority_fault fault = { 0 };
    struct arena *arena = &sim->arena;

    PROMISE(sim, authority_parse(arena, slice_from_text(text), &authority, &fault) == ERR_OK,
            "the authority %s is refused", text);
    PROMISE(sim, authority_parse_logged(slice_from_text(text), &logged) == ERR_OK,
            "the authority %s is refused from the log", text);
    PROMISE(sim,
            authority.kind == logged.kind && slice_equal(authority.scope, logged.scope) &&
                authority.fence == logged.fence,
            "%s is read as two", text);
    PROMISE(
        sim,
        slice_equal(authority_text(arena, &authority),
                    slice_from_text(authority.kind == AUTHORITY_SESSION ? "session:1-2" : text)),
        "%s is told otherwise", text);
    PROMISE(sim, authority_parse(arena, slice_from_text(wrong), &authority, &fault) == ERR_INVALID,
            "the authority \"%s\" is taken", wrong);
    PROMISE(sim, fault.limit != NULL && fault.limit[0] != 0 && fault.value != NULL,
            "\"%s\" is refused without a reason", wrong);
    PROMISE(sim, strstr(fault.value, "1-2") == NULL, "a refusal tells a token");
}

/* ---- the log ---- */

static void op_any(struct rsim *sim, struct op *op)
{
    static const char *const scopes[] = { "payments", "mail", "admin" };
    const char *why;

    *op = (struct op){ .method = (uint32_t)rsim_between(sim, 1, 60),
                       .attempt = (uint32_t)rsim_between(sim, 0, UINT32_MAX),
                       .cut_id = rsim_next(sim) };
    if (rsim_chance(sim, 80))
        op->entity = SLICE_LITERAL("player:ann");
    if (rsim_chance(sim, 70))
        CHECK(op_id_parse(rsim_chance(sim, 50)
                              ? SLICE_LITERAL("01890a5d-ac96-774b-bcce-b302099a8057")
                              : SLICE_LITERAL("key:once"),
                          &op->id, &why) == ERR_OK);
    op->authority.kind = (enum authority_kind)rsim_between(sim, AUTHORITY_NONE, AUTHORITY_UNHELD);
    if (op->authority.kind == AUTHORITY_SYSTEM)
        op->authority.scope = slice_from_text(RSIM_PICK(sim, scopes));
    if (op->authority.kind == AUTHORITY_SESSION) {
        op->authority.incarnation = (struct incarnation){ rsim_next(sim), rsim_next(sim) };
        op->authority.fence = rsim_next(sim);
    }
    if (rsim_chance(sim, 40))
        op->caller = SLICE_LITERAL("shop");
    op->request = slice_from_text(rsim_chance(sim, 50) ? "some bytes" : "");
}

static bool op_same(const struct op *a, const struct op *b)
{
    return a->method == b->method && a->attempt == b->attempt && a->cut_id == b->cut_id &&
           slice_equal(a->entity, b->entity) && slice_equal(a->id.text, b->id.text) &&
           a->id.typed == b->id.typed && a->id.is_key == b->id.is_key &&
           a->authority.kind == b->authority.kind &&
           slice_equal(a->authority.scope, b->authority.scope) &&
           a->authority.fence == b->authority.fence &&
           a->authority.incarnation.generation == b->authority.incarnation.generation &&
           a->authority.incarnation.revision == b->authority.incarnation.revision &&
           slice_equal(a->caller, b->caller) && slice_equal(a->request, b->request);
}

static void log_turn(struct rsim *sim)
{
    struct buf bytes = { 0 };
    struct op op, read;

    op_any(sim, &op);
    op_encode(&op, &bytes);
    PROMISE(sim, op_decode(of(&bytes), &read) == ERR_OK && op_same(&op, &read),
            "an operation comes out of the log as another");
    PROMISE(sim,
            slice_equal(read.authority.caller,
                        op.authority.kind == AUTHORITY_SYSTEM ? op.caller : (struct slice){ 0 }),
            "a system's caller");
    struct hash128 one = op_payload(op.method, op.request);
    struct hash128 other = op_payload(op.method + 1, op.request);
    PROMISE(sim, memcmp(one.bytes, read.payload.bytes, sizeof one.bytes) == 0, "another payload");
    PROMISE(sim, memcmp(one.bytes, other.bytes, sizeof one.bytes) != 0, "two methods, one payload");
    struct slice cut = { bytes.data, rsim_between(sim, 0, bytes.size - 1) };
    PROMISE(sim, op_decode(cut, &read) == ERR_CORRUPT, "%zu bytes of %zu are taken", cut.size,
            bytes.size);
    buf_put_u8(&bytes, 0);
    PROMISE(sim, op_decode(of(&bytes), &read) == ERR_CORRUPT, "a byte too many is taken");
    buf_deinit(&bytes);
}

void room_texts(struct rsim *sim)
{
    for (uint32_t i = 0; i < 12; i++) {
        utf8_turn(sim);
        names_turn(sim);
        entities_turn(sim);
        shorten_turn(sim);
        typed_turn(sim);
        ids_turn(sim);
        tokens_turn(sim);
        authorities_turn(sim);
        log_turn(sim);
        arena_reset(&sim->arena);
    }
}
