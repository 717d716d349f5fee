/*
 * Game servers that vanish (coordinator/core/expiry.c, delivery.c; DESIGN section 5): expired only
 * after an absence without interruption, never many at once, and forgotten once every shard has
 * confirmed it. Many are counted for each API key, and of all keys with any one left out.
 */
#include <stdio.h>
#include <string.h>

#include "coordinator/core/world.h"
#include "idl/method.h"
#include "runtime/base/check.h"
#include "tests/sim/cores/rsim.h"

#define SERVERS   12u
#define SHARDS    8u
#define FIRST     1000u /* Revision of the first incarnation. */
#define SETTLE_MS 1000u
#define WAIT_MS   10000u
#define WINDOW_MS 10000u
#define HOLD_MS   120000u
#define CLUSTER   "test"

#define KEYS_MAX 3u

enum known { UNKNOWN, LIVES, GONE, EXPIRES, FORGOTTEN };

struct judged_server {
    enum known known;
    uint64_t gone_ms;
    uint32_t told; /* Shards that confirmed its expiry, a bit each. */
    bool held;     /* It vanished with too many others. */
    uint64_t marked_ms;
    bool marked_held; /* It was held before. */
    uint32_t key;     /* That registered it. */
};

struct hall {
    struct rsim *sim;
    struct world *world;
    struct judged_server servers[SERVERS];
    uint64_t elected_ms;
    uint32_t keys;
    bool steady; /* One coordinator, an etcd that answers: absences are as it saw them. */
};

static uint64_t now_of(const struct hall *h)
{
    return h->world->now_ms;
}

static struct judged_server *server_of(struct hall *h, struct incarnation incarnation)
{
    CHECK(incarnation.revision >= FIRST && incarnation.revision < FIRST + SERVERS);
    return &h->servers[incarnation.revision - FIRST];
}

struct loss {
    uint32_t fresh, live;
    uint32_t gone; /* With those that are held. */
};

/* Of the servers of one key, or (`others`) of all keys but that one. */
static struct loss loss_of(const struct hall *h, uint32_t key, bool others, uint64_t window_ms)
{
    struct loss loss = { 0 };

    for (uint32_t i = 0; i < SERVERS; i++) {
        const struct judged_server *s = &h->servers[i];
        bool lately = s->marked_ms != 0 && now_of(h) - s->marked_ms <= window_ms;

        if ((s->key == key) == others)
            continue;
        loss.live += s->known == LIVES;
        loss.gone += s->known == GONE || (lately && s->known > GONE);
        loss.fresh += s->known == GONE && !s->held && now_of(h) - s->gone_ms <= window_ms;
        loss.fresh += s->known == EXPIRES && lately && !s->marked_held;
    }
    return loss;
}

static bool is_too_much(struct loss loss)
{
    return loss.fresh >= 4 && loss.fresh * 100 > (loss.fresh + loss.live) * 30;
}

/* Of those that vanished within the window, too many for single faults: of this one's key, or of
 * all, whichever one key is left out. */
static bool is_mass_loss(const struct hall *h, const struct judged_server *server)
{
    bool all = h->keys > 1;

    for (uint32_t key = 0; all && key < h->keys; key++)
        all = is_too_much(loss_of(h, key, true, WINDOW_MS - 100));
    return all || is_too_much(loss_of(h, server->key, false, WINDOW_MS - 100));
}

/* That it is held is not the doing of one other key. */
static bool may_be_held(const struct hall *h, const struct judged_server *server)
{
    bool all = h->keys > 1;

    for (uint32_t key = 0; all && key < h->keys; key++)
        all = loss_of(h, key, true, WINDOW_MS + 100).gone >= 4;
    return all || loss_of(h, server->key, false, WINDOW_MS + 100).gone >= 4;
}

