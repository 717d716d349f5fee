/* Both sides of each limit of a definition and of what asks for one, as tables: at an end of what
 * is allowed nothing is refused for it, and one beyond it is, with field, limit and value. */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "coordinator/core/definition_kind.h"
#include "coordinator/core/world.h"
#include "holdfast/internal/v1/definition.pb-c.h"
#include "idl/error_code.h"
#include "idl/limit.h"
#include "idl/limit_fixture.h"
#include "idl/method.h"
#include "runtime/base/arena.h"
#include "runtime/base/check.h"
#include "runtime/cluster/endpoint_url.h"

#define YEAR_MS 31536000000ll

typedef Holdfast__V1__DefinitionBody definition_body;
typedef Holdfast__Internal__V1__ChangeDefinitionRequest change_request;
typedef Holdfast__Internal__V1__FindDefinitionsRequest find_request;

static struct arena arena;

static void set(ProtobufCMessage *message, const char *name, int64_t value)
{
    enum limit_shape shape = strstr(name, "url") != NULL ? LIMIT_URL : LIMIT_TEXT;

    limit_set(&arena, message, name, strcmp(name, "json") == 0 ? LIMIT_NESTED : shape, value);
}

/* ---- bodies ---- */

/* What else a body says, since no field is alone in it. */
struct beside {
    const char *field;
    int64_t value;
};

#define POLICY                                                                                     \
    {                                                                                              \
        "conflict_policy", 1                                                                       \
    }
#define SUBJECT                                                                                    \
    {                                                                                              \
        "subject", 4                                                                               \
    }
#define PERIOD                                                                                     \
    {                                                                                              \
        "period_ms", 1000                                                                          \
    }
#define AGE                                                                                        \
    {                                                                                              \
        "account_age_ms", 1000                                                                     \
    }
#define KEEP                                                                                       \
    {                                                                                              \
        "keep_ms", 1000                                                                            \
    }
#define EVENTS                                                                                     \
    {                                                                                              \
        "events_max", 10                                                                           \
    }
#define MERGED                                                                                     \
    {                                                                                              \
        "policy", 1                                                                                \
    }

