/*
 * rpc_fuzz: calls as Connect, gRPC and gRPC-Web frame them, in well-formed HTTP: content type,
 * method, the headers that mean something, the body with or without envelopes, and the message
 * that a node answers with. [mode][content type][method][header][u8 size][value][u8 size][reply]
 * [body]; the mode's lowest two bits are the handlers', 4 is HTTP/1.1, 8 wraps the body in an
 * envelope, 16 sends the body in two parts, 32 packs the message and says so (then the header is
 * that of its encoding).
 */
#include <string.h>

#include "idl/method.h"
#include "runtime/base/check.h"
#include "runtime/codec/gzip.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/h2_frames.h"
#include "tests/fuzz/http_drive.h"

enum mode { MODE_H1 = 4, MODE_ENVELOPE = 8, MODE_PARTS = 16, MODE_PACK = 32 };

static const char *const content_types[] = {
    "application/json",
    "application/proto",
    "application/connect+json",
    "application/connect+proto",
    "application/grpc",
    "application/grpc+json",
    "application/grpc-web",
    "application/grpc-web+json",
    "application/grpc-web-text",
    "application/json; charset=utf-8",
    "text/plain",
};
static const char *const header_names[] = {
    "connect-timeout-ms",
    "grpc-timeout",
    "traceparent",
    "authorization",
    "connect-protocol-version",
    "grpc-encoding",
    "content-encoding",
    "connect-content-encoding",
    "origin",
    "x-grpc-web",
    "accept-encoding",
    "grpc-accept-encoding",
    "connect-accept-encoding",
};
static const char health[] = "grpc.health.v1.Health/Check";

struct call {
    unsigned mode;
    const char *content_type, *method, *header;
    struct slice value, reply, body;
};

static const char *encoding_header(const char *content_type)
{
    if (strstr(content_type, "grpc") != NULL)
        return "grpc-encoding";
    return strstr(content_type, "connect+") != NULL ? "connect-content-encoding"
                                                    : "content-encoding";
}

static bool read_call(struct slice input, struct call *ret_call)
{
    struct reader reader = reader_from(input);
    size_t count;
    const struct method_info *all = method_all(&count);

    ret_call->mode = read_u8(&reader);
    ret_call->content_type = content_types[read_u8(&reader) % ARRAY_SIZE(content_types)];
    size_t method = read_u8(&reader) % (count + 1);
    ret_call->method = method < count ? all[method].name : health;
    ret_call->header = header_names[read_u8(&reader) % ARRAY_SIZE(header_names)];
    ret_call->value = read_raw(&reader, read_u8(&reader));
    ret_call->reply = read_raw(&reader, read_u8(&reader));
    ret_call->body = read_raw(&reader, reader_left(&reader));
    if ((ret_call->mode & MODE_PACK) != 0) {
        ret_call->header = encoding_header(ret_call->content_type);
        ret_call->value = SLICE_LITERAL("gzip");
    }
    for (size_t i = 0; i < ret_call->value.size; i++)
        if (ret_call->value.data[i] < ' ' || ret_call->value.data[i] > '~')
            return false; /* http_fuzz sends such. */
    return !reader.bad;
}

static void put_body(const struct call *call, struct buf *out)
{
    struct gzip gzip = { 0 };
    struct buf packed = { 0 };
    struct slice message = call->body;
    bool pack = (call->mode & MODE_PACK) != 0 && gzip_encode(&gzip, call->body, &packed);

    if (pack)
        message = buf_slice(&packed);
    if ((call->mode & MODE_ENVELOPE) != 0) {
        buf_put_u8(out, pack ? 1 : 0);
        buf_put_u32_be(out, (uint32_t)message.size);
    }
    buf_append(out, message.data, message.size);
    buf_deinit(&packed);
    gzip_deinit(&gzip);
}

static void send_h1(struct drive *drive, const struct call *call, const struct buf *body)
{
    struct buf bytes = { 0 };

    buf_printf(&bytes, "POST /%s HTTP/1.1\r\nHost: x\r\nContent-Type: %s\r\n%s: %.*s\r\n",
               call->method, call->content_type, call->header, (int)call->value.size,
               (const char *)call->value.data);
    buf_printf(&bytes, "Content-Length: %zu\r\n\r\n", body->size);
    buf_append(&bytes, body->data, body->size);
    drive_send(drive, buf_slice(&bytes));
    buf_deinit(&bytes);
}

