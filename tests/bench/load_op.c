#include "load_op.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "load_favorite.h"
#include "load_leaf.h"
#include "runtime/base/check.h"

#define LOAD_BODIES_READ 65536u

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

const char *load_op_list(void)
{
#define LOAD_LINE(name, text, meaning) "    " text ": " meaning "\n"
    return LOAD_OPS(LOAD_LINE);
#undef LOAD_LINE
}

bool load_op_sweeps(enum load_op op)
{
    return op == LOAD_FILL || op == LOAD_AUDIT || op == LOAD_LEDGER || op == LOAD_EDGES;
}

unsigned load_op_count(const struct load_work *work)
{
    return work->op == LOAD_BATCH_GRANT || work->op == LOAD_BATCH_READ ||
                   work->op == LOAD_BATCH_FAVORITE
               ? work->options->batch
               : 1;
}

static void put_op_id(struct buf *out)
{
    char text[UUID_TEXT_SIZE];

    load_op_id(text);
    buf_printf(out, "\"opId\":\"%s\"", text);
}

/* Without what a batch says once for all of them, and without its last brace. */
static void put_part(const struct load_options *options, struct load_slot *slot, struct buf *out)
{
    struct load_grant grant = load_grant_next(options, &slot->history);

    buf_printf(out, "{\"playerId\":\"p%u\",\"opId\":\"%s\",", grant.player, grant.op_id);
    buf_printf(out, "\"currencies\":[{\"currency\":\"%s\",\"amount\":\"1\"}]", options->currency);
    for (unsigned i = 0; i < options->items; i++)
        buf_printf(out, "%s{\"kind\":\"sword_of_dawn\"}", i == 0 ? ",\"items\":[" : ",");
    buf_printf(out, "%s", options->items > 0 ? "]" : "");
}

static void put_grant(const struct load_options *options, struct load_slot *slot, struct buf *out)
{
    put_part(options, slot, out);
    buf_printf(out, ",\"authority\":\"system:payments\",\"reason\":\"bench\"}");
}

static void put_batch_grant(const struct load_options *options, struct load_slot *slot,
                            struct buf *out)
{
    buf_printf(out, "{\"authority\":\"system:payments\",\"reason\":\"bench\",\"requests\":[");
    for (unsigned i = 0; i < options->batch; i++) {
        if (i > 0)
            buf_put_u8(out, ',');
        put_part(options, slot, out);
        buf_put_u8(out, '}');
    }
    buf_printf(out, "]}");
}

static void put_favorite(const struct load_options *options, struct buf *out)
{
    struct load_favorite favorite = load_favorite_next(options);

    buf_printf(out, "{\"playerId\":\"p%u\",\"targetId\":\"%s\",", favorite.player, favorite.target);
    put_op_id(out);
    buf_put_u8(out, '}');
}

static void put_batch_favorite(const struct load_options *options, struct buf *out)
{
    buf_printf(out, "{\"requests\":[");
    for (unsigned i = 0; i < options->batch; i++) {
        if (i > 0)
            buf_put_u8(out, ',');
        put_favorite(options, out);
    }
    buf_printf(out, "]}");
}

static void put_document(const struct load_options *options, struct buf *out)
{
    struct load_leaf leaf = load_leaf_next(options);

    buf_printf(out, "{\"entity\":\"player:p%u\",\"collection\":\"settings\",\"key\":\"main\",",
               leaf.player);
    put_op_id(out);
    buf_printf(out, ",\"merge\":\"{\\\"%s\\\":%u}\"}", leaf.name, leaf.value);
}

static void put_read(const struct load_options *options, struct load_slot *slot, struct buf *out)
{
    (void)slot;
    buf_printf(out, "{\"playerId\":\"p%u\"}", load_player(options));
}

static void put_batch_read(const struct load_options *options, struct load_slot *slot,
                           struct buf *out)
{
    buf_printf(out, "{\"requests\":[");
    for (unsigned i = 0; i < options->batch; i++) {
        if (i > 0)
            buf_put_u8(out, ',');
        put_read(options, slot, out);
    }
    buf_printf(out, "]}");
}

