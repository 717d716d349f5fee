/* P2: every unit of currency and every item is in exactly one place, by the rows themselves: those
 * of players, of mailboxes, of outboxes and of escrow. A record of an outbox counts unless its
 * destination has logged that it was applied: from then on it is in the mailbox. What a player's
 * intent has taken counts until the home shard has decided COMMIT: from then on what is to come
 * does, since FINISH is on its way. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "holdfast/internal/v1/transaction.pb-c.h"
#include "holdfast/v1/mailbox.pb-c.h"
#include "node/core/channel/channel_row.h"
#include "node/core/codec/arena_proto.h"
#include "node/core/goods/row_totals.h"
#include "node/core/rows/rows.h"
#include "node/core/transaction/txn_row.h"
#include "runtime/base/check.h"
#include "tests/sim/model/model.h"

#define UIDS_MAX    8192u
#define COMMITS_MAX 4096u

struct sum {
    struct sim *sim;
    struct arena arena;
    int64_t amounts[SIM_CURRENCIES];
    uint8_t (*uids)[ITEM_UID_BYTES];
    uint32_t uid_count;
    uint32_t in_flight;
    uint32_t steps;
    struct txn_ref *commits; /* Decided, and on their way. */
    uint32_t commit_count;
    struct totals totals; /* What the shards' own say, over all of them. */
};

static void add_amount(struct sum *sum, const char *currency, int64_t amount)
{
    sum->amounts[model_currency(currency)] += amount;
}

static void add_uid(struct sum *sum, const uint8_t uid[ITEM_UID_BYTES])
{
    CHECK(sum->uid_count < UIDS_MAX);
    memcpy(sum->uids[sum->uid_count++], uid, ITEM_UID_BYTES);
}

static void add_mail(struct sum *sum, const Holdfast__V1__Mail *mail)
{
    uint8_t uid[ITEM_UID_BYTES];

    for (size_t i = 0; i < mail->n_currencies; i++)
        add_amount(sum, mail->currencies[i]->currency, mail->currencies[i]->amount);
    for (size_t i = 0; i < mail->n_items; i++) {
        CHECK(item_uid_parse(slice_from_text(mail->items[i]->uid), uid) == ERR_OK);
        add_uid(sum, uid);
    }
}

static void add_player(struct sum *sum, struct slice key, struct slice value)
{
    struct player player;
    struct slice entity = { key.data + 1, key.size - 1 };

    CHECK(player_decode(value, entity, &sum->arena, &player) == ERR_OK);
    for (uint32_t i = 0; i < player.balance_count; i++)
        add_amount(sum, arena_text(&sum->arena, player.balances[i].currency),
                   player.balances[i].amount + player.balances[i].reserved);
}

/* Whether the destination has it already. */
static bool has_arrived(struct sum *sum, uint32_t source, uint32_t destination, uint64_t seq)
{
    struct state *state = applier_state(sum->sim->oracle->shards[destination].applier);
    Holdfast__Internal__V1__InboxRow *row = NULL;

    return inbox_find(state, &sum->arena, (struct channel_ref){ source, seq }, NULL, &row) ==
               STATE_PRESENT &&
           row->result->decision ==
               HOLDFAST__INTERNAL__V1__CHANNEL_DECISION__CHANNEL_DECISION_APPLIED;
}

static void add_item(struct sum *sum, const char *text)
{
    uint8_t uid[ITEM_UID_BYTES];

    CHECK(item_uid_parse(slice_from_text(text), uid) == ERR_OK);
    add_uid(sum, uid);
}

static void add_finish(struct sum *sum, const Holdfast__Internal__V1__TxnFinish *finish)
{
    if (!finish->commit)
        return;
    CHECK(sum->commit_count < COMMITS_MAX);
    sum->commits[sum->commit_count++] = txn_ref_of(finish->txn);
    for (size_t i = 0; i < finish->n_gives; i++) {
        for (size_t j = 0; j < finish->gives[i]->n_items; j++)
            add_item(sum, finish->gives[i]->items[j]->uid);
    }
}

static void add_outbox(struct sum *sum, uint32_t shard, struct slice key, struct slice value)
{
    struct reader reader = reader_from((struct slice){ key.data + 1, key.size - 1 });
    uint32_t destination = read_u16_be(&reader);
    Holdfast__Internal__V1__OutboxRow *row = (Holdfast__Internal__V1__OutboxRow *)arena_unpack(
        &sum->arena, &holdfast__internal__v1__outbox_row__descriptor, value);

    CHECK(row != NULL);
    if (has_arrived(sum, shard, destination, row->credit->seq)) {
        CHECK(row_totals_record(&sum->totals, value, -1));
        return;
    }
    sum->in_flight++;
    if (row->credit->mail != NULL)
        add_mail(sum, row->credit->mail);
    if (row->credit->finish != NULL)
        add_finish(sum, row->credit->finish);
}

static bool is_committed(const struct sum *sum, struct txn_ref ref)
{
    for (uint32_t i = 0; i < sum->commit_count; i++) {
        if (txn_ref_equal(sum->commits[i], ref))
            return true;
    }
    return false;
}

/* After every outbox was looked at. */
static void add_intent(struct sum *sum, struct slice value)
{
    const Holdfast__Internal__V1__TxnIntent *intent = (const void *)arena_unpack(
        &sum->arena, &holdfast__internal__v1__txn_intent__descriptor, value);

    CHECK(intent != NULL);
    sum->sim->counts.txn_escrow_checks++;
    if (is_committed(sum, txn_ref_of(intent->txn))) {
        for (size_t i = 0; i < intent->part->n_give; i++)
            add_amount(sum, intent->part->give[i]->currency, intent->part->give[i]->amount);
        for (size_t i = 0; i < intent->taken->n_mint_uids; i++)
            add_item(sum, intent->taken->mint_uids[i]);
        return;
    }
    for (size_t i = 0; i < intent->part->n_take; i++)
        add_amount(sum, intent->part->take[i]->currency, intent->part->take[i]->amount);
    for (size_t i = 0; i < intent->taken->n_items; i++)
        add_item(sum, intent->taken->items[i]->uid);
}

