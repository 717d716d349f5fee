#include "runtime/etcd/etcd_parse.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "runtime/base/base64.h"
#include "runtime/base/check.h"

/* The first field of the wrong shape makes the whole answer bad. */
struct parse {
    struct arena *arena;
    bool bad;
};

static json_t *load(struct slice json)
{
    json_t *object = json_loadb(json.size > 0 ? (const char *)json.data : "", json.size, 0, NULL);

    if (object != NULL && !json_is_object(object)) {
        json_decref(object);
        return NULL;
    }
    return object;
}

/* The object under `name`, or NULL when it is absent. */
static const json_t *get_object(struct parse *p, const json_t *object, const char *name)
{
    const json_t *value = json_object_get(object, name);

    if (value == NULL)
        return NULL;
    if (!json_is_object(value)) {
        p->bad = true;
        return NULL;
    }
    return value;
}

/* The array under `name`; its size, 0 when it is absent. */
static const json_t *get_array(struct parse *p, const json_t *object, const char *name,
                               size_t *ret_count)
{
    const json_t *value = json_object_get(object, name);

    *ret_count = 0;
    if (value == NULL || json_is_null(value))
        return NULL;
    if (!json_is_array(value)) {
        p->bad = true;
        return NULL;
    }
    *ret_count = json_array_size(value);
    return value;
}

static bool is_decimal(const char *text, bool may_be_negative)
{
    if (may_be_negative && *text == '-')
        text++;
    size_t digits = strspn(text, "0123456789");
    return digits > 0 && text[digits] == '\0';
}

/* int64 comes as a decimal string, or from some versions as a number. */
static int64_t get_i64(struct parse *p, const json_t *object, const char *name)
{
    const json_t *value = json_object_get(object, name);

    if (value == NULL)
        return 0;
    if (json_is_integer(value))
        return json_integer_value(value);
    if (!json_is_string(value) || !is_decimal(json_string_value(value), true)) {
        p->bad = true;
        return 0;
    }
    errno = 0;
    long long number = strtoll(json_string_value(value), NULL, 10);
    if (errno != 0)
        p->bad = true;
    return number;
}

static uint64_t get_u64(struct parse *p, const json_t *object, const char *name)
{
    const json_t *value = json_object_get(object, name);

    if (value == NULL)
        return 0;
    if (json_is_integer(value) && json_integer_value(value) >= 0)
        return (uint64_t)json_integer_value(value);
    if (!json_is_string(value) || !is_decimal(json_string_value(value), false)) {
        p->bad = true;
        return 0;
    }
    errno = 0;
    unsigned long long number = strtoull(json_string_value(value), NULL, 10);
    if (errno != 0)
        p->bad = true;
    return number;
}

static bool get_bool(struct parse *p, const json_t *object, const char *name)
{
    const json_t *value = json_object_get(object, name);

    if (value != NULL && !json_is_boolean(value))
        p->bad = true;
    return json_is_true(value);
}

static struct slice get_bytes(struct parse *p, const json_t *object, const char *name)
{
    const json_t *value = json_object_get(object, name);
    struct slice bytes = { 0 };

    if (value == NULL)
        return bytes;
    if (!json_is_string(value)) {
        p->bad = true;
        return bytes;
    }
    struct slice text = { (const uint8_t *)json_string_value(value), json_string_length(value) };
    uint8_t *data = arena_alloc(p->arena, base64_size_max(text.size) + 1);

    /* etcd's gateway pads: a text of another length was cut short. */
    if (text.size % 4 != 0 || !base64_decode(text, data, &bytes.size))
        p->bad = true;
    else
        bytes.data = data;
    return bytes;
}

static struct etcd_header get_header(struct parse *p, const json_t *object)
{
    const json_t *header = get_object(p, object, "header");

    if (header == NULL)
        return (struct etcd_header){ 0 };
    return (struct etcd_header){ .cluster_id = get_u64(p, header, "cluster_id"),
                                 .member_id = get_u64(p, header, "member_id"),
                                 .revision = get_i64(p, header, "revision"),
                                 .raft_term = get_u64(p, header, "raft_term") };
}

