/* Both sides of limits that a request meets: at an end of what is allowed a request is not refused
 * for it, and one beyond it is, with field, limit and value; and what a player or a shard has room
 * for. */
#include <inttypes.h>
#include <string.h>

#include "idl/limit.h"
#include "node/core/codec/arena_proto.h"
#include "node/core/consumer/consumer.h"
#include "node/rpc/fixture_edges.h"
#include "node/rpc/fixture_limits.h"
#include "node/rpc/handlers.h"
#include "runtime/base/check.h"
#include "runtime/cluster/placement.h"

/* ---- tests ---- */

static void must_be_refused(struct fixture *f, const struct limit_row *row, uint64_t value)
{
    if (!limit_is_refused(f, row, value))
        fail_msg("%s, %s %" PRIu64 ": not refused as it must; the answer is %s: %s, %s",
                 method_find(row->method)->name, row->path, value,
                 f->error != NULL ? f->error->field : "none",
                 f->error != NULL ? f->error->limit : "",
                 f->error != NULL ? f->error->message : "");
    if (row->shape == LIMIT_NUMBER || row->shape == LIMIT_COUNT)
        assert_string_equal(f->error->value, arena_printf(&f->arena, "%" PRIu64, value));
}

static void must_pass(struct fixture *f, const struct limit_row *row, uint64_t value)
{
    if (limit_is_refused(f, row, value))
        fail_msg("%s, %s %" PRIu64 ": refused within its limit", method_find(row->method)->name,
                 row->path, value);
}

/* A number of 64 bits without a sign. */
static bool has_no_sign(const struct limit_row *row)
{
    const ProtobufCFieldDescriptor *field = protobuf_c_message_descriptor_get_field_by_name(
        method_find(row->method)->request, row->path);

    return row->shape == LIMIT_NUMBER && field != NULL && field->type == PROTOBUF_C_TYPE_UINT64;
}

static void a_request_is_refused_one_beyond_its_limits_and_not_at_them(void **state)
{
    (void)state;
    for (size_t i = 0; i < limit_row_count; i++) {
        static struct fixture_shards shards;
        struct fixture *f = &shards.shards[0];
        fixture_shards_init(&shards);
        fixture_define_favorites(f);
        must_pass(f, &limit_rows[i], limit_rows[i].smallest);
        must_pass(f, &limit_rows[i], limit_rows[i].largest);
        must_be_refused(f, &limit_rows[i], limit_rows[i].largest + 1);
        if (has_no_sign(&limit_rows[i]))
            must_be_refused(f, &limit_rows[i], UINT64_MAX);
        if (limit_rows[i].smallest > 0)
            must_be_refused(f, &limit_rows[i], limit_rows[i].smallest - 1);
        fixture_shards_deinit(&shards);
    }
}

/* ---- what fills ---- */

/* What a player, or a shard, has room for: requests until it is full, and one more. */
static const struct filling {
    const char *name;
    uint32_t method, count; /* Requests that fit. */
    const char *limit;
} fillings[] = {
    { "reservations", METHOD_RESERVE_CURRENCIES, LIMIT_RESERVATIONS, "64" },
    { "consumers", METHOD_CREATE_CONSUMER, LIMIT_CONSUMERS, "64" },
    { "sections", METHOD_UPDATE_PROFILE, LIMIT_SECTIONS, "64" },
    { "profile_bytes", METHOD_UPDATE_PROFILE, LIMIT_PROFILE_BYTES / LIMIT_SECTION_BYTES,
      "3145728" },
};

/* The name of a consumer that lives on shard 0. */
static char *consumer_name(struct fixture *f, uint32_t place)
{
    for (uint32_t i = 0;; i++) {
        char *name = arena_printf(&f->arena, "%u.%u", place, i);
        const char *entity = arena_printf(&f->arena, CONSUMER_ENTITY "%s", name);
        if (shard_of_entity(slice_from_text(entity), FIXTURE_SHARDS) == 0)
            return name;
    }
}

