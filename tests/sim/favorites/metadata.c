#include "tests/sim/favorites/metadata.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "holdfast/v1/favorites.pb-c.h"
#include "idl/error_code.h"
#include "node/core/codec/arena_proto.h"
#include "runtime/base/check.h"
#include "runtime/cluster/placement.h"
#include "tests/sim/model/definition.h"
#include "tests/sim/favorites/favorite.h"

#define TARGETS           2u
#define TEXT_SIZE         24u
#define TITLE_SIZE        40u
#define ACTS_PER_THOUSAND 120u
#define CALLS_MAX         4u
#define RUNS              62u /* Of 64 bits: one run of four. */

/* A target's metadata after an entry, under a collection's number. */
struct moment_of {
    uint64_t index, number;
    bool exists;
    uint64_t version;
    char title[TITLE_SIZE];
};

/* As the log has it. */
struct metadata_model {
    struct moment_of *moments;
    uint32_t count, capacity;
    uint64_t version_max; /* Of all that there were. */
    uint64_t number;      /* Of the write that the rest is of. */
    char op_id[TEXT_SIZE];
    struct hash128 payload;
};

/* What a request asks for, by op->amount. */
struct wish {
    uint32_t target;
    bool has_version;
    uint64_t version;
    char op_id[TEXT_SIZE];
};

/* What a server was told last. */
struct known {
    uint64_t version;
    uint32_t last_op; /* And what it asked for last; 0: nothing. */
};

struct metadata_sim {
    struct metadata_model models[TARGETS];
    struct known known[SIM_SERVERS_MAX][TARGETS];
    struct wish *wishes;
    uint32_t wish_count, wish_capacity;
};

bool metadata_runs(const struct sim *sim)
{
    return favorite_runs(sim) && (sim->seed * 0xd6e8feb86659fd93u) >> RUNS == 0;
}

static struct metadata_sim *metadata_of(struct sim *sim)
{
    if (sim->metadata == NULL)
        sim->metadata = mem_zalloc(sizeof *sim->metadata);
    return sim->metadata;
}

void metadata_free_all(struct sim *sim)
{
    for (uint32_t i = 0; sim->metadata != NULL && i < TARGETS; i++)
        free(sim->metadata->models[i].moments);
    if (sim->metadata != NULL)
        free(sim->metadata->wishes);
    free(sim->metadata);
    sim->metadata = NULL;
}

static void name_of(uint32_t target, char text[TEXT_SIZE])
{
    snprintf(text, TEXT_SIZE, "m%u", target);
}

static uint32_t number_of(const char *name)
{
    CHECK(name[0] == 'm' && name[1] - '0' < (int)TARGETS);
    return (uint32_t)(name[1] - '0');
}

static uint32_t home_of(const struct sim *sim, uint32_t target)
{
    char name[TEXT_SIZE];

    name_of(target, name);
    return shard_of_target(slice_from_text(name), sim->shard_count);
}

/* ---- requests ---- */
static struct wish *wish_new(struct sim *sim, uint32_t target)
{
    struct metadata_sim *all = metadata_of(sim);

    if (all->wish_count == all->wish_capacity) {
        all->wish_capacity = all->wish_capacity * 2 + 64;
        all->wishes = mem_realloc(all->wishes, sizeof *all->wishes * all->wish_capacity);
    }
    struct wish *wish = &all->wishes[all->wish_count++];
    *wish = (struct wish){ .target = target };
    snprintf(wish->op_id, sizeof wish->op_id, "key:m%u", all->wish_count);
    return wish;
}

/* The same once more, as after an answer that was lost. */
static bool ask_again(struct sim *sim, const struct known *known)
{
    if (known->last_op == 0 || !sim_chance(sim, 250))
        return false;
    struct sim_op *op = &sim->ops[known->last_op - 1];
    if (op->call != 0 || op->calls > CALLS_MAX)
        return false;
    op_call(sim, op);
    return true;
}

void metadata_act(struct sim *sim, uint32_t server)
{
    if (!metadata_runs(sim) || !sim->servers[server].registered || sim->quiet ||
        !sim_chance(sim, ACTS_PER_THOUSAND))
        return;
    uint32_t target = (uint32_t)sim_between(sim, 0, TARGETS - 1);
    struct known *known = &metadata_of(sim)->known[server][target];
    if (ask_again(sim, known))
        return;
    uint64_t dice = sim_between(sim, 0, 99);
    struct wish *wish = wish_new(sim, target);
    wish->has_version = sim_chance(sim, 800);
    wish->version = known->version;
    struct sim_op *op = op_new(sim, server, home_of(sim, target),
                               dice < 50   ? METHOD_PUT_TARGET_METADATA
                               : dice < 65 ? METHOD_DELETE_TARGET_METADATA
                                           : METHOD_BATCH_GET_TARGET_METADATA);
    op->amount = metadata_of(sim)->wish_count - 1;
    known->last_op = (uint32_t)(op - sim->ops) + 1;
    op_call(sim, op);
}

