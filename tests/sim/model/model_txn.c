/* The rules of transactions, once more: who takes part is held from its preparation to its end, by
 * one transaction; the home shard decides, once, by the votes; all of it is done, or nothing. */
#include <inttypes.h>
#include <string.h>

#include "holdfast/v1/transaction.pb-c.h"
#include "node/core/codec/arena_proto.h"
#include "runtime/base/check.h"
#include "tests/sim/model/model.h"

#define DECISION(name) HOLDFAST__INTERNAL__V1__CHANNEL_DECISION__CHANNEL_DECISION_##name

static void fail(const struct change *c, const char *what, uint64_t number)
{
    sim_fail(c->sim, c->number, "entry %" PRIu64 ": a transaction %s (%" PRIu64 ")",
             c->entry->index, what, number);
}

static struct goods_book *book_of(const struct change *c)
{
    return &c->sim->oracle->book;
}

static struct player_model *player_at(const struct change *c, uint32_t number)
{
    CHECK(number < c->sim->player_count);
    return &c->sim->oracle->players[number];
}

static uint32_t shard_of(const struct change *c, uint32_t player)
{
    CHECK(player < c->sim->player_count);
    return c->sim->player_shard[player];
}

/* ---- what a request asks for ---- */

struct txn_part_model *plan_part(struct txn_model *txn, const char *player_id)
{
    uint32_t player = model_player_of_id(player_id);

    for (uint32_t i = 0; i < txn->part_count; i++) {
        if (txn->parts[i].player == player)
            return &txn->parts[i];
    }
    CHECK(txn->part_count < SIM_TXN_PLAYERS);
    struct txn_part_model *part = &txn->parts[txn->part_count++];
    *part = (struct txn_part_model){ .player = player };
    return part;
}

struct txn_part_model *plan_other(struct txn_model *txn, const char *player_id, const char *given)
{
    struct txn_part_model *part = plan_part(txn, player_id);

    part->own = true;
    part->authority.kind = AUTHORITY_UNHELD;
    if (strncmp(given, "session:", 8) == 0) {
        part->authority.kind = AUTHORITY_SESSION;
        CHECK(token_parse(slice_from_text(given + 8), &part->authority.incarnation,
                          &part->authority.fence) == ERR_OK);
    }
    return part;
}

void plan_add(int64_t amounts[SIM_CURRENCIES], const Holdfast__V1__CurrencyAmount *amount)
{
    CHECK(amount->amount > 0);
    amounts[model_currency(amount->currency)] += amount->amount;
}

void plan_move(struct txn_part_model *from, struct txn_part_model *to, size_t count,
               Holdfast__V1__CurrencyAmount *const *list)
{
    CHECK(from != to);
    for (size_t i = 0; i < count; i++) {
        plan_add(from->take, list[i]);
        plan_add(to->give, list[i]);
    }
}

void plan_items(const struct change *c, struct txn_part_model *from, struct txn_part_model *to,
                size_t count, char *const *uids)
{
    CHECK(from != to);
    for (size_t i = 0; i < count; i++) {
        uint32_t item = goods_item_find(book_of(c), uids[i]);
        CHECK(from->out_count < SIM_TXN_ITEMS);
        from->strange |= item == 0;
        from->spent[from->out_count] = to == NULL;
        from->items_out[from->out_count++] = item;
        if (to == NULL)
            continue;
        CHECK(to->in_count < SIM_TXN_ITEMS);
        to->items_in[to->in_count++] = item;
    }
}

/* ---- one player ---- */

static int64_t sum_of(const int64_t amounts[SIM_CURRENCIES])
{
    int64_t sum = 0;

    for (uint32_t i = 0; i < SIM_CURRENCIES; i++)
        sum += amounts[i];
    return sum;
}

static bool takes(const struct txn_part_model *part)
{
    return sum_of(part->take) > 0 || part->out_count > 0;
}

static bool gives(const struct txn_part_model *part)
{
    return sum_of(part->give) > 0 || part->in_count + part->mint_count > 0 || part->edit_count > 0;
}

