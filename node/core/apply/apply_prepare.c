#include <inttypes.h>
#include <string.h>

#include "idl/limit.h"
#include "idl/method.h"
#include "node/core/apply/apply.h"
#include "node/core/apply/apply_internal.h"
#include "node/core/apply/outcome_share.h"
#include "node/core/codec/arena_proto.h"
#include "node/core/codec/canonical_order.h"
#include "node/core/codec/text_rule.h"
#include "node/core/handler/outcome_row.h"
#include "node/core/handler/refusal.h"
#include "node/core/receipt/receipt.h"
#include "node/core/session/authority.h"
#include "runtime/base/check.h"

#define PRUNE_SLACK_MS     1000u
#define THROTTLED_RETRY_MS 1000u

static void *field_find(ProtobufCMessage *request, unsigned number, const char *name)
{
    const ProtobufCFieldDescriptor *field =
        protobuf_c_message_descriptor_get_field(request->descriptor, number);

    if (field == NULL || strcmp(field->name, name) != 0)
        return NULL;
    return (char *)request + field->offset;
}

void envelope_find(ProtobufCMessage *request, struct envelope *ret_envelope)
{
    struct envelope envelope = {
        .entity = field_find(request, 1, "player_id"),
        .op_id = field_find(request, 2, "op_id"),
        .attempt = field_find(request, 3, "attempt"),
        .authority = field_find(request, 4, "authority"),
    };

    envelope.is_player = envelope.entity != NULL;
    if (!envelope.is_player)
        envelope.entity = field_find(request, 1, "entity");
    *ret_envelope = envelope;
}

/* One request on its way to an operation. */
struct preparation {
    struct applier *applier;
    struct arena *arena;
    struct refusal *refusal;
    uint64_t now_unix_ms;
    const struct handler *handler;
    ProtobufCMessage *request;
    struct envelope envelope;
    struct op op;
    struct refusal no_room; /* Unless it is a repetition. Code 0: there is room. */
};

static err prepare_entity(struct preparation *p)
{
    const char *text = *p->envelope.entity;
    const char *why;

    if (p->envelope.is_player) {
        if (player_id_check(slice_from_text(text)) != ERR_OK)
            return refuse_invalid(p->arena, p->refusal, "player_id",
                                  "1 to 100 bytes of UTF-8 without control characters",
                                  text_shorten(p->arena, slice_from_text(text)));
        p->op.entity = entity_of_player(p->arena, text);
        return ERR_OK;
    }
    p->op.entity = slice_from_text(text);
    if (p->op.method == METHOD_RESOLVE_OPERATION && receipt_is(p->op.entity))
        return receipt_entity_check(p->arena, p->refusal, p->op.entity, *p->envelope.op_id);
    if (entity_parse(p->op.entity, &why) != ERR_OK)
        return refuse_invalid(p->arena, p->refusal, "entity", why,
                              text_shorten(p->arena, p->op.entity));
    return ERR_OK;
}

/* The canonical lower-case form, in the request too: it is part of the payload. */
static void make_id_canonical(struct preparation *p, const struct op_id *id)
{
    if (id->typed)
        return;
    char *text = arena_alloc(p->arena, UUID_TEXT_SIZE);
    uuid_print(&id->uuid, text);
    *p->envelope.op_id = text;
}

static err prepare_id(struct preparation *p)
{
    struct slice text = slice_from_text(*p->envelope.op_id);
    struct op_id id;
    const char *why;

    if (op_id_parse(text, &id, &why) != ERR_OK)
        return refuse_invalid(p->arena, p->refusal, "op_id", why, text_shorten(p->arena, text));
    if (!id.typed && uuid_v7_ms(&id.uuid) > p->now_unix_ms + OP_ID_AHEAD_MS_MAX)
        return refuse_invalid(p->arena, p->refusal, "op_id",
                              "a UUIDv7 at most 5 minutes ahead of now",
                              text_shorten(p->arena, text));
    make_id_canonical(p, &id);
    if (p->op.method == METHOD_RESOLVE_OPERATION)
        return ERR_OK; /* Its op_id is its target. */
    id.text = slice_from_text(*p->envelope.op_id);
    p->op.id = id;
    return ERR_OK;
}

