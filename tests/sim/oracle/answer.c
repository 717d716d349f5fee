/* Every answer of every node, held against the committed log: nothing is told that is not there,
 * and nothing that was told before may be missing (P1, P4, P5). */
#include <inttypes.h>
#include <string.h>

#include "holdfast/v1/session.pb-c.h"
#include "idl/as_of.h"
#include "idl/error_code.h"
#include "idl/field_path.h"
#include "idl/method.h"
#include "idl/method_errors.h"
#include "node/core/codec/arena_proto.h"
#include "node/core/codec/proto_scan.h"
#include "runtime/base/check.h"
#include "runtime/base/hash.h"
#include "tests/sim/oracle/answer.h"

#define SKEW_MS_MAX     3000u
#define OP_ID_AHEAD_MS  (5u * 60u * 1000u)
#define WAIT_GRANTED_MS 1500u /* Of a shard that goes on meanwhile. */
#define STATE(name)     HOLDFAST__V1__OPERATION_STATE__OPERATION_STATE_##name

static const void *field(const ProtobufCMessage *message, const char *name)
{
    const ProtobufCFieldDescriptor *found =
        protobuf_c_message_descriptor_get_field_by_name(message->descriptor, name);

    return found != NULL ? (const uint8_t *)message + found->offset : NULL;
}

static struct slice text_field(const ProtobufCMessage *message, const char *name)
{
    const char *const *text = field(message, name);

    return text != NULL ? slice_from_text(*text) : (struct slice){ 0 };
}

static struct dot dot_of(const Holdfast__V1__Dot *dot)
{
    CHECK(dot != NULL);
    return (struct dot){ dot->epoch, dot->owner, dot->counter };
}

/* 0: it names nothing that was committed there. */
static uint64_t token_index(const struct told *t, const char *text)
{
    struct as_of as_of;

    if (as_of_parse(slice_from_text(text), &as_of) != ERR_OK || as_of.shard != t->call->shard)
        return 0;
    return oracle_index_of(t->shard, (struct dot){ as_of.epoch, as_of.owner, as_of.counter });
}

/* What names an operation in a request. */
struct op_names {
    struct slice id, player;
    struct slice given; /* An entity that is no player's. */
};

static struct op_model *op_named(const struct sim *sim, const struct op_names *names)
{
    char entity[64];

    if (names->id.size == 0)
        return NULL;
    if (names->given.size > 0)
        return model_op(sim->oracle, names->given, names->id);
    if (names->player.size == 0) /* Of no entity's log: a consumer keeps its last op_id itself. */
        return NULL;
    CHECK(names->player.size + 8 < sizeof entity);
    memcpy(entity, "player:", 7);
    memcpy(entity + 7, names->player.data, names->player.size);
    return model_op(sim->oracle, (struct slice){ (const uint8_t *)entity, names->player.size + 7 },
                    names->id);
}

struct op_model *told_op(const struct told *t)
{
    const struct op_names names = { .id = text_field(t->request, "op_id"),
                                    .player = text_field(t->request, "player_id"),
                                    .given = text_field(t->request, "entity") };

    return op_named(t->sim, &names);
}

struct player_model *told_player(const struct told *t)
{
    struct slice player = text_field(t->request, "player_id");

    CHECK(player.size == 2 && player.data[0] == 'p');
    return &t->sim->oracle->players[player.data[1] - '0'];
}

void told_fail(const struct told *t, const char *what, uint64_t got, uint64_t wanted)
{
    CHECK(t->call != NULL);
    sim_fail(t->sim, t->call->shard, "answer to %s: %s (%" PRIu64 ", should be %" PRIu64 ")",
             strchr(method_find(t->call->method)->name, '/') + 1, what, got, wanted);
}

void told_reserved(const struct told *t, size_t count,
                   Holdfast__V1__CurrencyAmount *const *reserved, const struct moment *moment)
{
    int64_t told[SIM_CURRENCIES] = { 0 };

    for (size_t i = 0; i < count; i++)
        told[model_currency(reserved[i]->currency)] += reserved[i]->amount;
    for (uint32_t i = 0; i < SIM_CURRENCIES; i++) {
        if (told[i] != moment->reserved[i])
            told_fail(t, "what is reserved", (uint64_t)told[i], (uint64_t)moment->reserved[i]);
    }
}

