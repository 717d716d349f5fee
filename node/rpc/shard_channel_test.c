#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "holdfast/internal/v1/channel.pb-c.h"
#include "holdfast/internal/v1/node.pb-c.h"
#include "holdfast/internal/v1/operation.pb-c.h"
#include "holdfast/v1/ledger.pb-c.h"
#include "holdfast/v1/operation_service.pb-c.h"
#include "idl/method.h"
#include "node/core/shard/shard.h"
#include "node/rpc/fixture_stored.h"
#include "node/rpc/handlers.h"
#include "runtime/base/check.h"
#include "runtime/base/id.h"
#include "runtime/cluster/placement.h"

#define CHECKED_STEPS  64u
#define UNIX_MS        1790000000000u
#define DELIVERIES_MAX 64u

/* Two shards of one replica each: every write is durable at once, every cold row is absent. Each
 * delivery between them waits until the test passes it on, or loses it. */
struct side {
    struct shard *shard;
    struct buf last_body;
    enum reply_status last_status;
    uint64_t last_call;
    uint32_t replies;
};

struct delivery {
    uint32_t from, to;
    uint64_t token;
    struct buf request;
};

struct cluster {
    struct side sides[2];
    struct delivery waiting[DELIVERIES_MAX];
    uint32_t waiting_count;
    uint64_t now_ms;
    uint64_t calls, ids;
    char ann[16], bob[16];
    char told[512];          /* Incidents, each as "what op_id;". */
    struct stored_rows rows; /* The first side's database. */
    uint32_t steps;
};

static void step(struct cluster *c, uint32_t number, struct shard_event event);

static void answer_need(struct cluster *c, uint32_t number, const struct need *need)
{
    struct reader keys = reader_from(buf_slice(&need->keys));

    while (reader_left(&keys) > 0) {
        struct shard_row row = { .key = read_bytes(&keys, STATE_KEY_BYTES_MAX), .absent = true };
        if (number == 0)
            row = stored_rows_find(&c->rows, row.key);
        step(c, number,
             (struct shard_event){ .type = SHARD_ROWS,
                                   .load_generation = need->load_generation,
                                   .rows = &row,
                                   .row_count = 1 });
    }
}

static void take_out(struct cluster *c, uint32_t number, const struct shard_out *out)
{
    struct side *side = &c->sides[number];

    for (uint32_t i = 0; i < out->reply_count; i++) {
        side->last_call = out->replies[i].call;
        side->last_status = out->replies[i].status;
        buf_clear(&side->last_body);
        buf_append(&side->last_body, out->bytes.data + out->replies[i].offset,
                   out->replies[i].size);
        side->replies++;
    }
    for (uint32_t i = 0; i < out->incident_count; i++) {
        const struct incident *incident = &out->incidents[i];
        bool duplicate = incident->kind == INCIDENT_DUPLICATE_ATTEMPT;
        size_t used = strlen(c->told);
        (void)snprintf(c->told + used, sizeof c->told - used, "%s %s;",
                       duplicate ? "duplicate" : incident->what, incident->op_id);
    }
    for (uint32_t i = 0; i < out->delivery_count; i++) {
        assert_true(c->waiting_count < DELIVERIES_MAX);
        struct delivery *delivery = &c->waiting[c->waiting_count++];
        *delivery = (struct delivery){ .from = number,
                                       .to = out->deliveries[i].destination,
                                       .token = out->deliveries[i].token };
        buf_append(&delivery->request, out->bytes.data + out->deliveries[i].offset,
                   out->deliveries[i].size);
    }
}

