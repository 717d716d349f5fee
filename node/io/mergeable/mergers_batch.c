/* Batches that go whole: each element is carried out by itself, at the replica of its shard, and
 * all are answered at once. */
#include "idl/method.h"
#include "node/core/codec/proto_scan.h"
#include "node/core/shard/request_shard.h"
#include "node/io/mergeable/mergers_internal.h"

#define FIELD_REQUESTS 1u
#define TAG_RESULTS    0x0au
#define TAG_RESPONSE   0x0au
#define TAG_ERROR      0x12u
/* Reads beyond are not begun: the router asks for them one by one, as its own answer has room. */
#define ANSWER_BYTES_MAX (1024u * 1024u)
#define FULL_BYTES_MAX   (3u * 1024u * 1024u) /* With the last one. A frame holds it. */

static const char no_room[] = "the answer of this node has no room for this one";

struct batch {
    struct mergers *mergers;
    const struct method_info *element;
    const struct document_method *method;
    struct buf answer;
};

static size_t compact_size(uint64_t number)
{
    size_t size = 1;

    for (; number >= 0x80; number >>= 7)
        size++;
    return size;
}

static bool has_room(const struct batch *batch, struct slice response)
{
    return batch->element->writes || batch->answer.size == 0 ||
           batch->answer.size + response.size <= FULL_BYTES_MAX;
}

static void put(struct batch *batch, uint8_t tag, struct slice bytes)
{
    buf_put_u8(&batch->answer, TAG_RESULTS);
    buf_put_compact(&batch->answer, 1 + compact_size(bytes.size) + bytes.size);
    buf_put_u8(&batch->answer, tag);
    buf_put_compact(&batch->answer, bytes.size);
    buf_append(&batch->answer, bytes.data, bytes.size);
}

static void put_refusal(struct batch *batch, const struct refusal *refusal)
{
    put(batch, TAG_ERROR, refusal_pack(refusal, &batch->mergers->arena));
}

static void put_unavailable(struct batch *batch, const char *message)
{
    put_refusal(batch, &(struct refusal){
                           .code = CODE(UNAVAILABLE), .message = message, .retry_after_ms = 200 });
}

/* A write is answered from memory: its end is among what the core has put out. */
static void put_written(struct batch *batch, const struct merge_replica *replica,
                        const struct document_begun *begun)
{
    struct buf written = { 0 };

    for (uint32_t i = 0; i < replica->out.done_count; i++) {
        const struct merge_done *done = &replica->out.done[i];

        if (done->ticket != begun->ticket || done->result != ERR_OK || begun->context == NULL)
            continue;
        document_written(begun->context, done->replicas, &written);
        buf_append(&written, begun->more.data, begun->more.size);
        put(batch, TAG_RESPONSE, buf_slice(&written));
        buf_deinit(&written);
        return;
    }
    put_refusal(batch, &(struct refusal){ .code = CODE(OUTCOME_UNKNOWN),
                                          .message = "the write waits for others" });
}

static void carry_out(struct batch *batch, uint32_t shard, struct slice request)
{
    struct mergers *mergers = batch->mergers;
    struct refusal refusal = { 0 };
    struct document_begun begun = { 0 };
    const char *bars = mergers_bars(mergers, shard, batch->element->writes);
    const struct merge_replica *replica = bars == NULL ? mergers_need(mergers, shard) : NULL;

    if (replica == NULL) {
        put_unavailable(batch, bars != NULL ? bars : "this node is not a member of the shard");
        return;
    }
    struct slice entity = mergers_entity(mergers, batch->element, request);

    if (!mergers_disk_is_behind(mergers))
        mergers_erase(mergers, shard, entity);
    struct document_context context = mergers_context(mergers, shard, entity, &refusal);

    if (batch->method->begin(&context, request, &begun) != ERR_OK)
        put_refusal(batch, &refusal);
    else if (begun.ticket != 0)
        put_written(batch, replica, &begun);
    else if (!has_room(batch, begun.answer))
        put_unavailable(batch, no_room);
    else
        put(batch, TAG_RESPONSE, begun.answer);
}

static void take_element(struct batch *batch, struct slice request)
{
    struct mergers *mergers = batch->mergers;
    struct refusal refusal = { 0 };
    uint32_t shard;

    if (!batch->element->writes && batch->answer.size > ANSWER_BYTES_MAX) {
        put_unavailable(batch, no_room);
        return;
    }
    if (request_shard(batch->element->id, request, mergers->options.shard_count, &shard,
                      &refusal) != ERR_OK) {
        put_refusal(batch, &refusal);
        return;
    }
    mergers->calls++;
    if (!mergers_is_member(mergers, shard)) {
        put_unavailable(batch, "this node is not a member of the shard");
        return;
    }
    carry_out(batch, shard, request);
    if (mergers->shards[shard].replica != NULL && mergers->shards[shard].started)
        mergers_drain(mergers, shard);
}

/* How many elements; 0: the bytes are no such batch. */
static uint32_t count_elements(struct slice bytes)
{
    struct reader reader = reader_from(bytes);
    struct proto_field field;
    uint32_t count = 0;

    while (proto_scan_next(&reader, &field))
        count += field.number == FIELD_REQUESTS && field.is_bytes;
    return proto_scan_ended(&reader) ? count : 0;
}

err mergers_batch(struct mergers *mergers, const struct mergers_request *request)
{
    const struct method_info *method = method_find(request->method);
    struct reader reader = reader_from(request->bytes);
    struct proto_field field;
    struct batch batch = { .mergers = mergers, .element = method_find(method->element) };
    uint32_t count = count_elements(request->bytes);

    if (mergers->stopping)
        return ERR_NOT_FOUND;
    if (!mergers_fits(mergers, method->writes))
        return ERR_FULL;
    arena_reset(&mergers->arena);
    if (count == 0 || count > method->most) {
        mergers_refuse_unavailable(mergers, request->call,
                                   "this member cannot take the batch as a whole");
        return ERR_OK;
    }
    batch.method = document_method_find(method->element);
    while (proto_scan_next(&reader, &field)) {
        if (field.number == FIELD_REQUESTS && field.is_bytes)
            take_element(&batch, field.bytes);
    }
    mergers_answer(mergers, request->call, REPLY_OK, buf_slice(&batch.answer));
    buf_deinit(&batch.answer);
    return ERR_OK;
}
