/*
 * audit: whether every item and every unit of currency is there once, at consistent cuts. DESIGN
 * section 7, docs/containment.md.
 *
 * Each round asks all shards to take the next cut; they answer with what they held at the two cuts
 * before, less what was made (node/core/goods/audit.h). A shard's part of a cut counts once nothing
 * that was open then is open any more. All parts together come to zero, or something was doubled or
 * lost. A cut that is not complete two rounds later says nothing, and the next ones will.
 */
#include "coordinator/core/audit.h"

#include <stdlib.h>
#include <string.h>

#include "coordinator/core/audit_search.h"
#include "coordinator/core/delivery.h"
#include "idl/method.h"
#include "runtime/base/check.h"
#include "runtime/base/hash.h"

typedef Holdfast__Internal__V1__CutTotals cut_totals;

void audit_free(struct coord *coord)
{
    free(coord->audit.acks);
    for (uint32_t i = 0; i < AUDIT_CUTS; i++) {
        free(coord->audit.sums[i].told);
        free(coord->audit.sums[i].buckets);
    }
    search_free(coord);
}

/* Another coordinator may go on with these sums; this one asks for all parts again. */
void audit_drop(struct coord *coord)
{
    struct audit *audit = &coord->audit;

    audit->running = false;
    audit->imbalance = false;
    audit->want_buckets = false;
    search_drop(coord);
    for (uint32_t i = 0; i < AUDIT_CUTS; i++)
        audit->sums[i].cut = 0;
}

static void make_room(struct coord *coord)
{
    struct audit *audit = &coord->audit;

    if (audit->acks != NULL)
        return;
    audit->acks = mem_zalloc(coord->shard_count);
    for (uint32_t i = 0; i < AUDIT_CUTS; i++) {
        audit->sums[i].told = mem_zalloc(coord->shard_count);
        audit->sums[i].buckets = mem_zalloc(sizeof *audit->sums[i].buckets * AUDIT_BUCKETS);
    }
}

static void round_start(struct coord *coord)
{
    struct audit *audit = &coord->audit;
    struct audit_sum *oldest = &audit->sums[AUDIT_CUTS - 1];

    make_room(coord);
    if (oldest->cut != 0 && oldest->left > 0)
        coord->stats.audit_inconclusive++;
    uint8_t *told = oldest->told;
    struct audit_bucket *buckets = oldest->buckets;
    memmove(&audit->sums[1], &audit->sums[0], sizeof *audit->sums * (AUDIT_CUTS - 1));
    memset(told, 0, coord->shard_count);
    memset(buckets, 0, sizeof *buckets * AUDIT_BUCKETS);
    audit->sums[0] = (struct audit_sum){
        .cut = audit->cut, .told = told, .left = coord->shard_count, .buckets = buckets
    };
    audit->cut++;
    memset(audit->acks, ACK_WANTED, coord->shard_count);
    audit->acks_left = coord->shard_count;
    audit->running = true;
    audit->started_ms = coord->now_ms;
    audit->next_ms = coord->now_ms + coord->limits.audit_interval_ms;
}

static struct slice body_of(const struct audit *audit, uint32_t shard, struct arena *arena)
{
    Holdfast__Internal__V1__TakeCutRequest request = HOLDFAST__INTERNAL__V1__TAKE_CUT_REQUEST__INIT;

    request.shard = shard;
    request.cut = audit->cut;
    request.with_buckets = audit->want_buckets;
    size_t size = protobuf_c_message_get_packed_size(&request.base);
    uint8_t *data = arena_alloc(arena, size);
    protobuf_c_message_pack(&request.base, data);
    return (struct slice){ data, size };
}

static void ask(struct coord *coord, struct coord_out *out)
{
    struct audit *audit = &coord->audit;

    for (uint32_t i = 0; i < coord->shard_count; i++) {
        struct open_call *open = NULL;

        if (audit->acks[i] != ACK_WANTED || !shard_takes_calls(coord, &coord->shards[i], CALL_CUT))
            continue;
        struct coord_call *call = delivery_call(coord, i, out, &open);

        if (call == NULL)
            return;
        call->method = METHOD_TAKE_CUT;
        call->body = body_of(audit, i, &out->arena);
        open->method = call->method;
        open->cut = audit->cut;
        audit->acks[i] = ACK_CALLING;
    }
}

void audit_run(struct coord *coord, struct coord_out *out)
{
    struct audit *audit = &coord->audit;

    if (coord->limits.audit_interval_ms == 0)
        return;
    if (audit->running && coord->now_ms - audit->started_ms >= coord->limits.audit_timeout_ms)
        audit->running = false; /* Its answers, if they come, are to another question. */
    if (!audit->running && coord->now_ms >= audit->next_ms)
        round_start(coord);
    if (audit->running && audit->acks_left > 0)
        ask(coord, out);
    search_run(coord, out);
}

/* ---- answers ---- */

/* Beyond AUDIT_CURRENCIES_MAX all are one: their sum is still zero. */
static struct audit_currency *currency_get(struct audit_sum *sum, const char *name)
{
    uint32_t place = 0;

    while (place < sum->currency_count && strcmp(sum->currencies[place].name, name) != 0)
        place++;
    if (place == AUDIT_CURRENCIES_MAX)
        return &sum->currencies[place - 1];
    struct audit_currency *currency = &sum->currencies[place];
    if (place == sum->currency_count) {
        sum->currency_count++;
        *currency = (struct audit_currency){ 0 };
        memcpy(currency->name, name, strnlen(name, sizeof currency->name - 1));
    }
    return currency;
}