/* Each connection has players of its own, so that no session is contested. */
static void put_start(const struct load_work *work, struct load_slot *slot, struct buf *out)
{
    unsigned turns = work->options->players / work->options->connections;

    slot->turn = turns > 0 ? (slot->turn + 1) % turns : 0;
    snprintf(slot->player, sizeof slot->player, "p%u",
             slot->index + slot->turn * work->options->connections);
    buf_printf(out, "{\"playerId\":\"%s\",", slot->player);
    put_op_id(out);
    buf_printf(out, ",\"incarnation\":\"%s\",\"mode\":\"START_MODE_FAIL\"}", work->incarnation);
}

static void put_end(const struct load_slot *slot, struct buf *out)
{
    buf_printf(out, "{\"playerId\":\"%s\",", slot->player);
    put_op_id(out);
    buf_printf(out, ",\"authority\":\"session:%s\"}", slot->token);
}

/* Text that does not compress, so that disk and caches hold what players hold. */
static void put_profile(unsigned player, struct buf *out)
{
    static const char letters[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    char fill[LOAD_DOCUMENT_BYTES - 24 + 1];

    for (size_t i = 0; i + 1 < sizeof fill; i += 8) {
        uint64_t bits = load_random();
        for (size_t j = i; j < i + 8 && j + 1 < sizeof fill; j++, bits >>= 8)
            fill[j] = letters[bits % 64];
    }
    fill[sizeof fill - 1] = 0;
    buf_printf(out, "{\"playerId\":\"p%u\",", player);
    put_op_id(out);
    buf_printf(out,
               ",\"authority\":\"unheld\",\"edits\":[{\"name\":\"progression\","
               "\"schemaVersion\":1,\"replace\":\"{\\\"fill\\\":\\\"%s\\\",\\\"level\\\":%u}\"}]}",
               fill, player % 100);
}

/* The next players of a sweep, or the same ones again. */
static bool put_sweep(struct load_work *work, struct load_slot *slot)
{
    bool singly = work->op == LOAD_LEDGER || work->op == LOAD_EDGES;
    unsigned limit = singly ? 1 : work->options->batch;
    unsigned first = work->player_next;

    if (slot->again)
        return true;
    if (first >= work->options->players)
        return false;
    slot->in_sweep = work->options->players - first;
    if (slot->in_sweep > limit)
        slot->in_sweep = limit;
    work->player_next += slot->in_sweep;
    buf_clear(&slot->body);
    if (singly) {
        buf_printf(&slot->body, "{\"playerId\":\"p%u\",\"pageSize\":1}", first);
        return true;
    }
    for (unsigned i = 0; i < slot->in_sweep; i++) {
        buf_printf(&slot->body, i == 0 ? "{\"requests\":[" : ",");
        if (work->op == LOAD_FILL)
            put_profile(first + i, &slot->body);
        else
            buf_printf(&slot->body,
                       "{\"playerId\":\"%s%u\",\"include\":[\"sections.none\",\"balances\"]}",
                       work->options->prefix, first + i);
    }
    buf_printf(&slot->body, "]}");
    return true;
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

static const char *method_of(const struct load_work *work, const struct load_slot *slot)
{
    switch (work->op) {
    case LOAD_GRANT:
        return "LedgerService/Grant";
    case LOAD_BATCH_GRANT:
        return "LedgerService/BatchGrant";
    case LOAD_READ:
        return "ProfileService/GetProfile";
    case LOAD_BATCH_READ:
    case LOAD_AUDIT:
        return "ProfileService/BatchGetProfile";
    case LOAD_START_END:
        return slot->token[0] == 0 ? "SessionService/StartSession" : "SessionService/EndSession";
    case LOAD_FILL:
        return "ProfileService/BatchUpdateProfile";
    case LOAD_LEDGER:
        return "LedgerService/ListEntries";
    case LOAD_EDGES:
        return "FavoritesService/ListFavorites";
    case LOAD_FAVORITE:
        return "FavoritesService/Favorite";
    case LOAD_BATCH_FAVORITE:
        return "FavoritesService/BatchFavorite";
    case LOAD_DOCUMENT:
        return "DocumentService/UpdateDocument";
    case LOAD_CALL:
        return work->options->method;
    case LOAD_TRANSFER: /* Named with their bodies. */
    case LOAD_SWAP:
        break;
    }
    CHECK(false);
    return NULL;
}

void load_op_start(struct load_work *work)
{
    const char *path = work->options->bodies;
    FILE *file = work->op == LOAD_CALL ? fopen(path, "re") : NULL;
    size_t size = 1;

    if (work->op != LOAD_CALL)
        return;
    while (file != NULL && size > 0) {
        size = fread(buf_reserve(&work->bodies, LOAD_BODIES_READ), 1, LOAD_BODIES_READ, file);
        work->bodies.size += size;
    }
    work->lines = mem_alloc(sizeof *work->lines * (work->bodies.size + 1));
    work->lines[0] = 0;
    for (uint32_t i = 0; i < work->bodies.size; i++) {
        if (work->bodies.data[i] == '\n')
            work->lines[++work->line_count] = i + 1;
    }
    if (file == NULL || fclose(file) != 0 || work->line_count == 0) {
        fprintf(stderr, "loadgen: --bodies: '%s' has no lines to read\n", path);
        exit(2);
    }
}

static void put_line(const struct load_work *work, struct buf *out)
{
    unsigned line = (unsigned)(load_random() % work->line_count);

    buf_append(out, work->bodies.data + work->lines[line],
               work->lines[line + 1] - work->lines[line] - 1);
}

/* A newly drawn body; the method it is for. */
static const char *put_body(struct load_work *work, struct load_slot *slot)
{
    const struct load_options *options = work->options;
    struct buf *body = &slot->body;

    buf_clear(body);
    if (work->op == LOAD_GRANT)
        put_grant(options, slot, body);
    else if (work->op == LOAD_BATCH_GRANT)
        put_batch_grant(options, slot, body);
    else if (work->op == LOAD_READ)
        put_read(options, slot, body);
    else if (work->op == LOAD_BATCH_READ)
        put_batch_read(options, slot, body);
    else if (work->op == LOAD_FAVORITE)
        put_favorite(options, body);
    else if (work->op == LOAD_BATCH_FAVORITE)
        put_batch_favorite(options, body);
    else if (work->op == LOAD_DOCUMENT)
        put_document(options, body);
    else if (work->op == LOAD_CALL)
        put_line(work, body);
    else if (work->op == LOAD_TRANSFER)
        return load_transfer_put(options, &slot->goods, body);
    else if (work->op == LOAD_SWAP)
        return load_swap_put(options, &slot->goods, slot->index, body);
    else if (slot->token[0] == 0)
        put_start(work, slot, body);
    else
        put_end(slot, body);
    return method_of(work, slot);
}

bool load_op_write(struct load_work *work, struct load_slot *slot, struct buf *out)
{
    const char *method;

    if (!load_op_sweeps(work->op))
        method = put_body(work, slot);
    else if (put_sweep(work, slot))
        method = method_of(work, slot);
    else
        return false;
    load_http_write(work->options, method, buf_slice(&slot->body), out);
    return true;
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

static unsigned occurrences(const char *body, const char *text)
{
    unsigned count = 0;

    for (const char *at = body; (at = strstr(at, text)) != NULL; at++)
        count++;
    return count;
}

/* Adds every number that follows `before`. */
static uint64_t sum_of(const char *body, const char *before)
{
    uint64_t sum = 0;

    for (const char *at = body; (at = strstr(at, before)) != NULL;) {
        at += strlen(before);
        sum += strtoull(at, NULL, 10);
    }
    return sum;
}

static void read_sums(struct load_work *work, const char *body)
{
    char before[96];

    if (work->op == LOAD_LEDGER) {
        work->entries += sum_of(body, "\"seq\":\"");
        return;
    }
    if (work->op == LOAD_EDGES) {
        work->edges += sum_of(body, "\"edges\":");
        return;
    }
    snprintf(before, sizeof before, "{\"currency\":\"%s\",\"amount\":\"", work->options->currency);
    work->balance += sum_of(body, before);
    work->items += sum_of(body, "\"itemCount\":");
}

/* Of `failed` operations with this answer; the codes named say that nothing was done. */
static void read_failures(struct load_outcome *outcome, unsigned failed, bool whole,
                          const char *body)
{
    static const char *const named[] = {
        [LOAD_THROTTLED] = "\"ERROR_CODE_THROTTLED\"",
        [LOAD_UNAVAILABLE] = "\"ERROR_CODE_UNAVAILABLE\"",
        [LOAD_DEADLINE_EXCEEDED] = "\"ERROR_CODE_DEADLINE_EXCEEDED\"",
    };
    unsigned left = failed;

    for (unsigned i = 0; i < ARRAY_SIZE(named); i++) {
        unsigned found = occurrences(body, named[i]);

        if (found > left || (found > 0 && whole))
            found = left;
        outcome->codes[i] = found;
        left -= found;
    }
    outcome->codes[LOAD_OTHER] = left;
    outcome->failed = failed;
    if (whole) {
        const char *after = strstr(body, "\"retryAfterMs\":");

        outcome->retry_after_ms = after != NULL ? (unsigned)strtoul(after + 15, NULL, 10) : 0;
    }
}

static struct load_outcome read_body(struct load_work *work, struct load_slot *slot,
                                     const char *body)
{
    struct load_outcome outcome = { 0 };
    unsigned count = load_op_sweeps(work->op) ? slot->in_sweep : load_op_count(work);
    unsigned failed = 0;
    bool reads = work->op == LOAD_READ || work->op == LOAD_BATCH_READ || work->op == LOAD_CALL;

    if (work->op != LOAD_GRANT && work->op != LOAD_READ)
        failed = occurrences(body, "\"error\":{");
    if (reads && strlen(body) < (size_t)work->options->answer_min * (count - failed))
        failed = count;
    if (failed > 0)
        read_failures(&outcome, failed, false, body);
    outcome.done = count - failed;
    /* A router that had to repeat a call itself says "duplicate" of a grant that is new to us. */
    outcome.duplicates =
        failed == 0 ? slot->history.repeats : occurrences(body, "\"duplicate\":true");
    /* An edge that is new is at its first `ver`. */
    if (work->op == LOAD_FAVORITE || work->op == LOAD_BATCH_FAVORITE)
        outcome.duplicates = outcome.done - occurrences(body, "\"ver\":\"1\"");
    return outcome;
}

/* Items made for what follows are counted by themselves. */
static void read_goods(struct load_work *work, struct load_slot *slot, const char *body,
                       struct load_outcome *outcome)
{
    unsigned made = 0;

    if (work->op == LOAD_TRANSFER)
        made = load_transfer_done(&slot->goods, body);
    else if (work->op == LOAD_SWAP)
        made = load_swap_done(&slot->goods, body);
    work->items += made;
    if (made > 0)
        outcome->done = 0;
}

struct load_outcome load_op_read(struct load_work *work, struct load_slot *slot, unsigned status,
                                 const char *body)
{
    bool held = slot->token[0] != 0;
    bool sweeps = load_op_sweeps(work->op);
    struct load_outcome outcome = { 0 };

    slot->token[0] = 0;
    if (status == 200)
        outcome = read_body(work, slot, body);
    else
        read_failures(&outcome, sweeps ? slot->in_sweep : load_op_count(work), true, body);
    slot->again = sweeps && outcome.failed > 0;
    if (status == 200)
        read_goods(work, slot, body, &outcome);
    if (outcome.failed == 0 && sweeps && work->op != LOAD_FILL)
        read_sums(work, body);
    if (work->op == LOAD_START_END && !held && outcome.done > 0) {
        outcome.done = 0; /* The pair counts when it has ended. */
        outcome.failed = !load_json_find(body, "token", slot->token, sizeof slot->token);
    }
    load_grant_answered(&slot->history, outcome.failed == 0);
    return outcome;
}

struct load_outcome load_op_lost(const struct load_work *work, struct load_slot *slot)
{
    unsigned count = load_op_sweeps(work->op) ? slot->in_sweep : load_op_count(work);

    slot->again = load_op_sweeps(work->op);
    slot->token[0] = 0;
    load_grant_answered(&slot->history, false);
    return (struct load_outcome){ .failed = count, .codes = { [LOAD_OTHER] = count } };
}