static void step(struct cluster *c, uint32_t number, struct shard_event event)
{
    struct shard *shard = c->sides[number].shard;
    struct shard_out out = { 0 };
    uint64_t ticket = 0;

    event.now_ms = c->now_ms;
    event.unix_ms = UNIX_MS + c->now_ms;
    shard_step(shard, &event, &out);
    if (++c->steps <= CHECKED_STEPS || c->steps % CHECKED_STEPS == 0)
        shard_check(shard); /* A look at every row. */
    take_out(c, number, &out);
    for (uint32_t i = 0; i < out.rep.write_count; i++) {
        ticket = out.rep.writes[i].ticket;
        if (out.rep.writes[i].type == REP_WRITE_ENTRY)
            entry_unref(out.rep.writes[i].entry);
    }
    out.rep.write_count = 0;
    answer_need(c, number, &out.need);
    shard_out_clear(&out);
    shard_out_deinit(&out);
    if (ticket != 0)
        step(c, number, (struct shard_event){ .type = SHARD_PERSISTED, .ticket = ticket });
    if (shard_wants_flush(shard))
        step(c, number, (struct shard_event){ .type = SHARD_FLUSH });
}

static uint64_t call_bytes(struct cluster *c, uint32_t number, uint32_t method,
                           struct slice request)
{
    step(c, number,
         (struct shard_event){ .type = SHARD_CALL,
                               .call = ++c->calls,
                               .method = method,
                               .request = request,
                               .deadline_ms = c->now_ms + 10000 });
    return c->calls;
}

static uint64_t call(struct cluster *c, uint32_t number, uint32_t method,
                     const ProtobufCMessage *request)
{
    struct buf bytes = { 0 };
    size_t size = protobuf_c_message_get_packed_size(request);

    protobuf_c_message_pack(request, buf_reserve(&bytes, size + 1));
    bytes.size = size;
    uint64_t id = call_bytes(c, number, method, buf_slice(&bytes));
    buf_deinit(&bytes);
    return id;
}

static void tick(struct cluster *c, uint64_t ms)
{
    for (uint64_t end = c->now_ms + ms; c->now_ms < end; c->now_ms += 20) {
        step(c, 0, (struct shard_event){ .type = SHARD_TICK });
        step(c, 1, (struct shard_event){ .type = SHARD_TICK });
    }
}

/* Passes the first waiting delivery on; its answer is in the last body of where it went. */
static struct delivery carry_one(struct cluster *c)
{
    struct delivery delivery = c->waiting[0];
    struct side *to = &c->sides[delivery.to];

    assert_true(c->waiting_count > 0);
    c->waiting_count--;
    memmove(c->waiting, c->waiting + 1, sizeof *c->waiting * c->waiting_count);
    (void)call_bytes(c, delivery.to, METHOD_CHANNEL_DELIVER, buf_slice(&delivery.request));
    assert_int_equal(to->last_call, c->calls);
    assert_int_equal(to->last_status, REPLY_OK);
    buf_deinit(&delivery.request);
    return delivery;
}

static void answer_one(struct cluster *c, const struct delivery *delivery)
{
    const struct side *to = &c->sides[delivery->to];

    step(c, delivery->from,
         (struct shard_event){ .type = SHARD_DELIVERED,
                               .call = delivery->token,
                               .status = to->last_status,
                               .request = buf_slice(&to->last_body) });
}

static void pass_one(struct cluster *c, bool lose)
{
    struct delivery delivery = carry_one(c);

    if (!lose)
        answer_one(c, &delivery);
}

static void pass_all(struct cluster *c)
{
    while (c->waiting_count > 0)
        pass_one(c, false);
}

static void lose_all(struct cluster *c)
{
    for (uint32_t i = 0; i < c->waiting_count; i++)
        buf_deinit(&c->waiting[i].request);
    c->waiting_count = 0;
}

static void own(struct cluster *c, uint32_t number, uint64_t epoch, uint64_t owner)
{
    struct rep_record record = {
        .generation = 1, .epoch = epoch, .owner = owner, .membership = { .config = 1, .count = 1 }
    };

    record.membership.members[0] = owner;
    step(c, number, (struct shard_event){ .type = SHARD_RECORD, .record = &record });
}