/* clang-format off */
static const struct row {
    const char *kind, *field; /* "name": that of the definition. */
    int64_t smallest, largest;
    int64_t none; /* What 0 stands for, if it is not one of those; 0: itself. */
    const char *limit;
    struct beside beside[3];
} rows[] = {
    { "currency", "name", 1, 32, 0, "1 to 32 of [a-z0-9_]", { { 0 } } },
    { "currency", "max_balance", 1, LIMIT_AMOUNT, LIMIT_AMOUNT, "1 to 9007199254740991", { { 0 } } },
    { "currency", "min_balance", -LIMIT_AMOUNT, 0, 0, "-9007199254740991 to 0", { { 0 } } },
    { "currency", "scale", 0, 9, 0, "0 to 9", { { 0 } } },
    { "collection", "name", 1, 64, 0, "1 to 64 of [a-z0-9_]", { POLICY } },
    { "collection", "conflict_policy", 1, 2, 0, "highest_version or last_write", { { 0 } } },
    { "collection", "edges_max", 1, 100000, 10000, "1 to 100000", { POLICY } },
    { "collection", "metadata_url", 10, 1024, 0, ENDPOINT_URL_RULE, { POLICY } },
    { "counter", "name", 1, 64, 0, "1 to 64 of [a-z0-9_]", { { 0 } } },
    { "counter", "max_value", 1, LIMIT_AMOUNT, LIMIT_AMOUNT, "1 to 9007199254740991", { { 0 } } },
    { "counter", "add_max", 1, LIMIT_AMOUNT, LIMIT_AMOUNT, "1 to 9007199254740991", { { 0 } } },
    { "rate_rule", "name", 1, 64, 0, "1 to 64 of [a-z0-9_]", { SUBJECT, AGE } },
    { "rate_rule", "subject", 1, 64, 0, "1 to 64 of [a-z0-9_]", { AGE } },
    { "rate_rule", "limit", 1, 1000000, 0, "1 to 1000000", { SUBJECT, PERIOD } },
    { "rate_rule", "limit", 0, 0, 0, "absent, with flag_above", { SUBJECT, PERIOD, { "flag_above", 1 } } },
    { "rate_rule", "limit", 0, 0, 0, "absent, with account_age_ms", { SUBJECT, AGE } },
    { "rate_rule", "flag_above", 0, 1000000, 0, "1 to 1000000", { SUBJECT, PERIOD } },
    { "rate_rule", "flag_above", 0, 0, 0, "absent, with account_age_ms", { SUBJECT, AGE } },
    { "rate_rule", "period_ms", 1000, 86400000, 0, "1000 to 86400000", { SUBJECT, { "limit", 1 } } },
    { "rate_rule", "period_ms", 1000, 86400000, 0, "1000 to 86400000", { SUBJECT, { "flag_above", 1 } } },
    { "rate_rule", "period_ms", 0, 0, 0, "absent, with account_age_ms", { SUBJECT, AGE } },
    { "rate_rule", "account_age_ms", 1000, YEAR_MS, 0, "1000 to 31536000000", { SUBJECT } },
    { "event_retention", "name", 1, 64, 0, "1 to 64 of [a-z0-9_]", { KEEP, EVENTS } },
    { "event_retention", "keep_ms", 1000, YEAR_MS, 0, "1000 to 31536000000", { EVENTS } },
    { "event_retention", "events_max", 10, 100000000, 0, "10 to 100000000", { KEEP } },
    { "documents", "name", 1, 64, 0, "1 to 64 of [a-z0-9_]", { MERGED } },
    { "documents", "policy", 1, 5, 0, "last_write, merge, set, vector or counter", { { 0 } } },
    { "documents", "durability", 1, 3, 2, "memory, one or majority", { MERGED } },
    { "documents", "ttl_ms", 1000, YEAR_MS, 0, "0, or 1000 to 31536000000", { MERGED } },
    { "documents", "bytes_max", 1, 1048576, 65536, "1 to 1048576", { MERGED } },
    { "settings", "name", 1, 64, 0, "1 to 64 of [a-z0-9_]", { { "json", 1 } } },
    { "settings", "json", 0, 64, 0, "nested at most 64 deep", { { 0 } } },
};
/* clang-format on */

static const ProtobufCFieldDescriptor *kind_field(const char *kind)
{
    return protobuf_c_message_descriptor_get_field_by_name(
        &holdfast__v1__definition_body__descriptor, kind);
}

/* The body of that kind, which the whole one has. */
static ProtobufCMessage *body_make(const char *kind, definition_body *ret_body)
{
    const ProtobufCFieldDescriptor *field = kind_field(kind);
    ProtobufCMessage *part = limit_message(&arena, field->descriptor);

    holdfast__v1__definition_body__init(ret_body);
    ret_body->kind_case = (Holdfast__V1__DefinitionBody__KindCase)field->id;
    *(ProtobufCMessage **)((char *)ret_body + field->offset) = part;
    return part;
}

static int64_t number_of(const ProtobufCMessage *message, const char *name)
{
    const ProtobufCFieldDescriptor *field =
        protobuf_c_message_descriptor_get_field_by_name(message->descriptor, name);
    const void *place = (const char *)message + field->offset;

    return field->type == PROTOBUF_C_TYPE_INT64 || field->type == PROTOBUF_C_TYPE_UINT64
               ? *(const int64_t *)place
               : *(const uint32_t *)place;
}

static const char *name_make(int64_t size)
{
    Holdfast__V1__GetDefinitionRequest request = HOLDFAST__V1__GET_DEFINITION_REQUEST__INIT;

    set(&request.base, "name", size);
    return request.name;
}

/* Says whether the definition was refused for the row's limit; *ret_part is its body. */
static bool is_refused(const struct row *row, int64_t value, ProtobufCMessage **ret_part)
{
    struct definition_fault fault = { .field = "" };
    bool names = strcmp(row->field, "name") == 0;
    definition_body body;
    ProtobufCMessage *part = *ret_part = body_make(row->kind, &body);

    for (size_t i = 0; i < ARRAY_SIZE(row->beside) && row->beside[i].field != NULL; i++)
        set(part, row->beside[i].field, row->beside[i].value);
    if (!names)
        set(part, row->field, value);
    const char *field =
        names ? row->field : arena_printf(&arena, "body.%s.%s", row->kind, row->field);
    if (definition_body_check(&body, names ? name_make(value) : "kills", &fault))
        return false;
    return strcmp(fault.field, field) == 0 && strcmp(fault.limit, row->limit) == 0;
}