static void send_h2(struct drive *drive, const struct call *call, const struct buf *body)
{
    struct buf bytes = { 0 };
    struct buf head = { 0 };
    char path[128] = "/";
    size_t first = (call->mode & MODE_PARTS) != 0 ? body->size / 2 : 0;

    memcpy(path + 1, call->method, strlen(call->method) + 1);
    h2_put_preface(&bytes);
    h2_put_frame(&bytes, &(struct h2_frame){ .type = H2_SETTINGS });
    h2_put_post(&head, slice_from_text(path), slice_from_text(call->content_type));
    h2_put_field(&head, slice_from_text(call->header), call->value);
    h2_put_frame(&bytes, &(struct h2_frame){ H2_HEADERS, H2_END_HEADERS, 1, buf_slice(&head) });
    h2_put_frame(&bytes, &(struct h2_frame){ H2_DATA, 0, 1, { body->data, first } });
    h2_put_frame(&bytes,
                 &(struct h2_frame){
                     H2_DATA, H2_END_STREAM, 1, { body->data + first, body->size - first } });
    drive_send(drive, buf_slice(&bytes));
    buf_deinit(&bytes);
    buf_deinit(&head);
}

void fuzz_one(struct slice input)
{
    struct call call;
    struct buf body = { 0 };

    if (!read_call(input, &call) || call.body.size > 16000)
        return;
    struct drive *drive = drive_open((enum drive_answer)(call.mode % DRIVE_ANSWER_END));
    uint64_t before = drive->answered_bytes;
    drive->reply = call.reply;
    put_body(&call, &body);
    buf_put_u8(&body, 0); /* Never a null pointer. */
    body.size--;
    if ((call.mode & MODE_H1) != 0)
        send_h1(drive, &call, &body);
    else
        send_h2(drive, &call, &body);
    CHECK(drive->answered_bytes > before); /* A well-formed request is answered. */
    drive->reply = (struct slice){ 0 };
    drive_close(drive);
    buf_deinit(&body);
}

struct example {
    const char *name;
    uint8_t mode, type, header;
    const char *value;
    struct slice body;
};

#define JSON                                                                                       \
    {                                                                                              \
        (const uint8_t *)"{\"playerId\":\"42\"}", 17                                               \
    }
#define PROTO                                                                                      \
    {                                                                                              \
        (const uint8_t *)"\x0a\2"                                                                  \
                         "42",                                                                     \
            4                                                                                      \
    }

#define LONG_JSON                                                                                  \
    {                                                                                              \
        (const uint8_t                                                                             \
             *)"{\"playerId\":\"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\"}",          \
            67                                                                                     \
    }

static const struct example examples[] = {
    { "connect-json", 0, 0, 0, "1500", JSON },
    { "connect-json-h1", MODE_H1, 0, 4, "1", JSON },
    { "connect-proto", DRIVE_FAIL, 1, 2, "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
      PROTO },
    { "stream-json", DRIVE_STREAM | MODE_ENVELOPE, 2, 3, "Bearer key", JSON },
    { "stream-proto", DRIVE_STREAM | MODE_ENVELOPE, 3, 7, "identity", PROTO },
    { "grpc", MODE_ENVELOPE | MODE_PARTS, 4, 1, "5S", PROTO },
    { "grpc-fail", DRIVE_FAIL | MODE_ENVELOPE, 4, 1, "100m", PROTO },
    { "grpc-json", MODE_ENVELOPE, 5, 5, "gzip", JSON },
    { "grpc-web", DRIVE_KEEP | MODE_ENVELOPE, 6, 9, "1", PROTO },
    { "grpc-web-fail", DRIVE_FAIL | MODE_ENVELOPE | MODE_H1, 7, 8, "http://localhost", JSON },
    { "packed", MODE_PACK | 1, 0, 0, "", LONG_JSON },
    { "packed-stream", MODE_PACK | MODE_ENVELOPE | DRIVE_STREAM, 2, 0, "", LONG_JSON },
    { "packed-grpc", MODE_PACK | MODE_ENVELOPE, 5, 0, "", LONG_JSON },
    { "packed-web", MODE_PACK | MODE_ENVELOPE | MODE_H1, 7, 0, "", LONG_JSON },
    { "web-text", MODE_ENVELOPE, 8, 6, "identity", PROTO },
};

void fuzz_seed(struct fuzz_seeds *seeds)
{
    size_t count;
    const struct method_info *all = method_all(&count);
    uint8_t place = 0;

    while (all[place].id != METHOD_GET_BALANCES)
        place++;
    for (size_t i = 0; i < ARRAY_SIZE(examples); i++) {
        const struct example *example = &examples[i];
        struct buf bytes = { 0 };
        buf_put_u8(&bytes, example->mode);
        buf_put_u8(&bytes, example->type);
        buf_put_u8(&bytes, example->mode == 0 ? (uint8_t)count : place);
        buf_put_u8(&bytes, example->header);
        buf_put_u8(&bytes, (uint8_t)strlen(example->value));
        buf_append(&bytes, example->value, strlen(example->value));
        buf_append(&bytes, "\2\x08\5", 3);
        buf_append(&bytes, example->body.data, example->body.size);
        fuzz_seed_add(seeds, example->name, buf_slice(&bytes));
        buf_deinit(&bytes);
    }
}