static void name_on(uint32_t shard, const char *stem, char ret_name[16])
{
    char entity[32];

    for (int i = 0; i < 100; i++) {
        snprintf(ret_name, 16, "%s%d", stem, i);
        snprintf(entity, sizeof entity, "player:%s", ret_name);
        if (shard_of_entity(slice_from_text(entity), 2) == shard)
            return;
    }
    CHECK(false);
}

static void op_id(struct cluster *c, char text[UUID_TEXT_SIZE])
{
    uint8_t random[10] = { 0 };

    store_u64(random + 2, ++c->ids << 8);
    struct uuid uuid = uuid_v7_make(UNIX_MS + c->now_ms, random);
    uuid_print(&uuid, text);
}

static char *authority(void)
{
    return (char *)"unheld";
}

static void apply_policy(struct cluster *c, uint32_t number)
{
    Holdfast__Internal__V1__ApplyPolicyRequest request =
        HOLDFAST__INTERNAL__V1__APPLY_POLICY_REQUEST__INIT;
    Holdfast__V1__Policy policy = HOLDFAST__V1__POLICY__INIT;
    Holdfast__V1__CurrencyPolicy gold = HOLDFAST__V1__CURRENCY_POLICY__INIT;
    Holdfast__V1__CurrencyPolicy *currencies[] = { &gold };

    gold.name = (char *)"gold";
    policy.version = 1;
    policy.n_currencies = 1;
    policy.currencies = currencies;
    request.policy = &policy;
    (void)call(c, number, METHOD_APPLY_POLICY, &request.base);
    assert_int_equal(c->sides[number].last_status, REPLY_OK);
}

static Holdfast__V1__CurrencyAmount *gold_of(int64_t amount)
{
    static Holdfast__V1__CurrencyAmount gold = HOLDFAST__V1__CURRENCY_AMOUNT__INIT;

    gold.currency = (char *)"gold";
    gold.amount = amount;
    return &gold;
}

static void grant(struct cluster *c, int64_t amount)
{
    Holdfast__V1__GrantRequest request = HOLDFAST__V1__GRANT_REQUEST__INIT;
    Holdfast__V1__CurrencyAmount *amounts[] = { gold_of(amount) };
    char id[UUID_TEXT_SIZE];

    op_id(c, id);
    request.player_id = c->ann;
    request.op_id = id;
    request.authority = authority();
    request.currencies = amounts;
    request.n_currencies = 1;
    (void)call(c, 0, METHOD_GRANT, &request.base);
    assert_int_equal(c->sides[0].last_status, REPLY_OK);
}

static uint64_t pay(struct cluster *c, int64_t amount, const char *id)
{
    Holdfast__V1__TransferCurrenciesRequest request =
        HOLDFAST__V1__TRANSFER_CURRENCIES_REQUEST__INIT;
    Holdfast__V1__CurrencyAmount *amounts[] = { gold_of(amount) };

    request.player_id = c->ann;
    request.to_player_id = c->bob;
    request.op_id = text_lend(id);
    request.authority = authority();
    request.currencies = amounts;
    request.n_currencies = 1;
    return call(c, 0, METHOD_TRANSFER_CURRENCIES, &request.base);
}

static void shard_make(struct cluster *c, uint32_t number)
{
    struct shard_image image = { .number = number, .rep = { .votes = true, .log_first_index = 1 } };
    struct shard_limits limits = shard_limits_default();

    limits.shard_count = 2;
    limits.watermark_tell_ms = 500;
    assert_int_equal(shard_new(7, &limits, node_handlers(), &image, &c->sides[number].shard),
                     ERR_OK);
    own(c, number, 1, 7);
    apply_policy(c, number);
}

static int setup(void **state)
{
    struct cluster *c = mem_zalloc(sizeof *c);

    shard_make(c, 0);
    shard_make(c, 1);
    name_on(0, "ann", c->ann);
    name_on(1, "bob", c->bob);
    grant(c, 100);
    *state = c;
    return 0;
}

