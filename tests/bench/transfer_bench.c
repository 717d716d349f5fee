/*
 * transfer_bench: what a transfer or a swap across shards costs the cores, from the call to the
 * logged SETTLE, without disks, links and database: shards of one member each, and one replica that
 * applies what each of them logs. Every row that is not in memory is asked for, and absent.
 * Prints processor time per operation of the owners' steps and of the replicas, entries, batches
 * between shards, and rows asked for. `valgrind --tool=callgrind` counts its instructions, which
 * other work on the machine does not change.
 *
 *   transfer_bench [transfer | swap] [operations] [shards]
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "holdfast/internal/v1/transaction.pb-c.h"
#include "holdfast/internal/v1/node.pb-c.h"
#include "holdfast/v1/ledger.pb-c.h"
#include "holdfast/v1/transaction.pb-c.h"
#include "idl/method.h"
#include "node/core/codec/arena_proto.h"
#include "node/core/shard/shard.h"
#include "node/rpc/handlers.h"
#include "runtime/base/check.h"
#include "runtime/base/id.h"
#include "runtime/cluster/placement.h"

#define START_MS 1790000000000ull
#define SELF     7u
#define CALLER   1u  /* The call of each caller: no other's. */
#define CALLERS  64u /* Operations begun together. */
#define ROUND_MS 10u
#define TICK_MS  20u
#define PAIRS    (8u * CALLERS) /* Of players, who trade on once FINISH has come to both. */
#define LAST_MS  20000u         /* Until everything is settled, and told. */

/* Who gives an item to whom; in swaps both do. */
struct deal {
    char players[2][16];
    char uids[2][ITEM_UID_TEXT_SIZE];
    uint32_t home;
};

struct message {
    struct message *next;
    uint32_t from, to;
    uint64_t token;
    bool is_answer;
    struct buf bytes;
};

struct bench {
    struct shard *shards[UINT8_MAX];
    struct applier *replicas[UINT8_MAX];
    uint32_t shard_count;
    struct message *first, **last;
    struct arena arena;
    struct buf answer;
    uint64_t now_ms, ids, answers;
    uint64_t owner_ns, replica_ns, entries, batches, asked;
};

static uint64_t clock_now_ns(void)
{
    struct timespec now;
    CHECK(clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now) == 0);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void step(struct bench *bench, uint32_t number, struct shard_event event);

/* ---- what a step asks for ---- */

static void replica_apply(struct bench *bench, uint32_t number, const struct entry *entry)
{
    struct applier *replica = bench->replicas[number];
    uint64_t begin_ns = clock_now_ns();
    struct need need = { 0 };
    struct outcome outcome;

    bench->entries++;
    while (applier_apply(replica, entry, &need, &outcome) == ERR_NEED) {
        struct reader keys = reader_from(buf_slice(&need.keys));
        while (reader_left(&keys) > 0) {
            struct slice key = read_bytes(&keys, STATE_KEY_BYTES_MAX);
            CHECK(state_load(applier_state(replica), need.load_generation, key, NULL));
            bench->asked++;
        }
        need_clear(&need);
    }
    applier_rest(replica);
    need_deinit(&need);
    bench->replica_ns += clock_now_ns() - begin_ns;
}

static void answer_need(struct bench *bench, uint32_t number, const struct need *need)
{
    struct reader keys = reader_from(buf_slice(&need->keys));

    while (reader_left(&keys) > 0) {
        struct shard_row row = { .key = read_bytes(&keys, STATE_KEY_BYTES_MAX), .absent = true };
        bench->asked++;
        step(bench, number,
             (struct shard_event){ .type = SHARD_ROWS,
                                   .load_generation = need->load_generation,
                                   .rows = &row,
                                   .row_count = 1 });
    }
}

static void message_add(struct bench *bench, const struct message *head, struct slice bytes)
{
    struct message *message = mem_alloc(sizeof *message);

    *message = *head;
    buf_append(&message->bytes, bytes.data, bytes.size);
    *bench->last = message;
    bench->last = &message->next;
}

