/*
 * Users at two members (node/core/document; docs/users.md): what one call gives stands, leaf by
 * leaf, on both sides of a cut; what it does not give stays; a context has seen the record and the
 * connections; each limit, and one beyond it.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "idl/error_code.h"
#include "idl/method.h"
#include "node/core/codec/arena_proto.h"
#include "node/core/document/fixture.h"
#include "node/core/document/user.h"
#include "node/core/mergeable/rounds.h"
#include "runtime/base/check.h"
#include "tests/sim/cores/rsim.h"

#define MEMBERS   2u
#define GUESTS    3u
#define PARTS_MAX 500u
#define TURNS     55u

enum { NAME, ATTRIBUTES, SETTINGS = ATTRIBUTES + 3, CREATED = SETTINGS + 2, SEEN, GAME, PLACES };

/* What one write gave at one place; text as JSON has it. */
struct part {
    uint32_t write, guest, place;
    const char *text;
    uint64_t at_ms, ends_ms;
    uint64_t gone; /* Writes that took it away. */
};

struct lobby {
    struct rsim *sim;
    struct pair pair;
    uint32_t part_count, write_count;
    struct part parts[PARTS_MAX];
    uint64_t known[MEMBERS];
    struct {
        char *text;
        uint64_t seen, known; /* Writes that it shows, and all that its member had. */
    } contexts[GUESTS];
};

static char *guest_at(struct lobby *l, uint32_t guest)
{
    return arena_printf(&l->sim->arena, "g%u", guest);
}

/* ---- what stands ---- */

static bool stands(const struct lobby *l, uint32_t member, const struct part *part)
{
    return (l->known[member] >> part->write & 1) != 0 && (part->gone & l->known[member]) == 0;
}

/* The latest; NULL: nothing. */
static const struct part *last_at(const struct lobby *l, uint32_t member, uint32_t guest,
                                  uint32_t place)
{
    const struct part *last = NULL;

    for (uint32_t i = 0; i < l->part_count; i++) {
        const struct part *part = &l->parts[i];

        if (part->guest == guest && part->place == place && stands(l, member, part) &&
            (last == NULL || last->at_ms < part->at_ms))
            last = part;
    }
    if (last != NULL && last->ends_ms != 0 && last->ends_ms <= l->pair.now_ms)
        return NULL;
    return last;
}

static const char *text_at(const struct lobby *l, uint32_t member, uint32_t guest, uint32_t place)
{
    const struct part *part = last_at(l, member, guest, place);

    return part != NULL ? part->text : NULL;
}

/* {"a":..,"b":..,"c":..}; empty: there is none. */
static char *attributes_at(struct lobby *l, uint32_t member, uint32_t guest)
{
    char *text = arena_printf(&l->sim->arena, "%s", "");

    for (uint32_t i = 0; i < 3; i++) {
        const char *value = text_at(l, member, guest, ATTRIBUTES + i);

        if (value != NULL)
            text = arena_printf(&l->sim->arena, "%s%c\"%c\":%s", text, text[0] == 0 ? '{' : ',',
                                'a' + (int)i, value);
    }
    return text[0] == 0 ? text : arena_printf(&l->sim->arena, "%s}", text);
}

static char *settings_at(struct lobby *l, uint32_t member, uint32_t guest)
{
    const char *inner = text_at(l, member, guest, SETTINGS);
    const char *outer = text_at(l, member, guest, SETTINGS + 1);

    if (inner == NULL && outer == NULL)
        return arena_printf(&l->sim->arena, "%s", "");
    return arena_printf(&l->sim->arena, "{%s%s%s%s%s%s}", inner != NULL ? "\"s\":{\"x\":" : "",
                        inner != NULL ? inner : "", inner != NULL ? "}" : "",
                        inner != NULL && outer != NULL ? "," : "", outer != NULL ? "\"v\":" : "",
                        outer != NULL ? outer : "");
}

