/*
 * Events of one shard, by the promises of events.proto and docs/events.md: what changes leaves
 * exactly its events, what is refused leaves none; an event of a ledger's entry says what that
 * entry says; readers with filters and pages of any size get each event once and in order, or are
 * told of a gap; and retention removes what is too old or too much, and nothing else.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "holdfast/internal/v1/definition.pb-c.h"
#include "idl/error_code.h"
#include "node/core/codec/arena_proto.h"
#include "node/core/handler/event_row.h"
#include "node/rpc/fixture_edges.h"
#include "runtime/base/check.h"
#include "runtime/base/hex.h"
#include "tests/sim/cores/node/life.h"

#define TURNS            140u
#define SEEN             2048u
#define READERS          4u
#define TARGETS          3u
#define DEFINED          4u
#define RETENTION_NUMBER 41u
#define KIND(name)       HOLDFAST__V1__EVENT_KIND__EVENT_KIND_##name
#define TRIM_MS          15000u /* By then a shard has removed what retention lets go. */
#define STEP_MS          900u   /* No event goes before the reader who follows has seen it. */
#define KEEP_MS          (7ull * 24u * 3600u * 1000u)
#define KEPT_MAX         1000000u

typedef Holdfast__Internal__V1__ListShardEventsRequest list_request;
typedef Holdfast__Internal__V1__ListShardEventsResponse list_response;
typedef Holdfast__V1__Event event_message;

struct seen {
    uint8_t place[EVENT_PLACE_BYTES];
    Holdfast__V1__EventKind kind;
    const char *entity;
    uint64_t at_ms;
};

struct reader_state {
    uint8_t next[EVENT_PLACE_BYTES];
    bool begun;
    uint32_t life;
    Holdfast__V1__EventKind kinds[2];
    uint32_t kind_count;
    const char *prefix;
};

/* What the event of an edge, a session or a definition has to say. */
struct wanted {
    const char *entity, *text; /* text: target, server, name. */
    bool flag;                 /* Stands, has started, is deleted. */
    uint64_t number, ver;      /* Of a definition; of an edge and a definition. */
};

struct events_world {
    struct life life;
    struct rsim *sim;
    struct fixture *f;
    struct seen seen[SEEN];
    uint32_t count, gone; /* gone: the first of them were removed. */
    struct reader_state readers[READERS];
    uint8_t last[EVENT_PLACE_BYTES]; /* The faithful reader's, who follows every turn. */
    bool followed;
    uint32_t life_number;
    /* What stands, for what has to be told. */
    uint64_t ledger_seq[LIFE_PLAYERS];
    bool edges[LIFE_PLAYERS][TARGETS];
    char *tokens[LIFE_PLAYERS];
    const char *servers[LIFE_PLAYERS];
    bool defined[DEFINED], retained;
    uint64_t keep_ms, kept_max, revision;
    /* Of the turn. */
    uint64_t begun_ms, begun_epoch, begun_counter;
    bool passing; /* Time, in which sessions that no server uses end. */
    uint32_t sessions, favorites, definitions; /* Events that it has to leave; of ledgers those that
                                                * have an entry. */
    const char *op_id;
    struct wanted want;
};

static bool chance(struct events_world *w, uint32_t per_hundred)
{
    return rsim_chance(w->sim, per_hundred);
}

static uint32_t below(struct events_world *w, uint32_t count)
{
    return (uint32_t)rsim_between(w->sim, 0, count - 1);
}

static uint32_t player_named(struct events_world *w, const char *entity)
{
    for (uint32_t i = 0; i < LIFE_PLAYERS; i++) {
        if (strncmp(entity, "player:", 7) == 0 && strcmp(entity + 7, life_players[i]) == 0)
            return i;
    }
    rsim_broken(w->sim, "an event of \"%s\"", entity);
}

/* ---- each event against its change ---- */

static const Holdfast__V1__LedgerEntry *entry_of(struct events_world *w, uint32_t player,
                                                 uint64_t seq)
{
    Holdfast__V1__ListEntriesRequest request = HOLDFAST__V1__LIST_ENTRIES_REQUEST__INIT;

    request.player_id = text_lend(life_players[player]);
    request.page_size = 200;
    for (;;) {
        const Holdfast__V1__ListEntriesResponse *told =
            fixture_read(w->f, METHOD_LIST_ENTRIES, &request.base);
        PROMISE(w->sim, told != NULL, "entries are refused: %s", w->f->error->message);
        for (size_t i = 0; i < told->n_entries; i++) {
            if (told->entries[i]->seq == seq)
                return told->entries[i];
        }
        if (told->next_cursor[0] == 0)
            return NULL;
        request.cursor = told->next_cursor;
    }
}

