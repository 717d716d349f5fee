#include "tests/sim/events/consumer.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "holdfast/v1/events.pb-c.h"
#include "idl/error_code.h"
#include "node/core/codec/arena_proto.h"
#include "runtime/base/check.h"
#include "runtime/cluster/event_cursor.h"
#include "runtime/cluster/placement.h"
#include "tests/sim/events/event_model.h"

#define CONSUMERS         2u
#define NAME_SIZE         8u
#define CURSOR_SIZE       512u
#define OP_SIZE           24u
#define ACTS_PER_THOUSAND 150u

/* A consumer after an entry. */
struct moment_of {
    uint64_t index;
    bool exists;
    uint64_t version;
    char cursor[CURSOR_SIZE];
};

/* As the log has it. */
struct consumer_model {
    struct moment_of *moments;
    uint32_t count, capacity;
    uint64_t version_max; /* Of all that it ever had. */
    char op_id[OP_SIZE];
    struct hash128 payload;
    uint32_t method;          /* That changed it last. */
    char made_op_id[OP_SIZE]; /* Of what made it. */
    struct hash128 made_payload;
};

/* What a request asks for, by op->amount. */
struct wish {
    uint32_t consumer;
    uint64_t version;
    bool rewind;
    char op_id[OP_SIZE];
    char cursor[CURSOR_SIZE];
};

/* What a server was told last. */
struct known {
    bool told;
    uint64_t version;
    char cursor[CURSOR_SIZE];
    uint32_t last_op; /* And what it asked for last; 0: nothing. */
};

struct consumers_sim {
    struct consumer_model models[CONSUMERS];
    struct known known[SIM_SERVERS_MAX][CONSUMERS];
    struct wish *wishes;
    uint32_t wish_count, wish_capacity;
};

bool consumer_runs(const struct sim *sim)
{
    return event_runs(sim) && (sim->seed * 0xa0761d6478bd642fu) >> 63 != 0;
}

static struct consumers_sim *consumers_of(struct sim *sim)
{
    if (sim->consumers == NULL)
        sim->consumers = mem_zalloc(sizeof *sim->consumers);
    return sim->consumers;
}

void consumer_free_all(struct sim *sim)
{
    for (uint32_t i = 0; sim->consumers != NULL && i < CONSUMERS; i++)
        free(sim->consumers->models[i].moments);
    if (sim->consumers != NULL)
        free(sim->consumers->wishes);
    free(sim->consumers);
    sim->consumers = NULL;
}

static void name_of(uint32_t consumer, char text[NAME_SIZE])
{
    snprintf(text, NAME_SIZE, "c%u", consumer);
}

static uint32_t number_of(const char *name)
{
    CHECK(name[0] == 'c' && name[1] - '0' < (int)CONSUMERS);
    return (uint32_t)(name[1] - '0');
}

static uint32_t home_of(const struct sim *sim, uint32_t consumer)
{
    char entity[NAME_SIZE + 16];

    snprintf(entity, sizeof entity, "consumer:c%u", consumer);
    return shard_of_entity(slice_from_text(entity), sim->shard_count);
}

/* ---- requests ---- */
static struct wish *wish_new(struct sim *sim, uint32_t consumer)
{
    struct consumers_sim *all = consumers_of(sim);

    if (all->wish_count == all->wish_capacity) {
        all->wish_capacity = all->wish_capacity * 2 + 64;
        all->wishes = mem_realloc(all->wishes, sizeof *all->wishes * all->wish_capacity);
    }
    struct wish *wish = &all->wishes[all->wish_count++];
    *wish = (struct wish){ .consumer = consumer };
    snprintf(wish->op_id, sizeof wish->op_id, "key:c%u", all->wish_count);
    return wish;
}

