#include "node/core/codec/op.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "idl/limit.h"
#include "runtime/base/check.h"
#include "runtime/base/utf8.h"

#define OP_VERSION        1u
#define OP_VERSION_CALLED 2u /* Behind the request stands the caller. */
#define TYPED_BYTES_MIN   1u
#define TYPED_BYTES_MAX   150u
#define SCOPE_BYTES_MAX   16u
#define REQUEST_BYTES_MAX LIMIT_REQUEST_BYTES

enum id_kind { ID_NONE, ID_UUID, ID_TYPED };

static struct slice read_short(struct reader *reader, size_t size_max)
{
    size_t size = read_u8(reader);
    if (size > size_max)
        reader->bad = true;
    return read_raw(reader, size);
}

static void put_id(const struct op_id *id, struct buf *out)
{
    buf_put_u8(out, id->text.size == 0 ? ID_NONE : id->typed ? ID_TYPED : ID_UUID);
    if (id->text.size > 0)
        buf_put_short(out, id->text);
}

static void put_authority(const struct authority *authority, struct buf *out)
{
    buf_put_u8(out, (uint8_t)authority->kind);
    if (authority->kind == AUTHORITY_SESSION) {
        buf_put_u64(out, authority->incarnation.generation);
        buf_put_u64(out, authority->incarnation.revision);
        buf_put_u64(out, authority->fence);
    }
    if (authority->kind == AUTHORITY_SYSTEM)
        buf_put_short(out, authority->scope);
}

void op_encode(const struct op *op, struct buf *out)
{
    CHECK(op->method <= UINT16_MAX);
    CHECK(op->entity.size <= ENTITY_BYTES_MAX);
    CHECK(op->id.text.size <= OP_ID_BYTES_MAX);
    CHECK(op->caller.size == 0 || caller_name_is_good(op->caller));
    (void)buf_reserve(out,
                      op->request.size + op->entity.size + op->id.text.size + op->caller.size + 64);
    buf_put_u8(out, op->caller.size > 0 ? OP_VERSION_CALLED : OP_VERSION);
    buf_put_u16(out, (uint16_t)op->method);
    buf_put_u32(out, op->attempt);
    buf_put_u64(out, op->cut_id);
    put_authority(&op->authority, out);
    put_id(&op->id, out);
    buf_put_short(out, op->entity);
    buf_put_bytes(out, op->request);
    if (op->caller.size > 0)
        buf_put_short(out, op->caller);
}

static void read_authority(struct reader *reader, struct authority *authority)
{
    uint8_t kind = read_u8(reader);

    if (kind > AUTHORITY_UNHELD)
        reader->bad = true;
    authority->kind = (enum authority_kind)kind;
    if (kind == AUTHORITY_SESSION) {
        authority->incarnation.generation = read_u64(reader);
        authority->incarnation.revision = read_u64(reader);
        authority->fence = read_u64(reader);
    }
    if (kind == AUTHORITY_SYSTEM)
        authority->scope = read_short(reader, SCOPE_BYTES_MAX);
}

static void read_id(struct reader *reader, struct op_id *id)
{
    const char *why;
    uint8_t kind = read_u8(reader);

    if (kind > ID_TYPED)
        reader->bad = true;
    if (kind == ID_NONE || reader->bad)
        return;
    if (op_id_parse(read_short(reader, OP_ID_BYTES_MAX), id, &why) != ERR_OK)
        reader->bad = true;
    else if (id->typed != (kind == ID_TYPED))
        reader->bad = true;
}

static void read_caller(struct reader *reader, struct op *op)
{
    op->caller = read_short(reader, CALLER_NAME_BYTES_MAX);
    if (!caller_name_is_good(op->caller))
        reader->bad = true;
    if (op->authority.kind == AUTHORITY_SYSTEM)
        op->authority.caller = op->caller;
}

bool entity_has_kind(struct slice entity)
{
    return entity.size > 0 && memchr(entity.data, ':', entity.size) != NULL;
}

err op_decode(struct slice bytes, struct op *ret_op)
{
    struct reader reader = reader_from(bytes);
    struct op op;

    memset(&op, 0, sizeof op);
    uint8_t version = read_u8(&reader);
    if (version != OP_VERSION && version != OP_VERSION_CALLED)
        return ERR_CORRUPT;
    op.method = read_u16(&reader);
    op.attempt = read_u32(&reader);
    op.cut_id = read_u64(&reader);
    read_authority(&reader, &op.authority);
    read_id(&reader, &op.id);
    op.entity = read_short(&reader, ENTITY_BYTES_MAX);
    op.request = read_bytes(&reader, REQUEST_BYTES_MAX);
    if (version == OP_VERSION_CALLED)
        read_caller(&reader, &op);
    if (reader_finish(&reader) != ERR_OK || (op.entity.size > 0 && !entity_has_kind(op.entity)))
        return ERR_CORRUPT;
    op.payload = op_payload(op.method, op.request);
    *ret_op = op;
    return ERR_OK;
}

