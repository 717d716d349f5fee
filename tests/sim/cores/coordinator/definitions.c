/*
 * Changes of definitions, as operators ask for them (coordinator/core/definition_change.c, _find.c,
 * _send.c; docs/definitions.md): versions without gaps, an op_id that makes one thing, conditions
 * that are kept, lists that tell what stands, and shards that all learn it.
 */
#include <string.h>

#include "coordinator/core/world.h"
#include "holdfast/internal/v1/definition.pb-c.h"
#include "idl/error_code.h"
#include "idl/method.h"
#include "runtime/base/check.h"
#include "tests/sim/cores/rsim.h"

#define NAMES     3u
#define LIVES     12u
#define VERSIONS  24u
#define SHARDS    8u
#define KNOWN_MAX 64u
#define DAY_MS    86400000u
#define DEED(x)   HOLDFAST__INTERNAL__V1__DEFINITION_DEED__DEFINITION_DEED_##x

typedef Holdfast__Internal__V1__ChangeDefinitionRequest change_request;
typedef Holdfast__Internal__V1__ChangeDefinitionResponse change_response;
typedef Holdfast__Internal__V1__FindDefinitionsRequest find_request;
typedef Holdfast__Internal__V1__FindDefinitionsResponse find_response;

static const char *const names[NAMES] = { "kills", "wins", "k" };

struct version {
    int64_t value; /* Of the body. */
    bool deleted;
    uint32_t op; /* Its op_id. */
    uint64_t rolled_back_to;
};

/* From its making to its deletion. */
struct life {
    uint64_t number;
    uint32_t name;
    struct version versions[VERSIONS]; /* From version 1 on. */
    uint32_t count;
};

struct known {
    uint64_t number, version;
};

struct book {
    struct rsim *sim;
    struct world *world;
    struct life lives[LIVES + NAMES];
    uint32_t life_count;
    uint64_t call;
    bool answered;
    enum wire_status status;
    struct buf body; /* Of the answer. */
    struct known shards[SHARDS][KNOWN_MAX];
    uint32_t known_count[SHARDS];
};

struct wanted {
    int deed;
    uint32_t name, op;
    int64_t value; /* 0: the greatest that there is. */
    bool conditional, dry_run;
    uint64_t if_version, version;
    uint32_t wait_ms;
};

/* ---- the register ---- */

static bool is_over(const struct life *life)
{
    return life->versions[life->count - 1].deleted;
}

static struct life *standing(struct book *r, uint32_t name)
{
    for (uint32_t i = 0; i < r->life_count; i++) {
        if (r->lives[i].name == name && !is_over(&r->lives[i]))
            return &r->lives[i];
    }
    return NULL;
}

static int64_t value_of(int64_t value)
{
    return value != 0 ? value : 9007199254740991ll;
}

/* What that op_id made of the name; NULL: nothing. */
static struct life *made_before(struct book *r, const struct wanted *w, uint64_t *ret_version)
{
    for (uint32_t i = 0; i < r->life_count; i++) {
        for (uint32_t k = 0; k < r->lives[i].count && r->lives[i].name == w->name; k++) {
            *ret_version = k + 1;
            if (r->lives[i].versions[k].op == w->op)
                return &r->lives[i];
        }
    }
    return NULL;
}

static bool is_same_deed(const struct wanted *w, const struct version *made)
{
    return made->deleted == (w->deed == (int)DEED(DELETE)) && made->rolled_back_to == w->version &&
           (w->deed != (int)DEED(PUT) || made->value == value_of(w->value));
}

/* 0: it is made. `ret_life`, `ret_version`: what the answer tells. */
static Holdfast__V1__ErrorCode refusal_of(struct book *r, const struct wanted *w,
                                          bool *ret_duplicate)
{
    struct life *stands = standing(r, w->name);
    uint64_t version = 0;
    struct life *before = made_before(r, w, &version);

    *ret_duplicate = before != NULL;
    if (before != NULL)
        return is_same_deed(w, &before->versions[version - 1]) ? 0 : CODE(OPERATION_ID_MISMATCH);
    if (w->conditional && w->if_version != (stands != NULL ? stands->count : 0))
        return CODE(VERSION_CONFLICT);
    if (w->deed == (int)DEED(PUT))
        return value_of(w->value) < 1 ? CODE(INVALID_ARGUMENT) : 0;
    if (stands == NULL)
        return CODE(NOT_FOUND);
    if (w->deed == (int)DEED(ROLL_BACK) && (w->version < 1 || w->version > stands->count))
        return CODE(NOT_FOUND);
    return 0;
}