/* Calls of other shards are named by the message that brought them. */
static void take_reply(struct bench *bench, uint32_t number, const struct shard_reply *reply,
                       struct slice body)
{
    struct message *asked = (void *)(uintptr_t)reply->call;

    CHECK(reply->status == REPLY_OK);
    if (reply->call == CALLER) {
        buf_clear(&bench->answer);
        buf_append(&bench->answer, body.data, body.size);
        bench->answers++;
        return;
    }
    const struct message head = {
        .from = number, .to = asked->from, .token = asked->token, .is_answer = true
    };
    message_add(bench, &head, body);
    buf_deinit(&asked->bytes);
    free(asked);
}

static void take_out(struct bench *bench, uint32_t number, struct shard_out *out)
{
    for (uint32_t i = 0; i < out->reply_count; i++)
        take_reply(
            bench, number, &out->replies[i],
            (struct slice){ out->bytes.data + out->replies[i].offset, out->replies[i].size });
    for (uint32_t i = 0; i < out->delivery_count; i++) {
        const struct shard_delivery *delivery = &out->deliveries[i];
        const struct message head = { .from = number,
                                      .to = delivery->destination,
                                      .token = delivery->token };
        bench->batches++;
        message_add(bench, &head,
                    (struct slice){ out->bytes.data + delivery->offset, delivery->size });
    }
    for (uint32_t i = 0; i < out->rep.write_count; i++) {
        if (out->rep.writes[i].type != REP_WRITE_ENTRY)
            continue;
        replica_apply(bench, number, out->rep.writes[i].entry);
        entry_unref(out->rep.writes[i].entry);
    }
}

static void step(struct bench *bench, uint32_t number, struct shard_event event)
{
    struct shard *shard = bench->shards[number];
    struct shard_out out = { 0 };
    uint64_t begin_ns = clock_now_ns();

    event.now_ms = bench->now_ms;
    event.unix_ms = START_MS + bench->now_ms;
    shard_step(shard, &event, &out);
    bench->owner_ns += clock_now_ns() - begin_ns;
    uint64_t ticket = out.rep.write_count > 0 ? out.rep.writes[out.rep.write_count - 1].ticket : 0;
    take_out(bench, number, &out);
    out.rep.write_count = 0;
    answer_need(bench, number, &out.need);
    shard_out_clear(&out);
    shard_out_deinit(&out);
    if (ticket != 0)
        step(bench, number, (struct shard_event){ .type = SHARD_PERSISTED, .ticket = ticket });
    if (shard_wants_flush(shard))
        step(bench, number, (struct shard_event){ .type = SHARD_FLUSH });
}

static void call(struct bench *bench, uint32_t number, uint32_t method, uint64_t id,
                 struct slice request)
{
    step(bench, number,
         (struct shard_event){ .type = SHARD_CALL,
                               .call = id,
                               .method = method,
                               .request = request,
                               .deadline_ms = bench->now_ms + 10000 });
}

static void pass_all(struct bench *bench)
{
    while (bench->first != NULL) {
        struct message *message = bench->first;
        bench->first = message->next;
        message->next = NULL;
        if (bench->first == NULL)
            bench->last = &bench->first;
        if (!message->is_answer) {
            call(bench, message->to, METHOD_CHANNEL_DELIVER, (uint64_t)(uintptr_t)message,
                 buf_slice(&message->bytes));
            continue;
        }
        step(bench, message->to,
             (struct shard_event){ .type = SHARD_DELIVERED,
                                   .call = message->token,
                                   .status = REPLY_OK,
                                   .request = buf_slice(&message->bytes) });
        buf_deinit(&message->bytes);
        free(message);
    }
}

static void pass_time(struct bench *bench, uint64_t ms)
{
    for (uint64_t end = bench->now_ms + ms; bench->now_ms < end;) {
        bench->now_ms += ROUND_MS;
        for (uint32_t i = 0; bench->now_ms % TICK_MS == 0 && i < bench->shard_count; i++)
            step(bench, i, (struct shard_event){ .type = SHARD_TICK });
        pass_all(bench);
    }
}

/* ---- operations ---- */