static void add_buckets(struct audit_sum *sum, ProtobufCBinaryData bytes)
{
    struct reader reader = reader_from((struct slice){ bytes.data, bytes.len });

    while (reader_left(&reader) > 0 && !reader.bad) {
        uint32_t place = read_u32(&reader);
        int32_t count = (int32_t)read_u32(&reader);
        uint64_t hashes = read_u64(&reader);
        if (reader.bad || place >= AUDIT_BUCKETS)
            return; /* The sum does not fit the total then, and is no base for a search. */
        sum->buckets[place].count += count;
        sum->buckets[place].hashes += hashes;
    }
    sum->bucket_parts++;
}

static void add(struct audit_sum *sum, uint32_t shard, const cut_totals *part)
{
    for (size_t i = 0; i < part->n_amounts; i++) {
        struct audit_currency *currency = currency_get(sum, part->amounts[i]->currency);
        currency->net = (int64_t)((uint64_t)currency->net + (uint64_t)part->amounts[i]->amount);
    }
    sum->count = (int64_t)((uint64_t)sum->count + (uint64_t)part->count);
    sum->hashes += part->hashes;
    if (part->has_buckets)
        add_buckets(sum, part->buckets);
    CHECK(sum->told[shard] == 0 && sum->left > 0);
    sum->told[shard] = 1;
    sum->left--;
}

static uint64_t imbalance_hash(const struct audit_sum *sum)
{
    uint64_t hash = sum->hashes ^ (uint64_t)sum->count * 0x9e3779b97f4a7c15ull;

    for (uint32_t i = 0; i < sum->currency_count; i++) {
        if (sum->currencies[i].net != 0)
            hash += hash_u64(slice_from_text(sum->currencies[i].name)) *
                    (uint64_t)sum->currencies[i].net;
    }
    return hash;
}

static void tell_imbalance(const struct coord *coord, const struct audit_sum *sum)
{
    for (uint32_t i = 0; i < sum->currency_count; i++) {
        if (sum->currencies[i].net != 0)
            log_event(coord->log, LOG_ERROR, "coordinator.audit_violation", LOG_N("cut", sum->cut),
                      LOG_S("currency", sum->currencies[i].name),
                      LOG_N("too_many", sum->currencies[i].net));
    }
    if (sum->count != 0 || sum->hashes != 0)
        log_event(coord->log, LOG_ERROR, "coordinator.audit_violation", LOG_N("cut", sum->cut),
                  LOG_S("currency", "items"), LOG_N("too_many", sum->count));
}

static void count(struct coord *coord, const struct audit_sum *sum)
{
    struct audit *audit = &coord->audit;
    bool zero = sum->count == 0 && sum->hashes == 0;

    for (uint32_t i = 0; i < sum->currency_count; i++)
        zero &= sum->currencies[i].net == 0;
    coord->stats.audit_cuts++;
    audit->counted_ms = coord->now_ms;
    if (sum->cut < coord->stats.audit_cut)
        return; /* A newer one was counted before. */
    coord->stats.audit_cut = sum->cut;
    uint64_t hash = imbalance_hash(sum);
    if (!zero && (!audit->imbalance || audit->imbalance_hash != hash)) {
        coord->stats.audit_violations++;
        tell_imbalance(coord, sum);
    }
    audit->imbalance = !zero;
    audit->imbalance_hash = hash;
    audit->want_buckets = sum->count != 0 || sum->hashes != 0;
    if (zero) {
        search_balanced(coord);
        return;
    }
    search_imbalance(coord, sum, hash);
    audit->want_buckets &= !audit->search.known;
    if (audit->want_buckets && audit->search.state == SEARCH_NONE)
        audit->next_ms = coord->now_ms; /* Do not wait to learn more. */
}

static void take_parts(struct coord *coord, uint32_t shard,
                       const Holdfast__Internal__V1__TakeCutResponse *response)
{
    for (size_t i = 0; i < response->n_totals; i++) {
        for (uint32_t j = 0; j < AUDIT_CUTS; j++) {
            struct audit_sum *sum = &coord->audit.sums[j];
            const cut_totals *part = response->totals[i];

            if (sum->cut == 0 || part->cut != sum->cut || part->open > 0 || sum->told[shard])
                continue;
            add(sum, shard, part);
            if (sum->left == 0)
                count(coord, sum);
        }
    }
}

void audit_done(struct coord *coord, const struct open_call *call, const struct coord_event *event)
{
    struct audit *audit = &coord->audit;
    Holdfast__Internal__V1__TakeCutResponse *response = NULL;

    if (!audit->running || call->cut != audit->cut)
        return;
    if (event->status == WIRE_OK)
        response = holdfast__internal__v1__take_cut_response__unpack(NULL, event->body.size,
                                                                     event->body.data);
    if (response == NULL) {
        audit->acks[call->shard] = ACK_WANTED;
        return;
    }
    if (response->cut > audit->cut) {
        /* Another coordinator was here before: go on from there. */
        audit->cut = response->cut;
        audit->running = false;
        audit->next_ms = coord->now_ms;
    } else {
        audit->acks[call->shard] = ACK_DONE;
        take_parts(coord, call->shard, response);
        if (--audit->acks_left == 0)
            audit->running = false;
    }
    holdfast__internal__v1__take_cut_response__free_unpacked(response, NULL);
}
