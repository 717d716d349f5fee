#include "router/rpc/fake/fake_cluster.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/check.h"

#define CLUSTER "test"

static void put(struct fake_cluster *fake, struct cluster_key key, struct buf *value)
{
    struct record_error why;

    fake->revision++;
    CHECK(shard_map_apply(fake->map,
                          &(struct shard_map_event){ .key = cluster_key_slice(&key),
                                                     .value = buf_slice(value),
                                                     .create_revision = fake->revision,
                                                     .mod_revision = fake->revision },
                          NULL, &why) == ERR_OK);
    buf_deinit(value);
}

static void put_node(struct fake_cluster *fake, uint64_t replica_id)
{
    struct node_record node = {
        .replica_id = replica_id, .zone = "z", .version = "test", .started_at_ms = 1
    };
    struct buf value = { 0 };

    (void)snprintf(node.name, sizeof node.name, "node-%u", (unsigned)replica_id);
    (void)snprintf(node.address, sizeof node.address, "127.0.0.1:%u", 7000 + (unsigned)replica_id);
    (void)snprintf(node.peer_address, sizeof node.peer_address, "127.0.0.1:%u",
                   8000 + (unsigned)replica_id);
    node_record_encode(&node, &value);
    put(fake, cluster_key_node(CLUSTER, replica_id), &value);
}

void fake_cluster_elect(struct fake_cluster *fake)
{
    const struct coordinator_record record = { .name = "c", .address = "h:1" };
    struct cluster_key key = cluster_key_election_prefix(CLUSTER);
    struct buf value = { 0 };
    size_t used = strlen(key.text);

    (void)snprintf(key.text + used, sizeof key.text - used, "1");
    coordinator_record_encode(&record, &value);
    put(fake, key, &value);
}

void fake_cluster_set_owner(struct fake_cluster *fake, uint32_t shard, uint64_t owner,
                            uint64_t epoch)
{
    const struct shard_record record = { .generation = 1,
                                         .epoch = epoch,
                                         .owner = owner,
                                         .config = 1,
                                         .member_count = 3,
                                         .members = { 1, 2, 3 } };
    struct buf value = { 0 };

    shard_record_encode(&record, &value);
    put(fake, cluster_key_shard(CLUSTER, shard), &value);
}

void fake_cluster_init(struct fake_cluster *fake, uint32_t shard_count)
{
    const struct cluster_record cluster = {
        .cluster_id = "01890000-0000-7000-8000-000000000001",
        .generation = 1,
        .shard_count = shard_count,
        .replication_factor = 3,
        .created_by = "test",
    };
    struct buf value = { 0 };

    *fake = (struct fake_cluster){ .map = shard_map_new(CLUSTER) };
    cluster_record_encode(&cluster, &value);
    put(fake, cluster_key_cluster(CLUSTER), &value);
    for (uint64_t node = 1; node <= 3; node++)
        put_node(fake, node);
    for (uint32_t shard = 0; shard < shard_count; shard++)
        fake_cluster_set_owner(fake, shard, 1, 1);
}

void fake_cluster_deinit(struct fake_cluster *fake)
{
    for (uint32_t i = 0; i < fake->call_count; i++)
        free((void *)(uintptr_t)fake->calls[i].body.data);
    shard_map_free(fake->map);
}

static err start(void *context, uint64_t replica_id, const struct call_request *request,
                 uint64_t *ret_call)
{
    struct fake_cluster *fake = context;
    struct fake_call *call = &fake->calls[fake->call_count];
    uint8_t *body = mem_alloc(request->body.size + 1);

    CHECK(replica_id < FAKE_NODES_MAX);
    if (fake->down[replica_id]) {
        free(body);
        return ERR_UNAVAILABLE;
    }
    CHECK(fake->call_count < FAKE_CALLS_MAX);
    if (request->body.size > 0)
        memcpy(body, request->body.data, request->body.size);
    *call = (struct fake_call){ .node = replica_id,
                                .handle = ++fake->call_count,
                                .method = request->method,
                                .priority = request->priority,
                                .asker = request->asker,
                                .deadline_ms = request->deadline_ms,
                                .body = { body, request->body.size },
                                .open = true,
                                .done = request->done,
                                .user = request->user };
    *ret_call = call->handle;
    return ERR_OK;
}

static void cancel(void *context, uint64_t handle)
{
    struct fake_cluster *fake = context;
    struct fake_call *call = &fake->calls[handle - 1];

    CHECK(call->open);
    call->open = false;
    call->cancelled = true;
}

static bool takes_callers(void *context, uint64_t replica_id)
{
    const struct fake_cluster *fake = context;

    CHECK(replica_id < FAKE_NODES_MAX);
    return !fake->older[replica_id];
}

static bool reaches(void *context, uint64_t replica_id)
{
    const struct fake_cluster *fake = context;

    CHECK(replica_id < FAKE_NODES_MAX);
    return !fake->down[replica_id];
}

struct node_port fake_cluster_port(struct fake_cluster *fake)
{
    return (struct node_port){ start, cancel, takes_callers, reaches, fake };
}

void fake_cluster_answer(struct fake_cluster *fake, uint32_t place, uint16_t status,
                         struct slice body)
{
    struct fake_call *call = &fake->calls[place];
    const struct frame frame = { .kind = FRAME_RESPONSE, .status = status, .body = body };

    CHECK(place < fake->call_count && call->open);
    call->open = false;
    call->done(call->user, ERR_OK, &frame);
}

void fake_cluster_fail(struct fake_cluster *fake, uint32_t place, err result)
{
    struct fake_call *call = &fake->calls[place];

    CHECK(place < fake->call_count && call->open);
    call->open = false;
    call->done(call->user, result, NULL);
}
