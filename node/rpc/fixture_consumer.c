#include "node/rpc/fixture_consumer.h"

#include <stdio.h>

#include "holdfast/v1/events.pb-c.h"
#include "runtime/cluster/event_cursor.h"
#include "runtime/cluster/placement.h"

void fixture_consumer_name(const struct fixture *f, char ret_name[FIXTURE_CONSUMER_SIZE])
{
    char entity[FIXTURE_CONSUMER_SIZE + 16];
    uint32_t number = 0;

    do {
        snprintf(ret_name, FIXTURE_CONSUMER_SIZE, "reader-%u", number++);
        snprintf(entity, sizeof entity, "consumer:%s", ret_name);
    } while (f->shard_count > 0 &&
             shard_of_entity(slice_from_text(entity), f->shard_count) != f->shard);
}

static void commit(struct fixture *f, char *name, uint64_t version)
{
    Holdfast__V1__CommitConsumerRequest request = HOLDFAST__V1__COMMIT_CONSUMER_REQUEST__INIT;
    struct event_cursor cursor;
    struct arena arena = { 0 };

    event_cursor_init(&cursor, f->shard_count, &arena);
    request.consumer = name;
    request.op_id = fixture_op_id(f);
    request.version = version;
    request.cursor = event_cursor_print(&cursor, &arena);
    (void)fixture_mutate(f, METHOD_COMMIT_CONSUMER, &request.base);
    arena_deinit(&arena);
}

void fixture_consume_all(struct fixture *f)
{
    Holdfast__V1__CreateConsumerRequest create = HOLDFAST__V1__CREATE_CONSUMER_REQUEST__INIT;
    Holdfast__V1__GetConsumerRequest get = HOLDFAST__V1__GET_CONSUMER_REQUEST__INIT;
    Holdfast__V1__ListConsumersRequest list = HOLDFAST__V1__LIST_CONSUMERS_REQUEST__INIT;
    char name[FIXTURE_CONSUMER_SIZE];

    fixture_consumer_name(f, name);
    create.consumer = get.consumer = name;
    create.op_id = fixture_op_id(f);
    create.entity_prefix = (char *)(uintptr_t) "player:";
    (void)fixture_mutate(f, METHOD_CREATE_CONSUMER, &create.base);
    const Holdfast__V1__GetConsumerResponse *told = fixture_read(f, METHOD_GET_CONSUMER, &get.base);
    commit(f, name, told != NULL ? told->consumer->version : 1);
    (void)fixture_read(f, METHOD_LIST_CONSUMERS, &list.base);
}
