/*
 * What a shard does from an apply version on (docs/nodes.md#upgrades; each page names the version
 * of what it describes): below it the shard refuses the call before the log as one that has to wait
 * for an upgrade, and an entry that is in the log already changes nothing; from it on the shard
 * takes it.
 */
#include <inttypes.h>
#include <string.h>

#include "idl/error_code.h"
#include "node/core/codec/arena_proto.h"
#include "node/rpc/fixture_counter.h"
#include "node/rpc/fixture_edges.h"
#include "node/rpc/fixture_limits.h"
#include "tests/sim/cores/rsim.h"

#define TURNS 40u

struct gates_world {
    struct rsim *sim;
    struct fixture_shards shards;
    struct fixture *f; /* The first of them. */
    uint64_t generation, version;
};

/* The version that a call begins with. */
static const struct call_gate {
    uint32_t method, version;
    const char *path; /* Set beside what limit_fill fills in; NULL: nothing. */
    enum limit_shape shape;
    int64_t value;
    const char *text; /* Likewise, of a field of that name. */
    const char *name;
} calls[] = {
    { METHOD_DEFINE, 5, NULL, 0, 0, NULL, NULL },
    { METHOD_FAVORITE, 6, NULL, 0, 0, NULL, NULL },
    { METHOD_UNFAVORITE, 6, NULL, 0, 0, NULL, NULL },
    { METHOD_GET_SHARD_TOP, 7, NULL, 0, 0, NULL, NULL },
    { METHOD_ADD_TO_COUNTER, 8, "amount", LIMIT_NUMBER, 5, "plays", "counter" },
    { METHOD_CREATE_CONSUMER, 9, NULL, 0, 0, NULL, NULL },
    { METHOD_FLAG_EDGES, 9, "target_ids", LIMIT_COUNT, 1, NULL, NULL },
    { METHOD_ERASE_PLAYER, 9, NULL, 0, 0, NULL, NULL },
    { METHOD_REBUILD_COUNTS, 9, NULL, 0, 0, NULL, NULL },
    { METHOD_PUT_TARGET_METADATA, 10, NULL, 0, 0, "Pong", "title" },
    { METHOD_SET_USER_FLAGS, 10, "add_roles", LIMIT_COUNT, 1, NULL, NULL },
};

/* The version from which on a row of a table is repaired. */
static const struct table_gate {
    char table;
    uint32_t version;
} tables[] = {
    { 'k', 2 }, { 'G', 6 }, { 'P', 6 }, { 'E', 7 }, { 'H', 7 }, { 'Z', 7 }, { 'N', 7 },  { 'U', 7 },
    { 'S', 7 }, { 'T', 7 }, { 'K', 7 }, { 'Q', 8 }, { 'D', 9 }, { 'L', 9 }, { 'O', 10 },
};

static struct meta *meta_of(struct fixture *f)
{
    return (struct meta *)(uintptr_t)applier_meta(f->applier);
}

static bool must_wait(const struct fixture *f)
{
    return f->error != NULL &&
           (f->error->code == ERROR(UNAVAILABLE) || f->error->code == ERROR(UNIMPLEMENTED));
}

/* The version itself, or one beside it that this program knows. */
static uint32_t version_about(struct gates_world *w, uint32_t version)
{
    return (uint32_t)rsim_between(w->sim, version - 1,
                                  version < APPLY_VERSION ? version + 1 : version);
}

static ProtobufCMessage *request_of(struct gates_world *w, const struct call_gate *gate)
{
    struct fixture *f = w->f;
    ProtobufCMessage *request = arena_message(&f->arena, method_find(gate->method)->request);

    limit_fill(f, gate->method, "", request);
    if (gate->path != NULL)
        limit_set(&f->arena, request, gate->path, gate->shape, gate->value);
    if (gate->text != NULL)
        limit_set_text(request, gate->name, gate->text);
    if (gate->method == METHOD_FLAG_EDGES) {
        ((Holdfast__V1__FlagEdgesRequest *)request)->target_ids[0] = text_lend("pong");
        limit_set_text(request, "authority", "system:moderation");
        limit_set_text(request, "reason", "looked at");
    }
    if (gate->method == METHOD_ERASE_PLAYER)
        limit_set_text(request, "authority", "system:admin");
    if (gate->method == METHOD_SET_USER_FLAGS)
        ((Holdfast__V1__SetUserFlagsRequest *)request)->add_roles[0] = text_lend("tester");
    return request;
}

