#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "idl/error_code.h"
#include "idl/error_rule.h"
#include "idl/method.h"
#include "idl/method_errors.h"

static bool has_field(const struct method_info *method, unsigned number, const char *name)
{
    const ProtobufCFieldDescriptor *field =
        protobuf_c_message_descriptor_get_field(method->request, number);

    return field != NULL && strcmp(field->name, name) == 0;
}

static bool is_open(const struct method_info *method, Holdfast__V1__ErrorCode code)
{
    return error_is_given(method->id, code, false);
}

static bool is_write(const struct method_info *method)
{
    if (method->route == METHOD_SCATTER)
        return is_write(method_find(method->element));
    if (method->id == METHOD_RENEW_SESSIONS) /* Tokens are renewed beside the log. */
        return false;
    return method->writes || (method->route == METHOD_ROUTER && (method->scopes & SCOPE_READ) == 0);
}

/* What a method's row in idl/method.h and its request say of its errors. */
static void the_table_follows_from_what_each_method_is(void **state)
{
    size_t count;
    const struct method_info *all = method_all(&count);
    (void)state;

    for (size_t i = 0; i < count; i++) {
        const struct method_info *method = &all[i];
        if (method->internal)
            continue;
        print_message("%s\n", method->name);
        assert_true(is_open(method, CODE(INVALID_ARGUMENT)));
        assert_true(is_open(method, CODE(UNAUTHENTICATED)));
        assert_true(is_open(method, CODE(THROTTLED)));
        assert_true(is_open(method, CODE(UNAVAILABLE)));
        assert_true(is_open(method, CODE(UNIMPLEMENTED)));
        assert_true(is_open(method, CODE(DEADLINE_EXCEEDED)));
        assert_true(
            is_open(method, CODE(PERMISSION_DENIED))); /* Of players' tokens at the least. */
        /* A batch's elements say it, each by itself. */
        if (method->route != METHOD_SCATTER)
            assert_int_equal(is_open(method, CODE(VERSION_LOST)), has_field(method, 2, "read"));
        assert_int_equal(is_open(method, CODE(OUTCOME_UNKNOWN)), is_write(method));
        /* A write that may have been carried out is never a bug that wrote nothing. */
        if (is_open(method, CODE(INTERNAL)) && is_write(method))
            assert_int_equal(method->id, METHOD_ACCEPT_ETCD_RESTORE);
        const struct method_info *part = method_find(method->element);
        /* By an internal one, or by a transaction. */
        bool carried_out =
            part != NULL && (method_told(part) == method || part->id == METHOD_EXECUTE_TRANSACTION);
        bool operates =
            (method->route == METHOD_MUTATION && method->id != METHOD_RESOLVE_OPERATION) ||
            carried_out;
        bool defines = method->element == METHOD_CHANGE_DEFINITION && /* By an op_id of its own, */
                       method->id != METHOD_RESTORE_DEFINITION;       /* not by its number. */
        bool consumes = method->id == METHOD_CREATE_CONSUMER ||       /* Likewise. */
                        method->id == METHOD_COMMIT_CONSUMER ||
                        method->id == METHOD_PUT_TARGET_METADATA ||
                        method->id == METHOD_UPDATE_DOCUMENT; /* Increments. */
        assert_int_equal(is_open(method, CODE(OPERATION_ID_MISMATCH)),
                         operates || defines || consumes);
        assert_int_equal(error_is_given(method->id, CODE(OPERATION_ABORTED), true), operates);
    }
}

/* What may pass by waiting is never recorded as the outcome; a session that is held is, unless the
 * caller waits for it. */
static void what_may_pass_is_not_final(void **state)
{
    const ProtobufCEnumDescriptor *codes = &holdfast__v1__error_code__descriptor;
    size_t count;
    const struct method_info *all = method_all(&count);
    (void)state;

    for (size_t i = 0; i < count; i++) {
        for (unsigned j = 0; j < codes->n_values && !all[i].internal; j++) {
            Holdfast__V1__ErrorCode code = (Holdfast__V1__ErrorCode)codes->values[j].value;
            if (error_is_given(all[i].id, code, true) && code != CODE(SESSION_LOCKED))
                assert_int_equal(error_rule_get(code)->course, ERROR_REFUSED);
        }
    }
    assert_false(error_is_given(METHOD_GRANT, (Holdfast__V1__ErrorCode)999, false));
    assert_false(error_is_given(METHOD_ID_MAX + 1, CODE(UNAVAILABLE), false));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_table_follows_from_what_each_method_is),
        cmocka_unit_test(what_may_pass_is_not_final),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
