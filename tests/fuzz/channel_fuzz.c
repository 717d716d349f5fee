/*
 * channel_fuzz: what the owner of another shard answers to a batch of transfers. One shard has
 * sent three records; the input is the answer (DeliverResponse), given to it as it comes. Whatever
 * it says, the shard logs and applies it, or asks again; what stands in the log is applied once
 * more by a replica, which must come to the same.
 */
#include <stdlib.h>
#include <string.h>

#include "holdfast/internal/v1/channel.pb-c.h"
#include "holdfast/internal/v1/node.pb-c.h"
#include "holdfast/v1/ledger.pb-c.h"
#include "idl/method.h"
#include "node/core/rows/rows.h"
#include "node/core/shard/shard.h"
#include "node/rpc/handlers.h"
#include "runtime/base/check.h"
#include "runtime/cluster/placement.h"
#include "tests/fuzz/fuzz.h"

#define UNIX_MS   1790000000000u
#define TRANSFERS 3u

struct target {
    struct shard *shard;
    struct applier *replica; /* Applies what the shard logs. */
    uint64_t now_ms, calls;
    uint64_t first_transfer; /* That and later calls are transfers; 0: none yet. */
    uint64_t token;          /* Of the newest batch; 0: none. */
};

static void step(struct target *t, struct shard_event event);

static void rows_are_absent(struct target *t, const struct need *need)
{
    struct reader keys = reader_from(buf_slice(&need->keys));

    while (reader_left(&keys) > 0) {
        struct shard_row row = { .key = read_bytes(&keys, STATE_KEY_BYTES_MAX), .absent = true };
        step(t, (struct shard_event){ .type = SHARD_ROWS,
                                      .load_generation = need->load_generation,
                                      .rows = &row,
                                      .row_count = 1 });
    }
}

static void replica_loads(struct target *t, const struct need *need)
{
    struct state *state = applier_state(t->replica);
    struct reader keys = reader_from(buf_slice(&need->keys));

    while (reader_left(&keys) > 0)
        CHECK(
            state_load(state, need->load_generation, read_bytes(&keys, STATE_KEY_BYTES_MAX), NULL));
}

static void replica_applies(struct target *t, const struct entry *entry)
{
    struct need need = { 0 };
    struct outcome outcome;

    while (applier_apply(t->replica, entry, &need, &outcome) == ERR_NEED) {
        replica_loads(t, &need);
        need_clear(&need);
    }
    need_deinit(&need);
}

/* Who sent goods is told which piece of mail they became. */
static void check_reply(const struct target *t, const struct shard_reply *reply, struct slice body)
{
    uint8_t mail_id[ITEM_UID_BYTES];

    if (t->first_transfer == 0 || reply->call < t->first_transfer || reply->status != REPLY_OK)
        return;
    Holdfast__V1__TransferCurrenciesResponse *response =
        holdfast__v1__transfer_currencies_response__unpack(NULL, body.size, body.data);
    CHECK(response != NULL);
    CHECK(item_uid_parse(slice_from_text(response->mail_id), mail_id) == ERR_OK);
    holdfast__v1__transfer_currencies_response__free_unpacked(response, NULL);
}

static void step(struct target *t, struct shard_event event)
{
    struct shard_out out = { 0 };
    uint64_t ticket = 0;

    event.now_ms = t->now_ms;
    event.unix_ms = UNIX_MS + t->now_ms;
    shard_step(t->shard, &event, &out);
    shard_check(t->shard);
    for (uint32_t i = 0; i < out.reply_count; i++)
        check_reply(t, &out.replies[i],
                    (struct slice){ out.bytes.data + out.replies[i].offset, out.replies[i].size });
    for (uint32_t i = 0; i < out.delivery_count; i++)
        t->token = out.deliveries[i].token;
    for (uint32_t i = 0; i < out.rep.write_count; i++) {
        ticket = out.rep.writes[i].ticket;
        if (out.rep.writes[i].type != REP_WRITE_ENTRY)
            continue;
        replica_applies(t, out.rep.writes[i].entry);
        entry_unref(out.rep.writes[i].entry);
    }
    out.rep.write_count = 0;
    rows_are_absent(t, &out.need);
    shard_out_clear(&out);
    shard_out_deinit(&out);
    if (ticket != 0)
        step(t, (struct shard_event){ .type = SHARD_PERSISTED, .ticket = ticket });
    if (shard_wants_flush(t->shard))
        step(t, (struct shard_event){ .type = SHARD_FLUSH });
}