static bool may(const struct change *c, const struct txn_part_model *part)
{
    const struct player_model *player = player_at(c, part->player);

    if (!part->own)
        return true; /* The operation's: looked at there. */
    if (part->authority.kind == AUTHORITY_UNHELD)
        return !model_is_held(c, player);
    return model_is_held(c, player) && part->authority.fence == player->fence &&
           incarnation_compare(part->authority.incarnation, player->incarnation) == 0;
}

/* `version`: before this entry. */
static bool check_fails(const struct change *c, const struct txn_part_model *part, uint64_t version)
{
    const struct player_model *player = player_at(c, part->player);
    const struct section_model *section = &player->now.sections.each[part->section];
    const struct item_model *item = part->item > 0 ? &book_of(c)->items[part->item - 1] : NULL;

    if (part->wants_version && part->version != version)
        return true;
    if (part->wants_section && part->section_version != (section->exists ? section->version : 0))
        return true;
    return part->wants_item &&
           (item == NULL || item->place != ITEM_HELD || item->player != part->player);
}

/* For what is to come, once what leaves has left. */
static bool has_room(const struct change *c, const struct txn_part_model *part)
{
    struct moment after = player_at(c, part->player)->now;
    struct goods more = { .item_count = part->in_count + part->mint_count };

    after.items -= part->out_count < after.items ? part->out_count : after.items;
    for (uint32_t i = 0; i < SIM_CURRENCIES; i++) {
        after.balances[i] -= part->take[i];
        more.amounts[i] = part->give[i];
    }
    return policy_has_room(c, &after, &more);
}

/* Why it cannot be prepared as the logs stand; NULL: it can. */
static const char *obstacle(const struct change *c, const struct txn_part_model *part, bool risen)
{
    const struct player_model *player = player_at(c, part->player);

    if (player->txn != 0)
        return "prepares a player that another holds";
    if (player->contained)
        return "prepares a player who is held back for review";
    if (check_fails(c, part, player->now.version - (risen ? 1 : 0)))
        return "is prepared, and a check of it fails";
    if (!may(c, part))
        return "writes under a session that is not current";
    for (uint32_t i = 0; i < SIM_CURRENCIES; i++) {
        if (part->take[i] > 0 && player->now.balances[i] - part->take[i] < policy_least(c, i))
            return "takes what is not there";
        if (part->at_least[i] > 0 && player->now.balances[i] < part->at_least[i])
            return "counts on what is not there";
    }
    if (!has_room(c, part))
        return "gives more than the player may have";
    for (uint32_t i = 0; i < part->out_count && !part->strange; i++) {
        const struct item_model *item = &book_of(c)->items[part->items_out[i] - 1];
        if (item->place != ITEM_HELD || item->player != part->player)
            return "takes an item that the player does not hold";
    }
    if (part->strange)
        return "takes an item that never was";
    for (uint32_t i = 0; i < part->edit_count; i++) {
        if (edit_obstacle(&player->now.sections, &part->edits[i]) != NULL)
            return edit_obstacle(&player->now.sections, &part->edits[i]);
    }
    return NULL;
}

static struct slice op_id_of(const struct change *c, const struct txn_model *txn)
{
    return slice_from_text(strchr(c->sim->oracle->ops[txn->op - 1].key, ' ') + 1);
}

static void remember(const struct change *c, struct player_model *player)
{
    if (player != c->player)
        model_remember(player, c->entry->index);
}

static void note_receiver(const struct change *c, const struct txn_model *txn, uint32_t item)
{
    for (uint32_t i = 0; i < txn->part_count; i++) {
        for (uint32_t j = 0; j < txn->parts[i].in_count; j++) {
            if (txn->parts[i].items_in[j] == item)
                trace_to(c, item, txn->parts[i].player);
        }
    }
}