struct hash128 op_payload(uint32_t method, struct slice request)
{
    struct hash128 number = { { 0 } };

    store_u32(number.bytes, method);
    return hash_chain(number, request, (struct slice){ 0 });
}

/* "match:<id>:<ver>": the version says which result of a match, so it may not be left out. */
static bool has_two_parts(struct slice rest)
{
    const uint8_t *colon = memrchr(rest.data, ':', rest.size);
    return colon != NULL && colon > rest.data && colon + 1 < rest.data + rest.size;
}

static err typed_parse(struct slice text, struct op_id *ret_id, const char **ret_why)
{
    static const char *const kinds[] = {
        "receipt:", "claim:", "match:", "admin:", "season:", "key:"
    };

    for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
        if (!slice_begins_with(text, slice_from_text(kinds[i])))
            continue;
        size_t size = strlen(kinds[i]);
        struct slice rest = { text.data + size, text.size - size };
        if (rest.size < TYPED_BYTES_MIN || rest.size > TYPED_BYTES_MAX) {
            *ret_why = "a kind of op_id with 1 to 150 bytes behind it";
            return ERR_INVALID;
        }
        if (!ascii_is_visible(rest)) {
            *ret_why = "printable ASCII without spaces behind the kind of the op_id";
            return ERR_INVALID;
        }
        if (slice_begins_with(text, SLICE_LITERAL("match:")) && !has_two_parts(rest)) {
            *ret_why = "match:<id>:<ver>";
            return ERR_INVALID;
        }
        *ret_id = (struct op_id){ .typed = true,
                                  .is_key = slice_begins_with(text, SLICE_LITERAL("key:")),
                                  .text = text };
        return ERR_OK;
    }
    *ret_why = "a UUIDv7, or receipt:<id>, claim:<id>, match:<id>:<ver>, admin:<id>, season:<id>, "
               "key:<anything>";
    return ERR_INVALID;
}

err op_id_parse(struct slice text, struct op_id *ret_id, const char **ret_why)
{
    struct uuid uuid;

    if (text.size == 0) {
        *ret_why = "an op_id, under which a retry finds the same outcome";
        return ERR_INVALID;
    }
    if (uuid_parse(text, &uuid) != ERR_OK)
        return typed_parse(text, ret_id, ret_why);
    if (!uuid_is_v7(&uuid)) {
        *ret_why = "a UUID of version 7, which carries the time it was made, or a typed op_id";
        return ERR_INVALID;
    }
    *ret_id = (struct op_id){ .uuid = uuid, .text = text };
    return ERR_OK;
}

err token_parse(struct slice text, struct incarnation *ret_incarnation, uint64_t *ret_fence)
{
    const uint8_t *dash = text.size > 0 ? memrchr(text.data, '-', text.size) : NULL;
    struct incarnation incarnation;
    uint64_t fence;

    if (dash == NULL)
        return ERR_INVALID;
    size_t left = (size_t)(dash - text.data);
    if (incarnation_parse((struct slice){ text.data, left }, &incarnation) != ERR_OK)
        return ERR_INVALID;
    if (decimal_parse((struct slice){ dash + 1, text.size - left - 1 }, &fence) != ERR_OK)
        return ERR_INVALID;
    if (fence == 0)
        return ERR_INVALID;
    *ret_incarnation = incarnation;
    *ret_fence = fence;
    return ERR_OK;
}

void token_print(struct incarnation incarnation, uint64_t fence, char ret_text[TOKEN_TEXT_SIZE])
{
    int length = snprintf(ret_text, TOKEN_TEXT_SIZE, "%" PRIu64 "-%" PRIu64 "-%" PRIu64,
                          incarnation.generation, incarnation.revision, fence);
    CHECK(length > 0 && length < TOKEN_TEXT_SIZE);
}

void owner_op_encode(uint32_t method, struct slice entity, const ProtobufCMessage *request,
                     struct buf *out)
{
    struct buf packed = { 0 };
    struct op op = { .method = method, .entity = entity };
    size_t size = protobuf_c_message_get_packed_size(request);

    protobuf_c_message_pack(request, buf_reserve(&packed, size + 1));
    packed.size = size;
    op.request = buf_slice(&packed);
    op_encode(&op, out);
    buf_deinit(&packed);
}