static struct etcd_kv get_kv(struct parse *p, const json_t *object)
{
    if (!json_is_object(object)) {
        p->bad = true;
        return (struct etcd_kv){ 0 };
    }
    return (struct etcd_kv){ .key = get_bytes(p, object, "key"),
                             .value = get_bytes(p, object, "value"),
                             .create_revision = get_i64(p, object, "create_revision"),
                             .mod_revision = get_i64(p, object, "mod_revision"),
                             .version = get_i64(p, object, "version"),
                             .lease = get_i64(p, object, "lease") };
}

static struct etcd_range_result get_range(struct parse *p, const json_t *object)
{
    size_t count;
    const json_t *kvs = get_array(p, object, "kvs", &count);
    struct etcd_range_result range = { .header = get_header(p, object),
                                       .kv_count = count,
                                       .total = get_i64(p, object, "count"),
                                       .more = get_bool(p, object, "more") };

    range.kvs = arena_alloc(p->arena, (count + 1) * sizeof range.kvs[0]);
    for (size_t i = 0; i < count; i++)
        range.kvs[i] = get_kv(p, json_array_get(kvs, i));
    return range;
}

static struct etcd_txn_result get_txn(struct parse *p, const json_t *object, unsigned depth);

static struct etcd_op_result get_op(struct parse *p, const json_t *object, unsigned depth)
{
    struct etcd_op_result op = { .kind = ETCD_OP_PUT };
    const json_t *part;

    if (!json_is_object(object)) {
        p->bad = true;
        return op;
    }
    if ((part = get_object(p, object, "response_range")) != NULL) {
        op.kind = ETCD_OP_RANGE;
        op.range = get_range(p, part);
    } else if ((part = get_object(p, object, "response_delete_range")) != NULL) {
        op.kind = ETCD_OP_DELETE;
        op.deleted = get_i64(p, part, "deleted");
    } else if ((part = get_object(p, object, "response_txn")) != NULL) {
        struct etcd_txn_result *inner = arena_zalloc(p->arena, sizeof *inner);
        op.kind = ETCD_OP_TXN;
        *inner = get_txn(p, part, depth + 1);
        op.txn = inner;
    } else if (get_object(p, object, "response_put") == NULL) {
        p->bad = true;
    }
    return op;
}

static struct etcd_txn_result get_txn(struct parse *p, const json_t *object, unsigned depth)
{
    struct etcd_txn_result txn = { 0 };
    size_t count;

    if (depth > ETCD_TXN_DEPTH_MAX) {
        p->bad = true;
        return txn;
    }
    const json_t *ops = get_array(p, object, "responses", &count);
    if (count > ETCD_TXN_OPS_MAX) {
        p->bad = true;
        return txn;
    }
    txn.header = get_header(p, object);
    txn.succeeded = get_bool(p, object, "succeeded");
    txn.ops = arena_alloc(p->arena, (count + 1) * sizeof txn.ops[0]);
    txn.op_count = count;
    for (size_t i = 0; i < count; i++)
        txn.ops[i] = get_op(p, json_array_get(ops, i), depth);
    return txn;
}

err etcd_parse_range(struct slice json, struct arena *arena, struct etcd_range_result *ret_result)
{
    struct parse p = { .arena = arena };
    json_t *object = load(json);

    if (object == NULL)
        return ERR_CORRUPT;
    struct etcd_range_result result = get_range(&p, object);
    json_decref(object);
    if (p.bad || result.header.revision <= 0)
        return ERR_CORRUPT;
    *ret_result = result;
    return ERR_OK;
}

err etcd_parse_txn(struct slice json, struct arena *arena, struct etcd_txn_result *ret_result)
{
    struct parse p = { .arena = arena };
    json_t *object = load(json);

    if (object == NULL)
        return ERR_CORRUPT;
    struct etcd_txn_result result = get_txn(&p, object, 1);
    json_decref(object);
    if (p.bad || result.header.revision <= 0)
        return ERR_CORRUPT;
    *ret_result = result;
    return ERR_OK;
}

bool etcd_txn_shows(const struct etcd_txn_result *result, size_t op, struct slice value)
{
    if (op >= result->op_count)
        return false;
    const struct etcd_range_result *range = &result->ops[op].range;

    return value.size == 0 ? range->kv_count == 0
                           : range->kv_count == 1 && slice_equal(range->kvs[0].value, value);
}