static void must_pass(const struct row *row, int64_t value)
{
    ProtobufCMessage *part;

    if (is_refused(row, value, &part))
        fail_msg("%s.%s %" PRId64 ": refused within its limit", row->kind, row->field, value);
}

static void must_be_refused(const struct row *row, int64_t value)
{
    ProtobufCMessage *part;

    if (!is_refused(row, value, &part))
        fail_msg("%s.%s %" PRId64 ": not refused as it must", row->kind, row->field, value);
}

static void a_definition_is_refused_one_beyond_its_limits_and_not_at_them(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        const struct row *row = &rows[i];
        bool zero_is_none = row->smallest == 1 && row->none != 0;
        ProtobufCMessage *part;

        must_pass(row, row->smallest);
        must_pass(row, row->largest);
        must_be_refused(row, row->largest + 1);
        if (zero_is_none && !is_refused(row, 0, &part))
            assert_int_equal(number_of(part, row->field), row->none);
        else if (row->smallest != 0)
            must_be_refused(row, row->smallest - 1);
        arena_reset(&arena);
    }
}

static bool has_row(const char *kind, const char *field)
{
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        if (strcmp(rows[i].kind, kind) == 0 && strcmp(rows[i].field, field) == 0)
            return true;
    }
    return false;
}

static void each_field_of_each_kind_has_a_row(void **state)
{
    const ProtobufCMessageDescriptor *kinds = &holdfast__v1__definition_body__descriptor;

    (void)state;
    for (unsigned i = 0; i < kinds->n_fields; i++) {
        const ProtobufCMessageDescriptor *kind = kinds->fields[i].descriptor;
        const char *name = kinds->fields[i].name;

        assert_true(has_row(name, "name"));
        for (unsigned k = 0; k < kind->n_fields; k++) {
            if (!has_row(name, kind->fields[k].name))
                fail_msg("%s.%s needs a row", name, kind->fields[k].name);
        }
    }
}

/* ---- requests ---- */

static const struct asked {
    uint32_t method;
    const char *field;
    int64_t smallest, largest;
    const char *limit;
} asked[] = {
    { METHOD_CHANGE_DEFINITION, "op_id", 1, LIMIT_OP_ID_BYTES, "1 to 160 bytes" },
    { METHOD_CHANGE_DEFINITION, "reason", 0, LIMIT_REASON_BYTES, "at most 64 bytes" },
    { METHOD_CHANGE_DEFINITION, "author", 0, 64, "at most 64 bytes" },
    { METHOD_CHANGE_DEFINITION, "name", 1, 64, "1 to 64 of [a-z0-9_]" },
    { METHOD_CHANGE_DEFINITION, "wait_ms", 0, LIMIT_DEADLINE_MS, "0 to 60000" },
    { METHOD_FIND_DEFINITIONS, "limit", 1, 200, "1 to 200" },
};

/* What no limit of this table is about, and why. */
static const struct without {
    const char *field, *why;
} without_row[] = {
    { "deed", "one of three words, not a number" },
    { "kind", "one of the kinds' names" },
    { "body", "the rows above" },
    { "restored", "a restore's definition, which the same checks look at" },
    { "if_version", "compared, not bounded" },
    { "version", "compared, not bounded" },
    { "dry_run", "yes or no" },
    { "history", "yes or no" },
    { "deleted", "yes or no" },
    { "after_number", "a place in a list: any number is one" },
    { "after_version", "a place in a list: any number is one" },
};

struct told {
    bool came, refused;
    char field[64], limit[64];
};

static void answered(void *user, const struct coord_answer *answer)
{
    struct told *told = user;

    told->came = true;
    if (answer->status != WIRE_REFUSED)
        return;
    Holdfast__Internal__V1__Refusal *refusal =
        holdfast__internal__v1__refusal__unpack(NULL, answer->body.size, answer->body.data);

    assert_non_null(refusal);
    told->refused = refusal->code == CODE(INVALID_ARGUMENT);
    snprintf(told->field, sizeof told->field, "%s", refusal->field);
    snprintf(told->limit, sizeof told->limit, "%s", refusal->limit);
    holdfast__internal__v1__refusal__free_unpacked(refusal, NULL);
}