static int teardown(void **state)
{
    struct cluster *c = *state;

    lose_all(c);
    for (int i = 0; i < 2; i++) {
        shard_free(c->sides[i].shard);
        buf_deinit(&c->sides[i].last_body);
    }
    stored_rows_deinit(&c->rows);
    free(c);
    return 0;
}

/* What no caller waits for is logged after a moment. */
static void log_decisions(struct cluster *c)
{
    tick(c, 100);
}

static struct shard_stats stats(struct cluster *c)
{
    struct shard_stats got;

    shard_stats_get(c->sides[0].shard, &got);
    return got;
}

static void the_caller_is_answered_at_the_decision(void **state)
{
    struct cluster *c = *state;
    uint32_t replies = c->sides[0].replies;

    uint64_t id = pay(c, 30, "claim:a");
    tick(c, 300);
    assert_int_equal(c->sides[0].replies, replies);
    assert_int_equal(stats(c).transfers_open, 1);
    assert_true(stats(c).transfers_oldest_ms >= 40);
    pass_all(c);
    assert_int_equal(c->sides[0].replies, replies + 1);
    assert_int_equal(c->sides[0].last_call, id);
    assert_int_equal(c->sides[0].last_status, REPLY_OK);
    Holdfast__V1__TransferCurrenciesResponse *response =
        holdfast__v1__transfer_currencies_response__unpack(NULL, c->sides[0].last_body.size,
                                                           c->sides[0].last_body.data);
    assert_non_null(response);
    assert_int_equal(response->balances[0]->amount, 70);
    assert_int_equal(strlen(response->mail_id), 32);
    assert_false(response->write->duplicate);
    holdfast__v1__transfer_currencies_response__free_unpacked(response, NULL);
    assert_int_equal(stats(c).transfers_open, 1);
    log_decisions(c);
    assert_int_equal(stats(c).transfers_open, 0);
    assert_int_equal(stats(c).transfers_settled, 1);
}

static void decisions_of_a_moment_are_logged_by_one_entry(void **state)
{
    struct cluster *c = *state;

    (void)pay(c, 1, "claim:a");
    pass_all(c);
    uint64_t before = shard_applied_index(c->sides[0].shard);
    (void)pay(c, 1, "claim:b");
    pass_all(c);
    assert_int_equal(shard_applied_index(c->sides[0].shard), before + 1);
    assert_int_equal(stats(c).transfers_open, 2);
    log_decisions(c);
    assert_int_equal(shard_applied_index(c->sides[0].shard), before + 2);
    assert_int_equal(stats(c).transfers_open, 0);
    assert_int_equal(stats(c).transfers_settled, 2);
}

static void whoever_asks_for_an_operation_sees_what_its_caller_was_told(void **state)
{
    struct cluster *c = *state;
    Holdfast__V1__GetOperationRequest request = HOLDFAST__V1__GET_OPERATION_REQUEST__INIT;
    char entity[32];

    (void)pay(c, 30, "claim:a");
    pass_all(c);
    assert_int_equal(stats(c).transfers_open, 1);
    snprintf(entity, sizeof entity, "player:%s", c->ann);
    request.entity = entity;
    request.op_id = (char *)"claim:a";
    uint64_t id = call(c, 0, METHOD_GET_OPERATION, &request.base);
    assert_int_equal(c->sides[0].last_call, id);
    Holdfast__Internal__V1__OperationAnswer *response =
        holdfast__internal__v1__operation_answer__unpack(NULL, c->sides[0].last_body.size,
                                                         c->sides[0].last_body.data);
    assert_non_null(response);
    assert_int_equal(response->operation->state,
                     HOLDFAST__V1__OPERATION_STATE__OPERATION_STATE_COMMITTED);
    holdfast__internal__v1__operation_answer__free_unpacked(response, NULL);
    assert_int_equal(stats(c).transfers_open, 0);
}