static void marked(struct hall *h, struct judged_server *server)
{
    uint64_t away_ms = now_of(h) - server->gone_ms;

    PROMISE(h->sim, server->known == GONE, "a server that lives is expired");
    PROMISE(h->sim, away_ms + 20 >= SETTLE_MS, "expired after an absence of %llu ms",
            (unsigned long long)away_ms);
    PROMISE(h->sim, now_of(h) - h->elected_ms + 20 >= WAIT_MS, "expired %llu ms after an election",
            (unsigned long long)(now_of(h) - h->elected_ms));
    if (h->steady && away_ms < WINDOW_MS - 100)
        PROMISE(h->sim, !is_mass_loss(h, server), "one of many that vanished at once is expired");
    h->sim->counts.servers_marked++;
    server->known = EXPIRES;
    server->marked_ms = now_of(h);
    server->marked_held = server->held;
}

static void wrote(void *user, const struct coord_write *write)
{
    struct hall *h = user;
    struct cluster_key_parts parts = cluster_key_parse(CLUSTER, write->key);
    struct server_record record;

    if (parts.kind != CLUSTER_KEY_SERVER_KNOWN)
        return;
    struct judged_server *server = server_of(h, parts.incarnation);
    if (write->remove) {
        PROMISE(h->sim, server->known == EXPIRES, "a server is forgotten that is not expired");
        PROMISE(h->sim, server->told == (1u << SHARDS) - 1,
                "a server is forgotten, and the shards %x know", server->told);
        server->known = FORGOTTEN;
        h->sim->counts.servers_forgotten++;
        return;
    }
    CHECK(server_record_decode(write->value, &record, NULL) == ERR_OK);
    if (record.state == SERVER_EXPIRING) {
        if (server->known != EXPIRES) /* A repeated transaction. */
            marked(h, server);
        return;
    }
    PROMISE(h->sim, server->known == GONE && record.held_since_ms > 0,
            "the record of a server is written for nothing");
    if (h->steady)
        PROMISE(h->sim, may_be_held(h, server),
                "the servers of a key are held for what another key lost");
    server->held = true;
    h->sim->counts.servers_held++;
}

/* No server below it may come back; what is being marked while the call is on its way counts. */
static uint64_t lowest_known(const struct hall *h, uint64_t expired)
{
    for (uint32_t i = 0; FIRST + i <= expired; i++) {
        const struct judged_server *s = &h->servers[i];
        if (s->known == LIVES || s->known == GONE)
            return FIRST + i;
    }
    return expired + 1;
}

/* A shard takes it: players of that server are free there. */
static void called(void *user, const struct coord_call *call)
{
    struct hall *h = user;
    struct incarnation incarnation, lowest, from;

    if (call->method != METHOD_EXPIRE_SERVER)
        return;
    Holdfast__Internal__V1__ExpireServerRequest *request =
        holdfast__internal__v1__expire_server_request__unpack(NULL, call->body.size,
                                                              call->body.data);
    CHECK(request != NULL);
    CHECK(incarnation_parse(slice_from_text(request->incarnation), &incarnation) == ERR_OK);
    struct judged_server *server = server_of(h, incarnation);
    PROMISE(h->sim, server->known == EXPIRES || server->known == FORGOTTEN,
            "a shard is told to free the players of a server that lives");
    server->told |= 1u << call->shard;
    if (incarnation_parse(slice_from_text(request->lowest_live), &lowest) == ERR_OK) {
        for (uint32_t i = 0; i < SERVERS; i++)
            PROMISE(h->sim,
                    FIRST + i >= lowest.revision || h->servers[i].known > GONE ||
                        h->servers[i].known == UNKNOWN,
                    "all servers below %llu are told as expired, and %u lives",
                    (unsigned long long)lowest.revision, FIRST + i);
        PROMISE(
            h->sim,
            lowest.revision == lowest_known(h, incarnation.revision) ||
                (lowest.revision < FIRST + SERVERS && server_of(h, lowest)->marked_ms == now_of(h)),
            "of servers below %llu none lives, and %llu are told as expired",
            (unsigned long long)lowest_known(h, incarnation.revision),
            (unsigned long long)lowest.revision);
    }
    if (incarnation_parse(slice_from_text(request->from), &from) == ERR_OK) {
        for (uint32_t i = 0; i < SERVERS; i++)
            PROMISE(h->sim,
                    FIRST + i < from.revision || FIRST + i > incarnation.revision ||
                        h->servers[i].known > GONE || h->servers[i].known == UNKNOWN,
                    "all servers from %llu to %llu are told as expired, and %u lives",
                    (unsigned long long)from.revision, (unsigned long long)incarnation.revision,
                    FIRST + i);
    }
    holdfast__internal__v1__expire_server_request__free_unpacked(request, NULL);
}