void metadata_encode(const struct sim *sim, const struct sim_op *op, struct buf *out)
{
    const struct wish *wish = &sim->metadata->wishes[op->amount];
    Holdfast__V1__PutTargetMetadataRequest put = HOLDFAST__V1__PUT_TARGET_METADATA_REQUEST__INIT;
    Holdfast__V1__DeleteTargetMetadataRequest gone =
        HOLDFAST__V1__DELETE_TARGET_METADATA_REQUEST__INIT;
    Holdfast__V1__BatchGetTargetMetadataRequest get =
        HOLDFAST__V1__BATCH_GET_TARGET_METADATA_REQUEST__INIT;
    char name[TEXT_SIZE], title[TITLE_SIZE], *names[] = { name };

    name_of(wish->target, name);
    snprintf(title, sizeof title, "title %s", wish->op_id);
    put.target_id = gone.target_id = name;
    put.op_id = request_text(wish->op_id);
    put.title = title;
    put.if_version = gone.if_version = wish->version;
    if (wish->has_version) {
        put._if_version_case = HOLDFAST__V1__PUT_TARGET_METADATA_REQUEST___IF_VERSION_IF_VERSION;
        gone._if_version_case =
            HOLDFAST__V1__DELETE_TARGET_METADATA_REQUEST___IF_VERSION_IF_VERSION;
    }
    get.target_ids = names;
    get.n_target_ids = 1;
    request_pack(op->method == METHOD_PUT_TARGET_METADATA      ? &put.base
                 : op->method == METHOD_DELETE_TARGET_METADATA ? &gone.base
                                                               : &get.base,
                 out);
}

/* ---- what a server learns ---- */
void metadata_taken(struct sim *sim, const struct sim_op *op, struct slice body)
{
    struct known *known =
        &sim->metadata->known[op->server][sim->metadata->wishes[op->amount].target];
    struct arena arena = { 0 };
    const void *told = arena_unpack(&arena, method_find(op->method)->response, body);
    const Holdfast__V1__BatchGetTargetMetadataResponse *read = told;
    const Holdfast__V1__PutTargetMetadataResponse *written = told;

    CHECK(told != NULL);
    if (op->method == METHOD_DELETE_TARGET_METADATA)
        known->version = 0;
    else if (op->method == METHOD_BATCH_GET_TARGET_METADATA)
        known->version = read->n_metadata > 0 ? read->metadata[0]->version : 0;
    else
        known->version = written->metadata->version;
    arena_deinit(&arena);
}

/* ---- the log ---- */
/* Under that number, up to that entry. */
static const struct moment_of *moment_at(const struct metadata_model *model, uint64_t number,
                                         uint64_t index)
{
    static const struct moment_of nothing;

    for (uint32_t at = model->count; at > 0; at--) {
        const struct moment_of *moment = &model->moments[at - 1];
        if (moment->number == number && moment->index <= index)
            return moment;
    }
    return &nothing;
}

static void remember(struct metadata_model *model, const struct moment_of *moment)
{
    if (model->count == model->capacity) {
        model->capacity = model->capacity * 2 + 16;
        model->moments = mem_realloc(model->moments, sizeof *model->moments * model->capacity);
    }
    model->moments[model->count++] = *moment;
}

/* What the rules say of an entry: an error, or that it is what wrote the metadata last. */
struct verdict {
    int code; /* 0: it is carried out. */
    bool repeats;
};

