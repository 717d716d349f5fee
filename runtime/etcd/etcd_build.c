#include "runtime/etcd/etcd_build.h"

#include <inttypes.h>
#include <stdlib.h>

#include <jansson.h>

#include "runtime/base/base64.h"
#include "runtime/base/check.h"

struct etcd_txn {
    json_t *compares;
    json_t *branches[2]; /* By enum etcd_branch. */
    size_t op_count;
    unsigned depth; /* 1, plus that of the deepest one within. */
};

static void put(json_t *object, const char *name, json_t *value)
{
    CHECK(json_object_set_new(object, name, value) == 0);
}

static json_t *decimal(int64_t number)
{
    return json_sprintf("%" PRId64, number);
}

static json_t *in_base64(struct slice bytes)
{
    struct buf text = { 0 };

    base64_encode(bytes, true, &text);
    json_t *value = json_stringn(text.size > 0 ? (const char *)text.data : "", text.size);
    buf_deinit(&text);
    return value;
}

static void put_key(json_t *object, struct slice key)
{
    CHECK(key.size > 0 && key.size <= ETCD_KEY_MAX);
    put(object, "key", in_base64(key));
}

/* The first key behind all that begin with `prefix`. One zero byte means "to the end". */
static void put_prefix(json_t *object, struct slice prefix)
{
    static const uint8_t zero[1] = { 0 };
    struct slice all = { zero, 1 };
    struct buf end = { 0 };

    CHECK(prefix.size <= ETCD_KEY_MAX);
    put(object, "key", in_base64(prefix.size > 0 ? prefix : all));
    buf_append(&end, prefix.data, prefix.size);
    while (end.size > 0 && end.data[end.size - 1] == 0xff)
        end.size--;
    if (end.size > 0)
        end.data[end.size - 1]++;
    put(object, "range_end", in_base64(end.size > 0 ? buf_slice(&end) : all));
    buf_deinit(&end);
}

/* From the next key that there may be; etcd told this one, however long it is. */
static void put_after(json_t *object, struct slice key)
{
    struct buf next = { 0 };

    buf_append(&next, key.data, key.size);
    buf_put_u8(&next, 0);
    put(object, "key", in_base64(buf_slice(&next)));
    buf_deinit(&next);
}

/* Appends and frees `object`. */
static void print(json_t *object, struct buf *out)
{
    size_t size = json_dumpb(object, NULL, 0, JSON_COMPACT);

    CHECK(size > 0);
    CHECK(json_dumpb(object, (char *)buf_reserve(out, size), size, JSON_COMPACT) == size);
    out->size += size;
    json_decref(object);
}

struct etcd_txn *etcd_txn_new(void)
{
    struct etcd_txn *txn = mem_zalloc(sizeof *txn);

    txn->compares = json_array();
    txn->branches[ETCD_THEN] = json_array();
    txn->branches[ETCD_ELSE] = json_array();
    txn->depth = 1;
    return txn;
}

void etcd_txn_free(struct etcd_txn *txn)
{
    if (txn == NULL)
        return;
    json_decref(txn->compares);
    json_decref(txn->branches[ETCD_THEN]);
    json_decref(txn->branches[ETCD_ELSE]);
    free(txn);
}

static json_t *compare_new(struct slice key, enum etcd_relation relation)
{
    static const char *const words[] = { "EQUAL", "GREATER", "LESS", "NOT_EQUAL" };
    json_t *compare = json_object();

    put_key(compare, key);
    put(compare, "result", json_string(words[relation]));
    return compare;
}

static void add_compare(struct etcd_txn *txn, json_t *compare)
{
    CHECK(json_array_size(txn->compares) < ETCD_TXN_OPS_MAX);
    CHECK(json_array_append_new(txn->compares, compare) == 0);
}

void etcd_txn_compare(struct etcd_txn *txn, struct slice key, enum etcd_target target,
                      enum etcd_relation relation, int64_t number)
{
    static const char *const words[] = { "VERSION", "CREATE", "MOD", "LEASE" };
    static const char *const fields[] = { "version", "create_revision", "mod_revision", "lease" };
    json_t *compare = compare_new(key, relation);

    put(compare, "target", json_string(words[target]));
    put(compare, fields[target], decimal(number));
    add_compare(txn, compare);
}