bool etcd_txn_is_unknown(const struct etcd_txn_result *result)
{
    return !result->succeeded && result->attempts > 1;
}

err etcd_parse_lease(struct slice json, struct etcd_lease_result *ret_result)
{
    struct parse p = { 0 };
    json_t *object = load(json);

    if (object == NULL)
        return ERR_CORRUPT;
    const json_t *result = get_object(&p, object, "result");
    const json_t *body = result != NULL ? result : object;
    struct etcd_lease_result lease = { .header = get_header(&p, body),
                                       .lease_id = get_i64(&p, body, "ID"),
                                       .ttl_s = get_i64(&p, body, "TTL") };
    /* A grant may fail inside a 200, in this field. */
    const char *error = json_string_value(json_object_get(body, "error"));
    bool failed = error != NULL && error[0] != '\0';
    json_decref(object);
    if (p.bad || failed || lease.header.cluster_id == 0)
        return ERR_CORRUPT;
    *ret_result = lease;
    return ERR_OK;
}

static void copy_text(char *to, size_t size, const json_t *value)
{
    size_t length = json_is_string(value) ? json_string_length(value) : 0;

    if (length >= size)
        length = size - 1;
    if (length > 0)
        memcpy(to, json_string_value(value), length);
    to[length] = '\0';
}

static void join_texts(const json_t *list, char *to, size_t size)
{
    size_t used = 0;

    to[0] = '\0';
    for (size_t i = 0; i < json_array_size(list) && used + 3 < size; i++) {
        if (i > 0) {
            memcpy(to + used, "; ", 2);
            used += 2;
        }
        copy_text(to + used, size - used, json_array_get(list, i));
        used += strlen(to + used);
    }
}

err etcd_parse_status(struct slice json, struct etcd_status_result *ret_result)
{
    struct parse p = { 0 };
    json_t *object = load(json);

    if (object == NULL)
        return ERR_CORRUPT;
    struct etcd_status_result status = { .header = get_header(&p, object),
                                         .leader = get_u64(&p, object, "leader") };
    copy_text(status.version, sizeof status.version, json_object_get(object, "version"));
    status.database_bytes = get_u64(&p, object, "dbSize");
    status.quota_bytes = get_u64(&p, object, "dbSizeQuota");
    join_texts(json_object_get(object, "errors"), status.errors, sizeof status.errors);
    json_decref(object);
    if (p.bad || status.header.cluster_id == 0)
        return ERR_CORRUPT;
    *ret_result = status;
    return ERR_OK;
}

static struct etcd_event get_event(struct parse *p, const json_t *object)
{
    struct etcd_event event = { 0 };
    const char *type = json_string_value(json_object_get(object, "type"));

    event.deleted = type != NULL && strcmp(type, "DELETE") == 0;
    if (type != NULL && !event.deleted && strcmp(type, "PUT") != 0)
        p->bad = true;
    event.kv = get_kv(p, json_object_get(object, "kv"));
    if (event.kv.mod_revision <= 0)
        p->bad = true;
    return event;
}

err etcd_parse_watch(struct slice json, struct arena *arena, struct etcd_watch_result *ret_result)
{
    struct parse p = { .arena = arena };
    json_t *object = load(json);
    size_t count;

    if (object == NULL)
        return ERR_CORRUPT;
    const json_t *result = get_object(&p, object, "result");
    if (result == NULL) {
        json_decref(object);
        return ERR_CORRUPT;
    }
    const json_t *events = get_array(&p, result, "events", &count);
    struct etcd_watch_result watch = { .header = get_header(&p, result),
                                       .created = get_bool(&p, result, "created"),
                                       .canceled = get_bool(&p, result, "canceled"),
                                       .compact_revision = get_i64(&p, result, "compact_revision"),
                                       .event_count = count };
    watch.events = arena_alloc(arena, (count + 1) * sizeof watch.events[0]);
    for (size_t i = 0; i < count; i++)
        watch.events[i] = get_event(&p, json_array_get(events, i));
    json_decref(object);
    if (p.bad)
        return ERR_CORRUPT;
    *ret_result = watch;
    return ERR_OK;
}