static void check_ledger(struct events_world *w, const event_message *event)
{
    uint32_t player = player_named(w, event->entity);
    const Holdfast__V1__LedgerEvent *told = event->ledger;
    uint64_t seq = ++w->ledger_seq[player];
    const Holdfast__V1__LedgerEntry *entry = entry_of(w, player, seq);

    PROMISE(w->sim, entry != NULL && told->seq == seq, "entry %" PRIu64 " is told as %" PRIu64, seq,
            told->seq);
    PROMISE(w->sim,
            told->kind == entry->kind && told->refers_to == entry->refers_to &&
                strcmp(told->reason, entry->reason) == 0 && event->at_ms == entry->at_ms,
            "an entry of kind %d is told as %d", (int)entry->kind, (int)told->kind);
    PROMISE(w->sim,
            told->items == entry->n_items &&
                (entry->n_items == 0 || told->items_taken == entry->items_taken),
            "%u items are told", told->items);
    PROMISE(w->sim, told->n_changes == entry->n_changes, "%zu changes are told", told->n_changes);
    for (size_t i = 0; i < entry->n_changes; i++) {
        const Holdfast__V1__LedgerChange *a = told->changes[i], *b = entry->changes[i];
        PROMISE(w->sim,
                strcmp(a->currency, b->currency) == 0 && a->amount == b->amount &&
                    a->balance_after == b->balance_after && a->reserved == b->reserved &&
                    (a->reserved == 0 || a->reserved_after == b->reserved_after),
                "a change of %s is told otherwise", b->currency);
    }
    PROMISE(w->sim, event->op_id[0] == 0 || strcmp(event->op_id, entry->op_id) == 0,
            "an event of %s is told to be of %s", entry->op_id, event->op_id);
    w->sim->counts.events_of_ledgers++;
}

static bool says_so(const event_message *event, const struct wanted *want)
{
    if (event->kind == KIND(FAVORITE))
        return strcmp(event->favorite->collection, "favorites") == 0 &&
               strcmp(event->favorite->target_id, want->text) == 0 &&
               (event->favorite->favorited != 0) == want->flag && event->favorite->ver == want->ver;
    if (event->kind == KIND(SESSION))
        return strcmp(event->session->server, want->text) == 0 &&
               (event->session->started != 0) == want->flag && event->session->fence > 0;
    return strcmp(event->definition->name, want->text) == 0 &&
           event->definition->number == want->number && event->definition->version == want->ver &&
           (event->definition->deleted != 0) == want->flag &&
           strlen(event->entity) ==
               strlen("definition:/") + strlen(event->definition->kind) + strlen(want->text);
}

/* A server never used the session that it got: it ends by itself. */
static void check_ended(struct events_world *w, const event_message *event)
{
    uint32_t player = player_named(w, event->entity);

    PROMISE(w->sim,
            w->tokens[player] != NULL && !event->session->started &&
                strcmp(event->session->server, w->servers[player]) == 0,
            "a session of %s is told to have ended", event->entity);
    w->tokens[player] = NULL;
}

static void check_one(struct events_world *w, const event_message *event)
{
    static const Holdfast__V1__Event__BodyCase bodies[] = {
        [KIND(FAVORITE)] = HOLDFAST__V1__EVENT__BODY_FAVORITE,
        [KIND(LEDGER)] = HOLDFAST__V1__EVENT__BODY_LEDGER,
        [KIND(SESSION)] = HOLDFAST__V1__EVENT__BODY_SESSION,
        [KIND(DEFINITION)] = HOLDFAST__V1__EVENT__BODY_DEFINITION,
    };

    PROMISE(w->sim,
            (size_t)event->kind < ARRAY_SIZE(bodies) && event->body_case == bodies[event->kind],
            "an event of kind %d has the body %d", (int)event->kind, (int)event->body_case);
    if (event->kind == KIND(LEDGER)) {
        check_ledger(w, event);
        return;
    }
    if (event->kind == KIND(SESSION) && w->passing) {
        check_ended(w, event);
        return;
    }
    uint32_t *left = event->kind == KIND(SESSION)    ? &w->sessions
                     : event->kind == KIND(FAVORITE) ? &w->favorites
                                                     : &w->definitions;
    PROMISE(w->sim, *left > 0, "an event of kind %d, and nothing of the kind was done",
            (int)event->kind);
    PROMISE(w->sim, w->op_id == NULL || strcmp(event->op_id, w->op_id) == 0,
            "an event of %s is told to be of %s", w->op_id, event->op_id);
    --*left;
    PROMISE(w->sim, strcmp(event->entity, w->want.entity) == 0, "an event of \"%s\", not \"%s\"",
            event->entity, w->want.entity);
    PROMISE(w->sim, says_so(event, &w->want), "an event of \"%s\" says something else",
            event->entity);
}