static void a_new_owner_settles_what_was_told_and_not_logged(void **state)
{
    struct cluster *c = *state;
    uint32_t replies = c->sides[0].replies;

    (void)pay(c, 30, "claim:a");
    pass_all(c);
    assert_int_equal(c->sides[0].replies, replies + 1);
    own(c, 0, 2, 8);
    own(c, 0, 3, 7);
    tick(c, 40);
    pass_all(c);
    log_decisions(c);
    assert_int_equal(stats(c).transfers_open, 0);
    assert_int_equal(stats(c).transfers_refunded, 0);
    assert_string_equal(c->told, "transfers_resumed ;transfer_settled claim:a;");
}

static void what_waits_while_a_batch_is_on_its_way_leaves_together(void **state)
{
    struct cluster *c = *state;
    char ids[5][24];

    for (int i = 0; i < 5; i++) {
        snprintf(ids[i], sizeof ids[i], "claim:%d", i);
        (void)pay(c, 1, ids[i]);
    }
    assert_int_equal(c->waiting_count, 1);
    pass_one(c, false);
    assert_int_equal(c->waiting_count, 1);
    pass_one(c, false);
    log_decisions(c);
    assert_int_equal(stats(c).transfers_open, 0);
    assert_int_equal(stats(c).transfers_settled, 5);
    assert_int_equal(stats(c).transfers_sent, 5);
}

static void a_batch_whose_answer_is_lost_is_sent_again(void **state)
{
    struct cluster *c = *state;
    uint32_t replies = c->sides[0].replies;

    (void)pay(c, 30, "claim:a");
    pass_one(c, true);
    tick(c, 5000);
    assert_int_equal(stats(c).transfers_retried, 0);
    step(c, 0, (struct shard_event){ .type = SHARD_TICK });
    assert_true(stats(c).transfers_retried > 0);
    tick(c, 500);
    assert_int_equal(c->sides[0].replies, replies);
    pass_all(c);
    log_decisions(c);
    assert_int_equal(c->sides[0].replies, replies + 1);
    assert_int_equal(stats(c).transfers_open, 0);
}

/* Its first result names no piece of mail. */
static void spoil_answer(struct side *side)
{
    Holdfast__Internal__V1__DeliverResponse *response =
        holdfast__internal__v1__deliver_response__unpack(NULL, side->last_body.size,
                                                         side->last_body.data);

    assert_true(response->n_results > 1);
    response->results[0]->mail_id[0] = 0;
    buf_clear(&side->last_body);
    size_t size = protobuf_c_message_get_packed_size(&response->base);
    protobuf_c_message_pack(&response->base, buf_reserve(&side->last_body, size));
    side->last_body.size = size;
    holdfast__internal__v1__deliver_response__free_unpacked(response, NULL);
}

/* One is sent again after a while; the others of its batch are settled. */
static void a_result_without_sense_holds_up_its_own_record_alone(void **state)
{
    struct cluster *c = *state;
    char ids[4][24];

    for (int i = 0; i < 4; i++) { /* The first leaves alone. */
        snprintf(ids[i], sizeof ids[i], "claim:%d", i);
        (void)pay(c, 1, ids[i]);
    }
    pass_one(c, false);
    struct delivery delivery = carry_one(c);
    spoil_answer(&c->sides[1]);
    answer_one(c, &delivery);
    log_decisions(c);
    assert_int_equal(stats(c).transfers_open, 1);
    tick(c, 11000);
    pass_all(c);
    log_decisions(c);
    assert_int_equal(stats(c).transfers_open, 0);
    assert_int_equal(stats(c).transfers_settled, 4);
}

