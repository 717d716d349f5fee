/*
 * rest_fuzz: heads of REST requests: "verb target\nif-match\nbody". What a path and a query say is
 * what the request has, whatever bytes they are of: no value can end its string, name another
 * field, or say another thing than the one that was decoded.
 */
#include <string.h>

#include "runtime/base/check.h"
#include "runtime/codec/json_codec.h"
#include "runtime/rest/rest_request.h"
#include "tests/fuzz/fuzz.h"

#define QUERY_MAX 4000u

struct head {
    struct slice verb, path, query, if_match, body;
};

static struct slice take(struct slice *list, char separator)
{
    const uint8_t *end = list->size > 0 ? memchr(list->data, separator, list->size) : NULL;
    struct slice item = *list;

    if (end == NULL) {
        *list = (struct slice){ (const uint8_t *)"", 0 };
        return item;
    }
    item.size = (size_t)(end - item.data);
    *list = (struct slice){ end + 1, list->size - item.size - 1 };
    return item;
}

/* False: HTTP would not hand such a request on. */
static bool read_head(struct slice input, struct head *ret_head)
{
    struct slice line = take(&input, '\n');

    ret_head->verb = take(&line, ' ');
    ret_head->path = take(&line, '?');
    ret_head->query = line;
    ret_head->if_match = take(&input, '\n');
    ret_head->body = input;
    return ret_head->path.size > 0 && ret_head->path.data[0] == '/' &&
           ret_head->path.size <= QUERY_MAX && ret_head->query.size <= QUERY_MAX;
}

static void check_not_found(enum rest_result result, const struct rest_found *found,
                            const struct rest_flaw *flaw)
{
    CHECK(found->allow[REST_ALLOW_BYTES - 1] == 0 && found->meant[REST_SHOWN_BYTES - 1] == 0);
    CHECK(result != REST_NO_VERB || found->allow[0] != 0);
    CHECK(result != REST_MALFORMED || (flaw->message != NULL && flaw->field != NULL));
}

/* ---- what stands there is one object, whatever the bytes of its texts ---- */

static bool scan_byte(struct reader *json, uint8_t wanted)
{
    if (json->at == json->end || *json->at != wanted)
        return false;
    json->at++;
    return true;
}

static void scan_string(struct reader *json)
{
    CHECK(scan_byte(json, '"'));
    while (!scan_byte(json, '"')) {
        CHECK(read_u8(json) >= 0x20);
        if (json->at[-1] == '\\')
            CHECK(strchr("\"\\u", read_u8(json)) != NULL);
        CHECK(!json->bad);
    }
}

/* Objects nest as deep as a name in the query has parts; a list has texts and words alone. */
static void scan_value(struct reader *json, unsigned depth)
{
    uint8_t end = 0;

    CHECK(depth <= REST_DEPTH_MAX + 1 && json->at < json->end);
    if (*json->at == '"') {
        scan_string(json);
        return;
    }
    if (*json->at == 't' || *json->at == 'f') {
        bool is_true = *json->at == 't';
        CHECK(slice_equal(read_raw(json, is_true ? 4 : 5),
                          is_true ? SLICE_LITERAL("true") : SLICE_LITERAL("false")));
        return;
    }
    CHECK(*json->at == '{' || *json->at == '[');
    end = read_u8(json) == '{' ? '}' : ']';
    if (scan_byte(json, end))
        return;
    do {
        if (end == '}') {
            scan_string(json);
            CHECK(scan_byte(json, ':'));
        }
        scan_value(json, depth + 1);
    } while (scan_byte(json, ','));
    CHECK(scan_byte(json, end));
}

static void check_is_object(struct slice text)
{
    struct reader json = reader_from(text);

    CHECK(text.size > 0 && text.data[0] == '{');
    scan_value(&json, 0);
    CHECK(json.at == json.end && !json.bad);
}

/* Texts of the path have come through as they were decoded. */
static void check_path(const struct rest_found *found, const ProtobufCMessage *message)
{
    for (size_t i = 0; i < found->value_count; i++) {
        const ProtobufCFieldDescriptor *field = protobuf_c_message_descriptor_get_field_by_name(
            message->descriptor, (const char *)found->values[i].name.data);
        CHECK(field != NULL);
        if (field->type != PROTOBUF_C_TYPE_STRING)
            continue;
        const char *text = *(char *const *)(const void *)((const char *)message + field->offset);
        CHECK(slice_equal(slice_from_text(text), found->values[i].text));
    }
}

