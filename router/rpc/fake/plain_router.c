#include "router/rpc/fake/plain_router.h"

#include "idl/error_code.h"
#include "runtime/base/check.h"

#define PLAYER_CALLER 7u

void plain_router_init(struct plain_router *plain, uint32_t shards,
                       const struct router_options *options)
{
    static const struct log errors = { .level_min = LOG_ERROR };
    struct router_options all = *options;

    CHECK(loop_new(&plain->loop) == ERR_OK);
    fake_cluster_init(&plain->fake, shards);
    all.cluster = "test";
    if (all.log == NULL)
        all.log = &errors;
    all.loop = plain->loop;
    all.map = plain->fake.map;
    all.port = fake_cluster_port(&plain->fake);
    all.caller = caller_new(
        &(struct caller_options){ .loop = all.loop, .map = all.map, .port = all.port, .seed = 1 });
    router_init(&plain->router, &all);
}

void plain_router_deinit(struct plain_router *plain)
{
    struct plain_ask *ask;

    /* Of a test that leaves some open, or has failed. */
    for (ask = plain->asks; ask != NULL; ask = ask->next) {
        if (ask->answers == 0)
            router_cancel(&plain->router, &ask->request);
    }
    caller_free(plain->router.options.caller);
    router_deinit(&plain->router);
    fake_cluster_deinit(&plain->fake);
    for (ask = plain->asks; ask != NULL; ask = ask->next)
        arena_deinit(&ask->arena);
    loop_free(plain->loop);
}

void plain_router_answer_all(struct plain_router *plain)
{
    for (uint32_t i = 0; i < plain->fake.call_count; i++) {
        if (plain->fake.calls[i].open)
            fake_cluster_answer(&plain->fake, i, WIRE_OK, (struct slice){ 0 });
    }
}

void plain_router_send(struct plain_router *plain, struct plain_ask *ask, enum method_id method,
                       const ProtobufCMessage *message, uint32_t wait_ms)
{
    bool is_first = ask->request.method == NULL;

    CHECK(is_first || ask->answers > 0);
    if (is_first) {
        ask->next = plain->asks;
        plain->asks = ask;
    }
    ask->answers = 0;
    ask->code = CODE(UNSPECIFIED);
    ask->request = (struct request){ .door = plain->door,
                                     .origin = ask,
                                     .method = method_find(method),
                                     .message = plain_message_copy(message, &ask->arena),
                                     .arena = &ask->arena,
                                     .deadline_ms = loop_now_ms(plain->loop) + wait_ms,
                                     .scopes = SCOPES_ALL,
                                     .player = ask->player,
                                     .caller = ask->player != NULL ? PLAYER_CALLER : 0,
                                     .peer = "test" };
    router_dispatch(&plain->router, &ask->request);
}

void plain_ask_fail(struct request *request, const Holdfast__V1__ErrorDetail *detail)
{
    struct plain_ask *ask = request->origin;

    ask->answers++;
    ask->code = detail->code;
}

static void *take(void *arena, size_t size)
{
    return arena_alloc(arena, size);
}

static void leave(void *arena, void *memory)
{
    (void)arena;
    (void)memory;
}

void *plain_message_read(const ProtobufCMessageDescriptor *type, struct slice bytes,
                         struct arena *arena)
{
    ProtobufCAllocator allocator = { take, leave, arena };

    return protobuf_c_message_unpack(type, &allocator, bytes.size, bytes.data);
}

void *plain_message_copy(const ProtobufCMessage *message, struct arena *arena)
{
    size_t size = protobuf_c_message_get_packed_size(message);
    uint8_t *bytes = arena_alloc(arena, size);

    (void)protobuf_c_message_pack(message, bytes);
    void *copy = plain_message_read(message->descriptor, (struct slice){ bytes, size }, arena);
    CHECK(copy != NULL);
    return copy;
}