static err prepare_authority(struct preparation *p)
{
    static char none[] = "";
    struct slice text = slice_from_text(*p->envelope.authority);
    struct authority *authority = &p->op.authority;
    struct authority_fault fault;

    if (authority_parse(p->arena, text, authority, &fault) != ERR_OK)
        return refuse_invalid(p->arena, p->refusal, "authority", fault.limit, fault.value);
    *p->envelope.authority = none;
    err e = authority_check_kind(p->arena, p->refusal, p->handler, authority->kind,
                                 p->applier->meta.apply_version);
    return e == ERR_OK ? receipt_check(p->arena, p->refusal, p->handler, &p->op) : e;
}

uint64_t applier_outcomes_kept(const struct applier *applier)
{
    const struct meta *meta = &applier->meta;
    uint64_t pending = meta->apply_version >= SHARE_APPLY_VERSION ? meta->outbox_open : 0;

    return meta->operation_count > pending ? meta->operation_count - pending : 0;
}

/* More outcomes are kept than the policy allows, and none is old enough to forget. */
static err check_room(struct preparation *p)
{
    uint64_t kept = applier_outcomes_kept(p->applier);
    const struct meta *meta = &p->applier->meta;
    uint64_t max = meta->policy.operations_max;
    uint64_t youngest_ms = meta->floor_ms + OPERATION_WINDOW_MS_MIN + PRUNE_SLACK_MS;
    bool spent = kept >= max && youngest_ms >= p->now_unix_ms;

    if (!spent && kept < max + max / 4)
        return ERR_OK;
    err e = refuse(p->arena, p->refusal, CODE(THROTTLED), "",
                   "the shard keeps %" PRIu64 " outcomes, at most %" PRIu64
                   ", and none is old enough to forget",
                   kept, max);
    p->refusal->limit = arena_printf(p->arena, "%" PRIu64, max);
    p->refusal->value = arena_printf(p->arena, "%" PRIu64, kept);
    p->refusal->retry_after_ms = THROTTLED_RETRY_MS;
    return e;
}

/* None of them may be forgotten before its day is over. */
static err check_room_of_keys(struct preparation *p)
{
    const struct meta *meta = &p->applier->meta;
    uint64_t max = meta->policy.operations_max;

    if (meta->key_count < max)
        return ERR_OK;
    err e = refuse(p->arena, p->refusal, CODE(THROTTLED), "op_id",
                   "the shard keeps %" PRIu64 " outcomes of `key:` ids, at most %" PRIu64
                   ", each for 24 hours; ids of other kinds are taken",
                   meta->key_count, max);
    p->refusal->limit = arena_printf(p->arena, "%" PRIu64, max);
    p->refusal->value = arena_printf(p->arena, "%" PRIu64, meta->key_count);
    p->refusal->retry_after_ms = THROTTLED_RETRY_MS;
    return e;
}

/* What was carried out before takes no more room: whether it was is seen last. */
static void check_rooms(struct preparation *p)
{
    err e = ERR_OK;

    if (!p->op.id.typed && p->op.id.text.size > 0)
        e = check_room(p);
    else if (p->op.id.is_key)
        e = check_room_of_keys(p);
    if (e == ERR_OK)
        return;
    p->no_room = *p->refusal;
    *p->refusal = (struct refusal){ 0 };
}

static err prepare_mutation(struct preparation *p)
{
    err e = prepare_entity(p);

    CHECK(p->envelope.op_id != NULL);
    if (e == ERR_OK)
        e = prepare_id(p);
    if (e == ERR_OK)
        check_rooms(p);
    if (e == ERR_OK && p->envelope.authority != NULL)
        e = prepare_authority(p);
    if (e == ERR_OK && p->envelope.attempt != NULL) {
        p->op.attempt = *p->envelope.attempt;
        *p->envelope.attempt = 0;
    }
    return e;
}

/* The field of the router's is no part of the request. Replicas of an earlier version cannot read
 * who asked: it is left out while there may be any. */
static err prepare_caller(struct preparation *p, const struct method_info *method)
{
    const struct applier *applier = p->applier;
    uint32_t version =
        applier->log_version > 0 ? applier->log_version : applier->meta.apply_version;
    struct slice caller;

    if (caller_name_take(p->request, &caller) != ERR_OK)
        return refuse_invalid(p->arena, p->refusal, "",
                              "a caller's name of at most 48 letters, digits, '.', '_', '-' or ':'",
                              "other bytes");
    bool keeps = method->route == METHOD_MUTATION || method_keeps_caller(method);
    if (keeps && version >= CALLER_APPLY_VERSION)
        p->op.caller = caller;
    return ERR_OK;
}