/* `risen`: the entry raises the version by itself. */
static void prepare_part(const struct change *c, struct txn_model *txn, struct txn_part_model *part,
                         bool risen)
{
    struct player_model *player = player_at(c, part->player);
    const char *why = obstacle(c, part, risen);

    CHECK(!part->prepared && shard_of(c, part->player) == c->number);
    if (why != NULL) {
        fail(c, why, part->player);
        return;
    }
    part->prepared = true;
    part->before_version = player->now.version - (risen ? 1 : 0);
    part->turn = ++player->turns;
    player->txn = txn->place;
    if (part->own && part->authority.kind == AUTHORITY_SESSION)
        player->granted_ms = 0;
    for (uint32_t i = 0; i < SIM_CURRENCIES; i++)
        player->now.balances[i] -= part->take[i];
    for (uint32_t i = 0; i < part->out_count; i++) {
        goods_item_move(c, part->items_out[i], ITEM_ON_ITS_WAY, part->player);
        trace_step(c, part->items_out[i], part->player, false, op_id_of(c, txn));
        note_receiver(c, txn, part->items_out[i]);
    }
    player->now.items -= part->out_count;
    player->now.version += takes(part) && !risen;
    remember(c, player);
}

static void hold(const struct change *c, const struct txn_model *txn, uint32_t item,
                 uint32_t player)
{
    goods_item_move(c, item, ITEM_HELD, player);
    trace_step(c, item, player, true, op_id_of(c, txn));
}

static void come(const struct change *c, const struct txn_model *txn, struct txn_part_model *part)
{
    struct player_model *player = player_at(c, part->player);

    CHECK(part->prepared && txn->decision == TXN_COMMIT);
    for (uint32_t i = 0; i < SIM_CURRENCIES; i++)
        player->now.balances[i] += part->give[i];
    for (uint32_t i = 0; i < part->in_count; i++)
        hold(c, txn, part->items_in[i], part->player);
    for (uint32_t i = 0; i < part->mint_count; i++)
        hold(c, txn, part->minted[i], part->player);
    player->now.items += part->in_count + part->mint_count;
    for (uint32_t i = 0; i < part->edit_count; i++)
        edit_apply(&player->now.sections, &part->edits[i], c->entry->owner_ms);
}

static void come_back(const struct change *c, const struct txn_model *txn,
                      struct txn_part_model *part)
{
    struct player_model *player = player_at(c, part->player);

    CHECK(part->prepared && txn->decision != TXN_COMMIT);
    for (uint32_t i = 0; i < SIM_CURRENCIES; i++)
        player->now.balances[i] += part->take[i];
    for (uint32_t i = 0; i < part->out_count; i++)
        hold(c, txn, part->items_out[i], part->player);
    player->now.items += part->out_count;
}

static void finish_part(const struct change *c, const struct txn_model *txn,
                        struct txn_part_model *part, bool commit, bool risen)
{
    struct player_model *player = player_at(c, part->player);

    if (!part->prepared || part->finished || player->txn != txn->place) {
        fail(c, "finishes a player that it does not hold", part->player);
        return;
    }
    part->finished = true;
    player->txn = 0;
    player->freed_index = c->entry->index;
    player->free_ms = c->sim->now_ms;
    if (commit)
        come(c, txn, part);
    else
        come_back(c, txn, part);
    player->now.version += (commit ? gives(part) : takes(part)) && !risen;
    part->done_version = player->now.version;
    remember(c, player);
}

/* ---- decided ---- */

static void spend_items(const struct change *c, const struct txn_part_model *part)
{
    for (uint32_t i = 0; i < part->out_count; i++) {
        if (!part->spent[i])
            continue;
        goods_item_move(c, part->items_out[i], ITEM_GONE, part->player);
        book_of(c)->items_gone++;
        c->sim->counts.txn_items_spent++;
    }
}

/* From here on what was minted is, and what was spent is gone. */
static void commit(const struct change *c, struct txn_model *txn, struct slice body)
{
    const Holdfast__V1__ExecuteTransactionResponse *response = (const void *)arena_unpack(
        &c->sim->oracle->arena, &holdfast__v1__execute_transaction_response__descriptor, body);

    CHECK(txn->decision == TXN_OPEN);
    CHECK(response != NULL);
    txn->decision = TXN_COMMIT;
    if (response->n_players != txn->part_count) {
        fail(c, "is answered for other players", response->n_players);
        return;
    }
    for (uint32_t i = 0; i < txn->part_count; i++) {
        struct txn_part_model *part = &txn->parts[i];
        const Holdfast__V1__TransactionOutcome *told = response->players[i];
        for (uint32_t j = 0; j < SIM_CURRENCIES; j++)
            book_of(c)->made[j] += part->give[j] - part->take[j];
        spend_items(c, part);
        if (model_player_of_id(told->player_id) != part->player ||
            told->n_item_uids != part->mint_count || told->n_items != part->in_count) {
            fail(c, "is answered with other goods", part->player);
            return;
        }
        for (uint32_t j = 0; j < part->mint_count; j++)
            part->minted[j] = goods_item_new(c, told->item_uids[j], ITEM_ON_ITS_WAY, part->player);
    }
}