static void see(struct events_world *w, const event_message *event)
{
    struct seen *seen = &w->seen[w->count++];
    struct event_place place;

    PROMISE(w->sim, w->count < SEEN, "too many events");
    PROMISE(w->sim,
            hex_parse(slice_from_text(event->seq), sizeof seen->place, seen->place) == ERR_OK &&
                event_place_parse((struct slice){ seen->place, sizeof seen->place }, &place) ==
                    ERR_OK,
            "seq \"%s\"", event->seq);
    PROMISE(w->sim,
            event->shard == w->f->shard && event->dot->epoch == place.epoch &&
                event->dot->counter == place.counter && event->dot->owner == 1,
            "an event of another entry than its seq says");
    PROMISE(w->sim,
            place.epoch > w->begun_epoch ||
                (place.epoch == w->begun_epoch && place.counter > w->begun_counter),
            "an event of an entry of before");
    PROMISE(w->sim, (uint64_t)event->at_ms >= w->begun_ms && (uint64_t)event->at_ms <= w->f->now_ms,
            "an event of %" PRId64, event->at_ms);
    seen->kind = event->kind;
    seen->entity = arena_text(&w->sim->arena, slice_from_text(event->entity));
    seen->at_ms = (uint64_t)event->at_ms;
    check_one(w, event);
}

static void turn_begin(struct events_world *w)
{
    w->begun_ms = w->f->now_ms;
    w->begun_epoch = w->f->epoch;
    w->begun_counter = w->f->counter;
    w->sessions = w->favorites = w->definitions = 0;
    w->op_id = NULL;
    w->want = (struct wanted){ 0 };
}

/* Everything that the turn has left, and nothing else. */
static void follow(struct events_world *w)
{
    list_request request = HOLDFAST__INTERNAL__V1__LIST_SHARD_EVENTS_REQUEST__INIT;

    request.shard = w->f->shard;
    request.limit = 1000;
    request.life = w->life_number;
    if (w->followed)
        request.after = (ProtobufCBinaryData){ sizeof w->last, w->last };
    const list_response *told = fixture_read(w->f, METHOD_LIST_SHARD_EVENTS, &request.base);
    PROMISE(w->sim, told != NULL && !told->gap && !told->more && told->next.len == sizeof w->last,
            "events are refused, or missing");
    const list_response page = *told;
    for (size_t i = 0; i < page.n_events; i++)
        see(w, page.events[i]);
    memcpy(w->last, page.next.data, sizeof w->last);
    w->life_number = page.life;
    w->followed = true;
    PROMISE(w->sim, w->sessions == 0 && w->favorites == 0 && w->definitions == 0,
            "no event tells of a change: %u sessions, %u edges, %u definitions", w->sessions,
            w->favorites, w->definitions);
    arena_reset(&w->f->arena);
}

/* No entry of a ledger is without its event. */
static void check_heads(struct events_world *w)
{
    Holdfast__V1__ListPlayersRequest request = HOLDFAST__V1__LIST_PLAYERS_REQUEST__INIT;

    request.shard = w->f->shard;
    const Holdfast__V1__ListPlayersResponse *told =
        fixture_read(w->f, METHOD_LIST_PLAYERS, &request.base);
    PROMISE(w->sim, told != NULL, "players are refused");
    for (size_t i = 0; i < told->n_players; i++) {
        for (uint32_t p = 0; p < LIFE_PLAYERS; p++)
            PROMISE(w->sim,
                    strcmp(told->players[i]->player_id, life_players[p]) != 0 ||
                        told->players[i]->ledger_seq == w->ledger_seq[p],
                    "an entry of %s left no event", life_players[p]);
    }
}