/* Places that some answer has told, mostly later ones than those that stand. */
static void choose_cursor(struct sim *sim, const struct known *known, struct wish *wish)
{
    struct arena arena = { 0 };
    struct event_cursor cursor;

    event_cursor_init(&cursor, sim->shard_count, &arena);
    if (known->cursor[0] != '\0')
        CHECK(event_cursor_decode(slice_from_text(known->cursor), sim->shard_count, &arena,
                                  &cursor) == ERR_OK);
    cursor.counts = true;
    for (uint32_t i = 0; i < sim->shard_count; i++) {
        const struct shard_events *events = &events_of(sim)->shards[i];
        uint32_t at = event_choose_place(sim, i);
        struct event_known *each = &cursor.known[i];
        uint8_t place[EVENT_PLACE_BYTES];
        if (at == 0)
            continue;
        event_place_print(&events->seen[at - 1].place, place);
        bool back = each->any && memcmp(place, each->place, sizeof place) < 0;
        if (back && !sim_chance(sim, 250))
            continue;
        *each = (struct event_known){ .any = true, .passed = at + 1u };
        each->passed_ms = events->seen[at - 1].at_ms;
        memcpy(each->place, place, sizeof place);
    }
    const char *text = event_cursor_print(&cursor, &arena);
    CHECK(strlen(text) < sizeof wish->cursor);
    snprintf(wish->cursor, sizeof wish->cursor, "%s", text);
    arena_deinit(&arena);
}

static uint32_t choose_method(struct sim *sim, const struct known *known)
{
    uint64_t dice = sim_between(sim, 0, 99);

    if (known->told && known->version == 0)
        return dice < 70 ? METHOD_CREATE_CONSUMER : METHOD_GET_CONSUMER;
    if (!known->told || dice < 30)
        return dice < 15 ? METHOD_CREATE_CONSUMER : METHOD_GET_CONSUMER;
    return dice < 94   ? METHOD_COMMIT_CONSUMER
           : dice < 97 ? METHOD_DELETE_CONSUMER
                       : METHOD_CREATE_CONSUMER;
}

/* The same once more, as after an answer that was lost. */
static bool ask_again(struct sim *sim, const struct known *known)
{
    if (known->last_op == 0 || !sim_chance(sim, 200))
        return false;
    struct sim_op *op = &sim->ops[known->last_op - 1];
    if (op->call != 0 || op->calls > 4)
        return false;
    op_call(sim, op);
    return true;
}

void consumer_act(struct sim *sim, uint32_t server)
{
    if (!consumer_runs(sim) || !sim->servers[server].registered || sim->quiet ||
        !sim_chance(sim, ACTS_PER_THOUSAND))
        return;
    uint32_t consumer = (uint32_t)sim_between(sim, 0, CONSUMERS - 1);
    struct known *known = &consumers_of(sim)->known[server][consumer];
    if (ask_again(sim, known))
        return;
    uint32_t method = choose_method(sim, known);
    struct wish *wish = wish_new(sim, consumer);
    wish->version = known->version;
    wish->rewind = sim_chance(sim, 300);
    if (method == METHOD_COMMIT_CONSUMER)
        choose_cursor(sim, known, wish);
    if (method == METHOD_DELETE_CONSUMER && sim_chance(sim, 300))
        wish->version = 0;
    struct sim_op *op = op_new(sim, server, home_of(sim, consumer), method);
    op->amount = consumers_of(sim)->wish_count - 1;
    known->last_op = (uint32_t)(op - sim->ops) + 1;
    op_call(sim, op);
}

void consumer_encode(const struct sim *sim, const struct sim_op *op, struct buf *out)
{
    const struct wish *wish = &sim->consumers->wishes[op->amount];
    Holdfast__V1__GetConsumerRequest get = HOLDFAST__V1__GET_CONSUMER_REQUEST__INIT;
    Holdfast__V1__CreateConsumerRequest create = HOLDFAST__V1__CREATE_CONSUMER_REQUEST__INIT;
    Holdfast__V1__CommitConsumerRequest commit = HOLDFAST__V1__COMMIT_CONSUMER_REQUEST__INIT;
    Holdfast__V1__DeleteConsumerRequest gone = HOLDFAST__V1__DELETE_CONSUMER_REQUEST__INIT;
    char name[NAME_SIZE];

    name_of(wish->consumer, name);
    get.consumer = create.consumer = commit.consumer = gone.consumer = name;
    create.op_id = commit.op_id = request_text(wish->op_id);
    create.entity_prefix = request_text("player:");
    commit.cursor = request_text(wish->cursor);
    commit.rewind = wish->rewind;
    commit.version = gone.version = wish->version;
    request_pack(op->method == METHOD_GET_CONSUMER      ? &get.base
                 : op->method == METHOD_CREATE_CONSUMER ? &create.base
                 : op->method == METHOD_COMMIT_CONSUMER ? &commit.base
                                                        : &gone.base,
                 out);
}