/* ---- asking ---- */

static void answered(void *user, const struct coord_answer *answer)
{
    struct book *r = user;

    PROMISE(r->sim, answer->call == r->call && !r->answered, "call %llu is answered, or twice",
            (unsigned long long)answer->call);
    r->answered = true;
    r->status = answer->status;
    buf_clear(&r->body);
    buf_append(&r->body, answer->body.data, answer->body.size);
}

static void ask(struct book *r, enum method_id method, struct slice body)
{
    r->call++;
    r->answered = false;
    world_step(r->world,
               (struct coord_event){
                   .type = COORD_ASK, .call = r->call, .method = (uint16_t)method, .body = body });
    for (uint32_t i = 0; i < 400 && !r->answered; i++)
        world_run(r->world, 20);
    PROMISE(r->sim, r->answered, "a question is never answered");
}

static void ask_change(struct book *r, const struct wanted *w)
{
    change_request request = HOLDFAST__INTERNAL__V1__CHANGE_DEFINITION_REQUEST__INIT;
    Holdfast__V1__DefinitionBody body = HOLDFAST__V1__DEFINITION_BODY__INIT;
    Holdfast__V1__CounterBody counter = HOLDFAST__V1__COUNTER_BODY__INIT;
    uint8_t bytes[512];

    request.deed = (Holdfast__Internal__V1__DefinitionDeed)w->deed;
    request.name = text_lend(names[w->name]);
    request.op_id = arena_printf(&r->sim->arena, "admin:%u", w->op);
    request.author = text_lend("op");
    request.reason = text_lend("why");
    request.dry_run = w->dry_run;
    request.wait_ms = w->wait_ms;
    request.version = w->version;
    if (w->deed == (int)DEED(PUT)) {
        counter.max_value = w->value;
        body.kind_case = HOLDFAST__V1__DEFINITION_BODY__KIND_COUNTER;
        body.counter = &counter;
        request.body = &body;
    } else {
        request.kind = text_lend("counter");
    }
    if (w->conditional) {
        request._if_version_case =
            HOLDFAST__INTERNAL__V1__CHANGE_DEFINITION_REQUEST___IF_VERSION_IF_VERSION;
        request.if_version = w->if_version;
    }
    size_t size = holdfast__internal__v1__change_definition_request__pack(&request, bytes);
    ask(r, METHOD_CHANGE_DEFINITION, (struct slice){ bytes, size });
}

/* Nothing was done, and it may be asked again: some shard has not said how far it is. */
static bool is_put_off(const struct book *r)
{
    if (r->status != WIRE_REFUSED)
        return false;
    Holdfast__Internal__V1__Refusal *refusal =
        holdfast__internal__v1__refusal__unpack(NULL, r->body.size, r->body.data);
    bool put_off = refusal != NULL && refusal->code == CODE(UNAVAILABLE);

    holdfast__internal__v1__refusal__free_unpacked(refusal, NULL);
    return put_off;
}

static void refused_check(struct book *r, Holdfast__V1__ErrorCode code)
{
    Holdfast__Internal__V1__Refusal *refusal =
        holdfast__internal__v1__refusal__unpack(NULL, r->body.size, r->body.data);

    PROMISE(r->sim, r->status == WIRE_REFUSED && refusal != NULL,
            "status %d, and refusal %d is due", (int)r->status, (int)code);
    PROMISE(r->sim, refusal->code == code, "refused with %d, not %d: %s", (int)refusal->code,
            (int)code, refusal->message);
    holdfast__internal__v1__refusal__free_unpacked(refusal, NULL);
    r->sim->counts.changes_refused++;
}

