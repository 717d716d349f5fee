/*
 * Who holds what the audit has too much of (coordinator/core/audit_search.c; docs/containment.md):
 * many items in few buckets, wallets in several currencies, told page by page. Every holder of what
 * was doubled is held back, once it accounts for the sums; nothing else makes a player a suspect.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "coordinator/core/world.h"
#include "idl/method.h"
#include "runtime/base/buf.h"
#include "runtime/base/check.h"
#include "runtime/base/hash.h"
#include "runtime/base/hex.h"
#include "tests/sim/cores/rsim.h"

#define SHARDS     8u
#define PLAYERS    4u /* Of each shard. */
#define BUCKETS    3u
#define EACH       4u /* Items of each bucket. */
#define ITEMS      (BUCKETS * EACH)
#define COPIES_MAX 64u
#define CURRENCIES 3u
#define RICH_MAX   6u
#define OF         4096u /* docs/containment.md */
#define PAGE       3u
#define TRIES      5u

enum harm { WELL, DOUBLED, SPENT_AND_HELD, LOST, DOUBLED_AND_LOST, HARMS };

struct item {
    uint8_t uid[16];
    char text[33];
    uint64_t hash;
    uint32_t home;
    int32_t made;
    bool wrong; /* Who holds it is a suspect. */
};

struct copy {
    uint32_t item, shard, player;
};

struct rich {
    uint32_t shard, player, currency;
    int64_t amount;
};

struct library {
    struct rsim *sim;
    struct world *world;
    struct item items[ITEMS];
    struct copy copies[COPIES_MAX];
    uint32_t copy_count;
    struct rich rich[RICH_MAX];
    uint32_t rich_count;
    int64_t net[CURRENCIES]; /* Too much of it, of all players. */
    bool unexplained;
    bool contained[SHARDS][PLAYERS];
    /* Lent to an answer. */
    Holdfast__V1__CurrencyAmount amounts[CURRENCIES], *amount_list[CURRENCIES];
    struct buf buckets;
    char players[COPIES_MAX + RICH_MAX][16], cursor[16];
    Holdfast__Internal__V1__FoundItem found[COPIES_MAX], *found_list[COPIES_MAX];
    Holdfast__Internal__V1__FoundWallet wallets[RICH_MAX], *wallet_list[RICH_MAX];
};

static const char *const currencies[CURRENCIES] = { "gold", "gems", "dust" };

/* ---- what there is ---- */
static void items_make(struct library *l)
{
    uint32_t buckets[BUCKETS], counts[BUCKETS] = { 0 };
    uint32_t have = 0, known = 0;

    for (uint64_t n = rsim_next(l->sim); have < ITEMS; n++) {
        struct item item = { .made = 1 };
        uint32_t place = 0;

        store_u64(item.uid, n);
        item.hash = hash_u64((struct slice){ item.uid, sizeof item.uid });
        while (place < known && buckets[place] != item.hash % OF)
            place++;
        if (place == known && known < BUCKETS)
            buckets[known++] = (uint32_t)(item.hash % OF);
        if (place == known || counts[place] == EACH)
            continue;
        item.home = (uint32_t)rsim_between(l->sim, 0, SHARDS - 1);
        hex_print(item.uid, sizeof item.uid, item.text);
        l->items[place * EACH + counts[place]++] = item;
        have++;
    }
}

static void hold(struct library *l, uint32_t item)
{
    CHECK(l->copy_count < COPIES_MAX);
    l->copies[l->copy_count++] = (struct copy){ item, (uint32_t)rsim_between(l->sim, 0, SHARDS - 1),
                                                (uint32_t)rsim_between(l->sim, 0, PLAYERS - 1) };
}

/* One kind of harm for each bucket; the first items of it suffer. */
static void bucket_make(struct library *l, uint32_t bucket, enum harm harm)
{
    uint32_t first = bucket * EACH;
    uint32_t doubled = harm == DOUBLED            ? (uint32_t)rsim_between(l->sim, 1, EACH)
                       : harm == DOUBLED_AND_LOST ? 1
                                                  : 0;

    for (uint32_t i = first; i < first + EACH; i++) {
        bool lost = (harm == LOST && i == first) || (harm == DOUBLED_AND_LOST && i == first + 1);
        uint64_t more = i < first + doubled ? rsim_between(l->sim, 1, 2) : 0;

        if (harm == SPENT_AND_HELD && i == first) {
            l->items[i].made = 0;
            l->items[i].wrong = true;
            more = rsim_between(l->sim, 0, 1);
        }
        l->items[i].wrong |= harm == DOUBLED && more > 0;
        if (harm == DOUBLED_AND_LOST)
            more = more > 0;
        for (uint64_t n = 0; n < 1 + more && !lost; n++)
            hold(l, i);
    }
    l->unexplained |= harm == LOST || harm == DOUBLED_AND_LOST;
}

