#include "holdfast/internal/v1/node.pb-c.h"
#include "idl/method.h"
#include "node/core/codec/arena_proto.h"
#include "node/core/session/authority.h"
#include "node/core/shard/shard_internal.h"
#include "runtime/base/check.h"

#define PLAYER_PREFIX      "player:"
#define UNREADABLE_TOLD_MS 30000u

_Static_assert(INCIDENT_BY_SIZE > AUTHORITY_TOLD_BYTES_MAX, "any authority is told whole");

/* NULL: this step has told enough. Valid until the next one is added. */
static struct incident *add(struct shard *shard, enum incident_kind kind,
                            const struct shard_event *event, struct shard_out *out)
{
    if (out->incident_count == INCIDENTS_STEP_MAX)
        return NULL;
    if (out->incident_count == out->incident_capacity) {
        out->incident_capacity = out->incident_capacity > 0 ? out->incident_capacity * 2 : 4;
        out->incidents =
            mem_realloc(out->incidents, sizeof *out->incidents * out->incident_capacity);
    }
    struct incident *incident = &out->incidents[out->incident_count++];
    *incident = (struct incident){
        .kind = kind,
        .shard = shard->number,
        .unix_ms = event->unix_ms,
    };
    return incident;
}

static void name(struct incident *incident, struct slice entity, struct slice op_id)
{
    size_t prefix = sizeof PLAYER_PREFIX - 1;

    if (entity.size > prefix)
        text_copy(incident->player, sizeof incident->player,
                  (struct slice){ entity.data + prefix, entity.size - prefix });
    text_copy(incident->op_id, sizeof incident->op_id, op_id);
}

/* The incident, to say more of it; NULL: there is no room, or no operation. */
static struct incident *tell_operation(struct shard *shard, enum incident_kind kind,
                                       const struct entry *entry, const struct shard_event *event,
                                       struct shard_out *out)
{
    struct incident *incident = add(shard, kind, event, out);
    struct op op;

    if (incident == NULL || op_decode(entry->body, &op) != ERR_OK)
        return NULL;
    incident->method = op.method;
    name(incident, op.entity, op.id.text);
    if (op.authority.kind == AUTHORITY_SYSTEM)
        op.authority.caller = op.caller;
    text_copy(incident->by, sizeof incident->by, authority_text(&shard->arena, &op.authority));
    return incident;
}

static void say_what(struct incident *incident, const char *what)
{
    if (incident != NULL)
        text_copy(incident->what, sizeof incident->what, slice_from_text(what));
}

/* Transfers that an earlier owner of this shard had opened. */
static void tell_settled(struct shard *shard, const struct outcome *outcome,
                         const struct shard_event *event, struct shard_out *out)
{
    for (uint32_t i = 0; i < outcome->channel.settled_count; i++) {
        const struct settled *settled = &outcome->channel.settled[i];
        if (settled->dot.epoch >= rep_epoch(shard->rep))
            continue;
        struct incident *incident = add(shard, INCIDENT_RECONCILED, event, out);
        if (incident == NULL)
            return;
        const char *what = settled->cancelled ? "transfer_sealed"
                           : settled->refused ? "transfer_refunded"
                                              : "transfer_settled";
        if (settled->receipt)
            what = settled->cancelled ? "receipt_sealed"
                   : settled->refused ? "receipt_refused"
                                      : "receipt_settled";
        incident->method = settled->method;
        name(incident, settled->entity, settled->op_id);
        text_copy(incident->what, sizeof incident->what, slice_from_text(what));
    }
}

static void tell_freed(struct shard *shard, const struct entry *entry,
                       const struct outcome *outcome, const struct shard_event *event,
                       struct shard_out *out)
{
    struct op op;