static void a_failed_delivery_never_refunds(void **state)
{
    struct cluster *c = *state;

    (void)pay(c, 30, "claim:a");
    for (int i = 0; i < 5; i++) {
        assert_int_equal(c->waiting_count, 1);
        uint64_t token = c->waiting[0].token;
        lose_all(c);
        step(c, 0,
             (struct shard_event){
                 .type = SHARD_DELIVERED, .call = token, .status = REPLY_UNKNOWN });
        tick(c, 2200);
    }
    assert_int_equal(stats(c).transfers_open, 1);
    assert_int_equal(stats(c).transfers_refunded, 0);
    pass_all(c);
    log_decisions(c);
    assert_int_equal(stats(c).transfers_settled, 1);
}

static void a_new_owner_finds_what_is_open_and_sends_it(void **state)
{
    struct cluster *c = *state;

    (void)pay(c, 30, "claim:a");
    lose_all(c);
    own(c, 0, 2, 8);
    assert_int_equal(c->sides[0].last_status, REPLY_UNKNOWN);
    assert_false(shard_serves(c->sides[0].shard));
    own(c, 0, 3, 7);
    assert_true(shard_serves(c->sides[0].shard));
    tick(c, 40);
    assert_int_equal(c->waiting_count, 1);
    pass_all(c);
    log_decisions(c);
    assert_int_equal(stats(c).transfers_open, 0);
    assert_int_equal(stats(c).transfers_settled, 1);
    assert_string_equal(c->told, "transfers_resumed ;transfer_settled claim:a;");
}

static void what_an_owner_settles_by_itself_is_no_incident(void **state)
{
    struct cluster *c = *state;

    (void)pay(c, 30, "claim:a");
    pass_all(c);
    log_decisions(c);
    assert_int_equal(stats(c).transfers_settled, 1);
    assert_string_equal(c->told, "");
}

static void a_repeated_transfer_is_told(void **state)
{
    struct cluster *c = *state;

    (void)pay(c, 30, "claim:a");
    pass_all(c);
    (void)pay(c, 30, "claim:a");
    assert_string_equal(c->told, "duplicate claim:a;");
}

static void a_seal_is_answered_when_the_other_shard_has_decided(void **state)
{
    struct cluster *c = *state;
    Holdfast__V1__ResolveOperationRequest request = HOLDFAST__V1__RESOLVE_OPERATION_REQUEST__INIT;
    char entity[32];

    (void)pay(c, 30, "claim:a");
    lose_all(c); /* The credit never arrives. */
    uint32_t replies = c->sides[0].replies;
    snprintf(entity, sizeof entity, "player:%s", c->ann);
    request.entity = entity;
    request.op_id = (char *)"claim:a";
    request.seal = true;
    uint64_t id = call(c, 0, METHOD_RESOLVE_OPERATION, &request.base);
    assert_int_equal(c->sides[0].replies, replies);
    tick(c, 5500);
    pass_all(c);
    /* The caller of the transfer and the caller of the seal are both told. */
    assert_int_equal(c->sides[0].replies, replies + 2);
    assert_int_equal(c->sides[0].last_call, id);
    assert_int_equal(c->sides[0].last_status, REPLY_OK);
    Holdfast__Internal__V1__OperationAnswer *response =
        holdfast__internal__v1__operation_answer__unpack(NULL, c->sides[0].last_body.size,
                                                         c->sides[0].last_body.data);
    assert_non_null(response);
    assert_int_equal(response->operation->state,
                     HOLDFAST__V1__OPERATION_STATE__OPERATION_STATE_ABORTED);
    holdfast__internal__v1__operation_answer__free_unpacked(response, NULL);
    assert_int_equal(stats(c).transfers_refunded, 1);
}

static void the_watermark_leaves_alone_when_nothing_takes_it_along(void **state)
{
    struct cluster *c = *state;

    (void)pay(c, 30, "claim:a");
    pass_all(c);
    assert_int_equal(c->waiting_count, 0);
    tick(c, 600);
    assert_int_equal(c->waiting_count, 1);
    pass_all(c);
    tick(c, 2000);
    assert_int_equal(c->waiting_count, 0);
}