static void call(struct target *t, uint32_t method, const ProtobufCMessage *request)
{
    struct buf bytes = { 0 };
    size_t size = protobuf_c_message_get_packed_size(request);

    protobuf_c_message_pack(request, buf_reserve(&bytes, size + 1));
    bytes.size = size;
    step(t, (struct shard_event){ .type = SHARD_CALL,
                                  .call = ++t->calls,
                                  .method = method,
                                  .request = buf_slice(&bytes),
                                  .deadline_ms = t->now_ms + 60000 });
    buf_deinit(&bytes);
}

static void tick(struct target *t, uint64_t ms)
{
    for (uint64_t end = t->now_ms + ms; t->now_ms < end; t->now_ms += 50)
        step(t, (struct shard_event){ .type = SHARD_TICK });
}

/* ---- a shard with three records on their way ---- */

static const char *player_on(uint32_t shard, char name[16])
{
    char entity[32] = "player:";

    for (char c = 'a'; c <= 'z'; c++) {
        name[0] = c;
        name[1] = '\0';
        memcpy(entity + 7, name, 2);
        if (shard_of_entity(slice_from_text(entity), 2) == shard)
            return name;
    }
    CHECK(false);
    return NULL;
}

static void open_transfers(struct target *t)
{
    Holdfast__V1__CurrencyAmount gold = HOLDFAST__V1__CURRENCY_AMOUNT__INIT;
    Holdfast__V1__CurrencyAmount *amounts[] = { &gold };
    Holdfast__V1__GrantRequest grant = HOLDFAST__V1__GRANT_REQUEST__INIT;
    Holdfast__V1__TransferCurrenciesRequest transfer =
        HOLDFAST__V1__TRANSFER_CURRENCIES_REQUEST__INIT;
    char from[16], to[16];
    char id[] = "claim:0";

    gold.currency = text_lend("gold");
    gold.amount = 100;
    grant.player_id = transfer.player_id = text_lend(player_on(0, from));
    transfer.to_player_id = text_lend(player_on(1, to));
    grant.op_id = transfer.op_id = id;
    grant.authority = transfer.authority = text_lend("unheld");
    grant.currencies = transfer.currencies = amounts;
    grant.n_currencies = transfer.n_currencies = 1;
    call(t, METHOD_GRANT, &grant.base);
    gold.amount = 10;
    t->first_transfer = t->calls + 1;
    for (unsigned i = 0; i < TRANSFERS; i++) {
        id[6]++;
        call(t, METHOD_TRANSFER_CURRENCIES, &transfer.base);
    }
}

static void apply_policy(struct target *t)
{
    Holdfast__Internal__V1__ApplyPolicyRequest request =
        HOLDFAST__INTERNAL__V1__APPLY_POLICY_REQUEST__INIT;
    Holdfast__V1__Policy policy = HOLDFAST__V1__POLICY__INIT;
    Holdfast__V1__CurrencyPolicy gold = HOLDFAST__V1__CURRENCY_POLICY__INIT;
    Holdfast__V1__CurrencyPolicy *currencies[] = { &gold };

    gold.name = text_lend("gold");
    policy.version = 1;
    policy.n_currencies = 1;
    policy.currencies = currencies;
    request.policy = &policy;
    call(t, METHOD_APPLY_POLICY, &request.base);
}

