/*
 * A shard's rows put into an empty shard of another cluster (docs/backup.md; node/core/apply,
 * node/rpc/backup_*.c): parts of any size, doubled, out of turn, across restarts. What was backed
 * up is there, byte for byte, but for events and totals, and nothing else; sessions of before are
 * over; meanwhile nothing is served.
 */
#include <string.h>

#include "holdfast/v1/backup.pb-c.h"
#include "idl/error_code.h"
#include "runtime/base/row_digest.h"
#include "tests/sim/cores/node/life.h"

#define PARTS_MAX 6u

struct move {
    struct rsim *sim;
    struct life life;
    struct life_rows rows; /* Of the backup. */
    struct fixture f;      /* Of the new cluster. */
    struct buf parts[PARTS_MAX];
    uint32_t part_count;
    struct row_digest digest;
    char *token; /* Of a session of before; NULL: none. */
    int64_t gold[LIFE_PLAYERS];
};

static ProtobufCBinaryData lend(struct slice bytes)
{
    return (ProtobufCBinaryData){ bytes.size, (uint8_t *)(uintptr_t)bytes.data };
}

static void back_up(struct move *m)
{
    life_rows_get(&m->life, &m->rows);
    m->part_count = (uint32_t)rsim_between(m->sim, 1, PARTS_MAX);
    for (uint32_t i = 0; i < m->rows.count; i++) {
        struct buf *part = &m->parts[i * m->part_count / m->rows.count];
        buf_put_bytes(part, m->rows.keys[i]);
        buf_put_bytes(part, m->rows.values[i]);
        row_digest_add(&m->digest, m->rows.keys[i], m->rows.values[i]);
    }
    for (uint32_t i = 0; i < LIFE_PLAYERS; i++)
        m->gold[i] = fixture_balance(&m->life.f, life_players[i], "gold");
}

static const Holdfast__V1__BeginRestoreResponse *begin(struct move *m, const char *id)
{
    Holdfast__V1__BeginRestoreRequest request = HOLDFAST__V1__BEGIN_RESTORE_REQUEST__INIT;

    request.restore_id = lend(slice_from_text(id));
    request.meta = lend(buf_slice(&m->life.f.meta_row));
    return fixture_mutate(&m->f, METHOD_BEGIN_RESTORE, &request.base);
}

static const Holdfast__V1__RestoreRowsResponse *put(struct move *m, const char *id, uint32_t part)
{
    Holdfast__V1__RestoreRowsRequest request = HOLDFAST__V1__RESTORE_ROWS_REQUEST__INIT;

    request.restore_id = lend(slice_from_text(id));
    request.part = part;
    request.rows = lend(buf_slice(&m->parts[part < m->part_count ? part : 0]));
    return fixture_mutate(&m->f, METHOD_RESTORE_ROWS, &request.base);
}

static const void *finish(struct move *m, uint64_t row_count, uint8_t wrong)
{
    Holdfast__V1__FinishRestoreRequest request = HOLDFAST__V1__FINISH_RESTORE_REQUEST__INIT;
    struct hash128 sum = row_digest_sum(&m->digest);

    sum.bytes[3] ^= wrong;
    request.restore_id = lend(SLICE_LITERAL("sixteen bytes of"));
    request.meta = lend(buf_slice(&m->life.f.meta_row));
    request.row_count = row_count;
    request.digest = lend((struct slice){ sum.bytes, sizeof sum.bytes });
    return fixture_mutate(&m->f, METHOD_FINISH_RESTORE, &request.base);
}

static void refused(struct move *m, const void *response, Holdfast__V1__ErrorCode code)
{
    PROMISE(m->sim, response == NULL && m->f.error != NULL, "what must be refused is done");
    PROMISE(m->sim, m->f.error->code == code, "refused with %d, not %d: %s", (int)m->f.error->code,
            (int)code, m->f.error->message);
    m->sim->counts.parts_refused++;
}

static void stands(struct move *m, const char *wanted)
{
    Holdfast__V1__GetBackupStateRequest request = HOLDFAST__V1__GET_BACKUP_STATE_REQUEST__INIT;
    const Holdfast__V1__GetBackupStateResponse *response =
        fixture_read(&m->f, METHOD_GET_BACKUP_STATE, &request.base);

    PROMISE(m->sim, response != NULL && strcmp(response->state, wanted) == 0,
            "the shard's state is not \"%s\"", wanted);
}

/* Nothing is served, and time does nothing. */
static void meanwhile(struct move *m, uint32_t done)
{
    Holdfast__V1__GetBalancesRequest balances = HOLDFAST__V1__GET_BALANCES_REQUEST__INIT;

    balances.player_id = text_lend(life_players[0]);
    stands(m, "restoring");
    switch (rsim_between(m->sim, 0, 7)) {
    case 0:
        refused(m, fixture_grant(&m->f, life_players[1], "system:payments", 1), CODE(UNAVAILABLE));
        break;
    case 1:
        refused(m, fixture_read(&m->f, METHOD_GET_BALANCES, &balances.base), CODE(UNAVAILABLE));
        break;
    case 2:
        refused(m, put(m, "sixteen bytes of", done + 1), CODE(VERSION_CONFLICT));
        break;
    case 3:
        refused(m, begin(m, "other sixteen by"), CODE(VERSION_CONFLICT));
        break;
    case 4:
        fixture_restart(&m->f);
        PROMISE(m->sim, begin(m, "sixteen bytes of")->parts == done, "another count of parts");
        m->sim->counts.restores_resumed++;
        break;
    case 5:
        PROMISE(m->sim, fixture_pass(&m->f, 700000) == 0, "a timer runs out during a restore");
        break;
    case 6:
        refused(m, finish(m, m->digest.count + (done == m->part_count), 0), CODE(VERSION_CONFLICT));
        break;
    default:
        refused(m, finish(m, m->digest.count, 1), CODE(VERSION_CONFLICT));
        break;
    }
}