static Holdfast__V1__OperationState state_told(struct cluster *c, const char *op_id)
{
    Holdfast__V1__GetOperationRequest request = HOLDFAST__V1__GET_OPERATION_REQUEST__INIT;
    char entity[32];

    snprintf(entity, sizeof entity, "player:%s", c->ann);
    request.entity = entity;
    request.op_id = text_lend(op_id);
    uint64_t id = call(c, 0, METHOD_GET_OPERATION, &request.base);
    if (c->sides[0].last_call != id)
        return HOLDFAST__V1__OPERATION_STATE__OPERATION_STATE_UNSPECIFIED; /* It waits. */
    Holdfast__Internal__V1__OperationAnswer *response =
        holdfast__internal__v1__operation_answer__unpack(NULL, c->sides[0].last_body.size,
                                                         c->sides[0].last_body.data);
    assert_non_null(response);
    Holdfast__V1__OperationState told = response->operation->state;
    assert_true(told != HOLDFAST__V1__OPERATION_STATE__OPERATION_STATE_COMMITTED ||
                response->operation->result.len > 0);
    holdfast__internal__v1__operation_answer__free_unpacked(response, NULL);
    return told;
}

static void an_operation_never_goes_back_while_the_log_takes_nothing(void **state)
{
    struct cluster *c = *state;
    uint32_t replies = c->sides[0].replies;

    (void)pay(c, 30, "claim:a");
    assert_int_equal(state_told(c, "claim:a"),
                     HOLDFAST__V1__OPERATION_STATE__OPERATION_STATE_PENDING);
    shard_set_full(c->sides[0].shard, "no space left");
    pass_all(c);
    assert_int_equal(c->sides[0].replies, replies + 2);
    assert_int_equal(c->sides[0].last_status, REPLY_OK); /* Its caller was told that it arrived. */
    assert_int_equal(state_told(c, "claim:a"),
                     HOLDFAST__V1__OPERATION_STATE__OPERATION_STATE_COMMITTED);
    shard_set_full(c->sides[0].shard, NULL);
    tick(c, 200);
    assert_int_equal(state_told(c, "claim:a"),
                     HOLDFAST__V1__OPERATION_STATE__OPERATION_STATE_COMMITTED);
}

static void an_operation_never_goes_back_because_its_transfer_is_not_in_memory(void **state)
{
    struct cluster *c = *state;

    (void)pay(c, 30, "claim:a");
    shard_set_full(c->sides[0].shard, "no space left");
    pass_all(c);
    assert_int_equal(c->sides[0].last_status, REPLY_OK);
    stored_rows_checkpoint(&c->rows, c->sides[0].shard);
    assert_int_equal(state_told(c, "claim:a"),
                     HOLDFAST__V1__OPERATION_STATE__OPERATION_STATE_COMMITTED);
    shard_set_full(c->sides[0].shard, NULL);
    tick(c, 200);
}

static void a_new_owner_asks_before_it_says_pending(void **state)
{
    struct cluster *c = *state;

    (void)pay(c, 30, "claim:a");
    pass_all(c); /* Its caller is told; the log does not say so yet, and the owner is lost. */
    assert_int_equal(c->sides[0].last_status, REPLY_OK);
    assert_int_equal(stats(c).transfers_open, 1);
    own(c, 0, 2, 8);
    own(c, 0, 3, 7);
    assert_true(shard_serves(c->sides[0].shard));
    uint32_t replies = c->sides[0].replies;
    assert_int_equal(state_told(c, "claim:a"),
                     HOLDFAST__V1__OPERATION_STATE__OPERATION_STATE_UNSPECIFIED);
    assert_int_equal(c->sides[0].replies, replies);
    tick(c, 40);
    pass_all(c);
    log_decisions(c);
    assert_int_equal(c->sides[0].replies, replies + 1);
    assert_int_equal(c->sides[0].last_status, REPLY_OK);
    assert_int_equal(state_told(c, "claim:a"),
                     HOLDFAST__V1__OPERATION_STATE__OPERATION_STATE_COMMITTED);
}