static void told_section(const struct told *t, const Holdfast__V1__Section *told,
                         const struct moment *moment)
{
    const struct section_model *section = &moment->sections.each[edit_section_number(told->name)];
    char text[SIM_DOCUMENT_BYTES];

    edit_print(&section->document, text);
    if (!section->exists || strcmp(text, told->json) != 0)
        told_fail(t, "a section's document", strlen(told->json), strlen(text));
    if (told->version != section->version)
        told_fail(t, "a section's version", told->version, section->version);
    if (told->schema_version != section->schema)
        told_fail(t, "a section's schema version", told->schema_version, section->schema);
    if ((uint64_t)told->last_write_at_ms != section->written_ms)
        told_fail(t, "when a section was written", (uint64_t)told->last_write_at_ms,
                  section->written_ms);
}

void told_whole(const struct told *t, const Holdfast__V1__Profile *profile,
                const struct moment *moment)
{
    size_t sections = 0;

    told_profile(t, profile, moment);
    for (uint32_t i = 0; i < SIM_SECTIONS; i++)
        sections += moment->sections.each[i].exists;
    if (profile->n_sections != sections)
        told_fail(t, "the number of sections", profile->n_sections, sections);
    told_balances(t, profile->n_balances, profile->balances, moment);
}

void told_balances(const struct told *t, size_t count,
                   Holdfast__V1__CurrencyAmount *const *balances, const struct moment *moment)
{
    int64_t told[SIM_CURRENCIES] = { 0 };
    bool named[SIM_CURRENCIES] = { false };

    for (size_t i = 0; i < count; i++) {
        uint32_t currency = model_currency(balances[i]->currency);
        if (named[currency])
            told_fail(t, "a balance is told twice", currency, 0);
        named[currency] = true;
        told[currency] = balances[i]->amount;
    }
    for (uint32_t i = 0; i < SIM_CURRENCIES; i++) {
        if (told[i] != moment->balances[i])
            told_fail(t, "a balance", (uint64_t)told[i], (uint64_t)moment->balances[i]);
    }
}

/* ---- writes ---- */
void told_profile(const struct told *t, const Holdfast__V1__Profile *profile,
                  const struct moment *moment)
{
    if (profile->version != moment->version)
        told_fail(t, "the profile's version", profile->version, moment->version);
    for (size_t i = 0; i < profile->n_balances; i++) {
        uint32_t currency = model_currency(profile->balances[i]->currency);
        if (profile->balances[i]->amount != moment->balances[currency])
            told_fail(t, "a balance", (uint64_t)profile->balances[i]->amount,
                      (uint64_t)moment->balances[currency]);
    }
    if (profile->n_balances > 0) /* They were asked for. */
        told_reserved(t, profile->n_reserved, profile->reserved, moment);
    for (size_t i = 0; i < profile->n_sections; i++)
        told_section(t, profile->sections[i], moment);
    if (profile->item_count != moment->items)
        told_fail(t, "the count of items", profile->item_count, moment->items);
}

/* A transfer is decided at its destination, once and for ever: what stands in that log is told as
 * done before the source has logged it, too. */
static bool is_done(const struct told *t, const struct op_model *op)
{
    return op->state == OP_COMMITTED ||
           (op->state == OP_PENDING && goods_has_arrived(t->sim, t->call->shard, op));
}

const struct op_model *told_life(const struct told *t)
{
    const Holdfast__V1__WriteInfo *const *write = field(t->response, "write");
    const struct op_model *newest = told_op(t);

    CHECK(write != NULL && *write != NULL && newest != NULL);
    return model_life(t->sim->oracle, newest, token_index(t, (*write)->as_of));
}

/* Beside `write` an answer is the outcome, to the byte. */
static void check_body(const struct told *t, const struct op_model *op)
{
    Holdfast__V1__WriteInfo **write =
        (Holdfast__V1__WriteInfo **)(uintptr_t)field(t->response, "write");
    Holdfast__V1__WriteInfo *kept = *write;
    struct buf body = { 0 };

    if (t->call->method == METHOD_START_SESSION) /* It has a profile, too. */
        return;
    *write = NULL;
    size_t size = protobuf_c_message_get_packed_size(t->response);
    protobuf_c_message_pack(t->response, buf_reserve(&body, size + 1));
    body.size = size;
    if (hash_u64(buf_slice(&body)) != op->body_hash)
        told_fail(t, "the answer is not the outcome", size, 0);
    *write = kept;
    buf_deinit(&body);
}