static void add_op(struct etcd_txn *txn, enum etcd_branch branch, const char *name, json_t *op)
{
    json_t *wrapped = json_object();

    CHECK(txn->op_count < ETCD_TXN_OPS_MAX);
    txn->op_count++;
    put(wrapped, name, op);
    CHECK(json_array_append_new(txn->branches[branch], wrapped) == 0);
}

void etcd_txn_put(struct etcd_txn *txn, enum etcd_branch branch, struct slice key,
                  struct slice value, int64_t lease)
{
    json_t *op = json_object();

    CHECK(value.size <= ETCD_VALUE_MAX);
    put_key(op, key);
    put(op, "value", in_base64(value));
    if (lease != 0)
        put(op, "lease", decimal(lease));
    add_op(txn, branch, "request_put", op);
}

void etcd_txn_get(struct etcd_txn *txn, enum etcd_branch branch, struct slice key)
{
    json_t *op = json_object();

    put_key(op, key);
    add_op(txn, branch, "request_range", op);
}

void etcd_txn_count(struct etcd_txn *txn, enum etcd_branch branch, struct slice prefix)
{
    json_t *op = json_object();

    put_prefix(op, prefix);
    put(op, "count_only", json_true());
    add_op(txn, branch, "request_range", op);
}

void etcd_txn_delete(struct etcd_txn *txn, enum etcd_branch branch, struct slice key)
{
    json_t *op = json_object();

    put_key(op, key);
    add_op(txn, branch, "request_delete_range", op);
}

void etcd_txn_make(struct etcd_txn *txn, struct slice key, struct slice value)
{
    if (value.size > 0)
        etcd_txn_put(txn, ETCD_THEN, key, value, 0);
    else
        etcd_txn_delete(txn, ETCD_THEN, key);
    etcd_txn_get(txn, ETCD_ELSE, key);
}

/* Takes the parts out of `txn`. */
static json_t *txn_object(const struct etcd_txn *txn)
{
    json_t *object = json_object();

    CHECK(json_object_set(object, "compare", txn->compares) == 0);
    CHECK(json_object_set(object, "success", txn->branches[ETCD_THEN]) == 0);
    CHECK(json_object_set(object, "failure", txn->branches[ETCD_ELSE]) == 0);
    return object;
}

void etcd_txn_nest(struct etcd_txn *txn, enum etcd_branch branch, struct etcd_txn *inner)
{
    CHECK(inner != txn);
    CHECK(inner->depth < ETCD_TXN_DEPTH_MAX);
    if (inner->depth + 1 > txn->depth)
        txn->depth = inner->depth + 1;
    add_op(txn, branch, "request_txn", txn_object(inner));
    txn->op_count += inner->op_count;
    CHECK(txn->op_count <= ETCD_TXN_OPS_MAX);
    etcd_txn_free(inner);
}

void etcd_build_txn(const struct etcd_txn *txn, struct buf *out)
{
    print(txn_object(txn), out);
}

void etcd_build_range(const struct etcd_range *range, struct buf *out)
{
    json_t *object = json_object();

    if (range->prefix)
        put_prefix(object, range->key);
    else
        put_key(object, range->key);
    if (range->after.size > 0)
        put_after(object, range->after);
    if (range->keys_only)
        put(object, "keys_only", json_true());
    if (range->limit != 0)
        put(object, "limit", decimal(range->limit));
    if (range->revision != 0)
        put(object, "revision", decimal(range->revision));
    print(object, out);
}

void etcd_build_lease_grant(int64_t lease_id, int64_t ttl_s, struct buf *out)
{
    json_t *object = json_object();

    put(object, "TTL", decimal(ttl_s));
    if (lease_id != 0)
        put(object, "ID", decimal(lease_id));
    print(object, out);
}

void etcd_build_lease_id(int64_t lease_id, struct buf *out)
{
    json_t *object = json_object();

    put(object, "ID", decimal(lease_id));
    print(object, out);
}

void etcd_build_watch(struct slice key, bool prefix, int64_t start_revision, struct buf *out)
{
    json_t *create = json_object();
    json_t *object = json_object();

    if (prefix)
        put_prefix(create, key);
    else
        put_key(create, key);
    put(create, "start_revision", decimal(start_revision));
    put(create, "progress_notify", json_true());
    put(object, "create_request", create);
    print(object, out);
}
