/*
 * How definitions reach shards, and when their changes are answered (coordinator/core/
 * definition_send.c, definition_change.c; docs/definitions.md): what a shard is sent begins where
 * it stands, rises, leaves nothing out, and is no more than a call takes; of each definition the
 * last versions are kept; an answer comes when the shards have it, or to the millisecond by when
 * the caller, or an operator, said.
 */
#include <string.h>

#include "coordinator/core/definition_state.h"
#include "coordinator/core/world.h"
#include "holdfast/internal/v1/definition.pb-c.h"
#include "idl/method.h"
#include "runtime/base/check.h"
#include "tests/sim/cores/rsim.h"

#define SHARDS   WORLD_CUT_SHARDS
#define NAMES    150u
#define WALL_MS  1700000000000u
#define SLACK    (DEFINITION_VERSIONS_MAX + 20u)
#define TICKS_MS 40u

struct post {
    struct rsim *sim;
    struct world *world;
    int64_t revisions[NAMES]; /* Of each definition's newest version, in etcd; 0: there is none. */
    uint32_t name;            /* That is being written. */
    uint64_t call;
    uint64_t answered_ms; /* 0: not yet. */
    enum wire_status status;
    bool in_force;
    uint32_t shards_left;
    int64_t made_ms; /* As the answer dates it. */
    uint64_t versions_gone;
    uint32_t spans, full_spans;
};

static uint64_t newest(const struct post *post)
{
    int64_t revision = 0;

    for (uint32_t i = 0; i < NAMES; i++)
        revision = post->revisions[i] > revision ? post->revisions[i] : revision;
    return (uint64_t)revision;
}

/* ---- what is sent ---- */

static void span_judged(struct post *post, uint32_t shard,
                        const Holdfast__Internal__V1__DefineRequest *span)
{
    const uint64_t *stands = post->world->defined[shard];
    uint64_t at = span->from_revision;
    uint32_t inside = 0;

    PROMISE(post->sim, span->from_revision == (stands[0] == 1 ? stands[1] : 0),
            "a span begins at %llu, the shard stands at %llu",
            (unsigned long long)span->from_revision, (unsigned long long)stands[1]);
    PROMISE(post->sim, span->generation == 1 && span->n_definitions <= DEFINE_COUNT_MAX,
            "%zu definitions in one call", span->n_definitions);
    for (size_t i = 0; i < span->n_definitions; i++) {
        PROMISE(post->sim, span->definitions[i]->revision > at, "a span does not rise");
        at = span->definitions[i]->revision;
    }
    PROMISE(post->sim, span->to_revision == at, "a span ends at %llu, and says %llu",
            (unsigned long long)at, (unsigned long long)span->to_revision);
    for (uint32_t i = 0; i < NAMES; i++)
        inside += post->revisions[i] > (int64_t)span->from_revision &&
                  post->revisions[i] <= (int64_t)span->to_revision;
    PROMISE(post->sim, inside == span->n_definitions, "%u definitions changed, %zu are sent",
            inside, span->n_definitions);
    PROMISE(post->sim, span->last == (at == newest(post)), "a span is %s the last one",
            span->last ? "not" : "");
    PROMISE(post->sim, span->last || span->n_definitions == DEFINE_COUNT_MAX,
            "%zu definitions in a call, and more are left", span->n_definitions);
    post->spans++;
    post->full_spans += !span->last;
}

static void called(void *user, const struct coord_call *call)
{
    struct post *post = user;

    if (call->method != METHOD_DEFINE)
        return;
    Holdfast__Internal__V1__DefineRequest *span =
        holdfast__internal__v1__define_request__unpack(NULL, call->body.size, call->body.data);

    CHECK(span != NULL);
    span_judged(post, call->shard, span);
    holdfast__internal__v1__define_request__free_unpacked(span, NULL);
}

static void wrote(void *user, const struct coord_write *write)
{
    struct post *post = user;
    struct cluster_key_parts parts = cluster_key_parse("test", write->key);

    if (parts.kind != CLUSTER_KEY_DEFINITION)
        return;
    if (!write->remove) {
        post->revisions[post->name] = post->world->revision;
        return;
    }
    PROMISE(post->sim, parts.version == post->versions_gone + 1, "version %llu goes, and not %llu",
            (unsigned long long)parts.version, (unsigned long long)post->versions_gone + 1);
    post->versions_gone++;
}

