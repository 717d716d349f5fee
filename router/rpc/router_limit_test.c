/* Both sides of limits that a router looks at, as one table: at an end of what is allowed a request
 * is not refused for it, and one beyond it is, with field and limit. */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "holdfast/v1/session.pb-c.h"
#include "idl/error_code.h"
#include "idl/limit_fixture.h"
#include "idl/method.h"
#include "idl/policy_limit.h"
#include "router/rpc/fake/fake_router.h"
#include "runtime/base/check.h"

#define TARGET "1 to 128 bytes of UTF-8 without control characters"
#define NAME   "1 to 32 bytes of UTF-8 without control characters and #, no space at either end"

/* clang-format off */
static const struct row {
    uint32_t method;
    const char *path;
    enum limit_shape shape;
    int64_t smallest, largest;
    bool zero; /* It stands for a default. */
    const char *field, *limit;
} rows[] = {
    { METHOD_GRANT, "player_id", LIMIT_TEXT, 1, LIMIT_PLAYER_ID_BYTES, false,
      "player_id", "1 to 100 bytes" },
    { METHOD_GET_OPERATION, "entity", LIMIT_TEXT, 1, LIMIT_ENTITY_BYTES, false,
      "entity", "1 to 128 bytes" },
    { METHOD_REGISTER_SERVER, "name", LIMIT_TEXT, 1, 128, false, "name", "1 to 128 bytes" },
    { METHOD_REGISTER_SERVER, "ttl_ms", LIMIT_NUMBER, 5000, 10000, true, "ttl_ms", "5000 to 10000, or 0" },
    { METHOD_RENEW_SESSIONS, "sessions", LIMIT_COUNT, 0, 1000, false, "sessions", "at most 1000" },
    { METHOD_READ_PLAYERS, "player_ids", LIMIT_COUNT, 1, LIMIT_TRANSACTION_PLAYERS, false,
      "player_ids", "1 to 8 players" },
    { METHOD_TRACE_ITEM, "page_size", LIMIT_NUMBER, 0, 200, false, "page_size", "1 to 200, or 0" },
    { METHOD_LIST_SHARDS, "page_size", LIMIT_NUMBER, 0, 512, false, "page_size", "1 to 512, or 0" },
    { METHOD_LIST_SERVERS, "page_size", LIMIT_NUMBER, 0, 10000, false, "page_size", "1 to 10000, or 0" },
    { METHOD_LIST_PROCESSES, "page_size", LIMIT_NUMBER, 0, 512, false, "page_size", "1 to 512, or 0" },
    { METHOD_LIST_INCIDENTS, "page_size", LIMIT_NUMBER, 0, 1000, false, "page_size", "1 to 1000, or 0" },
    { METHOD_LIST_DEFINITIONS, "page_size", LIMIT_NUMBER, 0, 200, false, "page_size", "1 to 200, or 0" },
    { METHOD_LIST_DEFINITION_VERSIONS, "page_size", LIMIT_NUMBER, 0, 200, false,
      "page_size", "1 to 200, or 0" },
    { METHOD_LIST_ONLINE, "page_size", LIMIT_NUMBER, 0, 1000, false, "page_size", "1 to 1000, or 0" },
    { METHOD_POLL, "page_size", LIMIT_NUMBER, 0, 1000, false, "page_size", "1 to 1000, or 0" },
    { METHOD_POLL, "kinds", LIMIT_COUNT, 0, 16, false, "kinds", "at most 16" },
    { METHOD_POLL, "entity", LIMIT_ENTITY, 0, LIMIT_ENTITY_BYTES, false, "entity", "at most 128 bytes" },
    { METHOD_POLL, "entity_prefix", LIMIT_TEXT, 0, LIMIT_ENTITY_BYTES, false,
      "entity_prefix", "at most 128 bytes" },
    { METHOD_GET_TOP, "limit", LIMIT_NUMBER, 1, 1000, false, "limit", "1 to 1000, or absent" },
    { METHOD_GET_COUNTER_TOP, "limit", LIMIT_NUMBER, 1, 1000, false, "limit", "1 to 1000, or absent" },
    { METHOD_GET_RANK, "target_id", LIMIT_TEXT, 1, 128, false, "target_id", TARGET },
    { METHOD_GET_COUNTER_RANK, "target_id", LIMIT_TEXT, 1, 128, false, "target_id", TARGET },
    { METHOD_GET_COUNT, "target_id", LIMIT_TEXT, 1, 128, false, "target_id", TARGET },
    { METHOD_GET_COUNTER, "target_id", LIMIT_TEXT, 1, 128, false, "target_id", TARGET },
    { METHOD_BATCH_GET_COUNTS, "target_ids", LIMIT_COUNT, 1, 200, false, "target_ids", "1 to 200" },
    { METHOD_BATCH_GET_COUNTERS, "target_ids", LIMIT_COUNT, 1, 200, false, "target_ids", "1 to 200" },
    { METHOD_BATCH_GET_TARGET_METADATA, "target_ids", LIMIT_COUNT, 1, 200, false,
      "target_ids", "1 to 200" },
    { METHOD_GET_SETTINGS, "name", LIMIT_TEXT, 1, 64, false, "name", "1 to 64 of [a-z0-9_]" },
    { METHOD_GET_SETTINGS, "wait_ms", LIMIT_NUMBER, 0, 30000, false, "wait_ms", "0 to 30000" },
    { METHOD_CLAIM_NAME, "name", LIMIT_TEXT, 1, 32, false, "name", NAME },
    { METHOD_CLAIM_NAME, "tag", LIMIT_TEXT, 1, 8, false, "tag", "1 to 8 of a-z, A-Z and 0-9" },
    { METHOD_SET_POLICY, "policy.currencies", LIMIT_COUNT, 0, POLICY_CURRENCIES_MAX, false,
      "policy.currencies", "at most 64" },
    { METHOD_SET_POLICY, "policy.currencies[0].name", LIMIT_TEXT, 1, POLICY_CURRENCY_NAME_MAX, false,
      "policy.currencies[0].name", "1 to 32 of [a-z0-9_]" },
    { METHOD_SET_POLICY, "policy.currencies[0].max_balance", LIMIT_NUMBER, 0, POLICY_AMOUNT_MAX, false,
      "policy.currencies[0].max_balance", "0 to 2^53 - 1" },
    { METHOD_SET_POLICY, "policy.currencies[0].min_balance", LIMIT_NUMBER, -POLICY_AMOUNT_MAX, 0, false,
      "policy.currencies[0].min_balance", "-(2^53 - 1) to 0" },
    { METHOD_SET_POLICY, "policy.operation_window_ms", LIMIT_NUMBER, POLICY_WINDOW_MS_MIN,
      POLICY_WINDOW_MS_MAX, true, "policy.operation_window_ms", "900000 to 604800000" },
    { METHOD_SET_POLICY, "policy.operations_max", LIMIT_NUMBER, POLICY_OPERATIONS_MIN,
      POLICY_OPERATIONS_MAX, true, "policy.operations_max", "1000 to 100000000" },
    { METHOD_SET_POLICY, "policy.items_max", LIMIT_NUMBER, 0, POLICY_ITEMS_MAX, false,
      "policy.items_max", "1 to 1000000" },
    { METHOD_SET_POLICY, "policy.mailbox_max", LIMIT_NUMBER, 0, POLICY_MAILS_MAX, false,
      "policy.mailbox_max", "1 to 100000" },
};
/* clang-format on */