/* Says whether request `place` is done; if not, it has to be refused for the filling's limit. */
static bool fits(struct fixture *f, const struct filling *filling, uint32_t place)
{
    ProtobufCMessage *request = arena_message(&f->arena, method_find(filling->method)->request);
    int64_t bytes = strcmp(filling->name, "profile_bytes") == 0 ? (int64_t)LIMIT_SECTION_BYTES : 20;

    limit_fill(f, filling->method, "", request);
    if (filling->method == METHOD_CREATE_CONSUMER)
        limit_set_text(request, "consumer", consumer_name(f, place));
    if (filling->method == METHOD_UPDATE_PROFILE) {
        limit_set(&f->arena, request, "edits[0].replace", LIMIT_OBJECT, bytes);
        Holdfast__V1__UpdateProfileRequest *update = (void *)request;
        update->edits[0]->name = arena_printf(&f->arena, "s%u", place);
    }
    if (fixture_mutate(f, filling->method, request) != NULL)
        return true;
    assert_non_null(f->error);
    if (f->error->code != ERROR(CAPACITY_FULL) || strcmp(f->error->limit, filling->limit) != 0)
        fail_msg("%s: %u requests, and %s %s: %s", filling->name, place, f->error->field,
                 f->error->limit, f->error->message);
    return false;
}

static void what_is_full_takes_no_more(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(fillings); i++) {
        static struct fixture_shards shards;
        struct fixture *f = &shards.shards[0];
        uint32_t place = 0;

        fixture_shards_init(&shards);
        ProtobufCMessage *grant = arena_message(&f->arena, method_find(METHOD_GRANT)->request);
        limit_fill(f, METHOD_GRANT, "", grant);
        limit_set(&f->arena, grant, "currencies[0].amount", LIMIT_NUMBER,
                  (int64_t)fillings[i].count);
        assert_non_null(fixture_mutate(f, METHOD_GRANT, grant));
        while (place <= fillings[i].count && fits(f, &fillings[i], place))
            place++;
        if (place != fillings[i].count)
            fail_msg("%s: %u requests fit, not %u", fillings[i].name, place, fillings[i].count);
        fixture_shards_deinit(&shards);
    }
}

/* ---- all of them ---- */

/* Limits of idl/limit.h that no row here holds, and why. */
static const struct without {
    const char *name, *why;
} without_row[] = {
    { "token_bytes", "every token that can be read has fewer bytes: its form is told as wrong" },
    { "deadline_ms", "a longer deadline is cut by the router, and nothing is refused" },
    { "request_bytes", "a shard refuses what no entry of its log holds; this fixture has no log" },
};

static bool has_row(const char *name)
{
    for (size_t i = 0; i < limit_row_count; i++) {
        if (strcmp(limit_rows[i].name, name) == 0)
            return true;
    }
    for (size_t i = 0; i < ARRAY_SIZE(fillings); i++) {
        if (strcmp(fillings[i].name, name) == 0)
            return true;
    }
    return false;
}

static bool is_without_row(const char *name)
{
    for (size_t i = 0; i < ARRAY_SIZE(without_row); i++) {
        if (strcmp(without_row[i].name, name) == 0)
            return true;
    }
    return false;
}

static void each_public_limit_has_a_row_or_is_named_as_without(void **state)
{
#define NAME(macro, name, bounds) name,
    static const char *const names[] = { PUBLIC_LIMITS(NAME) };
#undef NAME

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        if (has_row(names[i]) == is_without_row(names[i]))
            fail_msg("%s of idl/limit.h needs a row, or a place in without_row", names[i]);
    }
}

static void each_list_of_a_shard_has_a_row_for_its_pages(void **state)
{
    (void)state;
    for (uint32_t id = 1; id <= METHOD_ID_MAX; id++) {
        const struct method_info *method = method_find(id);
        bool found =
            method == NULL || handler_find(node_handlers(), id) == NULL ||
            protobuf_c_message_descriptor_get_field_by_name(method->request, "page_size") == NULL;
        for (size_t i = 0; !found && i < limit_row_count; i++)
            found = limit_rows[i].method == id && strcmp(limit_rows[i].path, "page_size") == 0;
        if (!found)
            fail_msg("%s needs a row for its page_size", method->name);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_request_is_refused_one_beyond_its_limits_and_not_at_them),
        cmocka_unit_test(what_is_full_takes_no_more),
        cmocka_unit_test(each_list_of_a_shard_has_a_row_for_its_pages),
        cmocka_unit_test(each_public_limit_has_a_row_or_is_named_as_without),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