static void answered(void *user, const struct coord_answer *answer)
{
    struct post *post = user;

    if (answer->call != post->call)
        return;
    PROMISE(post->sim, post->answered_ms == 0, "answered twice");
    post->answered_ms = post->world->now_ms;
    post->status = answer->status;
    if (answer->status != WIRE_OK)
        return;
    Holdfast__Internal__V1__ChangeDefinitionResponse *response =
        holdfast__internal__v1__change_definition_response__unpack(NULL, answer->body.size,
                                                                   answer->body.data);

    CHECK(response != NULL && response->made != NULL);
    PROMISE(post->sim,
            strcmp(response->made->author, "ann") == 0 &&
                strcmp(response->made->reason, "a new season") == 0,
            "a version does not say who made it, and why");
    post->in_force = response->in_force;
    post->shards_left = response->shards_left;
    post->made_ms = response->made->at_ms;
    holdfast__internal__v1__change_definition_response__free_unpacked(response, NULL);
}

static void ask(struct post *post, uint32_t name, uint32_t wait_ms)
{
    Holdfast__Internal__V1__ChangeDefinitionRequest request =
        HOLDFAST__INTERNAL__V1__CHANGE_DEFINITION_REQUEST__INIT;
    Holdfast__V1__DefinitionBody body = HOLDFAST__V1__DEFINITION_BODY__INIT;
    Holdfast__V1__CounterBody counter = HOLDFAST__V1__COUNTER_BODY__INIT;
    uint8_t bytes[256];

    post->name = name;
    post->call++;
    post->answered_ms = 0;
    counter.max_value = (int64_t)post->call; /* Never what stands. */
    body.kind_case = HOLDFAST__V1__DEFINITION_BODY__KIND_COUNTER;
    body.counter = &counter;
    request.deed = HOLDFAST__INTERNAL__V1__DEFINITION_DEED__DEFINITION_DEED_PUT;
    request.body = &body;
    request.wait_ms = wait_ms;
    request.author = text_lend("ann");
    request.reason = text_lend("a new season");
    request.name = arena_printf(&post->sim->arena, "counter_%u", name);
    request.op_id = arena_printf(&post->sim->arena, "admin:%llu", (unsigned long long)post->call);
    size_t size = holdfast__internal__v1__change_definition_request__pack(&request, bytes);

    world_step(post->world, (struct coord_event){ .type = COORD_ASK,
                                                  .call = post->call,
                                                  .method = METHOD_CHANGE_DEFINITION,
                                                  .body = { bytes, size } });
}

static void make(struct post *post, uint32_t name)
{
    ask(post, name, 0);
    world_run(post->world, TICKS_MS);
    PROMISE(post->sim, post->answered_ms != 0 && post->status == WIRE_OK,
            "a definition is not made");
}

static struct post *post_new(struct rsim *sim)
{
    struct post *post = arena_zalloc(&sim->arena, sizeof *post);

    post->sim = sim;
    post->world = world_new();
    post->world->clock_ms = WALL_MS;
    post->world->limits.define_write_ms = (uint32_t)rsim_between(sim, 100, 300);
    post->world->limits.audit_interval_ms = 0;
    world_replace_coordinator(post->world);
    world_start(post->world);
    post->world->watch = (struct world_watch){
        .user = post, .wrote = wrote, .called = called, .answered = answered
    };
    return post;
}

/* ---- many definitions ---- */