static struct verdict judge(const struct change *c, const struct metadata_model *model,
                            const struct moment_of *now)
{
    const Holdfast__V1__PutTargetMetadataRequest *put = (const void *)c->request;
    const Holdfast__V1__DeleteTargetMetadataRequest *gone = (const void *)c->request;
    bool puts = c->op.method == METHOD_PUT_TARGET_METADATA;
    bool has_version = puts ? put->_if_version_case != 0 : gone->_if_version_case != 0;
    uint64_t version = puts ? put->if_version : gone->if_version;

    if (puts && now->exists && model->number == now->number &&
        strcmp(model->op_id, put->op_id) == 0) {
        bool same = hash128_equal(model->payload, c->payload);
        return (struct verdict){ .code = same ? 0 : CODE(OPERATION_ID_MISMATCH), .repeats = same };
    }
    bool absent = !puts && !now->exists; /* Nothing is to go. */
    bool conflict = has_version && !absent && version != (now->exists ? now->version : 0);
    return (struct verdict){ .code = conflict ? CODE(VERSION_CONFLICT) : 0 };
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

static void written(struct change *c, struct metadata_model *model, const struct moment_of *was,
                    const struct verdict *verdict)
{
    const Holdfast__V1__PutTargetMetadataRequest *put = (const void *)c->request;
    const Holdfast__V1__PutTargetMetadataResponse *response = (const void *)arena_unpack(
        &c->sim->oracle->arena, method_find(c->op.method)->response, c->outcome->body);
    struct moment_of now = { .index = c->entry->index, .number = was->number, .exists = true };

    CHECK(response != NULL);
    const Holdfast__V1__TargetMetadata *told = response->metadata;
    if ((response->duplicate != 0) != verdict->repeats) {
        model_fail(c, "whether metadata was written by this before", response->duplicate != 0);
        return;
    }
    if (strcmp(told->title, put->title) != 0)
        model_fail(c, "metadata has another title than was written, version", told->version);
    if (verdict->repeats) {
        if (told->version != was->version)
            model_fail(c, "a repetition changed metadata, version", told->version);
        c->sim->counts.metadata_repeated++;
        return;
    }
    if (told->version <= model->version_max)
        model_fail(c, "metadata has a version that it had before", told->version);
    now.version = model->version_max = told->version;
    model->number = now.number;
    snprintf(now.title, sizeof now.title, "%s", told->title);
    snprintf(model->op_id, sizeof model->op_id, "%s", put->op_id);
    model->payload = c->payload;
    remember(model, &now);
    c->sim->counts.metadata_written++;
}

static void removed(struct change *c, struct metadata_model *model, const struct moment_of *was)
{
    const Holdfast__V1__DeleteTargetMetadataResponse *response = (const void *)arena_unpack(
        &c->sim->oracle->arena, method_find(c->op.method)->response, c->outcome->body);

    CHECK(response != NULL);
    if ((response->deleted != 0) != was->exists)
        model_fail(c, "whether metadata was removed", response->deleted != 0);
    if (was->exists)
        remember(model, &(struct moment_of){ .index = c->entry->index, .number = was->number });
    c->sim->counts.metadata_removed += was->exists;
}

void metadata_logged(struct change *c)
{
    /* Field 1 of both. */
    const char *name =
        ((const Holdfast__V1__PutTargetMetadataRequest *)(const void *)c->request)->target_id;
    struct metadata_model *model = &metadata_of(c->sim)->models[number_of(name)];
    struct verdict verdict = { .code = CODE(NOT_FOUND) };
    struct sim_collection collection;
    struct moment_of now = { 0 };

    if (definition_collection(c->sim, c->number, "favorites", &collection)) {
        now = *moment_at(model, collection.number, UINT64_MAX);
        now.number = collection.number;
        verdict = judge(c, model, &now);
    }
    int code = code_of(c);
    if (code != verdict.code) {
        sim_fail(c->sim, c->number,
                 "entry %" PRIu64 ": a change of metadata is answered with %d, should be %d",
                 c->entry->index, code, verdict.code);
        return;
    }
    c->sim->counts.metadata_conflicts += code == CODE(VERSION_CONFLICT);
    if (code == 0 && c->op.method == METHOD_PUT_TARGET_METADATA)
        written(c, model, &now, &verdict);
    else if (code == 0)
        removed(c, model, &now);
}

/* ---- answers ---- */
/* The version that it tells stands in the log, with that title. */
static void check_version(const struct told *t, const struct metadata_model *model,
                          const Holdfast__V1__TargetMetadata *told)
{
    for (uint32_t i = 0; i < model->count; i++) {
        const struct moment_of *moment = &model->moments[i];
        if (!moment->exists || moment->version != told->version)
            continue;
        if (strcmp(moment->title, told->title) != 0)
            told_fail(t, "another title than was written, of version", told->version, 0);
        return;
    }
    told_fail(t, "metadata that no log has, of version", told->version, 0);
}

static bool tells(const struct moment_of *moment,
                  const Holdfast__V1__BatchGetTargetMetadataResponse *told)
{
    return moment != NULL && moment->exists && moment->version == told->metadata[0]->version;
}

/* What stood then: under the number that the collection has now, which is that of an earlier life
 * again where etcd was restored; or under the last one that it had. */
static void check_read(const struct told *t, const struct metadata_model *model,
                       const Holdfast__V1__BatchGetTargetMetadataResponse *told)
{
    const struct moment_of *last = NULL, *own = NULL;
    uint64_t index = told_index(t);
    struct sim_collection now;

    if (index == 0)
        return;
    bool known = definition_collection(t->sim, t->call->shard, "favorites", &now);
    for (uint32_t i = 0; i < model->count && model->moments[i].index <= index; i++) {
        last = &model->moments[i];
        own = known && last->number == now.number ? last : own;
    }
    t->sim->counts.metadata_read++;
    if (told->n_metadata == 0) {
        if (last != NULL && last == own && last->exists)
            told_fail(t, "no metadata, where there is some, of version", 0, last->version);
        return;
    }
    if (!tells(last, told) && !tells(own, told))
        told_fail(t, "metadata of version", told->metadata[0]->version,
                  last != NULL && last->exists ? last->version : 0);
    else
        check_version(t, model, told->metadata[0]);
}

void metadata_told(const struct told *t)
{
    struct metadata_sim *all = metadata_of(t->sim);

    if (t->call->method == METHOD_BATCH_GET_TARGET_METADATA) {
        const Holdfast__V1__BatchGetTargetMetadataRequest *request = (const void *)t->request;
        check_read(t, &all->models[number_of(request->target_ids[0])], (const void *)t->response);
    } else if (t->call->method == METHOD_PUT_TARGET_METADATA) {
        const Holdfast__V1__PutTargetMetadataRequest *request = (const void *)t->request;
        const Holdfast__V1__PutTargetMetadataResponse *response = (const void *)t->response;
        check_version(t, &all->models[number_of(request->target_id)], response->metadata);
    }
}
