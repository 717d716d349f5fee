#include "node/rpc/fixture_shards.h"

#include <stdio.h>
#include <string.h>

#include "node/core/channel/channel_out.h"
#include "node/core/codec/arena_proto.h"
#include "node/core/rows/rows.h"
#include "runtime/base/check.h"
#include "runtime/cluster/placement.h"

#define RECORDS_MAX 64u
#define ROUNDS_MAX  32u

void fixture_shards_init(struct fixture_shards *s)
{
    memset(s, 0, sizeof *s);
    for (uint32_t i = 0; i < FIXTURE_SHARDS; i++)
        fixture_init_shard(&s->shards[i], i, FIXTURE_SHARDS);
}

void fixture_shards_deinit(struct fixture_shards *s)
{
    for (uint32_t i = 0; i < FIXTURE_SHARDS; i++)
        fixture_deinit(&s->shards[i]);
    arena_deinit(&s->arena);
}

void fixture_name_on(uint32_t shard, const char *stem, char ret_name[16])
{
    char entity[32];

    for (int i = 0; i < 100; i++) {
        snprintf(ret_name, 16, "%s%d", stem, i);
        snprintf(entity, sizeof entity, "player:%s", ret_name);
        if (shard_of_entity(slice_from_text(entity), FIXTURE_SHARDS) == shard)
            return;
    }
    CHECK(false);
}

/* Rows that a restart left in the database alone. */
static void load(struct fixture *f, struct slice key)
{
    struct state *state = applier_state(f->applier);
    struct slice found;

    if (state_find(state, key, &found) != STATE_MISSING)
        return;
    for (uint32_t i = 0; i < f->row_count; i++) {
        struct slice value = buf_slice(&f->rows[i].value);
        if (slice_equal(buf_slice(&f->rows[i].key), key)) {
            CHECK(state_load(state, state_load_generation(state), key, &value));
            return;
        }
    }
    CHECK(state_load(state, state_load_generation(state), key, NULL));
}

static Holdfast__Internal__V1__OutboxRow *record(struct fixture_shards *s, uint32_t from,
                                                 uint32_t to, uint64_t seq)
{
    struct fixture *f = &s->shards[from];
    Holdfast__Internal__V1__OutboxRow *row = NULL;
    struct row_key key;

    row_key_outbox(&key, to, seq);
    load(f, row_key_slice(&key));
    if (outbox_find(applier_state(f->applier), &s->arena, (struct channel_ref){ to, seq }, NULL,
                    &row) != STATE_PRESENT)
        return NULL;
    return row;
}

deliver_request *fixture_batch(struct fixture_shards *s, uint32_t from, uint32_t to)
{
    struct fixture *f = &s->shards[from];
    Holdfast__Internal__V1__ChannelOutRow *stands = NULL;
    deliver_request *request = arena_alloc(&s->arena, sizeof *request);
    struct row_key key;

    holdfast__internal__v1__deliver_request__init(request);
    request->shard = to;
    request->source = from;
    request->cut = applier_meta(f->applier)->cut_id;
    request->credits = arena_alloc(&s->arena, sizeof *request->credits * RECORDS_MAX);
    request->cancels = arena_alloc(&s->arena, sizeof *request->cancels * RECORDS_MAX);
    row_key_channel(&key, true, to);
    load(f, row_key_slice(&key));
    (void)channel_out_find(applier_state(f->applier), &s->arena, to, NULL, &stands);
    if (stands == NULL)
        return request;
    request->watermark = stands->watermark;
    for (uint64_t seq = stands->watermark + 1; seq <= stands->last_seq; seq++) {
        Holdfast__Internal__V1__OutboxRow *row = record(s, from, to, seq);
        if (row != NULL && row->cancel)
            request->cancels[request->n_cancels++] = seq;
        else if (row != NULL)
            request->credits[request->n_credits++] = row->credit;
    }
    return request;
}