/* Shards that stand anywhere are brought to the end, by another coordinator. */
static void many(struct rsim *sim)
{
    struct post *post = post_new(sim);
    uint32_t count = (uint32_t)(rsim_chance(sim, 50) ? rsim_about(sim, DEFINE_COUNT_MAX)
                                                     : rsim_between(sim, 1, NAMES));

    for (uint32_t i = 0; i < count; i++)
        make(post, i);
    for (uint32_t i = 0; i < 5; i++) /* Not in the order of their names. */
        make(post, (uint32_t)rsim_between(sim, 0, count - 1));
    for (uint32_t i = 0; i < SHARDS; i++) {
        uint32_t from = (uint32_t)rsim_between(sim, 0, 2);

        post->world->defined[i][0] = from > 0;
        post->world->defined[i][1] =
            from > 0 ? (uint64_t)post->revisions[rsim_between(sim, 0, count - 1)] : 0;
    }
    world_replace_coordinator(post->world);
    world_elect(post->world);
    world_run(post->world, 2000);
    for (uint32_t i = 0; i < SHARDS; i++)
        PROMISE(sim, post->world->defined[i][0] == 1 && post->world->defined[i][1] == newest(post),
                "shard %u stands at %llu, and etcd at %llu", i,
                (unsigned long long)post->world->defined[i][1], (unsigned long long)newest(post));
    PROMISE(sim,
            world_stats(post->world).definitions_pending == 0 &&
                world_stats(post->world).definitions == count &&
                world_stats(post->world).definitions_lag_seconds == 0,
            "definitions are told as what they are not");
    sim->counts.spans_full += post->full_spans;
    world_free(post->world);
}

/* Of one definition the last DEFINITION_VERSIONS_MAX versions are kept. */
static void versions(struct rsim *sim)
{
    struct post *post = post_new(sim);
    uint64_t made = rsim_chance(sim, 50) ? rsim_about(sim, DEFINITION_VERSIONS_MAX)
                                         : rsim_between(sim, DEFINITION_VERSIONS_MAX, SLACK);

    for (uint64_t i = 0; i < made; i++)
        make(post, 0);
    world_run(post->world, 1000);
    PROMISE(sim,
            post->versions_gone ==
                (made > DEFINITION_VERSIONS_MAX ? made - DEFINITION_VERSIONS_MAX : 0),
            "%llu of %llu versions are gone", (unsigned long long)post->versions_gone,
            (unsigned long long)made);
    world_free(post->world);
}

/* ---- answers ---- */

static void answers(struct rsim *sim)
{
    struct post *post = post_new(sim);
    uint32_t wait_ms = (uint32_t)rsim_between(sim, 1, 200), left = 0;
    bool silent = rsim_chance(sim, 40);
    uint64_t asked_ms, due_ms;

    make(post, 0);
    PROMISE(sim,
            (uint64_t)post->made_ms >= post->world->now_ms + WALL_MS - 2 * TICKS_MS &&
                (uint64_t)post->made_ms <= post->world->now_ms + WALL_MS,
            "a version is dated %lld ms from now",
            (long long)((uint64_t)post->made_ms - post->world->now_ms - WALL_MS));
    post->world->tick_ms = 1;
    asked_ms = post->world->now_ms;
    if (silent) {
        post->world->fault = WORLD_SILENT;
    } else {
        post->world->deaf_node = rsim_between(sim, 0, 3);
        for (uint32_t i = 0; i < SHARDS; i++)
            left += world_shard(post->world, i).owner == post->world->deaf_node;
    }
    ask(post, 1, wait_ms);
    world_run(post->world, 600);
    PROMISE(sim, post->answered_ms != 0, "a change is never answered");
    PROMISE(sim, post->status == (silent ? WIRE_UNKNOWN : WIRE_OK), "a change is answered with %d",
            (int)post->status);
    if (silent) {
        due_ms = asked_ms + post->world->limits.define_write_ms;
        PROMISE(sim, post->answered_ms == due_ms, "unknown after %llu ms of %u",
                (unsigned long long)(post->answered_ms - asked_ms),
                post->world->limits.define_write_ms);
    } else if (left > 0) { /* It is written with the next tick, and waited for from then on. */
        PROMISE(sim, post->answered_ms - asked_ms == 1 + wait_ms,
                "answered after %llu ms, and %u are to be waited",
                (unsigned long long)(post->answered_ms - asked_ms), wait_ms);
        PROMISE(sim, !post->in_force && post->shards_left == left,
                "%u shards are left, %u are told", left, post->shards_left);
    } else {
        PROMISE(sim, post->answered_ms - asked_ms <= 4 && post->in_force,
                "answered after %llu ms, and all shards have it",
                (unsigned long long)(post->answered_ms - asked_ms));
    }
    sim->counts.answers_timed++;
    world_free(post->world);
}

void room_spans(struct rsim *sim)
{
    if (sim->seed % 4 == 0) /* It takes long. */
        many(sim);
    else if (sim->seed % 4 == 2)
        versions(sim);
    answers(sim);
}
