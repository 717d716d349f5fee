/* What a message tells of fields that are there with their zero, and of those that are not: as JSON
 * and as protobuf, both ways, by the descriptor. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "runtime/base/check.h"
#include "runtime/codec/json_codec.h"
#include "runtime/codec/presence.pb-c.h"
#include "runtime/codec/proto_codec.h"

#define PRESENCE (&holdfast__test__presence__presence__descriptor)
#define NEEDED   (&holdfast__test__presence__needed__descriptor)

struct fixture {
    struct json_codec codec;
    struct arena arena;
    struct codec_scope scope;
    struct buf out;
};

static int set_up(void **state)
{
    static struct fixture fixture;

    fixture = (struct fixture){ .scope = { .arena = &fixture.arena } };
    json_codec_init(&fixture.codec);
    *state = &fixture;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *fixture = *state;

    json_codec_deinit(&fixture->codec);
    arena_deinit(&fixture->arena);
    buf_deinit(&fixture->out);
    return 0;
}

static Holdfast__Test__Presence__Presence *decode(struct fixture *f, const char *json)
{
    ProtobufCMessage *message = NULL;

    if (json_decode(&f->codec, PRESENCE, slice_from_text(json), &f->scope, &message) != ERR_OK)
        fail_msg("%s: %s at %s", json, f->scope.error.message, f->scope.error.field);
    return (Holdfast__Test__Presence__Presence *)message;
}

static void assert_encodes(struct fixture *f, const ProtobufCMessage *message, const char *expected)
{
    buf_clear(&f->out);
    json_encode(&f->codec, JSON_CANONICAL, message, &f->out);
    if (!slice_equal(buf_slice(&f->out), slice_from_text(expected)))
        fail_msg("%s, not %.*s", expected, (int)f->out.size, (const char *)f->out.data);
}

/* JSON, protobuf and JSON again: nothing is lost on the way. */
static void assert_survives(struct fixture *f, const char *json)
{
    Holdfast__Test__Presence__Presence *first = decode(f, json);
    ProtobufCMessage *second = NULL;
    struct buf wire = { 0 };

    assert_encodes(f, &first->base, json);
    buf_put_u8(&wire, 0); /* Never a null pointer. */
    wire.size = 0;
    proto_encode(&first->base, &wire);
    assert_int_equal(proto_decode(PRESENCE, buf_slice(&wire), &f->scope, &second), ERR_OK);
    assert_encodes(f, second, json);
    buf_deinit(&wire);
}

static void what_is_set_to_its_zero_stays_set(void **state)
{
    struct fixture *f = *state;
    Holdfast__Test__Presence__Presence *message = decode(
        f, "{\"small\":0,\"large\":\"0\",\"flag\":false,\"real\":0,\"colour\":1,\"raw\":\"\"}");

    assert_true(message->has_small && message->has_large && message->has_flag);
    assert_true(message->has_real && message->has_colour && message->has_raw);
    assert_int_equal(message->small, 0);
    assert_int_equal(message->large, 0);
    assert_false(message->flag);
    assert_survives(f, "{\"small\":0}");
    assert_survives(f, "{\"small\":0,\"large\":\"0\",\"flag\":false,\"real\":0,"
                       "\"colour\":\"COLOUR_RED\",\"raw\":\"\",\"text\":\"\",\"greeting\":\"\"}");
}

static void what_is_absent_stays_absent(void **state)
{
    struct fixture *f = *state;
    Holdfast__Test__Presence__Presence *message = decode(f, "{\"small\":null,\"text\":null}");

    assert_false(message->has_small || message->has_large || message->has_flag);
    assert_false(message->has_real || message->has_colour || message->has_raw);
    assert_int_equal(message->large, 7);
    assert_true(message->flag);
    assert_string_equal(message->greeting, "hi");
    assert_null(message->text);
    assert_encodes(f, &message->base, "{}");
    assert_survives(f, "{}");
}

/* A default that was sent is not the same as one that was not. */
static void defaults_that_were_given_stay_given(void **state)
{
    struct fixture *f = *state;

    assert_survives(f, "{\"large\":\"7\",\"flag\":true,\"colour\":\"COLOUR_BLUE\","
                       "\"greeting\":\"hi\"}");
}

static void other_fields_are_as_in_proto3(void **state)
{
    struct fixture *f = *state;

    assert_survives(f, "{\"inner\":{\"number\":0},\"list\":[0,-1],\"left\":0}");
    assert_survives(f, "{\"right\":\"\"}");
    assert_survives(f, "{\"small\":-5,\"large\":\"18446744073709551615\",\"real\":1.5,"
                       "\"raw\":\"AP8=\",\"text\":\"t\"}");
}

static void what_is_required_must_be_there(void **state)
{
    static const struct {
        const char *json;
        const char *field; /* NULL: it is taken. */
    } cases[] = {
        { "{\"number\":0,\"text\":\"\"}", NULL },
        { "{\"text\":\"t\"}", "number" },
        { "{\"number\":1}", "text" },
        { "{\"number\":1,\"text\":null}", "text" },
        { "{\"number\":null,\"text\":\"t\"}", "number" },
        { "{\"rest\":1}", "number" },
        { "[]", "number" },
        { "{}", "number" },
        { "", "number" },
    };
    struct fixture *f = *state;

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        ProtobufCMessage *message = NULL;
        err e = json_decode(&f->codec, NEEDED, slice_from_text(cases[i].json), &f->scope, &message);
        if (cases[i].field == NULL) {
            assert_int_equal(e, ERR_OK);
            assert_encodes(f, message, cases[i].json);
            continue;
        }
        assert_int_equal(e, ERR_INVALID);
        assert_string_equal(f->scope.error.field, cases[i].field);
    }
    ProtobufCMessage *message = NULL;
    assert_int_equal(
        json_decode(&f->codec, PRESENCE, SLICE_LITERAL("{\"inner\":{}}"), &f->scope, &message),
        ERR_INVALID);
    assert_string_equal(f->scope.error.field, "inner.number");
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(what_is_set_to_its_zero_stays_set),   TEST(what_is_absent_stays_absent),
        TEST(defaults_that_were_given_stay_given), TEST(other_fields_are_as_in_proto3),
        TEST(what_is_required_must_be_there),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