static int64_t number_at(struct lobby *l, uint32_t member, uint32_t guest, uint32_t place)
{
    const char *text = text_at(l, member, guest, place);

    return text != NULL ? strtoll(text, NULL, 10) : 0;
}

static void check_user(struct lobby *l, uint32_t member, uint32_t guest,
                       const Holdfast__V1__User *told)
{
    const char *name = text_at(l, member, guest, NAME);
    const struct part *game = last_at(l, member, guest, GAME);
    bool any = false;

    for (uint32_t place = 0; place < GAME; place++)
        any |= text_at(l, member, guest, place) != NULL;
    PROMISE(l->sim, (told != NULL) == (any || game != NULL), "a user is told, or not");
    if (told == NULL)
        return;
    PROMISE(l->sim, strcmp(told->player_id, guest_at(l, guest)) == 0, "another user is told");
    PROMISE(l->sim, strcmp(told->display_name, name != NULL ? name : "") == 0,
            "the name %s is told", told->display_name);
    PROMISE(l->sim, strcmp(told->attributes, attributes_at(l, member, guest)) == 0,
            "%s is told, not %s", told->attributes, attributes_at(l, member, guest));
    PROMISE(l->sim, strcmp(told->settings, settings_at(l, member, guest)) == 0,
            "%s is told, not %s", told->settings, settings_at(l, member, guest));
    PROMISE(l->sim, told->created_at_ms == number_at(l, member, guest, CREATED),
            "created at %" PRId64 ", not %" PRId64, told->created_at_ms,
            number_at(l, member, guest, CREATED));
    PROMISE(l->sim, told->last_seen_at_ms == number_at(l, member, guest, SEEN),
            "seen at %" PRId64 ", not %" PRId64, told->last_seen_at_ms,
            number_at(l, member, guest, SEEN));
    PROMISE(l->sim, told->n_connections == (game != NULL), "%zu connections", told->n_connections);
    if (game != NULL)
        PROMISE(l->sim,
                strcmp(told->connections[0]->connection, "game") == 0 &&
                    (uint64_t)told->connections[0]->set_at_ms == game->at_ms &&
                    (uint64_t)told->connections[0]->expires_at_ms == game->ends_ms,
                "the connection is told otherwise");
}

/* ---- calls ---- */

static err call(struct lobby *l, uint32_t member, uint32_t method, const ProtobufCMessage *request)
{
    const struct refusal *refusal = &l->pair.refusal;
    Holdfast__V1__ErrorDetail *detail = &l->sim->detail;
    err e = pair_call(&l->pair, (int)member, method, request);

    merge_durable(l->pair.replicas[member], l->pair.replicas[member]->log_end);
    holdfast__v1__error_detail__init(detail);
    detail->code = refusal->code;
    detail->message = text_lend(refusal->message != NULL ? refusal->message : "");
    detail->field = text_lend(refusal->field != NULL ? refusal->field : "");
    detail->limit = text_lend(refusal->limit != NULL ? refusal->limit : "");
    return e;
}

static void exchange(struct lobby *l)
{
    fixture_exchange(l->pair.replicas, l->pair.now_ms);
    l->known[0] |= l->known[1];
    l->known[1] = l->known[0];
}