static void make(struct book *r, const struct wanted *w, uint64_t number)
{
    struct life *life = standing(r, w->name);

    if (life == NULL) {
        for (uint32_t i = 0; i < r->life_count; i++)
            PROMISE(r->sim, r->lives[i].number != number, "a number is given twice");
        life = &r->lives[r->life_count++];
        *life = (struct life){ .number = number, .name = w->name };
    }
    struct version *version = &life->versions[life->count++];
    *version = (struct version){ .value = value_of(w->value), .op = w->op };
    if (w->deed == (int)DEED(DELETE)) {
        version->deleted = true;
        version->value = life->versions[life->count - 2].value;
    }
    if (w->deed == (int)DEED(ROLL_BACK)) {
        version->rolled_back_to = w->version;
        version->value = life->versions[w->version - 1].value;
    }
    r->sim->counts.definitions_made++;
}

static void told_check(struct book *r, const struct life *life, uint64_t version,
                       const Holdfast__Internal__V1__DefinitionVersion *told)
{
    const struct version *made = &life->versions[version - 1];

    PROMISE(r->sim, told->number == life->number && told->version == version,
            "version %llu of %llu is told, not %llu of %llu", (unsigned long long)told->version,
            (unsigned long long)told->number, (unsigned long long)version,
            (unsigned long long)life->number);
    PROMISE(r->sim,
            strcmp(told->name, names[life->name]) == 0 && told->deleted == made->deleted &&
                told->rolled_back_to == made->rolled_back_to &&
                told->body->counter->max_value == made->value,
            "%s: another version is told than was made", names[life->name]);
}

/* Bytes that are no request are told as that. */
static void malformed_turn(struct book *r)
{
    ask(r, rsim_chance(r->sim, 50) ? METHOD_CHANGE_DEFINITION : METHOD_FIND_DEFINITIONS,
        SLICE_LITERAL("\x0a\xff"));
    refused_check(r, CODE(INVALID_ARGUMENT));
}

static void made_check(struct book *r, const struct wanted *w, bool duplicate)
{
    change_response *told = holdfast__internal__v1__change_definition_response__unpack(
        NULL, r->body.size, r->body.data);
    struct life *stands = standing(r, w->name);
    uint64_t version = stands != NULL ? stands->count : 0;
    bool unchanged = !duplicate && w->deed == (int)DEED(PUT) && stands != NULL &&
                     stands->versions[version - 1].value == value_of(w->value);

    PROMISE(r->sim, r->status == WIRE_OK && told != NULL, "status %d for a change that is due",
            (int)r->status);
    PROMISE(r->sim, told->duplicate == duplicate && told->unchanged == unchanged,
            "told as a repetition (%d), or as nothing new (%d)", told->duplicate, told->unchanged);
    PROMISE(r->sim, !told->in_force || told->shards_left == 0, "in force, and %u shards lack it",
            told->shards_left);
    if (duplicate)
        stands = made_before(r, w, &version);
    if (w->dry_run && !duplicate && !unchanged) {
        PROMISE(r->sim, told->made->version == version + 1, "a dry run tells version %llu",
                (unsigned long long)told->made->version);
    } else {
        if (!duplicate && !unchanged) {
            make(r, w, told->made->number);
            stands = &r->lives[r->life_count - 1];
            for (uint32_t i = 0; i < r->life_count; i++) {
                if (r->lives[i].number == told->made->number)
                    stands = &r->lives[i];
            }
            version++;
        }
        told_check(r, stands, version, told->made);
        if (w->wait_ms >= 3000 && r->world->deaf_node == 0 && r->world->garbled_node == 0 &&
            !unchanged)
            PROMISE(r->sim, told->in_force, "waited for, and not in force");
    }
    holdfast__internal__v1__change_definition_response__free_unpacked(told, NULL);
}