static void restore(struct move *m)
{
    uint32_t done = 0;

    stands(m, "empty");
    refused(m, begin(m, "short"), CODE(INVALID_ARGUMENT));
    PROMISE(m->sim, begin(m, "sixteen bytes of") != NULL, "a restore is refused");
    while (done < m->part_count) {
        if (rsim_chance(m->sim, 60))
            meanwhile(m, done);
        bool again = done > 0 && rsim_chance(m->sim, 20);
        const Holdfast__V1__RestoreRowsResponse *told =
            put(m, "sixteen bytes of", again ? done - 1 : done);
        done += !again;
        PROMISE(m->sim, told != NULL && told->parts == done, "a part is refused, or counts wrong");
    }
    meanwhile(m, done);
    PROMISE(m->sim, finish(m, m->digest.count, 0) != NULL, "what is whole is refused: %s",
            m->f.error->message);
    PROMISE(m->sim, finish(m, m->digest.count, 0) != NULL, "what is done is refused again");
    stands(m, "used");
}

/* Events are not restored: a reader is told of a gap. Nor are totals: homes pull again. */
static bool begins_again(struct slice key)
{
    return key.data[0] == TABLE_EVENT || key.data[0] == TABLE_PULLED ||
           key.data[0] == TABLE_SHARE || key.data[0] == TABLE_TALLY || key.data[0] == TABLE_RANK;
}

static void compare_rows(struct move *m)
{
    uint32_t at = 0;

    for (uint32_t i = 0; i < m->rows.count; i++) {
        if (begins_again(m->rows.keys[i]))
            continue;
        PROMISE(m->sim, at < m->f.row_count, "row %u of %u is missing", i, m->rows.count);
        PROMISE(m->sim,
                slice_equal(buf_slice(&m->f.rows[at].key), m->rows.keys[i]) &&
                    slice_equal(buf_slice(&m->f.rows[at].value), m->rows.values[i]),
                "a row of table %c is another one", m->rows.keys[i].data[0]);
        at++;
    }
    PROMISE(m->sim, at == m->f.row_count, "%u rows, and %u were backed up", m->f.row_count, at);
}

static void compare(struct move *m)
{
    fixture_checkpoint(&m->f);
    compare_rows(m);
    if (rsim_chance(m->sim, 50))
        fixture_restart(&m->f);
    for (uint32_t i = 0; i < LIFE_PLAYERS; i++)
        PROMISE(m->sim, fixture_balance(&m->f, life_players[i], "gold") == m->gold[i],
                "another balance");
}

/* The new cluster goes on with it. */
static void go_on(struct move *m)
{
    struct fixture_sums sums;
    char *player = text_lend(life_players[0]);

    if (m->token != NULL) {
        refused(m, fixture_grant(&m->f, player, m->token, 1), CODE(SESSION_LOST));
        refused(m,
                fixture_start(&m->f, player, SERVER_B, HOLDFAST__V1__START_MODE__START_MODE_FAIL,
                              fixture_op_id(&m->f)),
                CODE(SERVER_EXPIRED));
    }
    char *token = fixture_start(&m->f, player, "2-5", HOLDFAST__V1__START_MODE__START_MODE_FAIL,
                                fixture_op_id(&m->f));
    PROMISE(m->sim, token != NULL, "a server of the new cluster is refused");
    PROMISE(m->sim, fixture_grant(&m->f, player, token, 1) != NULL, "a session does not write");
    for (uint32_t i = 0; i < LIFE_PLAYERS; i++)
        fixture_audit(&m->f, life_players[i], "gold", &sums);
    (void)fixture_pass(&m->f, 700000);
    for (uint32_t i = 0; i < LIFE_PLAYERS; i++) {
        fixture_audit(&m->f, life_players[i], "gold", &sums);
        PROMISE(m->sim, sums.reserved == 0, "a reservation never ends");
    }
    PROMISE(m->sim, totals_are_zero(&applier_meta(m->f.applier)->totals),
            "what is held is not what was made");
}

void room_backup(struct rsim *sim)
{
    struct move *m = arena_zalloc(&sim->arena, sizeof *m);
    uint32_t turns = (uint32_t)rsim_between(sim, 5, 60);

    m->sim = sim;
    life_init(&m->life, sim);
    PROMISE(sim, fixture_grant(&m->life.f, "ann", "unheld", 50) != NULL, "no grant");
    for (uint32_t i = 0; i < turns; i++)
        life_turn(&m->life);
    if (rsim_chance(sim, 60))
        m->token =
            fixture_start(&m->life.f, "ann", SERVER_A, HOLDFAST__V1__START_MODE__START_MODE_FAIL,
                          fixture_op_id(&m->life.f));
    back_up(m);
    fixture_init(&m->f);
    m->f.now_ms = m->life.f.now_ms;
    m->f.ids = m->life.f.ids;
    m->f.generation = 2;
    m->f.epoch = m->life.f.epoch + 1000;
    fixture_next_epoch(&m->f);
    restore(m);
    compare(m);
    go_on(m);
    sim->counts.shards_restored++;
    for (uint32_t i = 0; i < PARTS_MAX; i++)
        buf_deinit(&m->parts[i]);
    fixture_deinit(&m->f);
    life_deinit(&m->life);
}