static void vanish(struct hall *h, uint32_t place)
{
    if (h->servers[place].known != LIVES)
        return;
    h->servers[place].known = GONE;
    h->servers[place].gone_ms = now_of(h);
    h->servers[place].held = false;
    world_server_gone(h->world, FIRST + place);
}

static void bring_up(struct hall *h, uint32_t place)
{
    static const char *const keys[KEYS_MAX] = { "", "3f09c2a7be41", "5b1c00000000" };

    h->servers[place].known = LIVES;
    world_server_of_key(h->world, FIRST + place, keys[h->servers[place].key]);
}

/* Its router re-attached it, in time or too late. */
static void come_back(struct hall *h, uint32_t place)
{
    struct judged_server *server = &h->servers[place];

    if (server->known != GONE)
        return;
    server->held = false;
    bring_up(h, place);
}

static void turn(struct hall *h)
{
    uint64_t what = rsim_between(h->sim, 0, 99);
    uint32_t place = (uint32_t)rsim_between(h->sim, 0, SERVERS - 1);

    if (what < 30) {
        vanish(h, place);
    } else if (what < 45) {
        for (uint32_t i = 0; i < 6; i++)
            vanish(h, (place + i) % SERVERS);
    } else if (what < 65) {
        come_back(h, place);
    } else if (what < 80 && h->servers[place].known == UNKNOWN) {
        bring_up(h, place);
    } else if (what < 80) { /* The mirror's periodic range. */
        world_refresh(h->world);
    } else if (what < 85) {
        world_replace_coordinator(h->world);
        h->elected_ms = now_of(h);
        h->steady = false;
        world_elect(h->world);
    } else if (what < 95 && rsim_chance(h->sim, 50)) {
        h->world->fault = (enum world_fault)rsim_between(h->sim, 0, 2);
        h->world->deaf_node = rsim_between(h->sim, 0, 3);
        h->steady &= h->world->fault == WORLD_WELL;
    } else {
        h->world->fault = WORLD_WELL;
        h->world->deaf_node = 0;
    }
}

static void rest_check(struct hall *h)
{
    struct coord_stats stats = world_stats(h->world);
    uint64_t live = 0;

    for (uint32_t i = 0; i < SERVERS; i++) {
        live += h->servers[i].known == LIVES;
        PROMISE(h->sim, h->servers[i].known != GONE && h->servers[i].known != EXPIRES,
                "server %u is gone, and never expired or never forgotten", FIRST + i);
    }
    PROMISE(h->sim,
            stats.servers_known == live && stats.servers_gone == 0 && stats.servers_expiring == 0 &&
                stats.server_hold == 0,
            "servers are counted as what they are not");
}

void room_servers(struct rsim *sim)
{
    struct hall h = { .sim = sim, .world = world_new(), .steady = true };
    bool apart = rsim_chance(sim, 50); /* The servers of a key vanish together. */

    h.keys = (uint32_t)rsim_between(sim, 1, KEYS_MAX);
    world_start(h.world);
    h.elected_ms = 1000;
    h.world->watch = (struct world_watch){ .user = &h, .wrote = wrote, .called = called };
    for (uint32_t i = 0; i < SERVERS; i++)
        h.servers[i].key = apart ? i * h.keys / SERVERS : i % h.keys;
    for (uint32_t i = 0; i < SERVERS - 3; i++)
        bring_up(&h, i);
    for (uint32_t i = 0; i < 30; i++) {
        turn(&h);
        world_run(h.world, rsim_chance(sim, 70) ? rsim_between(sim, 20, 1500)
                                                : rsim_between(sim, 2000, 12000));
    }
    h.world->fault = WORLD_WELL;
    h.world->deaf_node = 0;
    world_run(h.world, HOLD_MS + WAIT_MS + 15000);
    rest_check(&h);
    world_free(h.world);
}