static char *next_id(struct bench *bench)
{
    uint8_t random[10] = { 0 };
    char *text = arena_alloc(&bench->arena, UUID_TEXT_SIZE);

    store_u64(random + 2, ++bench->ids * 0x9e3779b97f4a7c15ull);
    struct uuid uuid = uuid_v7_make(START_MS + bench->now_ms, random);
    uuid_print(&uuid, text);
    return text;
}

static char *unheld(void)
{
    return (char *)"unheld";
}

static uint32_t home_of(const struct bench *bench, const char *player)
{
    char entity[32];

    (void)snprintf(entity, sizeof entity, "player:%s", player);
    return shard_of_entity(slice_from_text(entity), bench->shard_count);
}

static void mint(struct bench *bench, const char *player, char ret_uid[ITEM_UID_TEXT_SIZE])
{
    Holdfast__V1__GrantRequest request = HOLDFAST__V1__GRANT_REQUEST__INIT;
    Holdfast__V1__ItemSpec item = HOLDFAST__V1__ITEM_SPEC__INIT;
    Holdfast__V1__ItemSpec *items[] = { &item };

    request.player_id = text_lend(player);
    request.op_id = next_id(bench);
    request.authority = unheld();
    request.items = items;
    request.n_items = 1;
    item.kind = (char *)"sword_of_dawn";
    call(bench, home_of(bench, player), METHOD_GRANT, CALLER,
         arena_pack(&bench->arena, &request.base));
    const Holdfast__V1__GrantResponse *granted = (const void *)arena_unpack(
        &bench->arena, &holdfast__v1__grant_response__descriptor, buf_slice(&bench->answer));
    CHECK(granted != NULL && granted->n_item_uids == 1);
    (void)snprintf(ret_uid, ITEM_UID_TEXT_SIZE, "%s", granted->item_uids[0]);
    arena_reset(&bench->arena);
}

/* Two players on different shards; the first has an item, in swaps the second, too. */
static void deal_make(struct bench *bench, uint32_t number, bool swap, struct deal *deal)
{
    uint32_t next = number;

    (void)snprintf(deal->players[0], sizeof deal->players[0], "a%u", number);
    deal->home = home_of(bench, deal->players[0]);
    do {
        (void)snprintf(deal->players[1], sizeof deal->players[1], "b%u-%u", number, next++ % 100);
    } while (home_of(bench, deal->players[1]) == deal->home);
    for (uint32_t i = 0; i < 1 + (uint32_t)swap; i++)
        mint(bench, deal->players[i], deal->uids[i]);
}

static void transfer(struct bench *bench, const struct deal *deal)
{
    Holdfast__V1__TransferItemsRequest request = HOLDFAST__V1__TRANSFER_ITEMS_REQUEST__INIT;
    char *uids[] = { text_lend(deal->uids[0]) };

    request.player_id = text_lend(deal->players[0]);
    request.to_player_id = text_lend(deal->players[1]);
    request.op_id = next_id(bench);
    request.authority = unheld();
    request.item_uids = uids;
    request.n_item_uids = 1;
    request.reason = (char *)"bench";
    call(bench, deal->home, METHOD_TRANSFER_ITEMS, CALLER,
         arena_pack(&bench->arena, &request.base));
    arena_reset(&bench->arena);
}

static void swap(struct bench *bench, struct deal *deal)
{
    Holdfast__Internal__V1__SwapGoodsRequest request =
        HOLDFAST__INTERNAL__V1__SWAP_GOODS_REQUEST__INIT;
    char given[2][ITEM_UID_TEXT_SIZE];
    char *uids[] = { given[0], given[1] };

    memcpy(given, deal->uids, sizeof given);
    request.player_id = deal->players[0];
    request.other_player_id = deal->players[1];
    request.op_id = next_id(bench);
    request.authority = unheld();
    request.other_authority = unheld();
    request.item_uids = &uids[0];
    request.n_item_uids = 1;
    request.other_item_uids = &uids[1];
    request.n_other_item_uids = 1;
    request.reason = (char *)"bench";
    call(bench, deal->home, METHOD_SWAP_GOODS, CALLER, arena_pack(&bench->arena, &request.base));
    memcpy(deal->uids[0], given[1], sizeof given[1]);
    memcpy(deal->uids[1], given[0], sizeof given[0]);
    arena_reset(&bench->arena);
}