static void change_turn(struct book *r)
{
    static const int deeds[] = { (int)DEED(PUT), (int)DEED(PUT), (int)DEED(ROLL_BACK),
                                 (int)DEED(DELETE) };
    struct rsim *sim = r->sim;
    struct wanted w = { .deed = RSIM_PICK(sim, deeds),
                        .name = (uint32_t)rsim_between(sim, 0, NAMES - 1),
                        .op = (uint32_t)rsim_between(sim, 1, 60),
                        .value = (int64_t)rsim_between(sim, 0, 5),
                        .conditional = rsim_chance(sim, 30),
                        .dry_run = rsim_chance(sim, 15),
                        .wait_ms = rsim_chance(sim, 40) ? 3000 : 0 };
    struct life *stands = standing(r, w.name);
    bool duplicate = false, late = r->world->fault != WORLD_WELL;

    if (r->life_count == LIVES || (stands != NULL && stands->count == VERSIONS - 1))
        return;
    w.if_version = stands != NULL && rsim_chance(sim, 60) ? stands->count : rsim_between(sim, 0, 3);
    if (w.deed == (int)DEED(ROLL_BACK))
        w.version = rsim_between(sim, 0, stands != NULL ? stands->count + 1 : 2);
    if (rsim_chance(sim, 5))
        w.value = -1;
    ask_change(r, &w);
    /* Its outcome is told by a repetition: the op_id finds what it made. */
    for (uint32_t i = 0; i < 12 && (r->status == WIRE_UNKNOWN || is_put_off(r)); i++) {
        PROMISE(sim, late || r->status != WIRE_UNKNOWN, "unknown, while etcd answers");
        sim->counts.changes_unknown += r->status == WIRE_UNKNOWN;
        r->world->fault = WORLD_WELL;
        r->world->deaf_node = r->world->garbled_node = 0;
        world_run(r->world, 1000);
        ask_change(r, &w);
    }
    Holdfast__V1__ErrorCode code = refusal_of(r, &w, &duplicate);
    if (code != 0) {
        refused_check(r, code);
    } else if (!late) {
        made_check(r, &w, duplicate);
    } else { /* The repetition may be the first that was carried out, or find it. */
        change_response *told = holdfast__internal__v1__change_definition_response__unpack(
            NULL, r->body.size, r->body.data);
        PROMISE(sim, r->status == WIRE_OK && told != NULL, "never made: %d", (int)r->status);
        if (!duplicate && !told->unchanged && (!w.dry_run || told->duplicate))
            make(r, &w, told->made->number);
        holdfast__internal__v1__change_definition_response__free_unpacked(told, NULL);
    }
}

/* ---- lists ---- */

static const struct life *life_of(const struct book *r, uint64_t number)
{
    for (uint32_t i = 0; i < r->life_count; i++) {
        if (r->lives[i].number == number)
            return &r->lives[i];
    }
    return NULL;
}

/* How many versions, or definitions, a whole list has. */
static uint32_t wanted_count(const struct book *r, const find_request *request)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < r->life_count; i++) {
        const struct life *life = &r->lives[i];
        if (request->name[0] != 0 && strcmp(names[life->name], request->name) != 0)
            continue;
        if (request->history)
            count += life->count;
        else
            count += request->deleted || !is_over(life);
    }
    return count;
}

static void page_check(struct book *r, const find_request *request, find_response *page)
{
    uint64_t number = request->after_number, version = request->after_version;

    PROMISE(r->sim, page->n_definitions <= request->limit, "a page of %zu", page->n_definitions);
    PROMISE(r->sim, !page->more || page->n_definitions == request->limit,
            "a page that is not full");
    for (size_t i = 0; i < page->n_definitions; i++) {
        const Holdfast__Internal__V1__FoundDefinition *found = page->definitions[i];
        const struct life *life = life_of(r, found->version->number);
        /* Lives are kept in the order in which they began; numbers tell nothing of it. */
        bool next = request->history ? number == 0 || life < life_of(r, number) ||
                                           (found->version->number == number &&
                                            found->version->version < version)
                                     : found->version->number > number;

        PROMISE(r->sim, life != NULL && found->version->version <= life->count,
                "a definition that there is not");
        PROMISE(r->sim, next, "a definition stands twice, or in another order");
        PROMISE(r->sim, found->current == (found->version->version == life->count), "current");
        PROMISE(r->sim, request->history || found->current, "an old version in a list");
        PROMISE(r->sim, request->history || request->deleted || !is_over(life), "a deleted one");
        PROMISE(r->sim, found->in_force == (found->current && found->shards_left == 0), "in force");
        PROMISE(r->sim, request->name[0] == 0 || strcmp(found->version->name, request->name) == 0,
                "another name");
        told_check(r, life, found->version->version, found->version);
        number = found->version->number;
        version = found->version->version;
    }
}

