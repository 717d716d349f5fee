#include "runtime/cluster/caller_name.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "holdfast/v1/ledger.pb-c.h"
#include "runtime/base/arena.h"

#define LONGEST "cert:0123456789012345678901234567890123456789-.x"

struct world {
    struct arena arena;
    struct buf bytes; /* An encoded request. */
    Holdfast__V1__GrantRequest *request;
};

static int setup(void **state)
{
    static struct world w;
    Holdfast__V1__GrantRequest grant = HOLDFAST__V1__GRANT_REQUEST__INIT;
    char ann[] = "ann";

    w = (struct world){ 0 };
    grant.player_id = ann;
    grant.attempt = 7;
    size_t size = holdfast__v1__grant_request__get_packed_size(&grant);
    (void)holdfast__v1__grant_request__pack(&grant, buf_reserve(&w.bytes, size));
    w.bytes.size = size;
    *state = &w;
    return 0;
}

static void *take(void *arena, size_t size)
{
    return arena_alloc(arena, size);
}

static void leave(void *arena, void *memory)
{
    (void)arena;
    (void)memory;
}

static int teardown(void **state)
{
    struct world *w = *state;

    buf_deinit(&w->bytes);
    arena_deinit(&w->arena);
    return 0;
}

static void put(struct world *w, const char *name)
{
    uint8_t field[CALLER_NAME_ENCODED_SIZE];
    size_t size = caller_name_put(slice_from_text(name), field);

    assert_true(size <= sizeof field);
    buf_append(&w->bytes, field, size);
}

/* What a node finds behind the request. */
static void assert_told(struct world *w, err expected, const char *name)
{
    ProtobufCAllocator allocator = { take, leave, &w->arena };
    struct slice told;

    w->request = holdfast__v1__grant_request__unpack(&allocator, w->bytes.size, w->bytes.data);
    assert_non_null(w->request);
    assert_int_equal(caller_name_take(&w->request->base, &told), expected);
    assert_true(slice_equal(told, slice_from_text(name)));
}

static void a_name_comes_behind_the_request_and_leaves_it_as_it_was(void **state)
{
    struct world *w = *state;
    size_t plain = w->bytes.size;

    assert_told(w, ERR_OK, "");
    put(w, "0a1b2c3d4e5f");
    assert_told(w, ERR_OK, "0a1b2c3d4e5f");
    assert_string_equal(w->request->player_id, "ann");
    uint8_t packed[64];
    assert_int_equal(holdfast__v1__grant_request__get_packed_size(w->request), plain);
    (void)holdfast__v1__grant_request__pack(w->request, packed);
    assert_memory_equal(packed, w->bytes.data, plain);
}

/* A caller may have written one, and the router writes behind it. */
static void the_last_one_counts_and_none_stays(void **state)
{
    struct world *w = *state;

    put(w, "forged");
    put(w, "0a1b2c3d4e5f");
    assert_told(w, ERR_OK, "0a1b2c3d4e5f");
    assert_int_equal(w->request->base.n_unknown_fields, 0);
    put(w, "");
    assert_told(w, ERR_OK, "");
    assert_int_equal(w->request->base.n_unknown_fields, 0);
}

static void other_unknown_fields_stay(void **state)
{
    static const uint8_t later[] = { 0xf8, 0x7f, 5 };      /* A number in field 2047: not a text. */
    static const uint8_t other[] = { 0xf2, 0x7f, 1, 'x' }; /* Field 2046. */
    struct world *w = *state;

    buf_append(&w->bytes, other, sizeof other);
    put(w, "k");
    assert_told(w, ERR_OK, "k");
    assert_int_equal(w->request->base.n_unknown_fields, 1);
    assert_int_equal(w->request->base.unknown_fields[0].tag, 2046);
    buf_append(&w->bytes, later, sizeof later);
    assert_told(w, ERR_INVALID, "");
    assert_int_equal(w->request->base.n_unknown_fields, 1);
}

static void names_are_short_and_plain(void **state)
{
    static const char *const bad[] = { "", "a b", "a/b", "a\n", "\xc3\xa9", LONGEST "y" };
    struct world *w = *state;

    assert_int_equal(strlen(LONGEST), CALLER_NAME_BYTES_MAX);
    assert_true(caller_name_is_good(SLICE_LITERAL(LONGEST)));
    put(w, LONGEST);
    assert_told(w, ERR_OK, LONGEST);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_false(caller_name_is_good(slice_from_text(bad[i])));
        put(w, bad[i]); /* As no name. */
        assert_told(w, ERR_OK, "");
    }
}

/* Nothing but a router writes this; a node believes none of it. */
static void a_malformed_name_is_refused(void **state)
{
    static const uint8_t slash[] = { 0xfa, 0x7f, 3, 'a', '/', 'b' };
    uint8_t longer[3 + CALLER_NAME_BYTES_MAX + 1] = { 0xfa, 0x7f, CALLER_NAME_BYTES_MAX + 1 };
    struct world *w = *state;
    size_t plain = w->bytes.size;

    buf_append(&w->bytes, slash, sizeof slash);
    assert_told(w, ERR_INVALID, "");
    w->bytes.size = plain;
    memset(longer + 3, 'a', CALLER_NAME_BYTES_MAX + 1);
    buf_append(&w->bytes, longer, sizeof longer);
    assert_told(w, ERR_INVALID, "");
}

#define NAME_TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        NAME_TEST(a_name_comes_behind_the_request_and_leaves_it_as_it_was),
        NAME_TEST(the_last_one_counts_and_none_stays),
        NAME_TEST(other_unknown_fields_stay),
        NAME_TEST(names_are_short_and_plain),
        NAME_TEST(a_malformed_name_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