static void add_shard(struct sum *sum, uint32_t shard)
{
    struct state *state = applier_state(sum->sim->oracle->shards[shard].applier);
    const struct state_write *writes;
    uint32_t count;

    CHECK(state_checkpoint_begin(state, &writes, &count));
    for (uint32_t i = 0; i < count; i++) {
        struct slice key = writes[i].key;
        if (writes[i].value == NULL)
            continue;
        struct slice value = { writes[i].value->bytes, writes[i].value->size };
        if (key.data[0] == TABLE_PLAYER)
            add_player(sum, key, value);
        else if (key.data[0] == TABLE_ITEM)
            add_uid(sum, key.data + key.size - ITEM_UID_BYTES);
        else if (key.data[0] == TABLE_HISTORY)
            sum->steps++;
        else if (key.data[0] == TABLE_MAIL)
            add_mail(sum, (const Holdfast__V1__Mail *)arena_unpack(
                              &sum->arena, &holdfast__v1__mail__descriptor, value));
        else if (key.data[0] == TABLE_OUTBOX)
            add_outbox(sum, shard, key, value);
    }
    state_checkpoint_end(state, false);
}

static void add_escrow(struct sum *sum, uint32_t shard)
{
    struct state *state = applier_state(sum->sim->oracle->shards[shard].applier);
    const struct state_write *writes;
    uint32_t count;

    CHECK(state_checkpoint_begin(state, &writes, &count));
    for (uint32_t i = 0; i < count; i++) {
        if (writes[i].value != NULL && writes[i].key.data[0] == TABLE_INTENT)
            add_intent(sum, (struct slice){ writes[i].value->bytes, writes[i].value->size });
    }
    state_checkpoint_end(state, false);
}

/* The shards' own totals, each record counted once, come to nothing. */
static void check_totals(struct sum *sum)
{
    struct sim *sim = sum->sim;

    for (uint32_t i = 0; i < sim->shard_count; i++)
        totals_add(&sum->totals, &applier_meta(sim->oracle->shards[i].applier)->totals);
    for (uint32_t i = 0; i < sum->totals.currency_count; i++) {
        if (sum->totals.currencies[i].net != 0)
            sim_fail(sim, 0, "the shards' totals of %s differ by %" PRId64,
                     sum->totals.currencies[i].name, sum->totals.currencies[i].net);
    }
    if (sum->totals.count != 0 || sum->totals.hashes != 0)
        sim_fail(sim, 0, "the shards' totals of items differ by %" PRId64, sum->totals.count);
}

static int by_bytes(const void *a, const void *b)
{
    return memcmp(a, b, ITEM_UID_BYTES);
}

static void check_items(struct sum *sum)
{
    uint32_t made = sum->sim->oracle->book.item_count - sum->sim->oracle->book.items_gone;

    qsort(sum->uids, sum->uid_count, ITEM_UID_BYTES, by_bytes);
    for (uint32_t i = 1; i < sum->uid_count; i++) {
        if (by_bytes(sum->uids[i - 1], sum->uids[i]) == 0) {
            char text[ITEM_UID_TEXT_SIZE];
            item_uid_print(sum->uids[i], text);
            sim_fail(sum->sim, 0, "item %s is in two places", text);
        }
    }
    if (sum->uid_count != made)
        sim_fail(sum->sim, 0, "there are %u items, made were %u", sum->uid_count, made);
}

static void sum_up(struct sum *sum, struct sim *sim)
{
    *sum = (struct sum){ .sim = sim };
    sum->uids = mem_alloc(sizeof *sum->uids * UIDS_MAX);
    sum->commits = mem_alloc(sizeof *sum->commits * COMMITS_MAX);
    for (uint32_t i = 0; i < sim->shard_count; i++)
        add_shard(sum, i);
    for (uint32_t i = 0; i < sim->shard_count; i++)
        add_escrow(sum, i);
}

static void sum_deinit(struct sum *sum)
{
    free(sum->uids);
    free(sum->commits);
    totals_deinit(&sum->totals);
    arena_deinit(&sum->arena);
}

uint32_t conservation_places(struct sim *sim, const uint8_t uid[ITEM_UID_BYTES])
{
    struct sum sum;
    uint32_t places = 0;

    sum_up(&sum, sim);
    for (uint32_t i = 0; i < sum.uid_count; i++)
        places += memcmp(sum.uids[i], uid, ITEM_UID_BYTES) == 0;
    sum_deinit(&sum);
    return places;
}

void conservation_check(struct sim *sim)
{
    struct sum sum;

    if (sim->failure[0] != '\0')
        return;
    sum_up(&sum, sim);
    for (uint32_t i = 0; i < SIM_CURRENCIES; i++) {
        if (sum.amounts[i] != sim->oracle->book.made[i])
            sim_fail(sim, 0, "there are %" PRId64 " of currency %u, made were %" PRId64,
                     sum.amounts[i], i, sim->oracle->book.made[i]);
    }
    check_items(&sum);
    check_totals(&sum);
    receipts_check(sim);
    callers_check(sim);
    if (sum.steps != sim->oracle->book.step_count)
        sim_fail(sim, 0, "histories of items have %u steps, they took %u", sum.steps,
                 sim->oracle->book.step_count);
    sim->counts.conservation_checks++;
    sim->counts.in_flight_checks += sum.in_flight > 0;
    sum_deinit(&sum);
}