static void get_turn(struct lobby *l, uint32_t member, uint32_t guest)
{
    Holdfast__V1__GetUserRequest request = HOLDFAST__V1__GET_USER_REQUEST__INIT;
    bool asks = l->contexts[guest].text != NULL && rsim_chance(l->sim, 60);

    l->pair.erased = rsim_chance(l->sim, 5);
    request.player_id = guest_at(l, guest);
    request.context = asks ? l->contexts[guest].text : text_lend("");
    err e = call(l, member, METHOD_GET_USER, &request.base);
    bool erased = l->pair.erased;

    l->pair.erased = false;
    if (!erased && asks && (l->contexts[guest].seen & ~l->known[member]) != 0) {
        PROMISE(l->sim, e != ERR_OK, "less is told than the context has seen");
        rsim_refused(l->sim, CODE(UNAVAILABLE), NULL);
        l->sim->counts.users_unseen++;
        return;
    }
    if (e != ERR_OK && asks && (l->contexts[guest].known & ~l->known[member]) != 0)
        return; /* It has seen a removal, too. */
    PROMISE(l->sim, e == ERR_OK, "a read is refused: %s", l->sim->detail.message);
    const Holdfast__V1__GetUserResponse *told = (void *)arena_unpack(
        &l->sim->arena, &holdfast__v1__get_user_response__descriptor, l->pair.begun.answer);

    PROMISE(l->sim, told != NULL, "an answer that cannot be read");
    PROMISE(l->sim, !erased || (told->user == NULL && told->context[0] == 0),
            "something of an erased player is told");
    if (!erased)
        check_user(l, member, guest, told->user);
    l->sim->counts.users_read++;
}

/* ---- writes ---- */

/* One upsert while it is made: what it gives, and the places that it clears. */
struct upsert {
    Holdfast__V1__UpsertUserRequest request;
    char *disconnect[1];
    uint32_t guest;
    const char *gives[PLACES];
    bool clears[PLACES];
};

static const char *draw_value(struct lobby *l, struct upsert *upsert, uint32_t place)
{
    const char *text = arena_printf(&l->sim->arena, "%" PRIu64, rsim_between(l->sim, 0, 999));

    upsert->clears[place] = rsim_chance(l->sim, 30);
    if (!upsert->clears[place])
        upsert->gives[place] = text;
    return upsert->clears[place] ? "null" : text;
}

static void draw_patches(struct lobby *l, struct upsert *upsert)
{
    struct arena *arena = &l->sim->arena;

    if (rsim_chance(l->sim, 50)) {
        const char *a = draw_value(l, upsert, ATTRIBUTES);
        const char *c = draw_value(l, upsert, ATTRIBUTES + 2);

        upsert->request.attributes = arena_printf(arena, "{\"c\": %s, \"a\":%s}", c, a);
    }
    if (rsim_chance(l->sim, 40)) {
        const char *v = draw_value(l, upsert, SETTINGS + 1);
        const char *x = draw_value(l, upsert, SETTINGS);

        upsert->request.settings = arena_printf(arena, "{\"v\":%s,\"s\":{\"x\":%s}}", v, x);
    }
}

static void draw(struct lobby *l, uint32_t member, struct upsert *upsert)
{
    Holdfast__V1__UpsertUserRequest *request = &upsert->request;

    *upsert = (struct upsert){ .request = HOLDFAST__V1__UPSERT_USER_REQUEST__INIT,
                               .guest = (uint32_t)rsim_between(l->sim, 0, GUESTS - 1) };
    request->player_id = guest_at(l, upsert->guest);
    request->op_id = arena_printf(&l->sim->arena, "key:%" PRIu64, rsim_next(l->sim));
    if (rsim_chance(l->sim, 40)) {
        upsert->gives[NAME] = arena_printf(&l->sim->arena, "Ada %u", l->write_count);
        request->display_name = text_lend(upsert->gives[NAME]);
    }
    draw_patches(l, upsert);
    if (rsim_chance(l->sim, 30)) {
        request->connection = text_lend("game");
        request->ttl_ms = (int64_t)rsim_between(l->sim, 1000, 2000);
        upsert->gives[GAME] = "";
    } else if (rsim_chance(l->sim, 20)) {
        upsert->disconnect[0] = text_lend("game");
        request->disconnect = upsert->disconnect;
        request->n_disconnect = 1;
        upsert->clears[GAME] = true;
    }
    const char *now = arena_printf(&l->sim->arena, "%" PRIu64, l->pair.now_ms);

    if (text_at(l, member, upsert->guest, CREATED) == NULL)
        upsert->gives[CREATED] = now;
    if (upsert->gives[GAME] != NULL || upsert->clears[GAME])
        upsert->gives[SEEN] = now;
}