static struct txn_model *txn_new(const struct change *c, const struct op_model *op)
{
    struct goods_book *book = book_of(c);

    if (book->txn_count == book->txn_capacity) {
        book->txn_capacity = book->txn_capacity * 2 + 64;
        book->txns = mem_realloc(book->txns, sizeof *book->txns * book->txn_capacity);
    }
    struct txn_model *txn = &book->txns[book->txn_count++];
    *txn = (struct txn_model){ .home = c->number,
                               .op = (uint32_t)(op - c->sim->oracle->ops) + 1,
                               .place = book->txn_count };
    CHECK(c->rule->plans != NULL);
    c->rule->plans(c, txn);
    return txn;
}

/* Done on one shard: each player's balances are what the transaction has left. */
static void check_outcomes(const struct change *c, const struct txn_model *txn)
{
    const Holdfast__V1__ExecuteTransactionResponse *response = (const void *)arena_unpack(
        &c->sim->oracle->arena, &holdfast__v1__execute_transaction_response__descriptor,
        c->outcome->body);

    CHECK(response != NULL && response->n_players == txn->part_count);
    for (uint32_t i = 0; i < txn->part_count; i++) {
        const struct txn_part_model *part = &txn->parts[i];
        uint32_t changed = 0;
        for (uint32_t j = 0; j < SIM_CURRENCIES; j++)
            changed |= part->take[j] + part->give[j] > 0 ? 1u << j : 0;
        answer_check_balances(c, &response->players[i]->base, &player_at(c, part->player)->now,
                              changed);
    }
}

void txn_done(struct change *c, struct op_model *op)
{
    struct txn_model *txn = txn_new(c, op);

    for (uint32_t i = 0; i < txn->part_count; i++) {
        if (shard_of(c, txn->parts[i].player) != c->number) {
            fail(c, "is done before all shards have voted", txn->parts[i].player);
            return;
        }
        prepare_part(c, txn, &txn->parts[i], i == 0);
    }
    commit(c, txn, c->outcome->body);
    for (uint32_t i = 0; i < txn->part_count; i++)
        finish_part(c, txn, &txn->parts[i], true, i == 0 || takes(&txn->parts[i]));
    check_outcomes(c, txn);
    c->sim->counts.txns_local++;
}

bool plan_is_hindered(const struct change *c)
{
    struct txn_model txn = { .home = c->number };
    bool hindered = false;

    c->rule->plans(c, &txn);
    for (uint32_t i = 0; i < txn.part_count; i++)
        hindered |= shard_of(c, txn.parts[i].player) == c->number &&
                    obstacle(c, &txn.parts[i], false) != NULL;
    return hindered;
}

/* ---- across shards ---- */

static struct txn_model *txn_at(const struct change *c, uint32_t place)
{
    CHECK(place > 0 && place <= book_of(c)->txn_count);
    return &book_of(c)->txns[place - 1];
}

static struct txn_member_model *member_get(struct txn_model *txn, uint32_t shard)
{
    CHECK(shard < SIM_SHARDS_MAX && txn->member_count <= SIM_TXN_PLAYERS);
    for (uint32_t i = 0; i < txn->member_count; i++) {
        if (txn->members[i].shard == shard)
            return &txn->members[i];
    }
    struct txn_member_model *member = &txn->members[txn->member_count++];
    *member = (struct txn_member_model){ .shard = shard };
    return member;
}