static void wallets_make(struct library *l)
{
    for (uint64_t n = rsim_between(l->sim, 0, RICH_MAX); n > 0; n--) {
        struct rich rich = { (uint32_t)rsim_between(l->sim, 0, SHARDS - 1),
                             (uint32_t)rsim_between(l->sim, 0, PLAYERS - 1),
                             (uint32_t)rsim_between(l->sim, 0, CURRENCIES - 1),
                             (int64_t)rsim_between(l->sim, 1, 1000) };

        l->rich[l->rich_count++] = rich;
        l->net[rich.currency] += rich.amount;
    }
}

/* ---- what shards tell ---- */
static void counted(void *user, uint32_t shard, bool with_buckets,
                    Holdfast__Internal__V1__CutTotals *part)
{
    struct library *l = user;
    int64_t counts[BUCKETS] = { 0 };
    uint64_t hashes[BUCKETS] = { 0 };

    for (uint32_t i = 0; i < ITEMS; i++) {
        int64_t net = l->items[i].home == shard ? -l->items[i].made : 0;

        for (uint32_t c = 0; c < l->copy_count; c++)
            net += l->copies[c].item == i && l->copies[c].shard == shard;
        counts[i / EACH] += net;
        hashes[i / EACH] += l->items[i].hash * (uint64_t)net;
    }
    buf_clear(&l->buckets);
    for (uint32_t b = 0; b < BUCKETS; b++) {
        part->count += counts[b];
        part->hashes += hashes[b];
        if (counts[b] == 0 && hashes[b] == 0)
            continue;
        buf_put_u32(&l->buckets, (uint32_t)(l->items[b * EACH].hash % OF));
        buf_put_u32(&l->buckets, (uint32_t)counts[b]);
        buf_put_u64(&l->buckets, hashes[b]);
    }
    part->has_buckets = with_buckets;
    part->buckets.data = l->buckets.data;
    part->buckets.len = with_buckets ? l->buckets.size : 0;
    part->amounts = l->amount_list;
    part->n_amounts = 0;
    for (uint32_t i = 0; i < CURRENCIES; i++) {
        holdfast__v1__currency_amount__init(&l->amounts[i]);
        l->amounts[i].currency = text_lend(currencies[i]);
        for (uint32_t r = 0; r < l->rich_count; r++) {
            if (l->rich[r].shard == shard && l->rich[r].currency == i)
                l->amounts[i].amount += l->rich[r].amount;
        }
        if (l->amounts[i].amount != 0)
            l->amount_list[part->n_amounts++] = &l->amounts[i];
    }
}

static bool asks_for(const Holdfast__Internal__V1__AuditSearchRequest *request, uint64_t hash)
{
    for (size_t i = 0; i < request->n_buckets; i++) {
        if (request->buckets[i] == hash % OF)
            return true;
    }
    return false;
}

static char *player_name(struct library *l, uint32_t place, uint32_t shard, uint32_t player)
{
    (void)snprintf(l->players[place], sizeof l->players[place], "p%u_%u", shard, player);
    return l->players[place];
}

static void wallets_tell(struct library *l,
                         const Holdfast__Internal__V1__AuditSearchRequest *request,
                         Holdfast__Internal__V1__AuditSearchResponse *response)
{
    for (uint32_t r = 0; r < l->rich_count; r++) {
        bool asked = false;
        for (size_t i = 0; i < request->n_currencies; i++)
            asked |= strcmp(request->currencies[i], currencies[l->rich[r].currency]) == 0;
        if (!asked || l->rich[r].shard != request->shard)
            continue;
        Holdfast__Internal__V1__FoundWallet *wallet = &l->wallets[response->n_wallets];
        holdfast__internal__v1__found_wallet__init(wallet);
        wallet->player_id = player_name(l, COPIES_MAX + r, l->rich[r].shard, l->rich[r].player);
        wallet->currency = text_lend(currencies[l->rich[r].currency]);
        wallet->too_many = l->rich[r].amount;
        l->wallet_list[response->n_wallets++] = wallet;
    }
    response->wallets = l->wallet_list;
}

