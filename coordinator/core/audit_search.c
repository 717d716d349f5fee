/*
 * audit_search: who holds what the audit has too much of, and that they are held back. DESIGN
 * section 7, docs/containment.md.
 *
 * Shards are asked page by page for the items of the buckets that do not come to zero, and for
 * wallets that are not what their ledgers say. Pages of several shards are not of one moment: an
 * item that moves meanwhile can be seen twice, or not at all. So holders of an item are believed to
 * hold it twice only if that accounts for the bucket's sums to the last bit; otherwise the search
 * begins again. Wallets are compared within one state of one shard and are never wrong.
 */
#include "coordinator/core/audit_search.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "coordinator/core/delivery.h"
#include "idl/method.h"
#include "runtime/base/check.h"
#include "runtime/base/hash.h"
#include "runtime/base/hex.h"

typedef Holdfast__Internal__V1__AuditSearchResponse search_response;

void search_free(struct coord *coord)
{
    struct audit_search *search = &coord->audit.search;

    free(search->acks);
    free(search->cursors);
    free(search->found);
    free(search->suspects);
    free(search->held);
}

/* Nothing is known of what was searched for before. */
static void forget_imbalance(struct audit_search *search)
{
    search->known = false;
    search->tries = 0;
    search->held_count = 0;
}

void search_drop(struct coord *coord)
{
    struct audit_search *search = &coord->audit.search;

    search->state = SEARCH_NONE;
    forget_imbalance(search);
    search->hash = 0;
    search->number++; /* Answers on their way are to another one. */
    for (uint32_t i = 0; search->acks != NULL && i < coord->shard_count; i++)
        search->acks[i] = ACK_DONE;
}

void search_balanced(struct coord *coord)
{
    struct audit_search *search = &coord->audit.search;

    if (search->state != SEARCH_CONTAIN) {
        search_drop(coord);
        return;
    }
    /* A containment goes on: the damage was seen, even if it has been put right since. The same
     * sum after it is another damage, and is searched for again. */
    forget_imbalance(search);
}

/* ---- start ---- */

static void make_room(struct coord *coord)
{
    struct audit_search *search = &coord->audit.search;

    if (search->acks != NULL)
        return;
    search->acks = mem_zalloc(coord->shard_count);
    search->cursors = mem_zalloc(coord->shard_count * sizeof *search->cursors);
    search->suspects = mem_zalloc(AUDIT_SUSPECTS_MAX * sizeof *search->suspects);
    search->held = mem_zalloc(AUDIT_HELD_MAX * sizeof *search->held);
}

static void set_aims(struct audit_search *search, const struct audit_sum *sum)
{
    search->bucket_count = 0;
    search->currency_count = 0;
    for (uint32_t i = 0; i < AUDIT_BUCKETS; i++) {
        if ((sum->buckets[i].count == 0 && sum->buckets[i].hashes == 0) ||
            search->bucket_count == AUDIT_BAD_BUCKETS_MAX)
            continue;
        search->bad[search->bucket_count] = sum->buckets[i];
        search->buckets[search->bucket_count++] = i;
    }
    for (uint32_t i = 0; i < sum->currency_count; i++) {
        if (sum->currencies[i].net == 0 || search->currency_count == AUDIT_BAD_CURRENCIES_MAX)
            continue;
        memcpy(search->currencies[search->currency_count++], sum->currencies[i].name,
               sizeof search->currencies[0]);
    }
}

void search_imbalance(struct coord *coord, const struct audit_sum *sum, uint64_t hash)
{
    struct audit_search *search = &coord->audit.search;
    bool items = sum->count != 0 || sum->hashes != 0;

    if (search->state != SEARCH_NONE)
        return;
    if (search->hash != hash) {
        search->hash = hash;
        forget_imbalance(search);
    }
    if (search->known || (items && sum->bucket_parts < coord->shard_count))
        return; /* In the second case the next cut has them. */
    make_room(coord);
    set_aims(search, sum);
    search->state = SEARCH_PAGES;
    search->number++;
    search->cut = sum->cut;
    search->tries++;
    search->found_count = 0;
    search->suspect_count = 0;
    search->overflow = false;
    search->wallets = 0;
    search->undecided = 0;
    memset(search->acks, ACK_WANTED, coord->shard_count);
    memset(search->cursors, 0, coord->shard_count * sizeof *search->cursors);
    search->acks_left = coord->shard_count;
    coord->stats.audit_searches++;
    log_event(coord->log, LOG_WARN, "coordinator.audit_search", LOG_N("cut", sum->cut),
              LOG_N("buckets", search->bucket_count), LOG_N("currencies", search->currency_count));
}