static void write(struct lobby *l, uint32_t member, const struct upsert *upsert)
{
    uint32_t write = l->write_count++;

    for (uint32_t i = 0; i < l->part_count; i++) {
        struct part *part = &l->parts[i];

        if (part->guest == upsert->guest && stands(l, member, part) &&
            (upsert->gives[part->place] != NULL || upsert->clears[part->place]))
            part->gone |= 1ull << write;
    }
    for (uint32_t place = 0; place < PLACES; place++) {
        if (upsert->gives[place] == NULL)
            continue;
        CHECK(l->part_count < PARTS_MAX);
        l->parts[l->part_count++] = (struct part){
            .write = write,
            .guest = upsert->guest,
            .place = place,
            .text = upsert->gives[place],
            .at_ms = l->pair.now_ms,
            .ends_ms = place == GAME ? l->pair.now_ms + (uint64_t)upsert->request.ttl_ms : 0,
        };
    }
    l->known[member] |= 1ull << write;
}

static void check_answer(struct lobby *l, uint32_t member, uint32_t guest)
{
    const Holdfast__V1__UpsertUserResponse *told = (void *)arena_unpack(
        &l->sim->arena, &holdfast__v1__upsert_user_response__descriptor, l->pair.begun.more);

    PROMISE(l->sim, l->pair.begun.ticket != 0 && l->pair.begun.context != NULL && told != NULL,
            "a write is answered otherwise");
    check_user(l, member, guest, told->user);
    l->contexts[guest].text = arena_copy_text(&l->sim->arena, l->pair.begun.context);
    l->contexts[guest].seen = 0;
    l->contexts[guest].known = l->known[member];
    for (uint32_t i = 0; i < l->part_count; i++) {
        if (l->parts[i].guest == guest && stands(l, member, &l->parts[i]))
            l->contexts[guest].seen |= 1ull << l->parts[i].write;
    }
}

static void upsert_turn(struct lobby *l, uint32_t member)
{
    struct upsert upsert;
    bool any = false;

    if (l->write_count + 2 > 64)
        return;
    l->pair.now_ms += rsim_between(l->sim, 1, 30);
    draw(l, member, &upsert);
    for (uint32_t place = 0; place < PLACES; place++)
        any |= upsert.gives[place] != NULL || upsert.clears[place];
    err e = call(l, member, METHOD_UPSERT_USER, &upsert.request.base);

    if (!any) {
        PROMISE(l->sim, e != ERR_OK, "a call that gives nothing is carried out");
        rsim_refused(l->sim, CODE(INVALID_ARGUMENT), NULL);
        return;
    }
    PROMISE(l->sim, e == ERR_OK, "a write is refused: %s %s", l->sim->detail.message,
            l->sim->detail.limit);
    write(l, member, &upsert);
    check_answer(l, member, upsert.guest);
    l->sim->counts.users_written++;
    if (upsert.gives[GAME] != NULL || upsert.clears[GAME] || !rsim_chance(l->sim, 20))
        return;
    l->pair.now_ms += 5; /* Another attempt changes nothing. */
    l->known[member] |= 1ull << l->write_count++;
    PROMISE(l->sim, call(l, member, METHOD_UPSERT_USER, &upsert.request.base) == ERR_OK,
            "another attempt is refused");
    check_user(
        l, member, upsert.guest,
        ((const Holdfast__V1__UpsertUserResponse *)(void *)arena_unpack(
             &l->sim->arena, &holdfast__v1__upsert_user_response__descriptor, l->pair.begun.more))
            ->user);
}

/* ---- limits ---- */

static char *leaves(struct lobby *l, uint64_t count)
{
    struct buf out = { 0 };

    for (uint64_t i = 0; i < count; i++)
        buf_printf(&out, "%s\"n%" PRIu64 "\":1", i == 0 ? "{" : ",", i);
    buf_printf(&out, "}");
    char *text = arena_printf(&l->sim->arena, "%.*s", (int)out.size, (const char *)out.data);

    buf_deinit(&out);
    return text;
}