static void find_turn(struct book *r)
{
    find_request request = HOLDFAST__INTERNAL__V1__FIND_DEFINITIONS_REQUEST__INIT;
    struct rsim *sim = r->sim;
    uint8_t bytes[128];
    uint32_t found = 0, pages = 0;
    bool more = true;

    request.kind = text_lend(rsim_chance(sim, 50) ? "counter" : "");
    request.history = rsim_chance(sim, 50);
    request.deleted = rsim_chance(sim, 50);
    request.limit = (uint32_t)rsim_between(sim, 0, 4);
    request.name = text_lend(
        request.history || rsim_chance(sim, 30) ? names[rsim_between(sim, 0, NAMES - 1)] : "");
    if (request.limit == 0) {
        request.limit = rsim_chance(sim, 50) ? 0 : (uint32_t)rsim_about(sim, 200);
        bool bad = request.limit == 0 || request.limit > 200;
        size_t size = holdfast__internal__v1__find_definitions_request__pack(&request, bytes);
        ask(r, METHOD_FIND_DEFINITIONS, (struct slice){ bytes, size });
        PROMISE(sim, r->status == (bad ? WIRE_REFUSED : WIRE_OK), "a page of %u", request.limit);
        if (bad)
            refused_check(r, CODE(INVALID_ARGUMENT));
        return;
    }
    while (more) {
        size_t size = holdfast__internal__v1__find_definitions_request__pack(&request, bytes);
        ask(r, METHOD_FIND_DEFINITIONS, (struct slice){ bytes, size });
        PROMISE(sim, r->status == WIRE_OK, "a list is refused");
        find_response *page = holdfast__internal__v1__find_definitions_response__unpack(
            NULL, r->body.size, r->body.data);
        CHECK(page != NULL);
        page_check(r, &request, page);
        found += (uint32_t)page->n_definitions;
        more = page->more;
        if (more) {
            request.after_number = page->definitions[page->n_definitions - 1]->version->number;
            request.after_version = page->definitions[page->n_definitions - 1]->version->version;
        }
        holdfast__internal__v1__find_definitions_response__free_unpacked(page, NULL);
        PROMISE(sim, ++pages < 300, "a list has no end");
    }
    PROMISE(sim, found == wanted_count(r, &request), "%u are listed, and there are %u", found,
            wanted_count(r, &request));
    sim->counts.definitions_listed += found > 0;
}

/* ---- shards ---- */

static void called(void *user, const struct coord_call *call)
{
    struct book *r = user;
    const uint64_t *stands = r->world->defined[call->shard];

    if (call->method != METHOD_DEFINE)
        return;
    Holdfast__Internal__V1__DefineRequest *request =
        holdfast__internal__v1__define_request__unpack(NULL, call->body.size, call->body.data);
    CHECK(request != NULL);
    bool begins = request->generation > stands[0] && request->from_revision == 0;
    bool next = request->generation == stands[0] && request->from_revision <= stands[1] &&
                request->to_revision > stands[1];
    for (size_t i = 0; i < request->n_definitions && (begins || next); i++) {
        const Holdfast__Internal__V1__Defined *told = request->definitions[i];
        uint32_t at = 0;

        PROMISE(r->sim,
                told->revision > request->from_revision && told->revision <= request->to_revision,
                "a definition outside of its span");
        while (at < r->known_count[call->shard] &&
               r->shards[call->shard][at].number != told->number)
            at++;
        CHECK(at < KNOWN_MAX);
        r->known_count[call->shard] += at == r->known_count[call->shard];
        r->shards[call->shard][at] = (struct known){ told->number, told->version };
    }
    holdfast__internal__v1__define_request__free_unpacked(request, NULL);
}