/* ---- what is done ---- */

static char *fresh_op(struct events_world *w)
{
    w->op_id = arena_text(&w->sim->arena, slice_from_text(fixture_op_id(w->f)));
    return text_lend(w->op_id);
}

static void live(struct events_world *w)
{
    life_turn(&w->life);
}

static void edge(struct events_world *w)
{
    static const char *const targets[TARGETS] = { "pong", "go", "chess" };
    uint32_t player = below(w, LIFE_PLAYERS), target = below(w, TARGETS);
    bool gone = chance(w, 50);
    const struct fixture_edge call = { .player = life_players[player],
                                       .target = targets[target],
                                       .gone = gone,
                                       .ver = chance(w, 30) ? rsim_between(w->sim, 1, 9) : 0,
                                       .op_id = fresh_op(w) };
    const Holdfast__V1__FavoriteResponse *told = fixture_edge(w->f, &call);

    if (told == NULL)
        return;
    bool stands = told->status->favorited != 0;
    w->favorites = stands != w->edges[player][target];
    w->want.entity = arena_printf(&w->sim->arena, "player:%s", life_players[player]);
    w->want.text = targets[target];
    w->want.flag = stands;
    w->want.ver = told->status->ver;
    w->edges[player][target] = stands;
    if (chance(w, 30)) { /* A repetition is no change. */
        PROMISE(w->sim, fixture_edge(w->f, &call) != NULL, "a repetition is refused");
    }
}

static void session(struct events_world *w)
{
    uint32_t player = below(w, LIFE_PLAYERS);

    w->want.entity = arena_printf(&w->sim->arena, "player:%s", life_players[player]);
    if (w->tokens[player] != NULL && chance(w, 70)) {
        char *token = w->tokens[player];
        w->op_id = NULL; /* Of the fixture's making. */
        w->sessions = fixture_end(w->f, life_players[player], token) != NULL;
        w->want.text = w->servers[player];
        w->tokens[player] = NULL;
        return;
    }
    const char *server = chance(w, 50) ? SERVER_A : SERVER_B;
    const char *token = fixture_start(w->f, life_players[player], server,
                                      HOLDFAST__V1__START_MODE__START_MODE_FAIL, fresh_op(w));
    if (token == NULL)
        return;
    w->sessions = 1;
    w->want.flag = true;
    w->want.text = w->servers[player] = server;
    w->tokens[player] = arena_text(&w->sim->arena, slice_from_text(token));
}

static void define(struct events_world *w)
{
    uint32_t place = below(w, DEFINED);
    const struct fixture_collection hats = {
        .number = 20 + place,
        .revision = ++w->revision,
        .name = arena_printf(&w->sim->arena, "hats%u", place),
        .policy = POLICY_LAST,
        .edges_max = (uint32_t)rsim_between(w->sim, 1, 100000),
        .deleted = chance(w, 30),
    };

    fixture_define(w->f, &hats);
    if (chance(w, 30))
        fixture_define(w->f, &hats); /* Again: it is there already. */
    w->want.flag = hats.deleted;
    w->want.text = hats.name;
    w->want.number = hats.number;
    w->want.ver = hats.revision;
    w->want.entity = arena_printf(&w->sim->arena, "definition:collection/%s", hats.name);
    w->definitions =
        hats.number % w->f->shard_count == w->f->shard && (!hats.deleted || w->defined[place]);
    w->defined[place] = !hats.deleted;
}

