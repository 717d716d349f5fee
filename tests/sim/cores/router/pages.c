/*
 * Lists of all shards: who is online (router/core/online_merge.h), page by page while players are
 * set again, and the targets that count the most (top_merge.h), each in any order of answers.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "idl/limit.h"
#include "router/core/online_merge.h"
#include "router/core/top_merge.h"
#include "runtime/base/check.h"
#include "tests/sim/cores/rsim.h"

typedef Holdfast__Internal__V1__ListNodeOnlineResponse node_says;
typedef Holdfast__Internal__V1__OnlineRow online_row;
typedef Holdfast__V1__OnlinePlayer online_player;

/* ---- who is online ---- */

#define NODES       4u
#define PLAYERS_MAX 24u
#define PAGES_MAX   400u
#define BEGAN_MS    1700000000000

struct player {
    char id[16];
    uint64_t at;
    uint32_t node;
    bool again, seen; /* Set again since the player came; on some page. */
};

struct online {
    struct rsim *sim;
    struct player players[PLAYERS_MAX];
    uint32_t count, node_count, limit;
    int64_t now_ms, skew_ms[NODES];
    struct online_merge merge;
};

static bool comes_first(const struct player *a, uint64_t at, const char *id, bool upwards)
{
    bool down = a->at > at || (a->at == at && strcmp(a->id, id) < 0);

    return upwards ? !down && !(a->at == at && strcmp(a->id, id) == 0) : down;
}

/* In the order of the list; a player in front of it may not be told. */
static uint32_t behind(struct online *o, const struct online_cursor *cursor, uint32_t node,
                       struct player **ret_list)
{
    bool first = !cursor->upwards && cursor->at == 0;
    uint32_t count = 0;

    for (uint32_t i = 0; i < o->count; i++) {
        struct player *player = &o->players[i];
        bool is_it = player->at == cursor->at && strcmp(player->id, cursor->player_id) == 0;
        bool passed = is_it || comes_first(player, cursor->at, cursor->player_id, cursor->upwards);

        if ((node != NODES && player->node != node) || (!first && passed) ||
            (cursor->upwards && !player->again))
            continue;
        uint32_t at = count++;
        for (; at > 0 &&
               comes_first(player, ret_list[at - 1]->at, ret_list[at - 1]->id, cursor->upwards);
             at--)
            ret_list[at] = ret_list[at - 1];
        ret_list[at] = player;
    }
    return count;
}

static void spoil(struct online *o, node_says *said, uint32_t limit)
{
    static online_row none = HOLDFAST__INTERNAL__V1__ONLINE_ROW__INIT;
    static online_player nameless = HOLDFAST__V1__ONLINE_PLAYER__INIT;
    static online_row of_none = HOLDFAST__INTERNAL__V1__ONLINE_ROW__INIT;
    online_row *rows[PLAYERS_MAX + 2];
    const node_says good = *said;
    uint64_t kind = rsim_between(o->sim, 0, 3);

    of_none.player = &nameless;
    for (uint32_t i = 0; i < ARRAY_SIZE(rows); i++)
        rows[i] = kind == 0 ? &none : &of_none;
    said->rows = rows;
    said->n_rows = 1;
    if (kind == 2 && good.n_rows == limit + 1) {
        for (uint32_t i = 0; i < good.n_rows; i++)
            rows[i] = good.rows[i];
        rows[good.n_rows] = good.rows[0];
        said->n_rows = good.n_rows + 1;
    } else if (kind == 3) {
        said->rows = good.rows;
        said->n_rows = good.n_rows;
        said->now_ms = (int64_t)rsim_between(o->sim, 0, ONLINE_CLOCK_MS);
    }
    PROMISE(o->sim, online_merge_add(&o->merge, said) == ERR_CORRUPT,
            "an answer that makes no sense is taken");
    *said = good;
}

/* What a node says, and the place up to which it looked: as far as it likes. */
static void answer(struct online *o, uint32_t node, const struct online_cursor *cursor,
                   struct player **bound)
{
    struct player *list[PLAYERS_MAX];
    uint32_t count = behind(o, cursor, node, list), limit = o->merge.limit;
    uint32_t told = count < limit + 1 ? count : limit + 1;
    node_says *said = arena_alloc(&o->sim->arena, sizeof *said);

