/* What a read of several players may tell: each player no older than what was told before, and
 * transactions as if they were one after the other, and the read between two of them. */
#include <inttypes.h>
#include <stdlib.h>

#include "holdfast/internal/v1/node.pb-c.h"
#include "runtime/base/check.h"
#include "tests/sim/oracle/oracle.h"

enum seen {
    SEEN_NOTHING, /* It did not change the player, or has not come to it. */
    SEEN_BEFORE,
    SEEN_HALF,
    SEEN_AFTER
};

struct told_read {
    struct sim *sim;
    const struct sim_reading *reading;
    const struct goods_book *book;
    bool *before;                    /* By transaction: it came before the read. */
    uint32_t turns[SIM_PLAYERS_MAX]; /* Of those: the last turn of each player. */
};

static enum seen seen(const struct txn_part_model *part, uint64_t version)
{
    if (!part->prepared || (part->finished && part->done_version == part->before_version))
        return SEEN_NOTHING;
    if (version <= part->before_version)
        return SEEN_BEFORE;
    return part->finished && version >= part->done_version ? SEEN_AFTER : SEEN_HALF;
}

/* The version at which a player was read; false: it was not. */
static bool version_of(const struct sim_reading *reading, uint32_t player, uint64_t *ret_version)
{
    for (uint32_t i = 0; i < reading->core.count; i++) {
        *ret_version = reading->core.versions[i];
        if (reading->players[i] == player)
            return true;
    }
    return false;
}

static void fail(const struct told_read *t, uint32_t player, const char *what, uint32_t txn)
{
    uint64_t version;

    CHECK(version_of(t->reading, player, &version));
    sim_fail(t->sim, t->sim->player_shard[player],
             "a read of several players, of p%u at version %" PRIu64 ": %s (%u)", player, version,
             what, txn);
}

static void must_be_before(struct told_read *t, uint32_t number)
{
    const struct txn_model *txn = &t->book->txns[number];

    t->before[number] = true;
    for (uint32_t i = 0; i < txn->part_count; i++) {
        uint32_t *turn = &t->turns[txn->parts[i].player];
        if (txn->parts[i].turn > *turn)
            *turn = txn->parts[i].turn;
    }
}

/* Those that the read has seen, or parts of them. */
static void look(struct told_read *t, uint32_t number)
{
    const struct txn_model *txn = &t->book->txns[number];
    uint64_t version;
    uint32_t after = 0;

    for (uint32_t i = 0; i < txn->part_count; i++) {
        const struct txn_part_model *part = &txn->parts[i];
        if (!version_of(t->reading, part->player, &version))
            continue;
        enum seen what = seen(part, version);
        if (what == SEEN_HALF)
            fail(t, part->player, "a transaction holds the player then", number);
        after += what == SEEN_AFTER;
    }
    if (after == 0 || txn->decision != TXN_COMMIT)
        return;
    t->sim->counts.txn_reads_of_trades += after > 1;
    must_be_before(t, number);
}

/* It held a player earlier than one that came before the read. */
static bool is_earlier(const struct told_read *t, const struct txn_model *txn)
{
    for (uint32_t i = 0; i < txn->part_count; i++) {
        if (txn->parts[i].prepared && txn->parts[i].turn < t->turns[txn->parts[i].player])
            return true;
    }
    return false;
}

/* What held a player of those before the read earlier came before it, too, and so on. */
static void look_back(struct told_read *t)
{
    bool found = true;

    while (found) {
        found = false;
        for (uint32_t i = t->book->txn_count; i > 0; i--) {
            const struct txn_model *txn = &t->book->txns[i - 1];
            if (t->before[i - 1] || txn->decision != TXN_COMMIT || !is_earlier(t, txn))
                continue;
            must_be_before(t, i - 1);
            found = true;
        }
    }
}

static void check_before(struct told_read *t, uint32_t number)
{
    const struct txn_model *txn = &t->book->txns[number];
    uint64_t version;

    for (uint32_t i = 0; i < txn->part_count; i++) {
        if (version_of(t->reading, txn->parts[i].player, &version) &&
            seen(&txn->parts[i], version) == SEEN_BEFORE)
            fail(t, txn->parts[i].player,
                 "another player shows a transaction that this one does not, or a later one",
                 number);
    }
}

static void check_fresh(const struct told_read *t)
{
    for (uint32_t i = 0; i < t->reading->core.count; i++) {
        uint32_t player = t->reading->players[i];
        const struct moment *told =
            model_at(&t->sim->oracle->players[player], t->reading->must_see[i]);
        if (told != NULL && t->reading->core.versions[i] < told->version)
            fail(t, player, "less than was told before", i);
    }
}

void read_check_told(struct sim *sim, const struct sim_reading *reading)
{
    const struct goods_book *book = &sim->oracle->book;
    struct told_read t = { .sim = sim, .reading = reading, .book = book };

    CHECK(reading->core.count > 0 && reading->core.count <= SIM_READ_PLAYERS);
    check_fresh(&t);
    t.before = mem_zalloc(sizeof *t.before * (book->txn_count + 1));
    for (uint32_t i = 0; i < book->txn_count; i++)
        look(&t, i);
    look_back(&t);
    for (uint32_t i = 0; i < book->txn_count; i++) {
        if (t.before[i])
            check_before(&t, i);
    }
    free(t.before);
}

void read_check_refused(struct sim *sim, const struct node_call *call, uint64_t applied)
{
    Holdfast__Internal__V1__ReadSettledRequest *request =
        holdfast__internal__v1__read_settled_request__unpack(NULL, call->request.size,
                                                             call->request.data);

    CHECK(request != NULL);
    uint32_t number = (uint32_t)(request->player_id[1] - '0');
    const struct player_model *player = &sim->oracle->players[number];
    if (player->txn == 0 && player->freed_index <= applied)
        sim_fail(sim, call->shard,
                 "a read of p%u is refused for a transaction that ended in entry %" PRIu64, number,
                 player->freed_index);
    holdfast__internal__v1__read_settled_request__free_unpacked(request, NULL);
}