/* How long events are kept; 0 and 0: as by default. */
static void retain(struct events_world *w)
{
    Holdfast__Internal__V1__DefineRequest request = HOLDFAST__INTERNAL__V1__DEFINE_REQUEST__INIT;
    Holdfast__V1__DefinitionBody body = HOLDFAST__V1__DEFINITION_BODY__INIT;
    Holdfast__V1__EventRetentionBody retention = HOLDFAST__V1__EVENT_RETENTION_BODY__INIT;
    Holdfast__Internal__V1__Defined given = HOLDFAST__INTERNAL__V1__DEFINED__INIT;
    Holdfast__Internal__V1__Defined *list[] = { &given };

    retention.keep_ms = chance(w, 70) ? (int64_t)rsim_between(w->sim, 1000, 200000) : 0;
    retention.events_max = chance(w, 70) ? (uint32_t)rsim_between(w->sim, 10, 60) : 0;
    body.kind_case = HOLDFAST__V1__DEFINITION_BODY__KIND_EVENT_RETENTION;
    body.event_retention = &retention;
    given.number = RETENTION_NUMBER;
    given.version = given.revision = ++w->revision;
    given.name = text_lend("events");
    given.body = &body;
    given.deleted = chance(w, 20);
    request.generation = 1;
    request.to_revision = w->revision;
    request.last = true;
    request.n_definitions = 1;
    request.definitions = list;
    w->want.entity = "definition:event_retention/events";
    w->want.text = given.name;
    w->want.number = given.number;
    w->want.ver = given.version;
    w->want.flag = given.deleted;
    w->definitions =
        given.number % w->f->shard_count == w->f->shard && (!given.deleted || w->retained);
    PROMISE(w->sim, fixture_mutate(w->f, METHOD_DEFINE, &request.base) != NULL,
            "a retention is refused: %s", w->f->error->message);
    w->retained = !given.deleted;
    w->keep_ms = given.deleted || retention.keep_ms == 0 ? KEEP_MS : (uint64_t)retention.keep_ms;
    w->kept_max = given.deleted || retention.events_max == 0 ? KEPT_MAX : retention.events_max;
}

/* ---- retention ---- */

/* What is gone by now: the oldest, of which each was too old or too much. */
static void look_what_is_gone(struct events_world *w)
{
    list_request request = HOLDFAST__INTERNAL__V1__LIST_SHARD_EVENTS_REQUEST__INIT;
    uint8_t first[EVENT_PLACE_BYTES];
    uint32_t gone = w->count;

    request.shard = w->f->shard;
    request.limit = 1;
    const list_response *told = fixture_read(w->f, METHOD_LIST_SHARD_EVENTS, &request.base);
    PROMISE(w->sim, told != NULL && !told->gap, "events from the oldest on are refused");
    if (told->n_events > 0) {
        PROMISE(w->sim,
                hex_parse(slice_from_text(told->events[0]->seq), sizeof first, first) == ERR_OK,
                "seq \"%s\"", told->events[0]->seq);
        for (gone = 0; gone < w->count; gone++) {
            if (memcmp(w->seen[gone].place, first, sizeof first) == 0)
                break;
        }
        PROMISE(w->sim, gone < w->count, "an event that never was");
    }
    PROMISE(w->sim, gone >= w->gone, "an event is back");
    for (uint32_t i = w->gone; i < gone; i++)
        PROMISE(w->sim, w->seen[i].at_ms + w->keep_ms <= w->f->now_ms || w->count - i > w->kept_max,
                "an event is removed that is to be kept");
    w->sim->counts.events_trimmed += gone - w->gone;
    w->gone = gone;
    PROMISE(w->sim, applier_meta(w->f->applier)->events.count == w->count - w->gone,
            "%" PRIu64 " events are counted, not %u", applier_meta(w->f->applier)->events.count,
            w->count - w->gone);
    arena_reset(&w->f->arena);
}

/* Time in which the shard does what is due. */
static void pass(struct events_world *w)
{
    uint64_t ms = chance(w, 60) ? TRIM_MS + below(w, 1000) : rsim_between(w->sim, 1, 60000);

    w->passing = true;
    for (uint64_t left_ms = ms; left_ms > 0;) { /* Reservations and sessions end meanwhile. */
        uint64_t step_ms = left_ms < STEP_MS ? left_ms : STEP_MS;
        (void)fixture_pass(w->f, step_ms);
        follow(w);
        left_ms -= step_ms;
    }
    w->passing = false;
    for (uint32_t i = 0; i < LIFE_PLAYERS; i++)
        PROMISE(w->sim,
                (strcmp(fixture_session(w->f, life_players[i])->state, "free") == 0) ==
                    (w->tokens[i] == NULL),
                "a session of %s ended without an event, or never did", life_players[i]);
    look_what_is_gone(w);
    if (ms < TRIM_MS)
        return;
    uint32_t since = w->count; /* Those of the last moments may be too many. */
    while (since > w->gone && w->seen[since - 1].at_ms + TRIM_MS > w->f->now_ms)
        since--;
    PROMISE(w->sim, since - w->gone <= w->kept_max, "%u events are kept", since - w->gone);
    PROMISE(w->sim,
            w->gone == w->count || w->seen[w->gone].at_ms + w->keep_ms + TRIM_MS > w->f->now_ms,
            "an event is kept that is too old");
}

