#include "load_op.h"

#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#include "runtime/base/check.h"
#include "runtime/base/id.h"

static const char *const op_names[] = {
#define LOAD_NAME(name, text, meaning) [LOAD_##name] = text,
    LOAD_OPS(LOAD_NAME)
#undef LOAD_NAME
};

bool load_op_parse(const char *text, enum load_op *ret_op)
{
    for (unsigned i = 0; i < ARRAY_SIZE(op_names); i++) {
        if (strcmp(op_names[i], text) != 0)
            continue;
        *ret_op = (enum load_op)i;
        return true;
    }
    return false;
}

const char *load_op_name(enum load_op op)
{
    return op_names[op];
}

unsigned load_op_count(const struct load_options *options)
{
    return options->op == LOAD_BATCH_GRANT || options->op == LOAD_BATCH_READ ? options->batch : 1;
}

/* splitmix64, seeded by the kernel so that two runs never share an op_id. */
uint64_t load_random(void)
{
    static _Thread_local uint64_t state;

    if (state == 0)
        CHECK(getrandom(&state, sizeof state, 0) == sizeof state);
    uint64_t z = state += 0x9E3779B97F4A7C15u;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
    z = (z ^ z >> 27) * 0x94D049BB133111EBu;
    return z ^ z >> 31;
}

static void put_op_id(struct buf *out)
{
    struct timespec now;
    uint64_t random[2] = { load_random(), load_random() };
    struct uuid uuid;
    char text[UUID_TEXT_SIZE];

    clock_gettime(CLOCK_REALTIME, &now);
    uuid = uuid_v7_make((uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000,
                        (const uint8_t *)random);
    uuid_print(&uuid, text);
    buf_printf(out, "\"opId\":\"%s\"", text);
}

static unsigned pick_player(const struct load_options *options)
{
    return (unsigned)(load_random() % options->players);
}

static void put_grant(const struct load_options *options, struct buf *out)
{
    buf_printf(out, "{\"playerId\":\"p%u\",", pick_player(options));
    put_op_id(out);
    buf_printf(out,
               ",\"authority\":{\"system\":{\"scope\":\"payments\"}},"
               "\"currencies\":[{\"currency\":\"%s\",\"amount\":\"1\"}],\"reason\":\"bench\"}",
               options->currency);
}

static void put_read(const struct load_options *options, struct buf *out)
{
    buf_printf(out, "{\"playerId\":\"p%u\"}", pick_player(options));
}

static void put_batch(const struct load_options *options, struct buf *out,
                      void (*put)(const struct load_options *, struct buf *))
{
    buf_printf(out, "{\"requests\":[");
    for (unsigned i = 0; i < options->batch; i++) {
        if (i > 0)
            buf_put_u8(out, ',');
        put(options, out);
    }
    buf_printf(out, "]}");
}

/* Each connection has players of its own, so that no session is contested. */
static void put_start(const struct load_options *options, const char *incarnation,
                      struct load_slot *slot, struct buf *out)
{
    unsigned turns = options->players / options->connections;

    slot->turn = turns > 0 ? (slot->turn + 1) % turns : 0;
    snprintf(slot->player, sizeof slot->player, "s%u-%u", slot->index, slot->turn);
    buf_printf(out, "{\"playerId\":\"%s\",", slot->player);
    put_op_id(out);
    buf_printf(out, ",\"incarnation\":\"%s\",\"mode\":\"START_MODE_FAIL\"}", incarnation);
}

static void put_end(const struct load_slot *slot, struct buf *out)
{
    buf_printf(out, "{\"playerId\":\"%s\",", slot->player);
    put_op_id(out);
    buf_printf(out, ",\"authority\":{\"session\":{\"token\":\"%s\"}}}", slot->token);
}

void load_http_write(const struct load_options *options, const char *method, struct slice body,
                     struct buf *out)
{
    buf_printf(out, "POST /holdfast.v1.%s HTTP/1.1\r\nHost: %s:%u\r\n", method, options->host,
               options->port);
    buf_printf(out, "Content-Type: application/json\r\nConnect-Protocol-Version: 1\r\n");
    if (options->api_key[0] != 0)
        buf_printf(out, "Authorization: Bearer %s\r\n", options->api_key);
    buf_printf(out, "Content-Length: %zu\r\n\r\n", body.size);
    buf_append(out, body.data, body.size);
}

void load_op_write(const struct load_options *options, const char *incarnation,
                   struct load_slot *slot, struct buf *out)
{
    struct buf body = { 0 };
    const char *method = "LedgerService/Grant";

    switch (options->op) {
    case LOAD_GRANT:
        put_grant(options, &body);
        break;
    case LOAD_BATCH_GRANT:
        method = "LedgerService/BatchGrant";
        put_batch(options, &body, put_grant);
        break;
    case LOAD_READ:
        method = "ProfileService/GetProfile";
        put_read(options, &body);
        break;
    case LOAD_BATCH_READ:
        method = "ProfileService/BatchGetProfile";
        put_batch(options, &body, put_read);
        break;
    case LOAD_START_END:
        if (slot->token[0] == 0) {
            method = "SessionService/StartSession";
            put_start(options, incarnation, slot, &body);
        } else {
            method = "SessionService/EndSession";
            put_end(slot, &body);
        }
        break;
    }
    load_http_write(options, method, buf_slice(&body), out);
    buf_deinit(&body);
}

bool load_json_find(const char *body, const char *name, char *ret_text, size_t capacity)
{
    char key[48];
    const char *at;

    snprintf(key, sizeof key, "\"%s\":\"", name);
    at = strstr(body, key);
    if (at == NULL)
        return false;
    at += strlen(key);
    size_t size = strcspn(at, "\"");
    if (size >= capacity)
        return false;
    memcpy(ret_text, at, size);
    ret_text[size] = 0;
    return true;
}

static unsigned errors_in(const char *body)
{
    unsigned count = 0;

    for (const char *at = body; (at = strstr(at, "\"error\":{")) != NULL; at++)
        count++;
    return count;
}

unsigned load_op_read(const struct load_options *options, struct load_slot *slot, unsigned status,
                      const char *body)
{
    bool held = slot->token[0] != 0;

    slot->token[0] = 0;
    if (status != 200)
        return load_op_count(options);
    if (options->op == LOAD_BATCH_GRANT || options->op == LOAD_BATCH_READ)
        return errors_in(body);
    if (options->op == LOAD_START_END && !held)
        return !load_json_find(body, "token", slot->token, sizeof slot->token);
    return 0;
}