/* What is set in the message was named. */
static void check_named(const ProtobufCMessage *message, struct rest_named named)
{
    uint8_t bytes[8192];

    for (unsigned i = 0; i < message->descriptor->n_fields; i++) {
        const ProtobufCFieldDescriptor *field = &message->descriptor->fields[i];
        if ((named.bits & 1ull << i) != 0)
            continue;
        if (field->label == PROTOBUF_C_LABEL_REPEATED)
            CHECK(*(const size_t *)(const void *)((const char *)message +
                                                  field->quantifier_offset) == 0);
        else if (field->type == PROTOBUF_C_TYPE_MESSAGE)
            CHECK(*(void *const *)(const void *)((const char *)message + field->offset) == NULL);
    }
    if (named.bits == 0 && protobuf_c_message_get_packed_size(message) <= sizeof bytes)
        CHECK(protobuf_c_message_pack(message, bytes) == 0);
}

static void check_request(struct json_codec *codec, const struct rest_head *head, struct slice body,
                          struct arena *arena)
{
    const ProtobufCMessageDescriptor *type = method_find(head->found->route->method)->request;
    struct codec_scope scope = { .arena = arena, .form = JSON_PLAIN };
    ProtobufCMessage *message, *whole;
    struct rest_named named;
    struct rest_flaw flaw;
    struct buf json = { 0 };

    err e = rest_request_head(head, arena, &json, &named, &flaw);
    CHECK(e == ERR_OK || (flaw.message != NULL && flaw.field != NULL));
    if (e == ERR_OK)
        check_is_object(buf_slice(&json));
    if (e == ERR_OK && json_decode(codec, type, buf_slice(&json), &scope, &message) == ERR_OK) {
        check_path(head->found, message);
        check_named(message, named);
        if (json_decode(codec, type, body, &scope, &whole) == ERR_OK) {
            if (rest_request_merge(whole, message, named, &flaw) == ERR_OK)
                check_path(head->found, whole);
            else
                CHECK(flaw.field != NULL);
        }
    }
    buf_deinit(&json);
}

void fuzz_one(struct slice input)
{
    struct json_codec codec;
    struct arena arena = { 0 };
    struct rest_found found;
    struct rest_flaw flaw;
    struct head head;

    if (!read_head(input, &head))
        return;
    json_codec_init(&codec);
    enum rest_result result = rest_route_find(head.verb, head.path, &arena, &found, &flaw);
    check_not_found(result, &found, &flaw);
    if (result == REST_FOUND) {
        struct rest_head rest = { &found, head.query, head.if_match };
        check_request(&codec, &rest, head.body, &arena);
    }
    json_codec_deinit(&codec);
    arena_deinit(&arena);
}

static void seed(struct fuzz_seeds *seeds, const char *name, const char *text)
{
    fuzz_seed_add(seeds, name, slice_from_text(text));
}

void fuzz_seed(struct fuzz_seeds *seeds)
{
    seed(seeds, "read", "GET /v1/players/ada?include=items&settled=true\n\n");
    seed(seeds, "encoded", "GET /v1/players/a%2F%22%5C%00%ff/items?kind=%22+%2B%7D\n\n");
    seed(seeds, "page", "GET /v1/users/ada/entries?limit=3&kinds=grant&kinds=spend&from_ms=1\n\n");
    seed(seeds, "nested", "GET /v1/players/a/items?read.stale=true&read.at_least=c1.\n\n");
    seed(seeds, "above", "GET /v1/players/a/items?read.stale=true&read=1\n\n");
    seed(seeds, "grant", "POST /v1/players/a:b:grant?attempt=1\n\"7\"\n{\"playerId\":\"a:b\"}");
    seed(seeds, "edit", "PATCH /v1/players/ada\n7\n{\"edits\":{\"a\":{\"merge\":{}}}}");
    seed(seeds, "both", "POST /v1/shards/0:move?from=a\n\n{\"shard\":3,\"from\":\"b\"}");
    seed(seeds, "operation", "GET /v1/entities/player:a/operations/receipt:x\n\n");
    seed(seeds, "misspelt", "POST /v1/player/ada:grnat\n\n");
    seed(seeds, "verb", "DELETE /v1/players/..\n\n");
}