    if (told > 1 && rsim_chance(o->sim, 20))
        told = (uint32_t)rsim_between(o->sim, 1, told);
    holdfast__internal__v1__list_node_online_response__init(said);
    said->rows = arena_alloc(&o->sim->arena, (told + 1) * sizeof *said->rows);
    for (uint32_t i = 0; i < told; i++) {
        online_row *row = said->rows[i] = arena_alloc(&o->sim->arena, sizeof *row);

        holdfast__internal__v1__online_row__init(row);
        row->at = list[i]->at;
        row->player = arena_alloc(&o->sim->arena, sizeof *row->player);
        holdfast__v1__online_player__init(row->player);
        row->player->player_id = list[i]->id;
    }
    said->n_rows = told;
    said->more = told < count;
    said->at = said->more ? list[told - 1]->at : rsim_next(o->sim);
    said->player_id = said->more ? list[told - 1]->id : text_lend("");
    said->now_ms = o->now_ms + o->skew_ms[node];
    said->count = count;
    said->counted_ms = rsim_chance(o->sim, 20) ? 0 : said->now_ms - node;
    if (rsim_chance(o->sim, 10))
        spoil(o, said, limit);
    PROMISE(o->sim, online_merge_add(&o->merge, said) == ERR_OK, "an answer is refused");
    if (said->more && (*bound == NULL ||
                       comes_first(list[told - 1], (*bound)->at, (*bound)->id, cursor->upwards)))
        *bound = list[told - 1];
    PROMISE(o->sim, o->merge.now_ms <= said->now_ms, "a later clock counts");
    PROMISE(o->sim, said->counted_ms == 0 || o->merge.counted_ms <= said->counted_ms,
            "a later count counts");
}

/* All that there is up to where every node looked, and no more than fit. */
static enum online_end page(struct online *o, const struct online_cursor *cursor, uint32_t limit,
                            struct online_cursor *ret_next)
{
    struct player *list[PLAYERS_MAX], *bound = NULL;
    uint32_t count = behind(o, cursor, NODES, list), wanted = 0, first;

    online_merge_init(&o->merge, cursor, limit, &o->sim->arena);
    first = (uint32_t)rsim_between(o->sim, 0, o->node_count - 1);
    for (uint32_t i = 0; i < o->node_count; i++)
        answer(o, (first + i) % o->node_count, cursor, &bound);
    PROMISE(o->sim, o->merge.players == count, "%llu players, not %u",
            (unsigned long long)o->merge.players, count);
    while (wanted < count && (bound == NULL || list[wanted] == bound ||
                              comes_first(list[wanted], bound->at, bound->id, cursor->upwards)))
        wanted++;
    bool cut = wanted > limit;
    enum online_end end = online_merge_finish(&o->merge, ret_next);
    wanted = cut ? limit : wanted;
    PROMISE(o->sim, o->merge.count == wanted, "%zu on a page, not %u", o->merge.count, wanted);
    for (uint32_t i = 0; i < wanted; i++) {
        PROMISE(o->sim, strcmp(o->merge.rows[i]->player->player_id, list[i]->id) == 0,
                "%s, where %s belongs", o->merge.rows[i]->player->player_id, list[i]->id);
        list[i]->seen = true;
    }
    PROMISE(o->sim, (end == ONLINE_MORE) == (cut || bound != NULL), "there is more, or not");
    PROMISE(o->sim,
            end == ONLINE_MORE || (end == ONLINE_END) == (cursor->upwards || cursor->begun_ms == 0),
            "the list turns, or not");
    return end;
}

static void set_again(struct online *o)
{
    struct player *player = &o->players[rsim_between(o->sim, 0, o->count - 1)];
    uint64_t at = (uint64_t)(o->now_ms + o->skew_ms[player->node]) << 16;

    if (at <= player->at)
        return;
    player->at = at;
    player->again = true;
    o->sim->counts.online_again++;
}

