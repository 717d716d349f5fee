/* Where lists go on (router/core/incident_cursor.h, trace_cursor.h): what was told once is read
 * back as it was, and no other text is a cursor. */
#include <string.h>

#include "idl/error_code.h"
#include "router/core/incident_cursor.h"
#include "router/core/trace_cursor.h"
#include "tests/sim/cores/rsim.h"

#define SHARDS 16u

/* ---- incidents ---- */

struct known {
    struct incident_place places[CLUSTER_NODES_MAX]; /* Learned first comes first. */
    uint32_t count;
};

/* Of more nodes than fit, the one that was learned first is forgotten. */
static void learn(struct rsim *sim, struct known *known, struct incident_cursor *cursor,
                  uint32_t nodes)
{
    const struct incident_place place = { rsim_between(sim, 1, nodes), rsim_between(sim, 1, 3),
                                          rsim_next(sim) >> rsim_between(sim, 0, 60) };
    uint32_t at = 0;
    bool lived = false;

    while (at < known->count && known->places[at].replica_id != place.replica_id)
        at++;
    if (at < known->count) {
        lived = known->places[at].life != place.life;
    } else if (known->count == CLUSTER_NODES_MAX) {
        memmove(known->places, known->places + 1, (CLUSTER_NODES_MAX - 1) * sizeof place);
        at = CLUSTER_NODES_MAX - 1;
        sim->counts.nodes_forgotten++;
    } else {
        known->count++;
    }
    known->places[at] = place;
    PROMISE(sim, incident_cursor_advance(cursor, &place) == lived, "another life, or not");
}

static void same_check(struct rsim *sim, const struct known *known,
                       const struct incident_cursor *cursor)
{
    PROMISE(sim, cursor->count == known->count, "%u nodes are known, not %u", cursor->count,
            known->count);
    for (uint32_t i = 0; i < known->count; i++) {
        const struct incident_place *a = &known->places[i];
        const struct incident_place *b = incident_cursor_find(cursor, a->replica_id);

        PROMISE(sim,
                b != NULL && b->life == a->life && b->after == a->after &&
                    b->replica_id == a->replica_id,
                "a node is known otherwise");
    }
    PROMISE(sim, incident_cursor_find(cursor, 0) == NULL, "a node that there is not");
}

static void incidents_run(struct rsim *sim)
{
    struct known *known = arena_zalloc(&sim->arena, sizeof *known);
    struct incident_cursor *cursor = arena_zalloc(&sim->arena, 2 * sizeof *cursor);
    uint32_t nodes = sim->seed % 8 == 1 ? 300 : 6;
    uint32_t steps = sim->seed % 8 == 1 ? 700 : 12;

    for (uint32_t i = 0; i < steps; i++)
        learn(sim, known, cursor, nodes);
    same_check(sim, known, cursor);
    char *text = incident_cursor_print(cursor, &sim->arena);
    PROMISE(sim,
            incident_cursor_parse(slice_from_text(text), &sim->arena, cursor + 1, &sim->detail) ==
                ERR_OK,
            "a cursor cannot be read: %s", text);
    same_check(sim, known, cursor + 1);
    PROMISE(sim, strcmp(incident_cursor_print(cursor + 1, &sim->arena), text) == 0,
            "another cursor comes of it");
    sim->counts.cursors_read++;
}

static void incidents_refused_run(struct rsim *sim)
{
    static const struct {
        const char *text;
        bool good;
    } all[] = {
        { "", true },         { "1.2.3", true },   { "1.2.3,4.5.6", true },  { "1.2", false },
        { "1.2.3.4", false }, { "x", false },      { "1.2.3,1.4.5", false }, { "1..3", false },
        { "1.2.3,", true },   { ",1.2.3", false }, { "1.2.03", false },
    };
    struct incident_cursor *cursor = arena_alloc(&sim->arena, sizeof *cursor);
    size_t place = rsim_between(sim, 0, sizeof all / sizeof all[0] - 1);
    err e =
        incident_cursor_parse(slice_from_text(all[place].text), &sim->arena, cursor, &sim->detail);

    PROMISE(sim, e == (all[place].good ? ERR_OK : ERR_INVALID), "the cursor \"%s\" is %d",
            all[place].text, (int)e);
    if (e == ERR_OK)
        return;
    rsim_refused(sim, CODE(INVALID_ARGUMENT), "cursor");
    PROMISE(sim, cursor->count == 0, "an empty cursor names nodes");
    sim->counts.cursors_refused++;
}