static void target_open(struct target *t)
{
    struct shard_image image = { .number = 0, .rep = { .votes = true, .log_first_index = 1 } };
    struct shard_limits limits = shard_limits_default();
    struct rep_record record = { .generation = 1, .epoch = 1, .owner = 7 };

    *t = (struct target){ .replica = applier_new(0, node_handlers()) };
    applier_set_shard_count(t->replica, 2);
    limits.shard_count = 2;
    record.membership = (struct membership){ .config = 1, .count = 1, .members = { 7 } };
    CHECK(shard_new(7, &limits, node_handlers(), &image, &t->shard) == ERR_OK);
    step(t, (struct shard_event){ .type = SHARD_RECORD, .record = &record });
    apply_policy(t);
    open_transfers(t);
    /* The first left alone; its answer is lost, so all of them go together. */
    uint64_t first = t->token;
    CHECK(first != 0);
    step(t,
         (struct shard_event){ .type = SHARD_DELIVERED, .call = first, .status = REPLY_UNKNOWN });
    tick(t, 200);
    CHECK(t->token != first);
}

static void target_close(struct target *t)
{
    const struct meta *meta = shard_meta(t->shard);

    CHECK(meta->outbox_open <= TRANSFERS);
    CHECK(hash128_equal(meta->outcome_hash, applier_outcome_hash(t->replica)));
    applier_free(t->replica);
    shard_free(t->shard);
}

void fuzz_one(struct slice input)
{
    struct target t;

    target_open(&t);
    step(&t, (struct shard_event){
                 .type = SHARD_DELIVERED, .call = t.token, .status = REPLY_OK, .request = input });
    tick(&t, 500);
    target_close(&t);
}

/* ---- seeds ---- */

static void seed(struct fuzz_seeds *seeds, const char *name, unsigned first,
                 Holdfast__Internal__V1__ChannelDecision decision)
{
    Holdfast__Internal__V1__DeliverResponse response =
        HOLDFAST__INTERNAL__V1__DELIVER_RESPONSE__INIT;
    Holdfast__Internal__V1__ChannelResult results[TRANSFERS];
    Holdfast__Internal__V1__ChannelResult *pointers[TRANSFERS];
    Holdfast__Internal__V1__Refusal refusal = HOLDFAST__INTERNAL__V1__REFUSAL__INIT;
    struct buf bytes = { 0 };

    refusal.message = text_lend("no room");
    response.results = pointers;
    for (unsigned seq = first; seq <= TRANSFERS; seq++) {
        size_t n = response.n_results++;
        holdfast__internal__v1__channel_result__init(&results[n]);
        pointers[n] = &results[n];
        results[n].seq = seq;
        results[n].decision = decision;
        if (decision == HOLDFAST__INTERNAL__V1__CHANNEL_DECISION__CHANNEL_DECISION_APPLIED)
            results[n].mail_id = text_lend("00010000000000010000000000050000");
        if (decision == HOLDFAST__INTERNAL__V1__CHANNEL_DECISION__CHANNEL_DECISION_REJECTED)
            results[n].refusal = &refusal;
    }
    size_t size = protobuf_c_message_get_packed_size(&response.base);
    protobuf_c_message_pack(&response.base, buf_reserve(&bytes, size + 1));
    bytes.size = size;
    fuzz_seed_add(seeds, name, buf_slice(&bytes));
    buf_deinit(&bytes);
}

void fuzz_seed(struct fuzz_seeds *seeds)
{
#define SEED(name, first, decision)                                                                \
    seed(seeds, name, first, HOLDFAST__INTERNAL__V1__CHANNEL_DECISION__CHANNEL_DECISION_##decision)
    SEED("applied", 1, APPLIED);
    SEED("rejected", 1, REJECTED);
    SEED("cancelled", 1, CANCELLED);
    SEED("settled", 1, SETTLED);
    SEED("nothing", 1, UNSPECIFIED);
    SEED("two", 2, APPLIED);
    SEED("one", 3, REJECTED);
    SEED("none", 4, APPLIED);
}