/* ---- calls ---- */

static struct slice pack(const ProtobufCMessage *message, struct arena *arena)
{
    size_t size = protobuf_c_message_get_packed_size(message);
    uint8_t *data = arena_alloc(arena, size + 1);

    protobuf_c_message_pack(message, data);
    return (struct slice){ data, size };
}

static struct slice page_body(struct audit_search *search, uint32_t shard, struct arena *arena)
{
    Holdfast__Internal__V1__AuditSearchRequest request =
        HOLDFAST__INTERNAL__V1__AUDIT_SEARCH_REQUEST__INIT;
    char *currencies[AUDIT_BAD_CURRENCIES_MAX];

    for (uint32_t i = 0; i < search->currency_count; i++)
        currencies[i] = search->currencies[i];
    request.shard = shard;
    request.cursor = search->cursors[shard];
    request.n_buckets = search->bucket_count;
    request.buckets = search->buckets;
    request.n_currencies = search->currency_count;
    request.currencies = currencies;
    return pack(&request.base, arena);
}

static void ask_pages(struct coord *coord, struct coord_out *out)
{
    struct audit_search *search = &coord->audit.search;

    for (uint32_t i = 0; i < coord->shard_count; i++) {
        struct open_call *open = NULL;

        if (search->acks[i] != ACK_WANTED ||
            !shard_takes_calls(coord, &coord->shards[i], CALL_SEARCH))
            continue;
        struct coord_call *call = delivery_call(coord, i, out, &open);

        if (call == NULL)
            return;
        call->method = METHOD_AUDIT_SEARCH;
        call->body = page_body(search, i, &out->arena);
        open->method = call->method;
        open->cut = search->number;
        search->acks[i] = ACK_CALLING;
    }
}

static void ask_containments(struct coord *coord, struct coord_out *out)
{
    struct audit_search *search = &coord->audit.search;

    for (uint32_t i = 0; i < search->suspect_count; i++) {
        struct audit_suspect *suspect = &search->suspects[i];
        Holdfast__Internal__V1__ContainPlayerRequest request =
            HOLDFAST__INTERNAL__V1__CONTAIN_PLAYER_REQUEST__INIT;
        struct open_call *open = NULL;

        if (suspect->ack != ACK_WANTED ||
            !shard_takes_calls(coord, &coord->shards[suspect->shard], CALL_CONTAINMENT))
            continue;
        struct coord_call *call = delivery_call(coord, suspect->shard, out, &open);

        if (call == NULL)
            return;
        request.shard = suspect->shard;
        request.player_id = suspect->player;
        request.reason = suspect->reason;
        request.op_id = suspect->op_id;
        call->method = METHOD_CONTAIN_PLAYER;
        call->body = pack(&request.base, &out->arena);
        open->method = call->method;
        open->cut = search->number;
        open->suspect = i;
        suspect->ack = ACK_CALLING;
    }
}

void search_run(struct coord *coord, struct coord_out *out)
{
    switch (coord->audit.search.state) {
    case SEARCH_NONE:
        break;
    case SEARCH_PAGES:
        ask_pages(coord, out);
        break;
    case SEARCH_CONTAIN:
        ask_containments(coord, out);
        break;
    }
}

/* ---- what was found ---- */

static uint64_t suspect_hash(uint32_t shard, const char *player)
{
    return hash_u64(slice_from_text(player)) + shard;
}

/* By an earlier search for this imbalance. */
static bool is_held(const struct audit_search *search, uint64_t hash)
{
    for (uint32_t i = 0; i < search->held_count; i++) {
        if (search->held[i] == hash)
            return true;
    }
    return false;
}