/* ---- what a server learns ---- */
static void learn(struct known *known, const Holdfast__V1__EventConsumer *consumer)
{
    known->told = true;
    known->version = consumer != NULL ? consumer->version : 0;
    snprintf(known->cursor, sizeof known->cursor, "%s", consumer != NULL ? consumer->cursor : "");
}

void consumer_taken(struct sim *sim, const struct sim_op *op, struct slice body)
{
    const struct wish *wish = &sim->consumers->wishes[op->amount];
    struct known *known = &sim->consumers->known[op->server][wish->consumer];
    struct arena arena = { 0 };
    const void *told = arena_unpack(&arena, method_find(op->method)->response, body);

    CHECK(told != NULL);
    if (op->method == METHOD_DELETE_CONSUMER)
        learn(known, NULL);
    else if (op->method == METHOD_GET_CONSUMER)
        learn(known, ((const Holdfast__V1__GetConsumerResponse *)told)->consumer);
    else if (op->method == METHOD_CREATE_CONSUMER)
        learn(known, ((const Holdfast__V1__CreateConsumerResponse *)told)->consumer);
    else
        learn(known, ((const Holdfast__V1__CommitConsumerResponse *)told)->consumer);
    arena_deinit(&arena);
}

/* ---- the log ---- */
static const struct moment_of *moment_at(const struct consumer_model *model, uint64_t index)
{
    static const struct moment_of nothing;
    uint32_t at = model->count;

    while (at > 0 && model->moments[at - 1].index > index)
        at--;
    return at > 0 ? &model->moments[at - 1] : &nothing;
}

static void remember(struct consumer_model *model, const struct moment_of *moment)
{
    if (model->count == model->capacity) {
        model->capacity = model->capacity * 2 + 16;
        model->moments = mem_realloc(model->moments, sizeof *model->moments * model->capacity);
    }
    model->moments[model->count++] = *moment;
}

/* By each shard's place alone. */
static bool goes_back(const struct change *c, const char *was, const char *is)
{
    struct arena arena = { 0 };
    struct event_cursor before, after;
    bool back = false;

    if (was[0] == '\0')
        return false;
    CHECK(event_cursor_decode(slice_from_text(was), c->sim->shard_count, &arena, &before) ==
          ERR_OK);
    CHECK(event_cursor_decode(slice_from_text(is), c->sim->shard_count, &arena, &after) == ERR_OK);
    for (uint32_t i = 0; i < c->sim->shard_count; i++) {
        struct event_place a = { 0 }, b = { 0 };
        if (!before.known[i].any)
            continue;
        CHECK(event_place_parse((struct slice){ before.known[i].place, EVENT_PLACE_BYTES }, &a) ==
              ERR_OK);
        CHECK(event_place_parse((struct slice){ after.known[i].place, EVENT_PLACE_BYTES }, &b) ==
              ERR_OK);
        back |= !after.known[i].any || event_place_compare(&b, &a) < 0;
    }
    arena_deinit(&arena);
    return back;
}

/* What the rules say of an entry: an error, or that it is what changed the consumer last. */
struct verdict {
    int code; /* 0: it is carried out. */
    bool repeats;
};

static struct verdict judge_op(const struct change *c, const struct consumer_model *model,
                               const char *op_id)
{
    bool last = strcmp(model->op_id, op_id) == 0, made = strcmp(model->made_op_id, op_id) == 0;

    if (!last && !made)
        return (struct verdict){ 0 };
    if (last && model->method == c->op.method && hash128_equal(model->payload, c->payload))
        return (struct verdict){ .repeats = true };
    if (made && c->op.method == METHOD_CREATE_CONSUMER &&
        hash128_equal(model->made_payload, c->payload))
        return (struct verdict){ .repeats = true };
    return (struct verdict){ .code = CODE(OPERATION_ID_MISMATCH) };
}