void told_write(const struct told *t)
{
    const Holdfast__V1__WriteInfo *const *write = field(t->response, "write");
    struct op_model *newest = told_op(t);

    CHECK(write != NULL && *write != NULL && newest != NULL);
    uint64_t index = token_index(t, (*write)->as_of);
    const struct op_model *op = model_life(t->sim->oracle, newest, index);
    if (!is_done(t, op)) {
        told_fail(t, "told as done, the log says otherwise", OP_COMMITTED, op->state);
        return;
    }
    t->sim->counts.told_at_decision += op->state == OP_PENDING;
    if (op == newest && newest->told_ms == 0)
        newest->told_ms = t->sim->now_ms;
    if (index != op->index)
        told_fail(t, "the dot", index, op->index);
    if ((*write)->version != op->version)
        told_fail(t, "the version", (*write)->version, op->version);
    uint32_t held = oracle_held_by(t->sim, t->call->shard, index);
    if (op->body_hash != 0 && op->state == OP_COMMITTED)
        check_body(t, op);
    if (index > 0 && held > 0 &&
        ((*write)->replicas_fsynced == 0 || (*write)->replicas_fsynced > held))
        told_fail(t, "how many have it on their disks", (*write)->replicas_fsynced, held);
    oracle_acknowledge(t->sim, t->call->shard,
                       op->settled_index > 0 ? op->settled_index : op->index);
    t->sim->counts.late_packets_applied += t->call->late && !(*write)->duplicate;
}

/* The greatest that a node's clock may show. */
static uint64_t now_ms(const struct told *t)
{
    return SIM_UNIX_MS + t->sim->now_ms + t->sim->clock_ms + SKEW_MS_MAX;
}

void told_status(const struct told *t, const Holdfast__Internal__V1__OperationRecord *status)
{
    uint64_t must_see = t->call->must_see;

    if (receipt_is_id(text_field(t->request, "entity"))) {
        receipt_check_told(t->sim, (const char *)text_field(t->request, "entity").data, must_see,
                           status);
        return;
    }
    struct op_model *newest = told_op(t);
    uint64_t index =
        status->dot != NULL ? oracle_index_of(t->shard, dot_of(status->dot)) : newest->index;
    const struct op_model *op = model_life(t->sim->oracle, newest, index);
    uint64_t decided_index = op->settled_index > 0 ? op->settled_index : op->index;

    switch ((int)status->state) {
    case STATE(COMMITTED):
        if (!is_done(t, op) || index != op->index)
            told_fail(t, "a status of done", STATE(COMMITTED), op->state);
        if (op == newest && newest->told_ms == 0)
            newest->told_ms = t->sim->now_ms;
        oracle_acknowledge(t->sim, t->call->shard, decided_index);
        break;
    case STATE(ABORTED):
        if (!model_was(t->sim->oracle, op, OP_ABORTED))
            told_fail(t, "a status of aborted", STATE(ABORTED), op->state);
        oracle_acknowledge(t->sim, t->call->shard, op->index);
        break;
    case STATE(REFUSED):
        if (op == newest && op->told_ms != 0 && op->told_ms < t->call->came_ms)
            told_fail(t, "a status of refused for what was told as done", op->told_ms,
                      t->call->came_ms);
        if (op->refused_index == 0 && op->before == 0)
            told_fail(t, "a status of refused", STATE(REFUSED), op->state);
        break;
    case STATE(EXPIRED):
        if (op->ms > t->shard->floor_ms || newest->state == OP_PENDING)
            told_fail(t, "a status of expired", op->ms, t->shard->floor_ms);
        break;
    default:
        if ((op->state == OP_COMMITTED || op->state == OP_ABORTED) && decided_index <= must_see &&
            !model_key_may_be_over(t->shard, op, now_ms(t)))
            told_fail(t, "a status of unknown for what was told before", decided_index, must_see);
        /* What callers were told never goes back, though the log says so only later. */
        if (op->told_ms != 0 && op->told_ms < t->call->came_ms && op->state == OP_PENDING)
            told_fail(t, "a status of pending for what was told as done", op->told_ms,
                      t->call->came_ms);
        break;
    }
}

/* ---- reads ---- */

uint64_t told_index(const struct told *t)
{
    const char *const *as_of = field(t->response, "as_of");

    CHECK(as_of != NULL);
    uint64_t index = token_index(t, *as_of);
    t->sim->counts.reads_checked++;
    if (index == 0)
        told_fail(t, "what as_of names was never committed", 0, 0);
    else if (index < t->call->must_see)
        told_fail(t, "the read is stale", index, t->call->must_see);
    else
        oracle_acknowledge(t->sim, t->call->shard, index);
    return index;
}

const struct moment *told_moment(const struct told *t, uint64_t index)
{
    static const struct moment nothing;
    const struct moment *moment = model_at(told_player(t), index);

    return moment != NULL ? moment : &nothing;
}