/* A player that stands for its shard in a record. */
static uint32_t player_on(const struct change *c, const struct txn_model *txn, uint32_t shard)
{
    for (uint32_t i = 0; i < txn->part_count; i++) {
        if (shard_of(c, txn->parts[i].player) == shard)
            return txn->parts[i].player;
    }
    CHECK(false);
    return 0;
}

static uint64_t record_open(const struct change *c, const struct txn_model *txn, uint32_t shard,
                            bool finish)
{
    return goods_record_open(c,
                             &(struct transfer_model){
                                 .from = txn->parts[0].player,
                                 .to = player_on(c, txn, shard),
                                 .txn = (uint32_t)(txn - book_of(c)->txns) + 1,
                                 .finish = finish,
                             })
        ->seq;
}

void txn_opened(struct change *c, struct op_model *op)
{
    struct txn_model *txn = txn_new(c, op);

    for (uint32_t i = 0; i < txn->part_count; i++) {
        uint32_t shard = shard_of(c, txn->parts[i].player);
        (void)member_get(txn, shard);
        if (shard == c->number)
            prepare_part(c, txn, &txn->parts[i], i == 0);
    }
    txn->members[0].voted = txn->members[0].prepared = true;
    for (uint32_t i = 1; i < txn->member_count; i++)
        txn->members[i].seq = record_open(c, txn, txn->members[i].shard, false);
    if (txn->member_count < 2 || c->outcome->channel.opened_seq != txn->members[1].seq ||
        c->outcome->channel.destination != txn->members[1].shard)
        fail(c, "waits for a record that it did not open", c->outcome->channel.opened_seq);
    c->sim->counts.txns_opened++;
}

static void prepared_there(struct change *c, struct transfer_model *record, int decision)
{
    struct txn_model *txn = txn_at(c, record->txn);
    bool can = true;

    for (uint32_t i = 0; i < txn->part_count; i++) {
        if (shard_of(c, txn->parts[i].player) == c->number)
            can &= obstacle(c, &txn->parts[i], false) == NULL;
    }
    if (decision == DECISION(REJECTED) && can)
        fail(c, "is refused without a reason", record->seq);
    if (decision == DECISION(CANCELLED) && txn->decision != TXN_ABORT)
        fail(c, "is cancelled, and was not aborted", record->seq);
    c->sim->counts.txn_poisoned += decision == DECISION(CANCELLED);
    for (uint32_t i = 0; i < txn->part_count && decision == DECISION(APPLIED); i++) {
        if (shard_of(c, txn->parts[i].player) == c->number)
            prepare_part(c, txn, &txn->parts[i], false);
    }
}

void txn_delivered(struct change *c, struct transfer_model *record, bool is_credit,
                   const Holdfast__Internal__V1__ChannelCredit *credit, int decision)
{
    struct txn_model *txn = txn_at(c, record->txn);

    if (!record->finish) {
        if (is_credit ? decision == DECISION(CANCELLED) : decision != DECISION(CANCELLED))
            fail(c, "gets a vote for another question", record->seq);
        prepared_there(c, record, decision);
        return;
    }
    if (!is_credit || decision != DECISION(APPLIED) ||
        (credit->finish->commit != 0) != (txn->decision == TXN_COMMIT)) {
        fail(c, "is finished otherwise than decided", record->seq);
        return;
    }
    for (uint32_t i = 0; i < txn->part_count; i++) {
        if (shard_of(c, txn->parts[i].player) == c->number)
            finish_part(c, txn, &txn->parts[i], txn->decision == TXN_COMMIT, false);
    }
}

static const struct settled *told_of(const struct change *c, const struct txn_model *txn)
{
    const struct channel_effect *effect = &c->outcome->channel;

    for (uint32_t i = 0; i < effect->settled_count; i++) {
        if (effect->settled[i].destination == txn->members[1].shard &&
            effect->settled[i].seq == txn->members[1].seq)
            return &effect->settled[i];
    }
    return NULL;
}

/* The home's own players end; who has prepared elsewhere is told. */
static void decided(struct change *c, struct txn_model *txn)
{
    CHECK(txn->decision != TXN_OPEN && txn->home == c->number);
    for (uint32_t i = 0; i < txn->part_count; i++) {
        if (shard_of(c, txn->parts[i].player) == c->number)
            finish_part(c, txn, &txn->parts[i], txn->decision == TXN_COMMIT, false);
    }
    for (uint32_t i = 1; i < txn->member_count; i++) {
        if (txn->members[i].voted && txn->members[i].prepared)
            (void)record_open(c, txn, txn->members[i].shard, true);
    }
}