err etcd_parse_failure(struct slice json, struct etcd_failure *ret_failure)
{
    struct parse p = { 0 };
    struct etcd_failure failure = { 0 };
    json_t *object = load(json);

    if (object == NULL)
        return ERR_CORRUPT;
    /* {"error":"text","code":n} of a call; {"error":{"grpc_code":n,"message":"text"}} of a stream;
     * {"code":n,"message":"text"} since 3.5. */
    const json_t *error = json_object_get(object, "error");
    if (json_is_object(error)) {
        failure.grpc_code = get_i64(&p, error, "grpc_code");
        copy_text(failure.text, sizeof failure.text, json_object_get(error, "message"));
    } else {
        const json_t *text = error != NULL ? error : json_object_get(object, "message");
        failure.grpc_code = get_i64(&p, object, "code");
        copy_text(failure.text, sizeof failure.text, text);
    }
    json_decref(object);
    if (p.bad || failure.grpc_code == 0)
        return ERR_CORRUPT;
    *ret_failure = failure;
    return ERR_OK;
}

err etcd_failure_err(const struct etcd_failure *failure, bool reads_only)
{
    /* The numbers are gRPC's status codes. */
    switch (failure->grpc_code) {
    case 3:  /* INVALID_ARGUMENT */
    case 12: /* UNIMPLEMENTED */
        return ERR_INVALID;
    case 5:  /* NOT_FOUND: a lease. */
    case 11: /* OUT_OF_RANGE: a revision compacted, or not yet there. */
        return ERR_NOT_FOUND;
    case 7:  /* PERMISSION_DENIED */
    case 16: /* UNAUTHENTICATED */
        return ERR_PERMISSION;
    case 8: /* RESOURCE_EXHAUSTED: "too many requests" is said before anything is proposed, but */
        /* "database space exceeded" also after a put that did happen (quotaApplierV3). */
        if (reads_only || strstr(failure->text, "too many requests") != NULL)
            return ERR_FULL;
        return ERR_TIMEOUT;
    case 9: /* FAILED_PRECONDITION: lease id taken. */
        return strstr(failure->text, "exist") != NULL ? ERR_EXISTS : ERR_INVALID;
    case 4: /* DEADLINE_EXCEEDED */
        return ERR_TIMEOUT;
    default:
        /* UNAVAILABLE also means "request timed out" and "leader changed", after which a proposal
         * may still commit. */
        return reads_only ? ERR_UNAVAILABLE : ERR_DISCONNECTED;
    }
}

/* Advances over one byte of JSON. True when it closes the outermost object. */
static bool splitter_take(struct etcd_splitter *s, uint8_t c)
{
    if (s->in_string) {
        if (s->escaped)
            s->escaped = false;
        else if (c == '\\')
            s->escaped = true;
        else if (c == '"')
            s->in_string = false;
        return false;
    }
    if (c == '"')
        s->in_string = true;
    else if (c == '{' || c == '[')
        s->depth++;
    else if (c == '}' || c == ']')
        return --s->depth == 0;
    return false;
}

static bool is_blank(uint8_t c)
{
    return c == ' ' || c == '\n' || c == '\r' || c == '\t';
}

bool etcd_splitter_step(struct etcd_splitter *splitter, struct slice bytes,
                        struct slice *ret_object, size_t *ret_consumed, bool *ret_bad)
{
    size_t start = 0;

    *ret_bad = false;
    while (start < bytes.size && is_blank(bytes.data[start]))
        start++;
    if (start < bytes.size && bytes.data[start] != '{') {
        *ret_bad = true;
        return false;
    }
    if (splitter->scanned < start)
        splitter->scanned = start;
    for (size_t i = splitter->scanned; i < bytes.size; i++) {
        if (!splitter_take(splitter, bytes.data[i]))
            continue;
        *ret_object = (struct slice){ bytes.data + start, i + 1 - start };
        *ret_consumed = i + 1;
        *splitter = (struct etcd_splitter){ 0 };
        return true;
    }
    splitter->scanned = bytes.size;
    return false;
}