/* So many items a page; wallets come with the last one. */
static void searched(void *user, const Holdfast__Internal__V1__AuditSearchRequest *request,
                     Holdfast__Internal__V1__AuditSearchResponse *response)
{
    struct library *l = user;
    uint32_t at = request->cursor[0] != '\0' ? (uint32_t)strtoul(request->cursor, NULL, 10) : 0;

    response->items = l->found_list;
    for (; at < l->copy_count && response->n_items < PAGE; at++) {
        const struct copy *copy = &l->copies[at];
        if (copy->shard != request->shard || !asks_for(request, l->items[copy->item].hash))
            continue;
        Holdfast__Internal__V1__FoundItem *found = &l->found[response->n_items];
        holdfast__internal__v1__found_item__init(found);
        found->player_id = player_name(l, at, copy->shard, copy->player);
        found->item_uid = l->items[copy->item].text;
        l->found_list[response->n_items++] = found;
    }
    if (at == l->copy_count) {
        wallets_tell(l, request, response);
        return;
    }
    (void)snprintf(l->cursor, sizeof l->cursor, "%u", at);
    response->next_cursor = l->cursor;
}

/* ---- who is held back ---- */
static void called(void *user, const struct coord_call *call)
{
    struct library *l = user;
    unsigned shard, player;

    if (call->method != METHOD_CONTAIN_PLAYER)
        return;
    Holdfast__Internal__V1__ContainPlayerRequest *request =
        holdfast__internal__v1__contain_player_request__unpack(NULL, call->body.size,
                                                               call->body.data);
    CHECK(request != NULL);
    PROMISE(l->sim, sscanf(request->player_id, "p%u_%u", &shard, &player) == 2,
            "no such player: %s", request->player_id);
    PROMISE(l->sim, shard == call->shard && shard < SHARDS && player < PLAYERS,
            "the player of another shard: %s", request->player_id);
    PROMISE(l->sim, strncmp(request->reason, "audit: ", 7) == 0, "no reason: %s", request->reason);
    l->contained[shard][player] = true;
    holdfast__internal__v1__contain_player_request__free_unpacked(request, NULL);
}

static void suspects_check(struct library *l)
{
    bool wanted[SHARDS][PLAYERS] = { { false } };

    for (uint32_t c = 0; c < l->copy_count; c++)
        wanted[l->copies[c].shard][l->copies[c].player] |= l->items[l->copies[c].item].wrong;
    for (uint32_t r = 0; r < l->rich_count; r++)
        wanted[l->rich[r].shard][l->rich[r].player] = true;
    for (uint32_t s = 0; s < SHARDS; s++) {
        for (uint32_t p = 0; p < PLAYERS; p++) {
            PROMISE(l->sim, !l->contained[s][p] || wanted[s][p], "p%u_%u is held back for nothing",
                    s, p);
            PROMISE(l->sim, l->contained[s][p] || !wanted[s][p],
                    "p%u_%u holds what is too much, and goes on", s, p);
        }
    }
}

static void searches_check(struct library *l, bool wrong)
{
    struct coord_stats stats = world_stats(l->world);
    uint64_t searches = !wrong ? 0 : l->unexplained ? TRIES : 1;

    PROMISE(l->sim, stats.audit_imbalance == wrong, "imbalance: %d", (int)stats.audit_imbalance);
    PROMISE(l->sim, stats.audit_searches == searches, "%u searches of %u",
            (unsigned)stats.audit_searches, (unsigned)searches);
    PROMISE(l->sim, stats.audit_unexplained == l->unexplained, "%u imbalances are unexplained",
            (unsigned)stats.audit_unexplained);
}

void room_searches(struct rsim *sim)
{
    struct library *l = arena_zalloc(&sim->arena, sizeof *l);
    bool wrong = false;

    l->sim = sim;
    items_make(l);
    for (uint32_t b = 0; b < BUCKETS; b++) {
        enum harm harm = (enum harm)rsim_between(sim, 0, HARMS - 1);
        if (harm > SPENT_AND_HELD && rsim_chance(sim, 60))
            harm = DOUBLED;
        bucket_make(l, b, harm);
        wrong |= harm != WELL;
    }
    wallets_make(l);
    for (uint32_t i = 0; i < CURRENCIES; i++)
        wrong |= l->net[i] != 0;
    l->world = world_new();
    l->world->watch.user = l;
    l->world->watch.called = called;
    l->world->watch.counted = counted;
    l->world->watch.searched = searched;
    world_start(l->world);
    if (rsim_chance(sim, 40)) {
        l->world->deaf_node = rsim_between(sim, 1, 3);
        world_run(l->world, rsim_between(sim, 500, 4000));
        l->world->deaf_node = 0;
    }
    world_run(l->world, 16000);
    suspects_check(l);
    searches_check(l, wrong);
    sim->counts.searches_explained += wrong && !l->unexplained;
    sim->counts.searches_unexplained += l->unexplained;
    buf_deinit(&l->buckets);
    world_free(l->world);
}