/* ---- readers ---- */

static bool passes(const struct reader_state *reader, const struct seen *seen)
{
    bool kind = reader->kind_count == 0;

    for (uint32_t i = 0; i < reader->kind_count; i++)
        kind |= reader->kinds[i] == seen->kind;
    return kind && strncmp(seen->entity, reader->prefix, strlen(reader->prefix)) == 0;
}

/* The first event behind its place. */
static uint32_t place_of(const struct events_world *w, const struct reader_state *reader)
{
    uint32_t at = 0;

    while (at < w->count && reader->begun &&
           memcmp(w->seen[at].place, reader->next, sizeof reader->next) <= 0)
        at++;
    return at;
}

static void choose_filter(struct events_world *w, struct reader_state *reader)
{
    static const char *const prefixes[] = {
        "", "player:", "player:ann", "player:b", "player:bo", "definition:", "x", "player:anna"
    };

    reader->kind_count = chance(w, 50) ? 0 : (uint32_t)rsim_between(w->sim, 1, 2);
    for (uint32_t i = 0; i < reader->kind_count; i++)
        reader->kinds[i] = (Holdfast__V1__EventKind)rsim_between(w->sim, 1, 4);
    reader->prefix = chance(w, 50) ? "" : RSIM_PICK(w->sim, prefixes);
}

static void check_page(struct events_world *w, struct reader_state *reader,
                       const list_request *request, const list_response *told)
{
    uint32_t at = place_of(w, reader);
    bool gap = reader->begun && at < w->gone;

    PROMISE(w->sim, (told->gap != 0) == gap, "a gap is %s", told->gap ? "made up" : "hidden");
    at = at < w->gone ? w->gone : at;
    for (size_t i = 0; i < told->n_events; i++, at++) {
        uint8_t place[EVENT_PLACE_BYTES];
        while (at < w->count && !passes(reader, &w->seen[at]))
            at++;
        PROMISE(w->sim,
                at < w->count &&
                    hex_parse(slice_from_text(told->events[i]->seq), sizeof place, place) ==
                        ERR_OK &&
                    memcmp(place, w->seen[at].place, sizeof place) == 0 &&
                    told->events[i]->kind == w->seen[at].kind &&
                    strcmp(told->events[i]->entity, w->seen[at].entity) == 0,
                "another event is told than the next one");
    }
    PROMISE(w->sim, told->n_events <= request->limit, "a page of %zu events", told->n_events);
    PROMISE(w->sim, !told->more || told->n_events == request->limit, "a short page goes on");
    PROMISE(w->sim, told->next.len == sizeof reader->next, "a place of %zu bytes", told->next.len);
    memcpy(reader->next, told->next.data, sizeof reader->next);
    reader->begun = true;
    reader->life = told->life;
    /* What it has passed by is left out by the filters; what it has not passed is announced. */
    uint32_t next = place_of(w, reader);
    for (uint32_t i = at; i < w->count; i++)
        PROMISE(w->sim, !passes(reader, &w->seen[i]) || (i >= next && told->more),
                "an event is passed by");
}

static void read_some(struct events_world *w)
{
    list_request request = HOLDFAST__INTERNAL__V1__LIST_SHARD_EVENTS_REQUEST__INIT;
    struct reader_state *reader = &w->readers[below(w, READERS)];

    if (!reader->begun)
        choose_filter(w, reader);
    request.shard = w->f->shard;
    request.limit = chance(w, 20) ? 1000 : (uint32_t)rsim_between(w->sim, 1, 5);
    request.life = reader->life;
    request.kinds = reader->kinds;
    request.n_kinds = reader->kind_count;
    request.entity_prefix = text_lend(reader->prefix);
    if (reader->begun)
        request.after = (ProtobufCBinaryData){ sizeof reader->next, reader->next };
    const list_response *told = fixture_read(w->f, METHOD_LIST_SHARD_EVENTS, &request.base);
    PROMISE(w->sim, told != NULL, "events are refused: %s", w->f->error->message);
    check_page(w, reader, &request, told);
    w->sim->counts.events_read += told->n_events;
    if (chance(w, 8)) /* Another reader, from the oldest event on. */
        *reader = (struct reader_state){ 0 };
    arena_reset(&w->f->arena);
}