static struct verdict judge_create(const struct change *c, const struct consumer_model *model,
                                   const struct moment_of *now)
{
    const Holdfast__V1__CreateConsumerRequest *request = (const void *)c->request;

    if (!now->exists)
        return (struct verdict){ 0 };
    struct verdict verdict = judge_op(c, model, request->op_id);
    if (verdict.code == 0 && !verdict.repeats)
        verdict.code = CODE(VERSION_CONFLICT);
    return verdict;
}

static struct verdict judge_commit(const struct change *c, const struct consumer_model *model,
                                   const struct moment_of *now)
{
    const Holdfast__V1__CommitConsumerRequest *request = (const void *)c->request;

    if (!now->exists)
        return (struct verdict){ .code = CODE(NOT_FOUND) };
    struct verdict verdict = judge_op(c, model, request->op_id);
    if (verdict.code != 0 || verdict.repeats)
        return verdict;
    if (request->version != now->version)
        verdict.code = CODE(VERSION_CONFLICT);
    else if (!request->rewind && goes_back(c, now->cursor, request->cursor))
        verdict.code = CODE(OUT_OF_RANGE);
    return verdict;
}

static int code_of(const struct change *c)
{
    if (c->outcome->kind != OUTCOME_REFUSED)
        return 0;
    const Holdfast__Internal__V1__Refusal *detail = (const void *)arena_unpack(
        &c->sim->oracle->arena, &holdfast__internal__v1__refusal__descriptor, c->outcome->body);
    CHECK(detail != NULL);
    return (int)detail->code;
}

/* What it made of the consumer, as its own answer says. */
static void changed(struct change *c, struct consumer_model *model,
                    const Holdfast__V1__EventConsumer *told, bool duplicate,
                    const struct verdict *verdict)
{
    const struct moment_of *was = moment_at(model, UINT64_MAX);
    const Holdfast__V1__CreateConsumerRequest *create = (const void *)c->request;
    const Holdfast__V1__CommitConsumerRequest *commit = (const void *)c->request;
    bool commits = c->op.method == METHOD_COMMIT_CONSUMER;

    if (duplicate != verdict->repeats) {
        model_fail(c, "whether a consumer was changed by this before", duplicate);
        return;
    }
    if (verdict->repeats) {
        if (told->version != was->version || strcmp(told->cursor, was->cursor) != 0)
            model_fail(c, "a repetition changed a consumer, version", told->version);
        c->sim->counts.consumers_repeated++;
        return;
    }
    if (told->version <= model->version_max)
        model_fail(c, "a consumer has a version that it had before", told->version);
    if (strcmp(told->cursor, commits ? commit->cursor : "") != 0)
        model_fail(c, "a consumer has another cursor than was committed, version", told->version);
    c->sim->counts.consumers_committed += commits;
    c->sim->counts.consumers_rewound +=
        commits && goes_back(c, was->cursor, commit->cursor) && told->version > 0;
    struct moment_of now = { c->entry->index, true, told->version, "" };
    snprintf(now.cursor, sizeof now.cursor, "%s", told->cursor);
    snprintf(model->op_id, sizeof model->op_id, "%s", commits ? commit->op_id : create->op_id);
    model->payload = c->payload;
    model->method = c->op.method;
    if (!commits) {
        snprintf(model->made_op_id, sizeof model->made_op_id, "%s", create->op_id);
        model->made_payload = c->payload;
    }
    model->version_max = told->version;
    remember(model, &now);
}

static void deleted(struct change *c, struct consumer_model *model, bool told)
{
    const struct moment_of *was = moment_at(model, UINT64_MAX);

    if (told != was->exists)
        model_fail(c, "whether a consumer was deleted", told);
    if (was->exists)
        remember(model, &(struct moment_of){ .index = c->entry->index });
}