static void suspect_add(struct coord *coord, uint32_t shard, const char *player, const char *reason,
                        const char *op_id)
{
    struct audit_search *search = &coord->audit.search;

    for (uint32_t i = 0; i < search->suspect_count; i++) {
        if (search->suspects[i].shard == shard && strcmp(search->suspects[i].player, player) == 0)
            return;
    }
    if (is_held(search, suspect_hash(shard, player)))
        return;
    if (search->suspect_count == AUDIT_SUSPECTS_MAX) {
        search->overflow = true; /* A later search finds those who are left. */
        return;
    }
    struct audit_suspect *suspect = &search->suspects[search->suspect_count++];
    *suspect = (struct audit_suspect){ .shard = shard, .ack = ACK_WANTED };
    (void)snprintf(suspect->player, sizeof suspect->player, "%s", player);
    (void)snprintf(suspect->reason, sizeof suspect->reason, "%.64s", reason);
    (void)snprintf(suspect->op_id, sizeof suspect->op_id, "%s", op_id);
}

static void found_add(struct audit_search *search, uint32_t shard,
                      const Holdfast__Internal__V1__FoundItem *item)
{
    struct audit_found found = { .shard = shard };

    if (search->found_count == AUDIT_FOUND_MAX ||
        hex_parse(slice_from_text(item->item_uid), sizeof found.uid, found.uid) != ERR_OK) {
        search->overflow = true;
        return;
    }
    if (search->found_count == search->found_capacity) {
        search->found_capacity = search->found_capacity == 0 ? 256 : search->found_capacity * 2;
        search->found = mem_realloc(search->found, search->found_capacity * sizeof *search->found);
    }
    found.hash = hash_u64((struct slice){ found.uid, AUDIT_UID_BYTES });
    (void)snprintf(found.player, sizeof found.player, "%s", item->player_id);
    search->found[search->found_count++] = found;
}

static int found_compare(const void *a, const void *b)
{
    return memcmp(((const struct audit_found *)a)->uid, ((const struct audit_found *)b)->uid,
                  AUDIT_UID_BYTES);
}

/* How many hold the item of the found one at `first`: they stand together. */
static uint32_t holders_of(const struct audit_search *search, uint32_t first)
{
    uint32_t end = first + 1;

    while (end < search->found_count &&
           found_compare(&search->found[first], &search->found[end]) == 0)
        end++;
    return end - first;
}

static void suspect_holders(struct coord *coord, uint32_t first, uint32_t count)
{
    const struct audit_found *found = &coord->audit.search.found[first];
    char reason[AUDIT_REASON_SIZE + 32];
    char uid[AUDIT_UID_BYTES * 2 + 1];

    hex_print(found->uid, sizeof found->uid, uid);
    (void)snprintf(reason, sizeof reason, "audit: item %s held %u times", uid, count);
    for (uint32_t i = 0; i < count; i++)
        suspect_add(coord, found[i].shard, found[i].player, reason, "");
}

/* True: so many of an item with this hash are all that is wrong with the bucket. */
static bool accounts_for(uint64_t hash, uint32_t count, const struct audit_bucket *bad)
{
    return count > 0 && count == bad->count && hash * count == bad->hashes;
}

/* True: what is held twice in this bucket accounts for all that is wrong with it; or one item of it
 * does, and the others only moved. Of that one a copy may be right, or none: one may have been
 * consumed meanwhile. Those who hold it are suspects. */
static bool explain_bucket(struct coord *coord, uint32_t bucket, const struct audit_bucket *bad)
{
    const struct audit_search *search = &coord->audit.search;
    struct audit_bucket all = { 0 };
    bool explained = false;

    for (uint32_t pass = 0; pass < 2 && !explained; pass++) {
        bool every = pass == 1 && all.count == bad->count && all.hashes == bad->hashes;
        for (uint32_t i = 0, count; i < search->found_count; i += count) {
            uint64_t hash = search->found[i].hash;
            count = holders_of(search, i);
            if (hash % AUDIT_BUCKETS != bucket)
                continue;
            all.count += pass == 0 ? count - 1 : 0;
            all.hashes += pass == 0 ? hash * (count - 1) : 0;
            bool alone = accounts_for(hash, count - 1, bad) || accounts_for(hash, count, bad);
            if (pass == 1 && ((every && count > 1) || alone)) {
                suspect_holders(coord, i, count);
                explained = true;
            }
        }
    }
    return explained;
}