/* A place of another life, or behind all that was ever committed: all that is kept comes again. */
static void read_from_nowhere(struct events_world *w)
{
    list_request request = HOLDFAST__INTERNAL__V1__LIST_SHARD_EVENTS_REQUEST__INIT;
    uint8_t place[EVENT_PLACE_BYTES];

    memcpy(place, w->last, sizeof place);
    request.shard = w->f->shard;
    request.limit = 1000;
    request.life = w->life_number;
    request.after = (ProtobufCBinaryData){ sizeof place, place };
    if (chance(w, 50))
        request.life++;
    else
        place[below(w, 2) * 8] = 0xff;
    const list_response *told = fixture_read(w->f, METHOD_LIST_SHARD_EVENTS, &request.base);
    PROMISE(w->sim, told != NULL && told->gap, "a reader from nowhere is told of no gap");
    PROMISE(w->sim, told->n_events == w->count - w->gone, "%zu events are told, not %u",
            told->n_events, w->count - w->gone);
    arena_reset(&w->f->arena);
}

static void read_wrongly(struct events_world *w)
{
    list_request request = HOLDFAST__INTERNAL__V1__LIST_SHARD_EVENTS_REQUEST__INIT;
    Holdfast__V1__EventKind kinds[17];
    uint8_t place[EVENT_PLACE_BYTES + 1] = { 0 };
    char *long_prefix = arena_zalloc(&w->sim->arena, 130);
    static const char *const fields[] = { "limit",         "limit", "kinds",
                                          "entity_prefix", "after", "after" };
    uint32_t which = below(w, ARRAY_SIZE(fields) + 1);

    memset(long_prefix, 'p', which == 3 ? 129 : 128);
    for (uint32_t i = 0; i < 17; i++)
        kinds[i] = KIND(LEDGER);
    request.shard = w->f->shard;
    request.limit = which == 0 ? 0 : which == 1 ? 1001 : 1000;
    request.kinds = kinds;
    request.n_kinds = which == 2 ? 17 : 16;
    request.entity_prefix = long_prefix;
    if (which == 4 || which == 5)
        request.after = (ProtobufCBinaryData){ EVENT_PLACE_BYTES - 1 + (which - 4) * 2, place };
    const void *told = fixture_read(w->f, METHOD_LIST_SHARD_EVENTS, &request.base);
    PROMISE(w->sim, (told == NULL) == (which < ARRAY_SIZE(fields)), "a request is refused, or not");
    if (told == NULL)
        PROMISE(w->sim, strcmp(w->f->error->field, fields[which]) == 0, "\"%s\", not \"%s\"",
                w->f->error->field, fields[which]);
}

/* ---- turns ---- */

static void turn(struct events_world *w)
{
    static void (*const deeds[])(struct events_world *) = {
        live, live,   live, live, edge,      edge,      session,   session,
        live, define, live, pass, read_some, read_some, read_some, retain
    };

    turn_begin(w);
    w->f->now_ms += rsim_between(w->sim, 1, 400);
    RSIM_PICK(w->sim, deeds)(w);
    follow(w);
    switch (rsim_between(w->sim, 0, 29)) {
    case 0:
        fixture_evict(w->f, 0);
        break;
    case 1:
        fixture_restart(w->f);
        break;
    case 2:
        fixture_next_epoch(w->f);
        break;
    case 3:
        read_from_nowhere(w);
        break;
    case 4:
        read_wrongly(w);
        break;
    default:
        break;
    }
}

void room_events(struct rsim *sim)
{
    struct events_world *w = mem_zalloc(sizeof *w);

    memset(&w->life, 0, sizeof w->life);
    w->sim = w->life.sim = sim;
    w->f = &w->life.f;
    w->keep_ms = KEEP_MS;
    w->kept_max = KEPT_MAX;
    w->revision = 10;
    uint32_t shards = chance(w, 50) ? 1 : 4;
    fixture_init_shard(w->f, below(w, shards), shards);
    fixture_define_favorites(w->f);
    w->definitions = 7 % shards == w->f->shard;
    w->want.entity = "definition:collection/favorites";
    w->want.text = "favorites";
    w->want.number = 7;
    w->want.ver = w->revision;
    w->begun_ms = w->f->now_ms;
    follow(w);
    for (uint32_t i = 0; i < TURNS; i++)
        turn(w);
    check_heads(w);
    look_what_is_gone(w);
    fixture_deinit(w->f);
    free(w);
}
