/* DiffDefinitions tells each field of each kind. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "holdfast/v1/definition.pb-c.h"
#include "router/rpc/definitions/definition_value.h"

static void every_field_of_every_kind_has_a_text(void **state)
{
    const ProtobufCMessageDescriptor *bodies = &holdfast__v1__definition_body__descriptor;
    struct arena arena = { 0 };
    (void)state;

    assert_true(bodies->n_fields >= 7);
    for (unsigned i = 0; i < bodies->n_fields; i++) {
        const ProtobufCMessageDescriptor *type = bodies->fields[i].descriptor;
        ProtobufCMessage *body = arena_zalloc(&arena, type->sizeof_message);

        protobuf_c_message_init(type, body);
        for (unsigned j = 0; j < type->n_fields; j++)
            if (definition_value(&arena, body, &type->fields[j]) == NULL)
                fail_msg("%s.%s", type->name, type->fields[j].name);
    }
    arena_deinit(&arena);
}

static void numbers_are_told_whole(void **state)
{
    Holdfast__V1__RateRuleBody rule = HOLDFAST__V1__RATE_RULE_BODY__INIT;
    struct arena arena = { 0 };
    (void)state;

    rule.account_age_ms = UINT64_MAX;
    assert_string_equal(definition_value(&arena, &rule.base,
                                         protobuf_c_message_descriptor_get_field_by_name(
                                             rule.base.descriptor, "account_age_ms")),
                        "18446744073709551615");
    arena_deinit(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_field_of_every_kind_has_a_text),
        cmocka_unit_test(numbers_are_told_whole),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