/* ---- whatever else ---- */
void told_dot(const struct told *t)
{
    const Holdfast__V1__Dot *const *dot = field(t->response, "dot");

    CHECK(dot != NULL);
    uint64_t index = oracle_index_of(t->shard, dot_of(*dot));
    if (index == 0)
        told_fail(t, "the dot was never committed", (*dot)->counter, 0);
    oracle_acknowledge(t->sim, t->call->shard, index);
}

void told_nothing(const struct told *t)
{
    CHECK(t->response != NULL);
}

/* ---- refusals ---- */
static const struct slot *slot_of(const struct told *t)
{
    for (uint32_t i = 0; i < t->sim->node_count; i++) {
        const struct sim_node *node = &t->sim->nodes[i];
        if (t->call >= node->calls && t->call < node->calls + NODE_CALLS_MAX)
            return &node->slots[t->call->shard];
    }
    CHECK(false); /* a call of some node */
}

/* No server holds the player, and whatever its owner proposed when it saw so is applied: no one is
 * left that waits. */
static void check_awake(const struct told *t, const struct player_model *player)
{
    const struct slot *slot = slot_of(t);
    uint32_t place = (uint32_t)(player - t->sim->oracle->players);

    if (player->claim_ms == 0 && slot->touch_seen[place] == player->touched_index &&
        slot->applied_before >= slot->touch_last[place])
        told_fail(t, "a WAIT sleeps on, and no server holds the player since entry",
                  player->touched_index, slot->applied_before);
}

/* Who waits for a player gets it soon after no server holds it. */
static void check_locked(const struct told *t, const struct op_model *op, bool final)
{
    const Holdfast__V1__StartSessionRequest *request = (const void *)t->request;
    const struct player_model *player = told_player(t);
    bool held =
        !incarnation_is_none(player->incarnation) && !model_expired(t->shard, player->incarnation);
    uint64_t since_ms = player->free_ms > t->call->came_ms ? player->free_ms : t->call->came_ms;
    if (t->shard->stalled_ms > since_ms)
        since_ms = t->shard->stalled_ms;

    if (request->mode != HOLDFAST__V1__START_MODE__START_MODE_WAIT || held || player->contained ||
        player->txn != 0)
        return;
    if (!final)
        check_awake(t, player);
    /* A stored refusal is told again as it was. */
    uint64_t refused_ms = final && op != NULL ? op->refused_ms : t->shard->logged_ms;
    if (refused_ms > since_ms + WAIT_GRANTED_MS)
        told_fail(t, "a WAIT is refused, and no server has held the player for so long",
                  refused_ms - since_ms, WAIT_GRANTED_MS);
}

/* An id of the future: more so than clocks differ. */
static void check_early(const struct told *t)
{
    const struct op_model *op = told_op(t);

    if (op != NULL && op->ms == UINT64_MAX)
        return; /* Some methods take no typed id. */
    if (op == NULL || op->ms + 3 * SKEW_MS_MAX < now_ms(t) + OP_ID_AHEAD_MS)
        told_fail(t, "an id is refused as of the future", op != NULL ? op->ms : 0, now_ms(t));
}

/* A shard's first entries are of before ENTRY_KEYS_APPLY_VERSION: they name goods and sections by
 * their places in what was put together from the request. */
static bool is_named_as_before(const Holdfast__Internal__V1__Refusal *detail)
{
    const char *place = strchr(detail->field, '[');

    return detail->final && place != NULL && place[1] >= '0' && place[1] <= '9';
}

static void check_field(const struct told *t, const Holdfast__Internal__V1__Refusal *detail)
{
    const struct method_info *method = method_find(t->call->method);

    if (method->internal || detail->field[0] == 0 || is_named_as_before(detail) ||
        field_path_fits(method->request, detail->field))
        return;
    told_fail(
        t, arena_printf(&t->sim->oracle->arena, "the request has no field \"%s\"", detail->field),
        detail->code, 0);
}