deliver_response *fixture_deliver(struct fixture_shards *s, uint32_t to,
                                  const deliver_request *request)
{
    deliver_response *response =
        fixture_mutate(&s->shards[to], METHOD_CHANNEL_DELIVER, &request->base);

    assert_non_null(response);
    assert_int_equal(response->n_results, request->n_credits + request->n_cancels);
    return response;
}

void fixture_settle(struct fixture_shards *s, uint32_t from, uint32_t to,
                    const deliver_response *response)
{
    Holdfast__Internal__V1__SettleRequest request = HOLDFAST__INTERNAL__V1__SETTLE_REQUEST__INIT;
    Holdfast__Internal__V1__SettleItem *items[RECORDS_MAX];
    struct buf body = { 0 };

    request.destination = to;
    request.cut = response->cut;
    request.items = items;
    for (size_t i = 0; i < response->n_results; i++) {
        Holdfast__Internal__V1__OutboxRow *row = record(s, from, to, response->results[i]->seq);
        items[i] = (Holdfast__Internal__V1__SettleItem *)arena_message(
            &s->arena, &holdfast__internal__v1__settle_item__descriptor);
        items[i]->result = response->results[i];
        items[i]->player_id = (char *)"stranger";
        if (row != NULL) {
            items[i]->op_id = row->credit->op_id;
            items[i]->player_id = row->player_id;
            items[i]->receipt = row->credit->receipt != NULL;
        }
        request.n_items++;
    }
    owner_op_encode(METHOD_CHANNEL_SETTLE, (struct slice){ 0 }, &request.base, &body);
    fixture_commit(&s->shards[from], buf_slice(&body));
    buf_deinit(&body);
}

void fixture_carry(struct fixture_shards *s, uint32_t from, uint32_t to)
{
    deliver_request *request = fixture_batch(s, from, to);

    if (request->n_credits + request->n_cancels > 0)
        fixture_settle(s, from, to, fixture_deliver(s, to, request));
}

uint64_t fixture_open_records(const struct fixture_shards *s)
{
    uint64_t open = 0;

    for (uint32_t i = 0; i < FIXTURE_SHARDS; i++)
        open += applier_meta(s->shards[i].applier)->outbox_open;
    return open;
}

void fixture_carry_all(struct fixture_shards *s)
{
    for (uint32_t round = 0; fixture_open_records(s) > 0; round++) {
        assert_true(round < ROUNDS_MAX);
        for (uint32_t pair = 0; pair < FIXTURE_SHARDS * FIXTURE_SHARDS; pair++) {
            if (pair / FIXTURE_SHARDS != pair % FIXTURE_SHARDS)
                fixture_carry(s, pair / FIXTURE_SHARDS, pair % FIXTURE_SHARDS);
        }
    }
}

void fixture_restart_all(struct fixture_shards *s)
{
    for (uint32_t i = 0; i < FIXTURE_SHARDS; i++)
        fixture_restart(&s->shards[i]);
}

void fixture_contain(struct fixture *f, const char *player)
{
    Holdfast__Internal__V1__ContainPlayerRequest request =
        HOLDFAST__INTERNAL__V1__CONTAIN_PLAYER_REQUEST__INIT;

    request.shard = f->shard;
    request.player_id = text_lend(player);
    request.reason = (char *)"two holders";
    CHECK(fixture_mutate(f, METHOD_CONTAIN_PLAYER, &request.base) != NULL);
}

void fixture_release(struct fixture *f, const char *player)
{
    Holdfast__V1__ReleaseQuarantineRequest request = HOLDFAST__V1__RELEASE_QUARANTINE_REQUEST__INIT;

    request.player_id = text_lend(player);
    request.op_id = fixture_op_id(f);
    request.authority = fixture_authority(f, "system:admin");
    request.reason = (char *)"looked at";
    CHECK(fixture_mutate(f, METHOD_RELEASE_QUARANTINE, &request.base) != NULL);
}