static void call(struct gates_world *w)
{
    const struct call_gate *gate = &RSIM_PICK(w->sim, calls);
    const struct method_info *method = method_find(gate->method);
    ProtobufCMessage *request = request_of(w, gate);
    uint32_t version = version_about(w, gate->version);
    bool early = version < gate->version;

    meta_of(w->f)->apply_version = version;
    if (method->writes) {
        struct buf body = { 0 };
        (void)fixture_prepare(w->f, gate->method, request, &body);
        buf_deinit(&body);
    } else {
        (void)fixture_read(w->f, gate->method, request);
    }
    meta_of(w->f)->apply_version = APPLY_VERSION;
    PROMISE(w->sim, must_wait(w->f) == early, "%s under version %" PRIu32 " %s%s%s", method->name,
            version, early ? "does not wait for an upgrade" : "waits for an upgrade",
            w->f->error != NULL ? ": " : "", w->f->error != NULL ? w->f->error->message : "");
    w->sim->counts.gates_closed += early;
    w->sim->counts.gates_open += !early;
}

static void repair(struct gates_world *w)
{
    const struct table_gate *gate = &RSIM_PICK(w->sim, tables);
    Holdfast__V1__RepairRowRequest request = HOLDFAST__V1__REPAIR_ROW_REQUEST__INIT;
    uint32_t version = version_about(w, gate->version);
    struct buf body = { 0 };

    request.key = arena_printf(&w->sim->arena, "%02x00000000000000070061", (unsigned)gate->table);
    request.reason = text_lend("bits flipped");
    meta_of(w->f)->apply_version = version;
    (void)fixture_prepare(w->f, METHOD_REPAIR_ROW, &request.base, &body);
    meta_of(w->f)->apply_version = APPLY_VERSION;
    buf_deinit(&body);
    PROMISE(w->sim, must_wait(w->f) == (version < gate->version),
            "a repair of table %c under version %" PRIu32 ": %s", gate->table, version,
            w->f->error != NULL ? w->f->error->message : "taken");
}

/* A policy of a generation: told and kept from version 10 on. */
static void set_policy(struct gates_world *w)
{
    Holdfast__Internal__V1__ApplyPolicyRequest request =
        HOLDFAST__INTERNAL__V1__APPLY_POLICY_REQUEST__INIT;
    Holdfast__V1__Policy policy = HOLDFAST__V1__POLICY__INIT;
    uint32_t version = (uint32_t)rsim_between(w->sim, 9, 10);
    bool knows = version >= 10;

    policy.version = ++w->version;
    request.policy = &policy;
    request.generation = w->generation + 1;
    meta_of(w->f)->apply_version = version;
    const Holdfast__Internal__V1__ApplyPolicyResponse *response =
        fixture_mutate(w->f, METHOD_APPLY_POLICY, &request.base);
    meta_of(w->f)->apply_version = APPLY_VERSION;
    w->generation += knows;
    PROMISE(w->sim, response != NULL, "a policy is refused");
    PROMISE(w->sim,
            response->generation == (knows ? w->generation : 0) &&
                response->version == (knows ? w->version : 0),
            "version %" PRIu32 " tells generation %" PRIu64 ", version %" PRIu64, version,
            response->generation, response->version);
    PROMISE(w->sim, meta_of(w->f)->policy.generation == w->generation,
            "under version %" PRIu32 " the policy is of generation %" PRIu64 ", not %" PRIu64,
            version, meta_of(w->f)->policy.generation, w->generation);
}

void room_gates(struct rsim *sim)
{
    struct gates_world *w = arena_zalloc(&sim->arena, sizeof *w);

    w->sim = sim;
    fixture_shards_init(&w->shards);
    w->f = &w->shards.shards[0];
    fixture_define_favorites(w->f);
    fixture_define_plays(w->f);
    w->version = meta_of(w->f)->policy.version;
    w->generation = meta_of(w->f)->policy.generation;
    for (uint32_t turn = 0; turn < TURNS; turn++) {
        uint64_t what = rsim_between(sim, 0, 9);

        if (what < 6)
            call(w);
        else if (what < 8)
            repair(w);
        else
            set_policy(w);
    }
    fixture_shards_deinit(&w->shards);
}