/* The rows as they are applied, if all is that earlier owners have logged. */
static struct state *state_of_now(const struct applier *applier)
{
    bool all = applier->log_epoch == 0 || applier->log_epoch == applier->meta.applied_dot.epoch;

    return all ? applier->state : NULL;
}

/* What the request names is gone. If an outcome may stand under its op_id, apply looks: a
 * repetition of what was carried out gets its answer. */
static bool may_repeat(const struct preparation *p)
{
    struct slice unused;
    struct row_key key;

    if (p->op.id.text.size == 0)
        return false;
    row_key_operation(&key, p->op.entity, &p->op.id);
    return state_find(p->applier->state, row_key_slice(&key), &unused) != STATE_ABSENT;
}

/* It is a repetition, by an outcome that is in memory: what callers misspell is not logged. */
static bool repeats(struct preparation *p, const struct method_info *method)
{
    struct need unused = { 0 };
    struct outcome_row row;

    if (p->op.id.text.size == 0)
        return false;
    enum state_found found =
        outcome_row_find(p->applier->state, p->op.entity, &p->op.id, &unused, &row);
    need_deinit(&unused);
    if (found != STATE_PRESENT || row.method == 0)
        return false;
    /* Of what was refused alone a higher attempt is evaluated again. */
    if (row.state == OUTCOME_ROW_REFUSED && p->op.attempt > row.attempt)
        return false;
    canonical_order(p->request);
    struct slice request = arena_pack(p->arena, p->request);
    struct hash128 payload =
        p->handler->payload != NULL
            ? p->handler->payload(p->arena, &p->op,
                                  arena_unpack(p->arena, method->request, request))
            : op_payload(p->op.method, request);
    return hash128_equal(payload, row.payload);
}

static err prepare_request(struct preparation *p, const struct method_info *method,
                           struct slice request)
{
    p->request = arena_unpack(p->arena, method->request, request);
    if (p->request == NULL)
        return refuse(p->arena, p->refusal, CODE(INVALID_ARGUMENT), "",
                      "the request is not a valid %s in protobuf", method->request->name);
    envelope_find(p->request, &p->envelope);
    err e = prepare_caller(p, method);
    if (e == ERR_OK && method->route == METHOD_MUTATION)
        e = prepare_mutation(p);
    if (e != ERR_OK)
        return e;
    struct check_context context = {
        .arena = p->arena,
        .meta = &p->applier->meta,
        .refusal = p->refusal,
        .authority = p->op.authority.kind,
        .caller = p->op.caller,
        .shard = p->applier->shard,
        .shard_count = p->applier->shard_count,
        .state = state_of_now(p->applier),
    };
    e = p->handler->check != NULL ? p->handler->check(&context, p->request) : ERR_OK;
    if (e == ERR_OK && context.deferred.code == 0 && p->no_room.code == 0)
        return ERR_OK;
    if (e == ERR_OK)
        *p->refusal = context.deferred.code != 0 ? context.deferred : p->no_room;
    if (e == ERR_OK ? !repeats(p, method) : p->refusal->code != CODE(NOT_FOUND) || !may_repeat(p))
        return ERR_INVALID;
    *p->refusal = (struct refusal){ 0 };
    return ERR_OK;
}

err applier_prepare(struct applier *applier, const struct applier_asked *asked,
                    struct buf *out_body, struct refusal *ret_refusal)
{
    const struct method_info *info = method_find(asked->method);
    struct preparation p = {
        .applier = applier,
        .arena = asked->arena,
        .refusal = ret_refusal,
        .now_unix_ms = asked->now_unix_ms,
        .handler = handler_find(applier->handlers, asked->method),
        .op = { .method = asked->method, .cut_id = applier->meta.cut_id },
    };

    *ret_refusal = (struct refusal){ 0 };
    if (p.handler == NULL || p.handler->handle == NULL || info->route == METHOD_OWNER ||
        (info->traits & METHOD_ONLY_IN_LOGS) != 0) {
        (void)refuse(p.arena, ret_refusal, CODE(UNIMPLEMENTED), "",
                     "method %" PRIu32 " is not a mutation that may be asked for", asked->method);
        return ERR_INVALID;
    }
    if (prepare_request(&p, info, asked->request) != ERR_OK)
        return ERR_INVALID;
    canonical_order(p.request);
    p.op.request = arena_pack(p.arena, p.request);
    op_encode(&p.op, out_body);
    return ERR_OK;
}
