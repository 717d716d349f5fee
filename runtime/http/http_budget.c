#include "runtime/http/http_budget.h"

#include <malloc.h>

#include "runtime/base/address.h"
#include "runtime/base/check.h"

#define LOG_EVERY_MS      60000u
#define HEAD_KEPT_BYTES   1024u    /* A smaller head is not worth the copy.                   */
#define SLOW_AGE_MS_MIN   500u     /* No body is slow before.                                 */
#define SMALL_BYTES_MAX   16384u   /* Such a body may take what is reserved for small ones.   */
#define SMALL_PART        16u      /* Of the budget of all: reserved for them.                */
#define SLOW_LOOKED_MAX   64u      /* Bodies looked at for the slowest: the oldest ones.      */
#define SLOW_ENDED_MAX    16u      /* Bodies refused for the sake of one.                     */
#define TRIM_BYTES_MIN    8388608u /* Freed since the peak: worth giving back to the system.  */
#define TRIM_MS_MIN       2000u
#define BODY_CAPACITY_MIN 512u

/* ---- refusals ---- */

static const struct {
    const char *text;
    struct http_refusal refusal;
} refusals[HTTP_REFUSED_COUNT] = {
#define HTTP_REFUSAL_ROW(enumerator, text, status, field, message)                                 \
    [HTTP_REFUSED_##                                                                               \
        enumerator] = { (text), { (status), (message), (field), 0, HTTP_REFUSED_##enumerator } },
    HTTP_REFUSALS(HTTP_REFUSAL_ROW)
#undef HTTP_REFUSAL_ROW
};

const char *http_refused_text(enum http_refused why)
{
    CHECK(why < HTTP_REFUSED_COUNT);
    return refusals[why].text;
}

static uint64_t part_of(uint64_t whole, uint32_t percent)
{
    return whole / 100 * percent;
}

/* A share is never too small for one body, or for one connection's heads. */
static uint64_t share_of(uint64_t whole, uint32_t percent, uint64_t least)
{
    uint64_t share = part_of(whole, percent);

    return share < least ? least : share;
}

static uint64_t limit_of(const struct http_limits *limits, enum http_refused why)
{
    switch (why) {
    case HTTP_REFUSED_BODIES_FULL:
    case HTTP_REFUSED_BODY_SLOW:
        return limits->buffered_bytes_max;
    case HTTP_REFUSED_BODIES_KEY:
        return share_of(limits->buffered_bytes_max, limits->bodies_key_percent,
                        limits->body_bytes_max + BODY_CAPACITY_MIN);
    case HTTP_REFUSED_BODIES_ADDRESS:
        return share_of(limits->buffered_bytes_max, limits->bodies_address_percent,
                        limits->body_bytes_max + BODY_CAPACITY_MIN);
    case HTTP_REFUSED_BODIES_KEYLESS:
        return limits->keyless_bytes_max;
    case HTTP_REFUSED_HEADS_FULL:
        return limits->heads_bytes_max;
    case HTTP_REFUSED_HEADS_ADDRESS:
        return share_of(limits->heads_bytes_max, limits->heads_address_percent,
                        limits->heads_connection_bytes_max);
    case HTTP_REFUSED_HEADS_CONNECTION:
        return limits->heads_connection_bytes_max;
    case HTTP_REFUSED_STRANGERS:
        return limits->waiting_bytes_max / 8;
    case HTTP_REFUSED_HEAD_SIZE:
        return limits->header_bytes_max;
    case HTTP_REFUSED_HEAD_COUNT:
        return limits->headers_max;
    default:
        return 0;
    }
}

struct http_refusal http_refusal_of(const struct http_server *server, enum http_refused why)
{
    struct http_refusal refusal = refusals[why].refusal;

    refusal.limit = limit_of(&server->config.limits, why);
    return refusal;
}

void http_refusal_count(struct http_server *server, enum http_refused why, const char *peer)
{
    uint64_t now_ms = http_now_ms(server);

    server->stats.refused[why]++;
    if (server->config.log == NULL)
        return;
    if (server->logged_ms[why] != 0 && now_ms < server->logged_ms[why] + LOG_EVERY_MS) {
        server->unlogged[why]++;
        return;
    }
    log_event(server->config.log, LOG_WARN, "http.refused", LOG_S("why", refusals[why].text),
              LOG_S("peer", peer), LOG_S("what", refusals[why].refusal.message),
              LOG_N("limit", limit_of(&server->config.limits, why)),
              LOG_N("others_since", server->unlogged[why]));
    server->logged_ms[why] = now_ms > 0 ? now_ms : 1;
    server->unlogged[why] = 0;
}

/* ---- shares ---- */

void http_budget_open(struct http_conn *conn)
{
    conn->address = http_share_hold(&conn->server->addresses, address_name(conn->peer));
}

void http_budget_close(struct http_conn *conn)
{
    struct http_server *server = conn->server;

    if (conn->address == NULL)
        return;
    server->stats.head_bytes -= conn->in_charged;
    conn->address->head_bytes -= conn->in_charged;
    conn->head_bytes -= conn->in_charged;
    conn->in_charged = 0;
    CHECK(conn->head_bytes == 0);
    http_share_release(&server->addresses, conn->address);
    conn->address = NULL;
}

static void note_peak(struct http_server *server)
{
    uint64_t bytes = server->stats.buffered_bytes + server->stats.head_bytes;

    if (bytes > server->peak_bytes)
        server->peak_bytes = bytes;
}

/* ---- heads ---- */

static void heads_add(struct http_conn *conn, size_t more, size_t less)
{
    conn->head_bytes += more - less;
    conn->address->head_bytes += more - less;
    conn->server->stats.head_bytes += more - less;
    note_peak(conn->server);
}

static void head_give_back(struct http_exchange *exchange)
{
    exchange->server->stats.head_bytes -= exchange->head_charged;
    exchange->address->head_bytes -= exchange->head_charged;
    if (exchange->conn != NULL)
        exchange->conn->head_bytes -= exchange->head_charged;
    exchange->head_charged = 0;
}

static bool heads_fit(const struct http_conn *conn, enum http_refused *ret_why)
{
    const struct http_limits *limits = &conn->server->config.limits;
    enum http_refused why = HTTP_REFUSED_COUNT;

    if (conn->head_bytes > limit_of(limits, HTTP_REFUSED_HEADS_CONNECTION))
        why = HTTP_REFUSED_HEADS_CONNECTION;
    else if (conn->address->head_bytes > limit_of(limits, HTTP_REFUSED_HEADS_ADDRESS))
        why = HTTP_REFUSED_HEADS_ADDRESS;
    else if (conn->server->stats.head_bytes > limits->heads_bytes_max)
        why = HTTP_REFUSED_HEADS_FULL;
    if (why == HTTP_REFUSED_COUNT)
        return true;
    *ret_why = why;
    return false;
}

bool http_head_charge(struct http_exchange *exchange, enum http_refused *ret_why)
{
    size_t size = sizeof *exchange + exchange->head.capacity + exchange->head_extra;

    if (exchange->conn == NULL) { /* It can only have become smaller. */
        head_give_back(exchange);
        return true;
    }
    if (size == exchange->head_charged)
        return true;
    heads_add(exchange->conn, size, exchange->head_charged);
    exchange->head_charged = size;
    return heads_fit(exchange->conn, ret_why);
}

bool http_input_charge(struct http_conn *conn, enum http_refused *ret_why)
{
    size_t size = conn->in.capacity;

    if (size == conn->in_charged)
        return true;
    bool grew = size > conn->in_charged;
    heads_add(conn, size, conn->in_charged);
    conn->in_charged = size;
    return !grew || heads_fit(conn, ret_why);
}

void http_head_drop(struct http_exchange *exchange)
{
    enum http_refused why;

    buf_deinit(&exchange->head);
    exchange->header_count = 0;
    exchange->method = (struct slice){ 0 };
    exchange->host = (struct slice){ 0 };
    exchange->path = (struct slice){ 0 };
    exchange->query = (struct slice){ 0 };
    exchange->head_extra = 0;
    (void)http_head_charge(exchange, &why);
}

static bool is_named(struct slice name, const char *const *names, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (slice_equal(name, slice_from_text(names[i])))
            return true;
    }
    return false;
}

static struct slice moved(struct buf *into, struct slice bytes)
{
    uint8_t *at = buf_reserve(into, 0);

    buf_append(into, bytes.data, bytes.size);
    return (struct slice){ at, bytes.size };
}

void http_head_keep(struct http_exchange *exchange, const char *const *names, size_t count)
{
    struct buf kept = { 0 };
    enum http_refused why;
    size_t size = 0, used = 0;

    if (exchange->head.capacity <= HEAD_KEPT_BYTES)
        return;
    for (size_t i = 0; i < exchange->header_count; i++) {
        if (is_named(exchange->headers[i].name, names, count))
            size += exchange->headers[i].name.size + exchange->headers[i].value.size;
    }
    if (size > exchange->head.capacity / 2)
        return;
    buf_reserve(&kept, size + 1); /* So that it does not move below. */
    for (size_t i = 0; i < exchange->header_count; i++) {
        const struct http_field *field = &exchange->headers[i];
        if (!is_named(field->name, names, count))
            continue;
        struct slice name = moved(&kept, field->name);
        struct slice value = moved(&kept, field->value);
        exchange->headers[used++] = (struct http_field){ name, value };
    }
    http_head_drop(exchange);
    exchange->head = kept;
    exchange->header_count = used;
    (void)http_head_charge(exchange, &why);
}

/* ---- bodies ---- */

bool http_body_fits(const struct http_exchange *exchange, uint64_t size)
{
    return size <= exchange->body_max;
}

void http_body_owner(struct http_exchange *exchange, uint64_t key, bool keyless)
{
    CHECK(exchange->body_charged == 0 && exchange->key == NULL);
    exchange->keyless = keyless;
    if (key != 0)
        exchange->key = http_share_hold(&exchange->server->keys, key);
}

static void bodies_add(struct http_exchange *exchange, size_t more, size_t less)
{
    struct http_stats *stats = &exchange->server->stats;

    stats->buffered_bytes += more - less;
    if (exchange->keyless)
        stats->keyless_bytes += more - less;
    if (exchange->key != NULL)
        exchange->key->body_bytes += more - less;
    exchange->address->body_bytes += more - less;
    exchange->body_charged += more - less;
    note_peak(exchange->server);
}

/* Of the shares of its owners, that of all left out. */
static bool shares_fit(const struct http_exchange *exchange, size_t more,
                       enum http_refused *ret_why)
{
    const struct http_limits *limits = &exchange->server->config.limits;
    const struct http_share *address = exchange->address;
    enum http_refused why = HTTP_REFUSED_COUNT;

    if (exchange->keyless &&
        exchange->server->stats.keyless_bytes + more > limits->keyless_bytes_max)
        why = HTTP_REFUSED_BODIES_KEYLESS;
    else if (address->body_bytes + more > limit_of(limits, HTTP_REFUSED_BODIES_ADDRESS))
        why = HTTP_REFUSED_BODIES_ADDRESS;
    else if (exchange->key != NULL &&
             exchange->key->body_bytes + more > limit_of(limits, HTTP_REFUSED_BODIES_KEY))
        why = HTTP_REFUSED_BODIES_KEY;
    if (why == HTTP_REFUSED_COUNT)
        return true;
    *ret_why = why;
    return false;
}

/* Bytes a second since the head; more than any for one that is too young to tell. */
static uint64_t speed_of(const struct http_exchange *exchange, uint64_t now_ms)
{
    uint64_t age_ms = now_ms - exchange->since_ms;

    return age_ms < SLOW_AGE_MS_MIN ? UINT64_MAX : (uint64_t)exchange->body.size * 1000 / age_ms;
}

/* Refuses the body that made the least progress for its age. False: none is slower than `for_it`.
 */
static bool end_slowest(struct http_exchange *for_it)
{
    struct http_server *server = for_it->server;
    uint64_t now_ms = http_now_ms(server);
    uint64_t slowest_bps = speed_of(for_it, now_ms);
    struct http_exchange *slowest = NULL;
    struct http_exchange *at = server->bodies;

    for (unsigned i = 0; at != NULL && i < SLOW_LOOKED_MAX; i++, at = at->body_next) {
        uint64_t bps = speed_of(at, now_ms);
        if (at == for_it || bps >= slowest_bps)
            continue;
        slowest = at;
        slowest_bps = bps;
    }
    if (slowest == NULL)
        return false;
    slowest->conn->protocol->end_body(slowest, http_refusal_of(server, HTTP_REFUSED_BODY_SLOW));
    return true;
}

/* Large bodies cannot fill the budget so quickly that small ones, which are most of what is asked,
 * have to wait until those are slow. */
static bool all_fit(struct http_exchange *exchange, size_t more)
{
    const struct http_server *server = exchange->server;
    uint64_t max = server->config.limits.buffered_bytes_max;

    if (exchange->body_charged + more > SMALL_BYTES_MAX)
        max -= max / SMALL_PART;
    for (unsigned i = 0; server->stats.buffered_bytes + more > max; i++) {
        if (i == SLOW_ENDED_MAX || !end_slowest(exchange))
            return false;
    }
    return true;
}

static bool bodies_fit(struct http_exchange *exchange, size_t more, enum http_refused *ret_why)
{
    if (!shares_fit(exchange, more, ret_why))
        return false;
    *ret_why = HTTP_REFUSED_BODIES_FULL;
    return all_fit(exchange, more);
}

/* Doubles, but never past what the body may be. */
static size_t capacity_for(const struct http_exchange *exchange, size_t size)
{
    size_t capacity = exchange->body.capacity * 2;

    if (capacity < BODY_CAPACITY_MIN)
        capacity = BODY_CAPACITY_MIN;
    if (capacity > exchange->body_max)
        capacity = exchange->body_max;
    return capacity < size ? size : capacity;
}

static void start_receiving(struct http_exchange *exchange)
{
    struct http_server *server = exchange->server;

    if (exchange->receiving_body)
        return;
    exchange->receiving_body = true;
    exchange->body_next = NULL;
    exchange->body_previous = server->bodies_last;
    if (server->bodies_last != NULL)
        server->bodies_last->body_next = exchange;
    else
        server->bodies = exchange;
    server->bodies_last = exchange;
}

bool http_body_append(struct http_exchange *exchange, struct slice bytes,
                      enum http_refused *ret_why)
{
    struct buf *body = &exchange->body;
    size_t size = body->size + bytes.size;
    size_t capacity = size > body->capacity ? capacity_for(exchange, size) : body->capacity;

    if (capacity > exchange->body_charged) {
        size_t more = capacity - exchange->body_charged;
        if (!bodies_fit(exchange, more, ret_why))
            return false;
        bodies_add(exchange, more, 0);
    }
    if (capacity > body->capacity) {
        body->data = mem_realloc(body->data, capacity);
        body->capacity = capacity;
    }
    start_receiving(exchange);
    buf_append(body, bytes.data, bytes.size);
    return true;
}

bool http_body_replace(struct http_exchange *exchange, struct slice bytes,
                       enum http_refused *ret_why)
{
    struct buf *body = &exchange->body;

    if (bytes.size > exchange->body_charged &&
        !bodies_fit(exchange, bytes.size - exchange->body_charged, ret_why))
        return false;
    bodies_add(exchange, bytes.size, exchange->body_charged);
    buf_deinit(body);
    body->data = mem_alloc(bytes.size + 1); /* A buffer of no bytes would be none. */
    body->capacity = bytes.size;
    buf_append(body, bytes.data, bytes.size);
    return true;
}

bool http_body_charge_more(struct http_exchange *exchange, size_t size, enum http_refused *ret_why)
{
    if (!bodies_fit(exchange, size, ret_why))
        return false;
    bodies_add(exchange, size, 0);
    return true;
}

void http_body_received(struct http_exchange *exchange)
{
    struct http_server *server = exchange->server;

    if (!exchange->receiving_body)
        return;
    exchange->receiving_body = false;
    if (exchange->body_previous != NULL)
        exchange->body_previous->body_next = exchange->body_next;
    else
        server->bodies = exchange->body_next;
    if (exchange->body_next != NULL)
        exchange->body_next->body_previous = exchange->body_previous;
    else
        server->bodies_last = exchange->body_previous;
}

void http_body_drop(struct http_exchange *exchange)
{
    size_t capacity = exchange->body.capacity;

    http_body_received(exchange);
    buf_deinit(&exchange->body);
    if (exchange->body_charged > 0)
        bodies_add(exchange, 0,
                   capacity < exchange->body_charged ? capacity : exchange->body_charged);
}

void http_budget_join(struct http_exchange *exchange)
{
    exchange->address = http_share_join(exchange->conn->address);
}

void http_budget_leave(struct http_exchange *exchange)
{
    exchange->conn->head_bytes -= exchange->head_charged;
    exchange->conn = NULL;
}

void http_budget_release(struct http_exchange *exchange)
{
    http_body_received(exchange);
    bodies_add(exchange, 0, exchange->body_charged);
    head_give_back(exchange);
    http_share_release(&exchange->server->addresses, exchange->address);
    exchange->address = NULL;
    http_share_release(&exchange->server->keys, exchange->key);
    exchange->key = NULL;
}

/* ---- the system's memory ---- */

void http_budget_tick(struct http_server *server, uint64_t now_ms)
{
    uint64_t bytes = server->stats.buffered_bytes + server->stats.head_bytes;

    if (server->peak_bytes < bytes + TRIM_BYTES_MIN || now_ms < server->trimmed_ms + TRIM_MS_MIN)
        return;
    server->peak_bytes = bytes;
    server->trimmed_ms = now_ms;
    server->stats.trims++;
#ifdef __GLIBC__
    (void)malloc_trim(0);
#endif
}