static bool has_field(const struct method_info *method, const char *name)
{
    return protobuf_c_message_descriptor_get_field_by_name(method->request, name) != NULL;
}

/* What the field of a row needs beside it to be looked at. */
static void fill(struct fixture *f, const struct row *row, ProtobufCMessage *request)
{
    const struct method_info *method = method_find(row->method);
    static const struct {
        const char *field;
        enum limit_shape shape;
        int64_t value;
    } texts[] = { { "op_id", LIMIT_OP_ID, 10 },   { "player_id", LIMIT_TEXT, 3 },
                  { "name", LIMIT_TEXT, 3 },      { "tag", LIMIT_TEXT, 4 },
                  { "target_id", LIMIT_TEXT, 3 }, { "collection", LIMIT_TEXT, 3 },
                  { "counter", LIMIT_TEXT, 3 },   { "item_uid", LIMIT_TEXT, 3 } };

    for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
        if (has_field(method, texts[i].field))
            limit_set(&f->arena, request, texts[i].field, texts[i].shape, texts[i].value);
    }
    if (row->method == METHOD_RENEW_SESSIONS)
        ((Holdfast__V1__RenewSessionsRequest *)request)->incarnation = text_lend("1-2");
    if (strncmp(row->path, "policy.currencies[0].", 21) == 0)
        limit_set(&f->arena, request, "policy.currencies[0].name", LIMIT_TEXT, 3);
}