/* More nodes than a cluster can have are in no cursor. */
static void incidents_many_run(struct rsim *sim)
{
    struct incident_cursor *cursor = arena_alloc(&sim->arena, sizeof *cursor);
    uint64_t count = rsim_about(sim, CLUSTER_NODES_MAX);
    struct buf text = { 0 };

    for (uint64_t i = 0; i < count; i++)
        buf_printf(&text, "%s%u.1.1", i > 0 ? "," : "", (unsigned)i + 1);
    err e = incident_cursor_parse(buf_slice(&text), &sim->arena, cursor, &sim->detail);
    PROMISE(sim, e == (count > CLUSTER_NODES_MAX ? ERR_INVALID : ERR_OK), "%u nodes: %d",
            (unsigned)count, (int)e);
    buf_deinit(&text);
}

/* ---- the history of an item ---- */

static char *uid_make(struct rsim *sim, uint32_t shard)
{
    return arena_printf(&sim->arena, "%04x%014llx%014llx", shard,
                        (unsigned long long)(rsim_next(sim) >> 8),
                        (unsigned long long)(rsim_next(sim) >> 8));
}

static err begin(struct rsim *sim, const char *uid, const char *text, struct trace_cursor *cursor)
{
    Holdfast__V1__TraceItemRequest request;

    holdfast__v1__trace_item_request__init(&request);
    request.item_uid = text_lend(uid);
    request.cursor = text_lend(text);
    return trace_cursor_begin(&request, SHARDS, &sim->arena, cursor, &sim->detail);
}

static void trace_run(struct rsim *sim)
{
    uint32_t shard = (uint32_t)rsim_between(sim, 0, 0xffff);
    char *uid = uid_make(sim, shard);
    struct trace_cursor cursor, again;
    struct trace_cursor told = { (uint32_t)rsim_between(sim, 1, UINT32_MAX),
                                 (uint32_t)rsim_between(sim, 0, SHARDS - 1),
                                 (uint32_t)rsim_between(sim, 0, SHARDS - 1) };

    PROMISE(sim, begin(sim, uid, "", &cursor) == ERR_OK, "no item has the UID %s", uid);
    PROMISE(sim, cursor.step == 0 && cursor.shard == shard && cursor.other == shard,
            "the item %s begins elsewhere", uid);
    char *text = trace_cursor_print(&told, &sim->arena);
    PROMISE(sim, begin(sim, uid, text, &again) == ERR_OK, "a cursor cannot be read: %s", text);
    PROMISE(sim, memcmp(&told, &again, sizeof told) == 0, "read as another: %s", text);
    sim->counts.cursors_read++;
    uint64_t how = rsim_between(sim, 0, 3);
    if (how == 0)
        uid[rsim_between(sim, 0, 31)] = "Gg/:`A "[rsim_between(sim, 0, 6)];
    if (how == 1)
        uid[31] = 0;
    if (how == 2)
        uid = arena_printf(&sim->arena, "%s0", uid);
    err e = begin(sim, uid, "", &cursor);
    PROMISE(sim, e == (how == 3 ? ERR_OK : ERR_INVALID), "\"%s\" is an UID, or is not", uid);
    if (e != ERR_OK)
        rsim_refused(sim, CODE(INVALID_ARGUMENT), "item_uid");
}

static void trace_refused_run(struct rsim *sim)
{
    static const struct {
        const char *text;
        bool good;
    } all[] = {
        { "1.15.15", true },
        { "1.16.0", false },
        { "1.0.16", false },
        { "0.1.1", false },
        { "1.1", false },
        { "1.1.1.", false },
        { "1.1.1.1", false },
        { "4294967295.0.0", true },
        { "4294967296.0.0", false },
        { "1..1", false },
        { ".1.1", false },
        { "1.1.", false },
        { "x", false },
        { "42949672950.0.0", false },
        { "1,1.1", false },
        { "9.0.0", true },
        { "/.0.0", false },
        { ":.0.0", false },
    };
    size_t place = rsim_between(sim, 0, sizeof all / sizeof all[0] - 1);
    struct trace_cursor cursor;
    err e = begin(sim, uid_make(sim, 3), all[place].text, &cursor);

    PROMISE(sim, e == (all[place].good ? ERR_OK : ERR_INVALID), "the cursor \"%s\" is %d",
            all[place].text, (int)e);
    if (e == ERR_OK)
        return;
    rsim_refused(sim, CODE(INVALID_ARGUMENT), "cursor");
    sim->counts.cursors_refused++;
}

void room_cursors(struct rsim *sim)
{
    incidents_run(sim);
    if (sim->seed % 4 == 1)
        incidents_many_run(sim);
    for (uint32_t i = 0; i < 8; i++) {
        incidents_refused_run(sim);
        trace_run(sim);
        trace_refused_run(sim);
    }
}