static void online_run(struct rsim *sim)
{
    struct online o = { .sim = sim, .now_ms = BEGAN_MS };
    struct online_cursor cursor, next;
    enum online_end end = ONLINE_MORE;
    uint32_t pages = 0;

    o.count = (uint32_t)rsim_between(sim, 1, PLAYERS_MAX);
    o.node_count = (uint32_t)rsim_between(sim, 1, NODES);
    o.limit = (uint32_t)rsim_between(sim, 1, 12);
    for (uint32_t i = 0; i < o.node_count; i++)
        o.skew_ms[i] = (int64_t)rsim_between(sim, 0, ONLINE_CLOCK_MS);
    for (uint32_t i = 0; i < o.count; i++) {
        struct player *player = &o.players[i];
        (void)snprintf(player->id, sizeof player->id, "p.%u", i);
        player->node = (uint32_t)rsim_between(sim, 0, o.node_count - 1);
        player->at = (uint64_t)(BEGAN_MS - (int64_t)rsim_between(sim, 1, 12)) << 16;
        player->again = rsim_chance(sim, 30);
    }
    PROMISE(sim, online_cursor_parse("", &sim->arena, &cursor) == ERR_OK, "no first page");
    while (end != ONLINE_END) {
        PROMISE(sim, ++pages < PAGES_MAX, "the list never ends");
        end = page(&o, &cursor, o.limit, &next);
        if (end == ONLINE_END)
            break;
        sim->counts.online_turned += end == ONLINE_TURN;
        char *text = online_cursor_print(&next, &sim->arena);
        PROMISE(sim, online_cursor_parse(text, &sim->arena, &cursor) == ERR_OK, "%s is no cursor",
                text);
        PROMISE(sim,
                cursor.upwards == next.upwards && cursor.at == next.at &&
                    cursor.begun_ms == next.begun_ms &&
                    strcmp(cursor.player_id, next.player_id) == 0,
                "the cursor %s says something else", text);
        o.now_ms += (int64_t)rsim_between(sim, 0, 40);
        for (uint32_t i = 0; pages < 20 && i < 3; i++)
            set_again(&o);
    }
    for (uint32_t i = 0; i < o.count; i++)
        PROMISE(sim, o.players[i].seen, "%s was online all the time, and is on no page",
                o.players[i].id);
    sim->counts.online_listed++;
}

static void refuse_cursors(struct rsim *sim)
{
    static const char *const bad[] = { "x1.2.a",
                                       "d0.2.a",
                                       "d.2.a",
                                       "d1.2",
                                       "d1.a.b",
                                       "d-1.2.a",
                                       "u",
                                       "e1.2.a",
                                       "D1.2.a",
                                       "d1 .2.a",
                                       "1.2.a",
                                       "u9223372036854775808.1.a",
                                       "d1.18446744073709551616.a" };
    static const char *const good[] = { "d1.2.a", "u1.0.", "d9223372036854775807.1.a.b" };
    struct online_cursor cursor;
    char id[LIMIT_PLAYER_ID_BYTES + 2] = "";

    PROMISE(sim, online_cursor_parse(RSIM_PICK(sim, bad), &sim->arena, &cursor) == ERR_INVALID,
            "no cursor is one");
    PROMISE(sim, online_cursor_parse(RSIM_PICK(sim, good), &sim->arena, &cursor) == ERR_OK,
            "a cursor is none");
    memset(id, 'a', LIMIT_PLAYER_ID_BYTES + rsim_between(sim, 0, 1));
    bool fits = strlen(id) <= LIMIT_PLAYER_ID_BYTES;
    err e = online_cursor_parse(arena_printf(&sim->arena, "d5.7.%s", id), &sim->arena, &cursor);
    PROMISE(sim, e == (fits ? ERR_OK : ERR_INVALID), "an id of %zu bytes: %d", strlen(id), (int)e);
}

/* ---- the highest totals ---- */

#define SHARDS  5u
#define TARGETS 60u

struct target {
    char id[12];
    uint64_t count;
};

static int higher(const void *one, const void *other)
{
    const struct target *a = one, *b = other;

    return a->count != b->count ? (a->count > b->count ? -1 : 1) : strcmp(a->id, b->id);
}

struct tops {
    struct rsim *sim;
    struct top_merge merge;
    struct target all[TARGETS];
    uint32_t count, limit;
    int64_t from_ms, to_ms;
};

/* Its texts are gone when it was added. */
static void shard_says(struct tops *t, uint32_t shard)
{
    Holdfast__Internal__V1__GetShardTopResponse said =
        HOLDFAST__INTERNAL__V1__GET_SHARD_TOP_RESPONSE__INIT;
    Holdfast__V1__TopEntry entries[12], *list[12];
    char ids[12][12];

    said.n_entries = rsim_between(t->sim, 0, ARRAY_SIZE(list));
    said.entries = list;
    said.collection_number = 7;
    said.at_ms = (int64_t)rsim_between(t->sim, 500, 1000);
    said.pulled_ms = (int64_t)rsim_between(t->sim, 1, 1100);
    for (size_t i = 0; i < said.n_entries; i++) {
        struct target *target = &t->all[t->count++];
        (void)snprintf(target->id, sizeof target->id, "t%u",
                       (unsigned)(rsim_between(t->sim, 0, 99) * 100 + t->count));
        target->count = rsim_chance(t->sim, 5) ? INT64_MAX : rsim_between(t->sim, 1, 9);
        memcpy(ids[i], target->id, sizeof ids[i]);
        holdfast__v1__top_entry__init(list[i] = &entries[i]);
        entries[i].target_id = ids[i];
        entries[i].count = target->count;
    }
    PROMISE(t->sim, !top_merge_is_whole(&t->merge), "a list without a shard is whole");
    PROMISE(t->sim, top_merge_add(&t->merge, shard, &said) == ERR_OK, "a shard's list is refused");
    memset(ids, 'x', sizeof ids);
    t->from_ms = said.pulled_ms < t->from_ms ? said.pulled_ms : t->from_ms;
    t->to_ms = said.at_ms > t->to_ms ? said.at_ms : t->to_ms;
}