/* Says whether a router, which has no etcd and whose nodes are silent, refused the request for the
 * row's limit. */
static bool is_refused(const struct row *row, int64_t value)
{
    const struct method_info *method = method_find(row->method);
    void *state = NULL;

    assert_int_equal(fake_router_setup(&state), 0);
    struct fixture *f = state;
    ProtobufCMessage *request = limit_message(&f->arena, method->request);
    fill(f, row, request);
    limit_set(&f->arena, request, row->path, row->shape, value);
    fake_router_call(f, row->method, request, 1000, NULL);
    bool refused = f->answers > 0 && f->code == CODE(INVALID_ARGUMENT) &&
                   strcmp(f->field, row->field) == 0 && strcmp(f->limit, row->limit) == 0;
    if (f->answers == 0)
        router_cancel(&f->router, &f->request);
    f->answers = f->finished;
    assert_int_equal(fake_router_teardown(&state), 0);
    return refused;
}

static void must_be(const struct row *row, int64_t value, bool refused)
{
    if (is_refused(row, value) != refused)
        fail_msg("%s, %s %" PRId64 ": %s", method_find(row->method)->name, row->path, value,
                 refused ? "not refused as it must" : "refused within its limit");
}

static void a_request_is_refused_one_beyond_its_limits_and_not_at_them(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        const struct row *row = &rows[i];

        must_be(row, row->smallest, false);
        must_be(row, row->largest, false);
        if (row->zero)
            must_be(row, 0, false);
        must_be(row, row->largest + 1, true);
        if (row->smallest != 0)
            must_be(row, row->smallest - 1, true);
    }
}

/* The table of methods says how many a batch may have. */
static void a_batch_is_refused_one_beyond_its_row(void **state)
{
    const struct method_info *methods;
    size_t count;

    (void)state;
    methods = method_all(&count);
    for (size_t i = 0; i < count; i++) {
        bool mail = methods[i].id == METHOD_DELIVER_MAIL;
        const char *field = mail ? "to_player_ids" : "requests";
        char limit[32];

        if (methods[i].route != METHOD_SCATTER)
            continue;
        snprintf(limit, sizeof limit, mail ? "1 to %u" : "at most %u", methods[i].most);
        const struct row row = { methods[i].id,   field, LIMIT_COUNT, mail,
                                 methods[i].most, false, field,       limit };
        must_be(&row, row.largest, false);
        must_be(&row, row.smallest, false);
        must_be(&row, row.largest + 1, true);
        if (mail)
            must_be(&row, 0, true);
    }
}

static void each_own_list_has_a_row_for_its_size(void **state)
{
    static const char *const sizes[] = { "page_size",  "limit", "target_ids",
                                         "player_ids", "kinds", "sessions" };
    const struct method_info *methods;
    size_t count;

    (void)state;
    methods = method_all(&count);
    for (size_t i = 0; i < count; i++) {
        bool own = methods[i].route == METHOD_ROUTER || methods[i].route == METHOD_GATHER;

        for (size_t k = 0; own && k < ARRAY_SIZE(sizes); k++) {
            bool found = !has_field(&methods[i], sizes[k]);
            for (size_t r = 0; r < ARRAY_SIZE(rows) && !found; r++)
                found = rows[r].method == methods[i].id && strcmp(rows[r].path, sizes[k]) == 0;
            if (!found)
                fail_msg("%s needs a row for its %s", methods[i].name, sizes[k]);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_request_is_refused_one_beyond_its_limits_and_not_at_them),
        cmocka_unit_test(a_batch_is_refused_one_beyond_its_row),
        cmocka_unit_test(each_own_list_has_a_row_for_its_size),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
