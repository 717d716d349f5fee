/*
 * Changes of definitions under an etcd that was restored, and under coordinators that have just
 * been elected (coordinator/core/definition_change.c, _send.c; docs/definitions.md): while a shard
 * knows of more than etcd has, or has not said in this term how far it is, nothing is made; once
 * all shards have said that they are no further than etcd, changes are made again.
 */
#include <string.h>

#include "coordinator/core/world.h"
#include "holdfast/internal/v1/definition.pb-c.h"
#include "idl/error_code.h"
#include "idl/method.h"
#include "tests/sim/cores/rsim.h"

#define SHARDS     WORLD_CUT_SHARDS
#define TURNS      24u
#define ASK_MS     1000u
#define GENERATION 1u /* Of world.h's cluster. */

struct eve {
    struct rsim *sim;
    struct world *world;
    bool heard[SHARDS]; /* In this term. */
    uint64_t call;
    bool answered, put_off;
    uint32_t made; /* Written to etcd. */
};

/* Of all definitions in etcd. */
static uint64_t newest(const struct eve *eve)
{
    int64_t revision = 0;

    for (uint32_t i = 0; i < WORLD_KEYS_MAX; i++) {
        const struct world_kv *kv = &eve->world->kvs[i];

        if (kv->create_revision > 0 && strstr(kv->key, "/definitions/") != NULL &&
            kv->mod_revision > revision)
            revision = kv->mod_revision;
    }
    return (uint64_t)revision;
}

static bool is_ahead(const struct eve *eve, uint32_t shard)
{
    const uint64_t *stands = eve->world->defined[shard];

    return stands[0] > GENERATION || (stands[0] == GENERATION && stands[1] > newest(eve));
}

/* Why nothing may be made: that shard; SHARDS: all may be made. */
static uint32_t first_doubt(const struct eve *eve)
{
    for (uint32_t i = 0; i < SHARDS; i++) {
        if (!eve->heard[i] || is_ahead(eve, i))
            return i;
    }
    return SHARDS;
}

static void called(void *user, const struct coord_call *call)
{
    struct eve *eve = user;

    if (call->method == METHOD_GET_DEFINED || call->method == METHOD_DEFINE)
        eve->heard[call->shard] = true;
}

static void wrote(void *user, const struct coord_write *write)
{
    struct eve *eve = user;

    if (memmem(write->key.data, write->key.size, "/definitions/", 13) == NULL)
        return;
    uint32_t doubt = first_doubt(eve);

    PROMISE(eve->sim, doubt == SHARDS, "a definition is written, and shard %u %s", doubt,
            eve->heard[doubt % SHARDS] ? "knows of more than etcd" : "has not said how far it is");
    eve->made++;
}

static void answered(void *user, const struct coord_answer *answer)
{
    struct eve *eve = user;

    PROMISE(eve->sim, answer->call == eve->call && !eve->answered, "answered twice");
    eve->answered = true;
    eve->put_off = answer->status == WIRE_REFUSED;
    if (!eve->put_off)
        return;
    Holdfast__Internal__V1__Refusal *refusal =
        holdfast__internal__v1__refusal__unpack(NULL, answer->body.size, answer->body.data);

    PROMISE(eve->sim,
            refusal != NULL && refusal->code == CODE(UNAVAILABLE) && refusal->retry_after_ms > 0,
            "a change that may be asked again is refused for good");
    holdfast__internal__v1__refusal__free_unpacked(refusal, NULL);
}

