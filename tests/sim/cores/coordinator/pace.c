#include "tests/sim/cores/coordinator/pace.h"

#include <stdlib.h>

#include "idl/method.h"
#include "runtime/base/check.h"

/* ---- what is kept ---- */

static void keep_shard(struct pace_write *kept, const struct coord_write *write)
{
    if (write->remove)
        return;
    CHECK(shard_record_decode(write->value, &kept->shard, NULL) == ERR_OK);
}

static void keep_server(struct pace_write *kept, const struct coord_write *write)
{
    struct server_record record;

    if (write->remove)
        return;
    CHECK(server_record_decode(write->value, &record, NULL) == ERR_OK);
    kept->expiring = record.state == SERVER_EXPIRING;
    kept->held_ms = record.held_since_ms;
}

static void wrote(void *user, const struct coord_write *write)
{
    struct pace *pace = user;
    struct cluster_key_parts parts = cluster_key_parse(PACE_CLUSTER, write->key);

    CHECK(pace->write_count < PACE_MAX);
    struct pace_write *kept = &pace->writes[pace->write_count++];

    *kept =
        (struct pace_write){ .at_ms = pace_now(pace), .kind = parts.kind, .remove = write->remove };
    switch (parts.kind) {
    case CLUSTER_KEY_SHARD:
        kept->id = parts.shard;
        if (world_revision_of(pace->world, write->key) > 0)
            kept->before = world_shard(pace->world, parts.shard).owner;
        keep_shard(kept, write);
        break;
    case CLUSTER_KEY_SHARD_WISH:
        kept->id = parts.shard;
        break;
    case CLUSTER_KEY_NODE_WISH:
        kept->id = parts.replica_id;
        break;
    case CLUSTER_KEY_SERVER_KNOWN:
        kept->id = parts.incarnation.revision;
        keep_server(kept, write);
        break;
    default:
        break;
    }
}

static uint64_t expired_by(const struct coord_call *call)
{
    struct incarnation incarnation;
    Holdfast__Internal__V1__ExpireServerRequest *request =
        holdfast__internal__v1__expire_server_request__unpack(NULL, call->body.size,
                                                              call->body.data);

    CHECK(request != NULL);
    CHECK(incarnation_parse(slice_from_text(request->incarnation), &incarnation) == ERR_OK);
    holdfast__internal__v1__expire_server_request__free_unpacked(request, NULL);
    return incarnation.revision;
}

static void called(void *user, const struct coord_call *call)
{
    struct pace *pace = user;

    CHECK(pace->call_count < PACE_MAX);
    pace->calls[pace->call_count++] = (struct pace_call){
        .at_ms = pace_now(pace),
        .method = call->method,
        .shard = call->shard,
        .id = call->method == METHOD_EXPIRE_SERVER ? expired_by(call) : 0,
    };
}

static void sent(void *user, const struct coord_txn *txn)
{
    struct pace *pace = user;

    CHECK(pace->sent_count < PACE_MAX);
    pace->sent[pace->sent_count++] =
        (struct pace_sent){ pace_now(pace), txn->ticket, txn->write_count };
}

/* ---- time ---- */

struct pace *pace_new(struct rsim *sim)
{
    struct pace *pace = mem_zalloc(sizeof *pace);

    pace->sim = sim;
    pace->world = world_new();
    pace->world->limits.audit_interval_ms = 0;
    pace->world->limits.rebalance = 0;
    pace->world->limits.load_exchange_ms = 0;
    pace->world->limits.claim_calm_ms = 1000; /* Less than pace_begin takes. */
    pace->world->watch =
        (struct world_watch){ .user = pace, .sent = sent, .wrote = wrote, .called = called };
    return pace;
}

void pace_free(struct pace *pace)
{
    world_free(pace->world);
    free(pace);
}

void pace_clear(struct pace *pace)
{
    pace->write_count = pace->call_count = pace->sent_count = 0;
}

void pace_begin(struct pace *pace)
{
    world_replace_coordinator(pace->world);
    world_start(pace->world);
    pace->world->tick_ms = 1;
    pace_clear(pace);
}

void pace_begin_empty(struct pace *pace)
{
    world_replace_coordinator(pace->world);
    pace->world->tick_ms = 1;
    pace_clear(pace);
}

void pace_run(struct pace *pace, uint64_t ms)
{
    world_run(pace->world, ms);
}

void pace_tick(struct pace *pace)
{
    pace->world->now_ms++;
    world_step(pace->world, (struct coord_event){ .type = COORD_TICK });
}

uint32_t pace_answer(struct pace *pace, uint16_t method, enum wire_status status)
{
    struct coord_out out = pace->world->out;
    uint32_t count = 0;

    pace->world->out = (struct coord_out){ 0 };
    for (uint32_t i = 0; i < out.call_count; i++) {
        if (out.calls[i].method != method)
            continue;
        count++;
        world_step(pace->world, (struct coord_event){ .type = COORD_CALL_DONE,
                                                      .call = out.calls[i].call,
                                                      .status = status });
    }
    coord_out_deinit(&out);
    return count;
}

/* ---- what was kept ---- */

const struct pace_write *pace_write_of(const struct pace *pace, enum cluster_key_kind kind,
                                       uint64_t id)
{
    for (uint32_t i = 0; i < pace->write_count; i++) {
        if (pace->writes[i].kind == kind && pace->writes[i].id == id)
            return &pace->writes[i];
    }
    return NULL;
}

uint64_t pace_marked_ms(const struct pace *pace, uint64_t server)
{
    for (uint32_t i = 0; i < pace->write_count; i++) {
        const struct pace_write *write = &pace->writes[i];

        if (write->kind == CLUSTER_KEY_SERVER_KNOWN && write->id == server && write->expiring)
            return write->at_ms;
    }
    return PACE_NEVER;
}

uint64_t pace_called_ms(const struct pace *pace, uint16_t method, uint32_t shard, uint32_t n)
{
    for (uint32_t i = 0; i < pace->call_count; i++) {
        if (pace->calls[i].method == method && pace->calls[i].shard == shard && n-- == 0)
            return pace->calls[i].at_ms;
    }
    return PACE_NEVER;
}