/* ---- the run ---- */

static void shard_make(struct bench *bench, uint32_t number)
{
    struct shard_image image = { .number = number, .rep = { .votes = true, .log_first_index = 1 } };
    struct shard_limits limits = shard_limits_default();
    struct rep_record record = { .generation = 1, .epoch = 1, .owner = SELF };
    Holdfast__Internal__V1__ApplyPolicyRequest request =
        HOLDFAST__INTERNAL__V1__APPLY_POLICY_REQUEST__INIT;
    Holdfast__V1__Policy policy = HOLDFAST__V1__POLICY__INIT;

    record.membership = (struct membership){ .config = 1, .count = 1, .members = { SELF } };
    limits.shard_count = bench->shard_count;
    bench->replicas[number] = applier_new(number, node_handlers());
    applier_set_shard_count(bench->replicas[number], bench->shard_count);
    CHECK(shard_new(SELF, &limits, node_handlers(), &image, &bench->shards[number]) == ERR_OK);
    step(bench, number, (struct shard_event){ .type = SHARD_RECORD, .record = &record });
    policy.version = 1;
    request.policy = &policy;
    call(bench, number, METHOD_APPLY_POLICY, CALLER, arena_pack(&bench->arena, &request.base));
    arena_reset(&bench->arena);
}

static void run(struct bench *bench, struct deal *deals, uint32_t deal_count, uint64_t operations)
{
    bool swaps = deal_count == PAIRS;

    bench->owner_ns = bench->replica_ns = 0;
    bench->entries = bench->batches = bench->asked = bench->answers = 0;
    for (uint64_t i = 0; i < operations; i++) {
        if (swaps)
            swap(bench, &deals[i % deal_count]);
        else
            transfer(bench, &deals[i]);
        if (i % CALLERS != CALLERS - 1)
            continue;
        pass_all(bench);
        pass_time(bench, ROUND_MS);
    }
    pass_all(bench);
    pass_time(bench, LAST_MS);
    CHECK(bench->answers == operations);
}

static void finish(struct bench *bench)
{
    struct shard_stats stats;

    for (uint32_t i = 0; i < bench->shard_count; i++) {
        shard_stats_get(bench->shards[i], &stats);
        CHECK(stats.transfers_open == 0);
        CHECK(hash128_equal(shard_meta(bench->shards[i])->outcome_hash,
                            applier_outcome_hash(bench->replicas[i])));
        shard_free(bench->shards[i]);
        applier_free(bench->replicas[i]);
    }
    buf_deinit(&bench->answer);
    arena_deinit(&bench->arena);
}

int main(int argc, char **argv)
{
    bool swaps = argc > 1 && strcmp(argv[1], "swap") == 0;
    uint32_t operations = argc > 2 ? (uint32_t)strtoul(argv[2], NULL, 10) : 20000;
    struct bench bench = { .shard_count = argc > 3 ? (uint32_t)strtoul(argv[3], NULL, 10) : 64 };
    uint32_t deal_count = swaps ? PAIRS : operations;
    struct deal *deals = mem_zalloc(sizeof *deals * deal_count);

    CHECK(bench.shard_count > 1 && bench.shard_count <= UINT8_MAX && operations > 0);
    bench.last = &bench.first;
    for (uint32_t i = 0; i < bench.shard_count; i++)
        shard_make(&bench, i);
    for (uint32_t i = 0; i < deal_count; i++)
        deal_make(&bench, i, swaps, &deals[i]);
    run(&bench, deals, deal_count, operations);
    double each = operations;
    printf("%s: owner %.2f us, replica %.2f us, entries %.2f, batches %.2f, rows asked for %.2f\n",
           swaps ? "swap" : "transfer", (double)bench.owner_ns / 1000 / each,
           (double)bench.replica_ns / 1000 / each, (double)bench.entries / each,
           (double)bench.batches / each, (double)bench.asked / each);
    finish(&bench);
    free(deals);
    return 0;
}