/* The field for which it is refused; NULL: it holds each limit. */
static const char *spoil(struct lobby *l, Holdfast__V1__UpsertUserRequest *request, char **names)
{
    static const char *const patches[] = { "[]", "1", "{", "{\"\":1}", "null" };
    uint64_t name = rsim_about(l->sim, 64), count = rsim_about(l->sim, 62);
    uint64_t gone = rsim_about(l->sim, 16);
    char *text = arena_zalloc(&l->sim->arena, 80);

    switch (rsim_between(l->sim, 0, 8)) {
    case 0:
        memset(text, 'n', name);
        request->display_name = text;
        return name > 64 ? "display_name" : NULL;
    case 1:
        request->display_name = text_lend("a\nb");
        return "display_name";
    case 2:
        request->attributes = leaves(l, count);
        return count > 62 ? "" : NULL;
    case 3:
        request->settings = text_lend(RSIM_PICK(l->sim, patches));
        return "settings";
    case 4:
        request->status = text_lend("1");
        return "connection";
    case 5:
        request->ttl_ms = 5000;
        return "connection";
    case 6:
        request->connection = text_lend("game");
        return "ttl_ms";
    case 7:
        request->disconnect = names;
        request->n_disconnect = gone;
        return gone > 16 ? "disconnect" : NULL;
    default:
        request->disconnect = names;
        request->n_disconnect = 3;
        names[2] = names[rsim_chance(l->sim, 50) ? 0 : 1];
        return "disconnect";
    }
}

static void bad_turn(struct lobby *l, uint32_t member)
{
    Holdfast__V1__UpsertUserRequest request = HOLDFAST__V1__UPSERT_USER_REQUEST__INIT;
    Holdfast__V1__GetUserRequest get = HOLDFAST__V1__GET_USER_REQUEST__INIT;
    char *names[17];

    for (uint32_t i = 0; i < ARRAY_SIZE(names); i++)
        names[i] = arena_printf(&l->sim->arena, "c%u", i);
    request.player_id = arena_printf(&l->sim->arena, "bad%" PRIu64, rsim_next(l->sim));
    request.op_id = text_lend("key:bad");
    const char *field = spoil(l, &request, names);
    err e = call(l, member, METHOD_UPSERT_USER, &request.base);

    PROMISE(l->sim, (e == ERR_OK) == (field == NULL), "%s is refused, or not: %s",
            field != NULL ? field : "what holds each limit", l->sim->detail.limit);
    if (field != NULL)
        rsim_refused(l->sim, CODE(INVALID_ARGUMENT), field);
    get.player_id = request.player_id;
    get.context = text_lend("d1.AAAA");
    PROMISE(l->sim, call(l, member, METHOD_GET_USER, &get.base) != ERR_OK, "half a context holds");
    rsim_refused(l->sim, CODE(INVALID_ARGUMENT), "context");
    l->sim->counts.users_refused++;
}

void room_users(struct rsim *sim)
{
    struct lobby *l = arena_zalloc(&sim->arena, sizeof *l);

    l->sim = sim;
    pair_init(&l->pair);
    for (uint32_t i = 0; i < TURNS; i++) {
        uint32_t member = (uint32_t)rsim_between(sim, 0, MEMBERS - 1);
        uint64_t dice = rsim_between(sim, 0, 99);

        if (dice < 50)
            upsert_turn(l, member);
        else if (dice < 75)
            get_turn(l, member, (uint32_t)rsim_between(sim, 0, GUESTS - 1));
        else if (dice < 88)
            exchange(l);
        else if (dice < 93)
            l->pair.now_ms += rsim_between(sim, 1, 1500);
        else
            bad_turn(l, member);
    }
    exchange(l);
    for (uint32_t i = 0; i < MEMBERS * GUESTS; i++)
        get_turn(l, i % MEMBERS, i / MEMBERS);
    pair_deinit(&l->pair);
}