static void pages_over(struct coord *coord)
{
    struct audit_search *search = &coord->audit.search;
    uint32_t open = 0;

    if (search->found_count > 0)
        qsort(search->found, search->found_count, sizeof *search->found, found_compare);
    for (uint32_t i = 0; i < search->bucket_count; i++)
        open += !explain_bucket(coord, search->buckets[i], &search->bad[i]);
    bool enough =
        open == 0 && !search->overflow && (search->currency_count == 0 || search->wallets > 0);
    if (search->overflow && search->suspect_count > 0 && search->held_count < AUDIT_HELD_MAX)
        search->tries = 0; /* The next search goes on behind those. */
    search->known = enough || search->tries >= AUDIT_TRIES_MAX;
    if (search->known && !enough) {
        coord->stats.audit_unexplained++;
        log_event(coord->log, LOG_ERROR, "coordinator.audit_unexplained", LOG_N("cut", search->cut),
                  LOG_N("buckets", open), LOG_N("wallets_undecided", search->undecided));
    }
    search->state = search->suspect_count > 0 ? SEARCH_CONTAIN : SEARCH_NONE;
}

static void take_page(struct coord *coord, uint32_t shard, const search_response *response)
{
    struct audit_search *search = &coord->audit.search;
    char reason[AUDIT_REASON_SIZE + 32];

    for (size_t i = 0; i < response->n_items; i++)
        found_add(search, shard, response->items[i]);
    for (size_t i = 0; i < response->n_wallets; i++) {
        const Holdfast__Internal__V1__FoundWallet *wallet = response->wallets[i];
        (void)snprintf(reason, sizeof reason, "audit: %+lld %.33s beside the ledger",
                       (long long)wallet->too_many, wallet->currency);
        suspect_add(coord, shard, wallet->player_id, reason, wallet->op_id);
    }
    search->wallets += (uint32_t)response->n_wallets;
    search->undecided += response->undecided;
    (void)snprintf(search->cursors[shard], sizeof search->cursors[shard], "%s",
                   response->next_cursor);
}

void search_page_done(struct coord *coord, const struct open_call *call,
                      const struct coord_event *event)
{
    struct audit_search *search = &coord->audit.search;
    search_response *response = NULL;

    if (search->state != SEARCH_PAGES || call->cut != search->number)
        return;
    if (event->status == WIRE_OK)
        response = holdfast__internal__v1__audit_search_response__unpack(NULL, event->body.size,
                                                                         event->body.data);
    search->acks[call->shard] = ACK_WANTED; /* The same page again, or the next one. */
    if (response == NULL)
        return;
    take_page(coord, call->shard, response);
    if (response->next_cursor[0] == 0) {
        search->acks[call->shard] = ACK_DONE;
        if (--search->acks_left == 0)
            pages_over(coord);
    }
    holdfast__internal__v1__audit_search_response__free_unpacked(response, NULL);
}

void search_contained(struct coord *coord, const struct open_call *call,
                      const struct coord_event *event)
{
    struct audit_search *search = &coord->audit.search;
    Holdfast__Internal__V1__ContainPlayerResponse *response = NULL;
    uint32_t left = 0;

    if (search->state != SEARCH_CONTAIN || call->cut != search->number)
        return;
    struct audit_suspect *suspect = &search->suspects[call->suspect];
    if (event->status == WIRE_OK)
        response = holdfast__internal__v1__contain_player_response__unpack(NULL, event->body.size,
                                                                           event->body.data);
    suspect->ack = response != NULL ? ACK_DONE : ACK_WANTED;
    if (response != NULL && search->held_count < AUDIT_HELD_MAX)
        search->held[search->held_count++] = suspect_hash(suspect->shard, suspect->player);
    if (response != NULL && response->contained) {
        coord->stats.audit_contained++;
        log_event(coord->log, LOG_ERROR, "coordinator.contained", LOG_N("cut", search->cut),
                  LOG_N("shard", suspect->shard), LOG_S("player", suspect->player),
                  LOG_S("reason", suspect->reason));
    }
    holdfast__internal__v1__contain_player_response__free_unpacked(response, NULL);
    for (uint32_t i = 0; i < search->suspect_count; i++)
        left += search->suspects[i].ack != ACK_DONE;
    if (left == 0)
        search->state = SEARCH_NONE;
}