/* What makes no sense is told as that, and the list is given up. */
static void shard_is_wrong(struct tops *t, uint32_t shard, bool told)
{
    Holdfast__Internal__V1__GetShardTopResponse said =
        HOLDFAST__INTERNAL__V1__GET_SHARD_TOP_RESPONSE__INIT;
    Holdfast__V1__TopEntry entry = HOLDFAST__V1__TOP_ENTRY__INIT, *list[TOP_LIMIT_MAX + 1];
    uint64_t kind = rsim_between(t->sim, 0, told ? 7 : 5);
    err wanted = ERR_CORRUPT;

    for (uint32_t i = 0; i < ARRAY_SIZE(list); i++)
        list[i] = &entry;
    said.entries = list;
    said.n_entries = kind == 0 ? TOP_LIMIT_MAX + 1 : 1;
    said.collection_number = kind == 1 ? 0 : 7;
    said.at_ms = said.pulled_ms = 9;
    entry.target_id = text_lend(kind == 2 ? "" : "t");
    entry.count = kind == 3 ? 0 : kind == 4 ? (uint64_t)INT64_MAX + 1 : 1;
    if (kind == 5) {
        said.pulled_ms = 0;
        wanted = ERR_UNAVAILABLE;
    } else if (kind == 6) {
        said.collection_number = rsim_chance(t->sim, 50) ? 6 : 8;
        wanted = ERR_CONFLICT;
    } else if (kind == 7) {
        shard = rsim_chance(t->sim, 50) ? SHARDS : (shard + SHARDS - 1) % SHARDS;
    }
    err e = top_merge_add(&t->merge, shard, &said);
    PROMISE(t->sim, e == wanted, "an answer that makes no sense: %d", (int)e);
    PROMISE(t->sim,
            kind != 6 || t->merge.collection_number == (said.collection_number > 7 ? 8u : 7u),
            "the earlier number of the collection counts");
    t->sim->counts.tops_given_up++;
}

static void tops_run(struct rsim *sim)
{
    struct tops t = { .sim = sim, .from_ms = INT64_MAX };
    uint32_t first = (uint32_t)rsim_between(sim, 0, SHARDS - 1);
    uint32_t wrong = (uint32_t)rsim_between(sim, 0, 3 * SHARDS);

    t.limit = (uint32_t)rsim_between(sim, 1, 14);
    top_merge_init(&t.merge, SHARDS, t.limit, &sim->arena);
    for (uint32_t i = 0; i < SHARDS && i <= wrong; i++) {
        if (i == wrong)
            shard_is_wrong(&t, (first + i) % SHARDS, i > 0);
        else
            shard_says(&t, (first + i) % SHARDS);
    }
    if (wrong >= SHARDS) {
        PROMISE(sim, top_merge_is_whole(&t.merge), "all shards, and no list");
        top_merge_finish(&t.merge);
        qsort(t.all, t.count, sizeof *t.all, higher);
        uint32_t wanted = t.count < t.limit ? t.count : t.limit;
        PROMISE(sim, t.merge.count == wanted, "%zu places, not %u", t.merge.count, wanted);
        for (uint32_t i = 0; i < wanted; i++)
            PROMISE(sim,
                    strcmp(t.merge.places[i].target, t.all[i].id) == 0 &&
                        t.merge.places[i].count == t.all[i].count,
                    "%s is at place %u, not %s", t.merge.places[i].target, i, t.all[i].id);
        int64_t from_ms = t.from_ms < t.to_ms ? t.from_ms : t.to_ms;
        PROMISE(sim, t.merge.from_ms == from_ms && t.merge.to_ms == t.to_ms,
                "of another time than what was said");
        PROMISE(sim, t.merge.collection_number == 7, "of another collection");
        sim->counts.tops_merged++;
    }
    top_merge_deinit(&t.merge);
}

void room_pages(struct rsim *sim)
{
    for (uint32_t i = 0; i < 4; i++) {
        online_run(sim);
        refuse_cursors(sim);
        tops_run(sim);
    }
}