static bool is_refused_by(struct world *world, const struct asked *row, int64_t value)
{
    Holdfast__V1__CounterBody counter = HOLDFAST__V1__COUNTER_BODY__INIT;
    change_request change = HOLDFAST__INTERNAL__V1__CHANGE_DEFINITION_REQUEST__INIT;
    find_request find = HOLDFAST__INTERNAL__V1__FIND_DEFINITIONS_REQUEST__INIT;
    definition_body body = HOLDFAST__V1__DEFINITION_BODY__INIT;
    struct told told = { 0 };
    uint8_t bytes[512];

    counter.max_value = value + 1; /* Another version each time. */
    body.kind_case = HOLDFAST__V1__DEFINITION_BODY__KIND_COUNTER;
    body.counter = &counter;
    change.deed = HOLDFAST__INTERNAL__V1__DEFINITION_DEED__DEFINITION_DEED_PUT;
    change.body = &body;
    change.name = text_lend("kills");
    change.op_id = arena_printf(&arena, "admin:%s:%" PRId64, row->field, value);
    ProtobufCMessage *request = row->method == METHOD_CHANGE_DEFINITION ? &change.base : &find.base;
    set(request, row->field, value);
    world->watch = (struct world_watch){ .user = &told, .answered = answered };
    size_t size = protobuf_c_message_pack(request, bytes);
    world_step(world, (struct coord_event){ .type = COORD_ASK,
                                            .call = 1,
                                            .method = (uint16_t)row->method,
                                            .body = { bytes, size } });
    for (uint32_t i = 0; i < 400 && !told.came; i++)
        world_run(world, 20);
    world->watch = (struct world_watch){ 0 };
    assert_true(told.came);
    return told.refused && strcmp(told.field, row->field) == 0 &&
           strcmp(told.limit, row->limit) == 0;
}

static void a_request_is_refused_one_beyond_its_limits_and_not_at_them(void **state)
{
    struct world *world = world_new();

    (void)state;
    world_start(world);
    world_run(world, 3000);
    for (size_t i = 0; i < ARRAY_SIZE(asked); i++) {
        const struct asked *row = &asked[i];

        if (is_refused_by(world, row, row->smallest) || is_refused_by(world, row, row->largest))
            fail_msg("%s: refused within its limit", row->field);
        if (!is_refused_by(world, row, row->largest + 1))
            fail_msg("%s: one above its limit is not refused as it must", row->field);
        if (row->smallest > 0 && !is_refused_by(world, row, row->smallest - 1))
            fail_msg("%s: one below its limit is not refused as it must", row->field);
        arena_reset(&arena);
    }
    world_free(world);
}

static bool is_known(const char *field)
{
    for (size_t i = 0; i < ARRAY_SIZE(asked); i++) {
        if (strcmp(asked[i].field, field) == 0)
            return true;
    }
    for (size_t i = 0; i < ARRAY_SIZE(without_row); i++) {
        if (strcmp(without_row[i].field, field) == 0)
            return true;
    }
    return false;
}

static void each_field_of_a_request_has_a_row_or_a_reason(void **state)
{
    const ProtobufCMessageDescriptor *const types[] = {
        &holdfast__internal__v1__change_definition_request__descriptor,
        &holdfast__internal__v1__find_definitions_request__descriptor
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(types); i++) {
        for (unsigned k = 0; k < types[i]->n_fields; k++) {
            if (!is_known(types[i]->fields[k].name))
                fail_msg("%s of %s needs a row", types[i]->fields[k].name, types[i]->name);
        }
    }
}

static int release(void **state)
{
    (void)state;
    arena_deinit(&arena);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_definition_is_refused_one_beyond_its_limits_and_not_at_them),
        cmocka_unit_test(each_field_of_each_kind_has_a_row),
        cmocka_unit_test(a_request_is_refused_one_beyond_its_limits_and_not_at_them),
        cmocka_unit_test(each_field_of_a_request_has_a_row_or_a_reason),
    };
    return cmocka_run_group_tests(tests, NULL, release);
}