static void op_ends(struct change *c, const struct txn_model *txn, const struct settled *told)
{
    struct op_model *op = &c->sim->oracle->ops[txn->op - 1];
    struct arena *arena = &c->sim->oracle->arena;

    CHECK(txn->decision != TXN_OPEN && told != NULL);
    if (op->state != OP_PENDING)
        model_fail_op(c, op, "is decided, and was not pending");
    c->sim->oracle->pending--;
    op->settled_index = c->entry->index;
    if (txn->decision == TXN_COMMIT) {
        op->state = OP_COMMITTED;
        c->sim->counts.txns_committed++;
        return;
    }
    const Holdfast__Internal__V1__Refusal *detail =
        (const void *)arena_unpack(arena, &holdfast__internal__v1__refusal__descriptor, told->body);
    CHECK(detail != NULL);
    if (!detail->final) {
        model_attempt_ends(op);
        c->sim->counts.txns_conflicted++;
        return;
    }
    op->state = OP_REFUSED;
    op->refused_index = c->entry->index;
    c->sim->counts.txns_refused++;
}

static void decide(struct change *c, struct txn_model *txn)
{
    const struct settled *told = told_of(c, txn);
    bool all = true, refused = false;

    for (uint32_t i = 0; i < txn->member_count; i++) {
        all &= txn->members[i].prepared;
        refused |= txn->members[i].voted && !txn->members[i].prepared;
    }
    if ((all || refused) != (told != NULL)) {
        fail(c, "is decided before all have voted, or not then", txn->op);
        return;
    }
    if (told == NULL)
        return;
    if (told->refused == all) {
        fail(c, "is decided against the votes", txn->op);
        return;
    }
    if (all)
        commit(c, txn, told->body);
    else
        txn->decision = TXN_ABORT;
    decided(c, txn);
    op_ends(c, txn, told);
}

void txn_settled(struct change *c, const struct transfer_model *record)
{
    struct txn_model *txn = txn_at(c, record->txn);

    c->sim->counts.txns_across_owners += record->epoch != c->entry->dot.epoch;
    if (record->finish)
        return;
    struct txn_member_model *member = member_get(txn, record->destination);
    member->voted = true;
    member->prepared = record->decision == APPLIED;
    if (txn->decision == TXN_OPEN) {
        decide(c, txn);
        return;
    }
    c->sim->counts.txn_late_votes++;
    if (member->prepared)
        (void)record_open(c, txn, member->shard, true);
}

static bool has_prepared(const struct change *c, const struct txn_model *txn, uint32_t shard)
{
    bool prepared = false;

    for (uint32_t i = 0; i < txn->part_count; i++)
        prepared |= txn->parts[i].prepared && shard_of(c, txn->parts[i].player) == shard;
    return prepared;
}

void txn_sealed(struct change *c, struct op_model *op)
{
    uint32_t place = (uint32_t)(op - c->sim->oracle->ops) + 1;

    for (uint32_t i = book_of(c)->txn_count; i > 0; i--) {
        struct txn_model *txn = txn_at(c, i);
        if (txn->op != place)
            continue;
        if (txn->decision != TXN_OPEN || told_of(c, txn) == NULL) {
            model_fail_op(c, op, "is sealed after it was decided");
            return;
        }
        txn->decision = TXN_ABORT;
        for (uint32_t j = 1; j < txn->member_count; j++)
            c->sim->counts.txns_seals_late +=
                !txn->members[j].voted && has_prepared(c, txn, txn->members[j].shard);
        decided(c, txn);
        c->sim->oracle->pending--;
        op->state = OP_ABORTED;
        op->index = c->entry->index;
        op->settled_index = c->entry->index;
        op->attempt = UINT32_MAX;
        c->sim->counts.txns_sealed++;
        return;
    }
    model_fail_op(c, op, "is sealed as a transaction, and is none");
}