static void shards_check(struct book *r)
{
    struct coord_stats stats = world_stats(r->world);
    uint32_t standing_count = 0;

    for (uint32_t i = 0; i < r->life_count; i++) {
        const struct life *life = &r->lives[i];

        standing_count += !is_over(life);
        for (uint32_t shard = 0; shard < SHARDS; shard++) {
            uint64_t version = 0;
            for (uint32_t at = 0; at < r->known_count[shard]; at++) {
                if (r->shards[shard][at].number == life->number)
                    version = r->shards[shard][at].version;
            }
            PROMISE(r->sim, version == life->count, "shard %u follows %s up to %llu of %u", shard,
                    names[life->name], (unsigned long long)version, life->count);
        }
    }
    PROMISE(r->sim, stats.definitions_pending == 0, "%llu shards never follow",
            (unsigned long long)stats.definitions_pending);
    PROMISE(r->sim, stats.definitions == standing_count, "%llu definitions of %u",
            (unsigned long long)stats.definitions, standing_count);
}

/* ---- what is forgotten ---- */

static bool is_kept(struct book *r, const struct life *life)
{
    return world_has(r->world, cluster_key_definition(WORLD_CLUSTER, life->number, life->count));
}

static void kept_check(struct book *r, uint32_t gone_kept)
{
    uint32_t over = 0, kept = 0;

    for (uint32_t i = 0; i < r->life_count; i++) {
        bool stays = is_kept(r, &r->lives[i]);
        PROMISE(r->sim, stays || is_over(&r->lives[i]), "a definition that stands is forgotten");
        over += is_over(&r->lives[i]);
        kept += is_over(&r->lives[i]) && stays;
    }
    PROMISE(r->sim, kept == (over < gone_kept ? over : gone_kept),
            "%u of %u deleted definitions are kept, and %u may be", kept, over, gone_kept);
    r->sim->counts.definitions_forgotten += over - kept;
}

/* A day later the oldest deleted ones are forgotten. What made one may come again, under the
 * same op_id: what it makes has another number, since players have rows under the earlier one. */
static void forget_turn(struct book *r)
{
    uint32_t gone_kept = (uint32_t)rsim_between(r->sim, 1, 2), count = r->life_count;

    r->world->limits.definitions_gone_kept = gone_kept;
    r->world->clock_ms += DAY_MS + 10000;
    world_replace_coordinator(r->world);
    world_elect(r->world);
    world_run(r->world, 20000);
    kept_check(r, gone_kept);
    for (uint32_t i = 0; i < count; i++) {
        const struct life *life = &r->lives[i];
        struct wanted w = { .deed = (int)DEED(PUT),
                            .name = life->name,
                            .op = life->versions[0].op,
                            .value = life->versions[0].value };
        if (is_kept(r, life) || standing(r, life->name) != NULL)
            continue;
        ask_change(r, &w);
        PROMISE(r->sim, r->status == WIRE_OK, "what was forgotten is not made again");
        change_response *told = holdfast__internal__v1__change_definition_response__unpack(
            NULL, r->body.size, r->body.data);
        CHECK(told != NULL);
        PROMISE(r->sim, !told->duplicate, "what was forgotten is found again");
        make(r, &w, told->made->number);
        holdfast__internal__v1__change_definition_response__free_unpacked(told, NULL);
    }
}

void room_definitions(struct rsim *sim)
{
    struct book *r = arena_zalloc(&sim->arena, sizeof *r);

    r->sim = sim;
    r->world = world_new();
    world_start(r->world);
    world_run(r->world, 3000);
    r->world->watch = (struct world_watch){ .user = r, .called = called, .answered = answered };
    for (uint32_t i = 0; i < 40; i++) {
        if (rsim_chance(sim, 10))
            r->world->deaf_node = rsim_between(sim, 0, 3);
        if (rsim_chance(sim, 10))
            r->world->garbled_node = rsim_between(sim, 0, 3);
        if (rsim_chance(sim, 10))
            malformed_turn(r);
        if (rsim_chance(sim, 10))
            r->world->fault = WORLD_ANSWER_LOST;
        if (rsim_chance(sim, 65))
            change_turn(r);
        else
            find_turn(r);
        r->world->fault = WORLD_WELL;
        world_run(r->world, rsim_between(sim, 20, 1500));
    }
    r->world->deaf_node = r->world->garbled_node = 0;
    world_run(r->world, 20000);
    shards_check(r);
    forget_turn(r);
    world_run(r->world, 20000);
    shards_check(r);
    buf_deinit(&r->body);
    world_free(r->world);
}