    if (outcome->method == METHOD_SESSION_DUE)
        say_what(tell_operation(shard, INCIDENT_RECONCILED, entry, event, out), "session_freed");
    if (outcome->method != METHOD_EXPIRE_SERVER || op_decode(entry->body, &op) != ERR_OK)
        return;
    const Holdfast__Internal__V1__ExpireServerRequest *request = (const void *)arena_unpack(
        &shard->arena, &holdfast__internal__v1__expire_server_request__descriptor, op.request);
    struct incident *incident = add(shard, INCIDENT_RECONCILED, event, out);
    if (incident == NULL || request == NULL)
        return;
    incident->method = outcome->method;
    text_copy(incident->what, sizeof incident->what, SLICE_LITERAL("server_expired"));
    text_copy(incident->op_id, sizeof incident->op_id, slice_from_text(request->incarnation));
}

/* Only what is contained now: a second report of the same is none. */
static void tell_contained(struct shard *shard, const struct entry *entry,
                           const struct outcome *outcome, const struct shard_event *event,
                           struct shard_out *out)
{
    struct op op;

    if (outcome->body.size == 0 || op_decode(entry->body, &op) != ERR_OK)
        return;
    const Holdfast__Internal__V1__ContainPlayerRequest *request = (const void *)arena_unpack(
        &shard->arena, &holdfast__internal__v1__contain_player_request__descriptor, op.request);
    struct incident *incident = add(shard, INCIDENT_CONTAINED, event, out);
    if (incident == NULL || request == NULL)
        return;
    text_copy(incident->player, sizeof incident->player, slice_from_text(request->player_id));
    text_copy(incident->op_id, sizeof incident->op_id, slice_from_text(request->op_id));
    text_copy(incident->what, sizeof incident->what, slice_from_text(request->reason));
}

void incident_applied(struct shard *shard, const struct entry *entry, const struct outcome *outcome,
                      const struct shard_event *event, struct shard_out *out)
{
    if (entry->kind != ENTRY_OP)
        return;
    if (outcome->duplicate)
        (void)tell_operation(shard, INCIDENT_DUPLICATE_ATTEMPT, entry, event, out);
    if (outcome->stale_write)
        (void)tell_operation(shard, INCIDENT_STALE_WRITE_REFUSED, entry, event, out);
    if (outcome->session_freed)
        tell_freed(shard, entry, outcome, event, out);
    if (outcome->method == METHOD_CONTAIN_PLAYER)
        tell_contained(shard, entry, outcome, event, out);
    if (outcome->method == METHOD_RELEASE_QUARANTINE && !outcome->duplicate &&
        outcome->kind == OUTCOME_COMMITTED)
        (void)tell_operation(shard, INCIDENT_RELEASED, entry, event, out);
    tell_settled(shard, outcome, event, out);
}

void incident_unreadable(struct shard *shard, const struct damage *damage,
                         const struct shard_event *event, struct shard_out *out)
{
    if (event->now_ms < shard->unreadable_ms)
        return;
    struct incident *incident = add(shard, INCIDENT_CONTAINED, event, out);
    if (incident == NULL)
        return;
    shard->unreadable_ms = event->now_ms + UNREADABLE_TOLD_MS;
    text_copy(incident->player, sizeof incident->player, slice_from_text(damage->player));
    text_copy(incident->what, sizeof incident->what, slice_from_text(damage->reason));
}

void incident_resumed(struct shard *shard, const struct shard_event *event, struct shard_out *out)
{
    uint64_t open = shard_meta(shard)->outbox_open;

    if (open == 0)
        return;
    struct incident *incident = add(shard, INCIDENT_RECONCILED, event, out);
    if (incident == NULL)
        return;
    incident->count = open;
    text_copy(incident->what, sizeof incident->what, SLICE_LITERAL("transfers_resumed"));
}

void incident_orphans(struct shard *shard, const struct shard_event *event, struct shard_out *out)
{
    for (uint32_t i = 0; i < out->rep.orphan_count; i++) {
        if (out->rep.orphans[i]->kind == ENTRY_OP)
            say_what(tell_operation(shard, INCIDENT_RECONCILED, out->rep.orphans[i], event, out),
                     "orphan_truncated");
    }
}