/* While an owner's disk is full, decisions gather; each purchase among them makes an item, whose
 * UID holds 16 bits of place in its entry. */
#define PURCHASES 1300u

static void buy(struct cluster *c, const char *receipt)
{
    Holdfast__V1__GrantRequest request = HOLDFAST__V1__GRANT_REQUEST__INIT;
    Holdfast__V1__ItemSpec hat = HOLDFAST__V1__ITEM_SPEC__INIT;
    Holdfast__V1__ItemSpec *items[] = { &hat };

    hat.kind = (char *)"hat";
    request.player_id = c->ann;
    request.op_id = text_lend(receipt);
    request.authority = authority();
    request.items = items;
    request.n_items = 1;
    (void)call(c, 0, METHOD_GRANT, &request.base);
}

static void decisions_that_gathered_are_logged_by_as_many_entries_as_they_need(void **state)
{
    struct cluster *c = *state;
    char receipt[32];

    for (uint32_t bought = 0, i = 0; bought < PURCHASES; i++) {
        snprintf(receipt, sizeof receipt, "receipt:%u", i);
        if (shard_of_entity(slice_from_text(receipt), 2) != 1)
            continue;
        buy(c, receipt);
        bought++;
    }
    assert_int_equal(stats(c).transfers_open, PURCHASES);
    shard_set_full(c->sides[0].shard, "no space left");
    for (int round = 0; round < 20; round++) {
        pass_all(c);
        tick(c, 2000);
    }
    assert_int_equal(stats(c).transfers_open, PURCHASES);
    shard_set_full(c->sides[0].shard, NULL);
    for (int round = 0; round < 20; round++) {
        tick(c, 2000);
        pass_all(c);
    }
    assert_int_equal(stats(c).transfers_open, 0);
    assert_int_equal(stats(c).entries_unapplied, 0);
    assert_int_equal(stats(c).rows_unreadable, 0);
    for (uint32_t i = 0; i < 2 * PURCHASES; i += 50) {
        snprintf(receipt, sizeof receipt, "receipt:%u", i);
        if (shard_of_entity(slice_from_text(receipt), 2) == 1)
            assert_int_equal(state_told(c, receipt),
                             HOLDFAST__V1__OPERATION_STATE__OPERATION_STATE_COMMITTED);
    }
}

int main(void)
{
#define CHANNEL_TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        CHANNEL_TEST(the_caller_is_answered_at_the_decision),
        CHANNEL_TEST(decisions_of_a_moment_are_logged_by_one_entry),
        CHANNEL_TEST(whoever_asks_for_an_operation_sees_what_its_caller_was_told),
        CHANNEL_TEST(a_new_owner_settles_what_was_told_and_not_logged),
        CHANNEL_TEST(what_waits_while_a_batch_is_on_its_way_leaves_together),
        CHANNEL_TEST(a_batch_whose_answer_is_lost_is_sent_again),
        CHANNEL_TEST(a_result_without_sense_holds_up_its_own_record_alone),
        CHANNEL_TEST(a_failed_delivery_never_refunds),
        CHANNEL_TEST(a_new_owner_finds_what_is_open_and_sends_it),
        CHANNEL_TEST(what_an_owner_settles_by_itself_is_no_incident),
        CHANNEL_TEST(a_repeated_transfer_is_told),
        CHANNEL_TEST(a_seal_is_answered_when_the_other_shard_has_decided),
        CHANNEL_TEST(the_watermark_leaves_alone_when_nothing_takes_it_along),
        CHANNEL_TEST(an_operation_never_goes_back_while_the_log_takes_nothing),
        CHANNEL_TEST(an_operation_never_goes_back_because_its_transfer_is_not_in_memory),
        CHANNEL_TEST(a_new_owner_asks_before_it_says_pending),
        CHANNEL_TEST(decisions_that_gathered_are_logged_by_as_many_entries_as_they_need),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