static void check_refusal(const struct told *t, const Holdfast__Internal__V1__Refusal *detail)
{
    if (detail->code == CODE(INVALID_ARGUMENT) && !detail->final) {
        t->sim->counts.invalid_refused++;
        if (strcmp(detail->field, "op_id") == 0)
            check_early(t);
        else if (valid_request(t->call->method, t->request))
            told_fail(t, "a valid request is refused as invalid", detail->code, 0);
    }
    check_field(t, detail);
    if (!error_is_given(t->call->method, detail->code, detail->final))
        told_fail(t, "an error that idl/method_errors.h does not have", detail->code, 0);
    const struct op_model *op = told_op(t);

    if (detail->code == CODE(OPERATION_EXPIRED) && !op->too_old)
        told_fail(t, "told as too old", op->ms, t->shard->floor_ms);
    if (t->call->method == METHOD_START_SESSION && detail->code == CODE(SESSION_LOCKED))
        check_locked(t, op, detail->final);
    if (!detail->final)
        return;
    t->sim->counts.refused_final++;
    if (detail->code == CODE(OPERATION_ABORTED)) {
        if (!model_was(t->sim->oracle, op, OP_ABORTED))
            told_fail(t, "told as aborted", OP_ABORTED, op->state);
        oracle_acknowledge(t->sim, t->call->shard, op->index);
        return;
    }
    if (op->refused_index == 0 && op->before == 0)
        told_fail(t, "a refusal that is not in the log", 0, 1);
}

void oracle_packet(struct sim *sim, const struct sim_op *op)
{
    if (op->id[0] != '\0')
        model_op(sim->oracle, slice_from_text(op->entity), slice_from_text(op->id))->packets++;
}

static uint32_t number_of(const struct method_info *method, const char *name)
{
    const ProtobufCFieldDescriptor *found =
        protobuf_c_message_descriptor_get_field_by_name(method->request, name);

    return found != NULL ? found->id : 0;
}

static struct op_names packed_names(struct op_fields *fields, const struct method_info *method,
                                    struct slice request)
{
    struct reader reader = reader_from(request);
    struct op_names names = { .id = { 0 } };
    struct proto_field field;

    if (fields->method != method)
        *fields = (struct op_fields){ .method = method,
                                      .id = number_of(method, "op_id"),
                                      .player = number_of(method, "player_id"),
                                      .given = number_of(method, "entity") };
    while (proto_scan_next(&reader, &field)) {
        if (field.number == fields->id)
            names.id = field.bytes;
        else if (field.number == fields->player)
            names.player = field.bytes;
        else if (field.number == fields->given)
            names.given = field.bytes;
    }
    CHECK(proto_scan_ended(&reader));
    return names;
}

/* NOT_OWNER says that nothing was done: it may not be said of the only packet of an op that stands
 * in the log. Most answers are that one: the request is not unpacked for it. */
static void check_not_owner(const struct told *t, const struct method_info *method)
{
    if (model_rule(t->sim->oracle, t->call->method)->about_another)
        return;
    struct op_fields *fields = &t->sim->oracle->fields[method->id % ORACLE_FIELDS];
    const struct op_names names = packed_names(fields, method, buf_slice(&t->call->request));
    const struct op_model *op = op_named(t->sim, &names);
    if (op != NULL && op->packets == 1 && (op->state == OP_PENDING || op->state == OP_COMMITTED))
        told_fail(t, "NOT_OWNER for what stands in the log", op->state, OP_NONE);
}

void oracle_answer(struct sim *sim, const struct node_call *call, const struct shard_reply *reply,
                   struct slice body)
{
    const struct method_info *method = method_find(call->method);
    const struct model_rule *rule = model_rule(sim->oracle, call->method);
    struct arena *arena = &sim->oracle->arena;
    struct told t = { .sim = sim, .call = call, .shard = &sim->oracle->shards[call->shard] };

    if (sim->failure[0] != '\0' || sim->damaged || reply->status == REPLY_UNKNOWN ||
        (reply->status == REPLY_NOT_OWNER && method->route != METHOD_MUTATION))
        return;
    if (reply->status == REPLY_NOT_OWNER) {
        check_not_owner(&t, method);
        return;
    }
    arena_reset(arena);
    t.request = arena_unpack(arena, method->request, buf_slice(&call->request));
    CHECK(t.request != NULL);
    if (reply->status == REPLY_REFUSED) {
        const Holdfast__Internal__V1__Refusal *detail =
            (const void *)arena_unpack(arena, &holdfast__internal__v1__refusal__descriptor, body);
        CHECK(detail != NULL);
        check_refusal(&t, detail);
        return;
    }
    t.response = arena_unpack(arena, method_answer(method), body);
    if (t.response == NULL) {
        told_fail(&t, "an answer that cannot be read", body.size, 0);
        return;
    }
    if (!valid_request(call->method, t.request))
        told_fail(&t, "a request that is not valid is answered", call->method, 0);
    else if (rule->told != NULL)
        rule->told(&t);
    else
        told_write(&t);
}