static void ask(struct eve *eve)
{
    Holdfast__Internal__V1__ChangeDefinitionRequest request =
        HOLDFAST__INTERNAL__V1__CHANGE_DEFINITION_REQUEST__INIT;
    Holdfast__V1__DefinitionBody body = HOLDFAST__V1__DEFINITION_BODY__INIT;
    Holdfast__V1__CounterBody counter = HOLDFAST__V1__COUNTER_BODY__INIT;
    uint8_t bytes[256];

    eve->call++;
    eve->answered = false;
    counter.max_value = (int64_t)eve->call; /* Never what stands. */
    body.kind_case = HOLDFAST__V1__DEFINITION_BODY__KIND_COUNTER;
    body.counter = &counter;
    request.deed = HOLDFAST__INTERNAL__V1__DEFINITION_DEED__DEFINITION_DEED_PUT;
    request.body = &body;
    request.name = text_lend(rsim_chance(eve->sim, 50) ? "kills" : "wins");
    request.op_id = arena_printf(&eve->sim->arena, "admin:%llu", (unsigned long long)eve->call);
    size_t size = holdfast__internal__v1__change_definition_request__pack(&request, bytes);
    uint32_t doubt = first_doubt(eve);

    world_step(eve->world, (struct coord_event){ .type = COORD_ASK,
                                                 .call = eve->call,
                                                 .method = METHOD_CHANGE_DEFINITION,
                                                 .body = { bytes, size } });
    world_run(eve->world, 20);
    for (uint32_t i = 0; i < 400 && !eve->answered; i++)
        world_run(eve->world, 20);
    PROMISE(eve->sim, eve->answered, "a change is never answered");
    PROMISE(eve->sim, doubt == SHARDS || eve->put_off, "a change is made in spite of shard %u",
            doubt);
    eve->sim->counts.changes_put_off += eve->put_off;
}

/* Another coordinator, which has heard of no shard; `lost`: some shards know of what this etcd,
 * restored, has forgotten. */
static void new_term(struct eve *eve, bool lost)
{
    if (lost) {
        uint64_t *stands = eve->world->defined[rsim_between(eve->sim, 0, SHARDS - 1)];

        stands[0] = GENERATION + rsim_chance(eve->sim, 30);
        stands[1] = newest(eve) + rsim_between(eve->sim, 1, 3);
    }
    memset(eve->heard, 0, sizeof eve->heard);
    world_replace_coordinator(eve->world);
    world_elect(eve->world);
}

/* Operators are told of each such shard, once it has been ahead for long. */
static void doubted_check(struct eve *eve)
{
    uint32_t ahead = 0;

    for (uint32_t i = 0; i < SHARDS; i++)
        ahead += is_ahead(eve, i);
    uint64_t told = world_stats(eve->world).shards_doubted;

    PROMISE(eve->sim, told == ahead, "%llu shards are doubted, and %u are ahead",
            (unsigned long long)told, ahead);
    eve->sim->counts.shards_doubted += ahead > 0;
}

/* The newer etcd is there again, as far as shards can tell: none is ahead. */
static void recover(struct eve *eve)
{
    eve->world->deaf_node = 0;
    if (rsim_chance(eve->sim, 50)) {
        world_run(eve->world, eve->world->limits.stale_doubt_ms + 3 * ASK_MS);
        doubted_check(eve);
    }
    for (uint32_t i = 0; i < SHARDS; i++) {
        if (!is_ahead(eve, i))
            continue;
        eve->world->defined[i][0] = newest(eve) > 0 ? GENERATION : 0;
        eve->world->defined[i][1] = newest(eve);
    }
    world_run(eve->world, 3 * ASK_MS);
    doubted_check(eve);
    uint32_t made = eve->made;

    ask(eve);
    PROMISE(eve->sim, eve->made == made + 1, "no shard is ahead, and no change is made");
    eve->sim->counts.changes_after_doubt++;
}

void room_ahead(struct rsim *sim)
{
    struct eve eve = { .sim = sim, .world = world_new() };

    eve.world->limits.define_ask_ms = ASK_MS;
    world_start(eve.world);
    eve.world->watch = (struct world_watch){
        .user = &eve, .wrote = wrote, .called = called, .answered = answered
    };
    new_term(&eve, false);
    for (uint32_t i = 0; i < TURNS; i++) {
        if (rsim_chance(sim, 25))
            eve.world->deaf_node = rsim_between(sim, 0, 3);
        if (rsim_chance(sim, 25))
            new_term(&eve, rsim_chance(sim, 50));
        ask(&eve);
        if (rsim_chance(sim, 30))
            recover(&eve);
        else
            world_run(eve.world, rsim_between(sim, 20, 2 * ASK_MS));
    }
    recover(&eve);
    world_free(eve.world);
}