static void carried_out(struct change *c, struct consumer_model *model,
                        const struct verdict *verdict)
{
    const void *response =
        arena_unpack(&c->sim->oracle->arena, method_find(c->op.method)->response, c->outcome->body);

    CHECK(response != NULL);
    if (c->op.method == METHOD_CREATE_CONSUMER) {
        const Holdfast__V1__CreateConsumerResponse *told = response;
        changed(c, model, told->consumer, told->duplicate != 0, verdict);
    } else if (c->op.method == METHOD_COMMIT_CONSUMER) {
        const Holdfast__V1__CommitConsumerResponse *told = response;
        changed(c, model, told->consumer, told->duplicate != 0, verdict);
    } else {
        deleted(c, model, ((const Holdfast__V1__DeleteConsumerResponse *)response)->deleted != 0);
    }
}

static char *consumer_name(const ProtobufCMessage *request)
{
    /* Field 1 of each of them. */
    return ((const Holdfast__V1__GetConsumerRequest *)(const void *)request)->consumer;
}

void consumer_logged(struct change *c)
{
    struct consumer_model *model =
        &consumers_of(c->sim)->models[number_of(consumer_name(c->request))];
    const struct moment_of now = *moment_at(model, UINT64_MAX);
    const Holdfast__V1__DeleteConsumerRequest *gone = (const void *)c->request;
    struct verdict verdict = { 0 };

    if (c->op.method == METHOD_CREATE_CONSUMER)
        verdict = judge_create(c, model, &now);
    else if (c->op.method == METHOD_COMMIT_CONSUMER)
        verdict = judge_commit(c, model, &now);
    else if (now.exists && gone->version != 0 && gone->version != now.version)
        verdict.code = CODE(VERSION_CONFLICT);
    int code = code_of(c);
    if (code != verdict.code) {
        sim_fail(c->sim, c->number,
                 "entry %" PRIu64 ": a change of a consumer is answered with %d, should be %d",
                 c->entry->index, code, verdict.code);
        return;
    }
    c->sim->counts.consumers_conflicts += code == CODE(VERSION_CONFLICT);
    c->sim->counts.consumers_held_back += code == CODE(OUT_OF_RANGE);
    if (code == 0)
        carried_out(c, model, &verdict);
}

/* ---- answers ---- */
static void check_told(const struct told *t, const Holdfast__V1__EventConsumer *told,
                       const struct moment_of *moment)
{
    if (!moment->exists || told->version != moment->version)
        told_fail(t, "the version of a consumer", told->version,
                  moment->exists ? moment->version : 0);
    else if (strcmp(told->cursor, moment->cursor) != 0)
        told_fail(t, "another cursor than is committed, of version", told->version, 0);
}

/* An answer to a change stands in the log: it made that version, or found it. */
static void check_change(const struct told *t, const struct consumer_model *model,
                         const Holdfast__V1__EventConsumer *told)
{
    for (uint32_t i = 0; i < model->count; i++) {
        if (model->moments[i].exists && model->moments[i].version == told->version) {
            check_told(t, told, &model->moments[i]);
            return;
        }
    }
    told_fail(t, "a change of a consumer that no log has", told->version, 0);
}

void consumer_told(const struct told *t)
{
    const struct consumer_model *model =
        &consumers_of(t->sim)->models[number_of(consumer_name(t->request))];

    if (t->call->method == METHOD_GET_CONSUMER) {
        uint64_t index = told_index(t);
        if (index > 0)
            check_told(
                t, ((const Holdfast__V1__GetConsumerResponse *)(const void *)t->response)->consumer,
                moment_at(model, index));
        t->sim->counts.consumers_read++;
    } else if (t->call->method == METHOD_CREATE_CONSUMER) {
        check_change(
            t, model,
            ((const Holdfast__V1__CreateConsumerResponse *)(const void *)t->response)->consumer);
    } else if (t->call->method == METHOD_COMMIT_CONSUMER) {
        check_change(
            t, model,
            ((const Holdfast__V1__CommitConsumerResponse *)(const void *)t->response)->consumer);
    }
}
