#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "runtime/base/check.h"
#include "runtime/codec/gzip.h"

#define SIZE_MAX_BYTES (4u << 20)

struct fixture {
    struct gzip gzip;
    struct buf plain;
    struct buf packed;
    struct buf out;
};

static int set_up(void **state)
{
    static struct fixture fixture;

    fixture = (struct fixture){ 0 };
    *state = &fixture;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *fixture = *state;

    gzip_deinit(&fixture->gzip);
    buf_deinit(&fixture->plain);
    buf_deinit(&fixture->packed);
    buf_deinit(&fixture->out);
    return 0;
}

/* Text of so many bytes, packed. */
static void pack(struct fixture *f, size_t size)
{
    buf_clear(&f->plain);
    buf_clear(&f->packed);
    while (f->plain.size < size)
        buf_put_u8(&f->plain, (uint8_t)('a' + f->plain.size % 7));
    assert_true(gzip_encode(&f->gzip, buf_slice(&f->plain), &f->packed));
}

static err unpack(struct fixture *f, struct slice packed, size_t size_max, const char **ret_why)
{
    buf_clear(&f->out);
    return gzip_decode(&f->gzip, packed, size_max, &f->out, ret_why);
}

static void what_was_packed_comes_out_again(void **state)
{
    struct fixture *f = *state;
    const char *why;

    for (size_t size = 100; size < 300000; size = size * 3 + 1) {
        pack(f, size);
        assert_true(f->packed.size < size);
        assert_int_equal(unpack(f, buf_slice(&f->packed), SIZE_MAX_BYTES, &why), ERR_OK);
        assert_true(slice_equal(buf_slice(&f->out), buf_slice(&f->plain)));
    }
}

/* Others write gzip too: with a file's name, or stored instead of deflated. */
static void other_writers_are_understood(void **state)
{
    const struct slice streams[] = {
        SLICE_LITERAL("\x1f\x8b\x08\x08\0\0\0\0\x02\xffname\0\xcb\x48\xcd\xc9\xc9\x07\0\x86\xa6"
                      "\x10\x36\x05\0\0\0"),
        SLICE_LITERAL("\x1f\x8b\x08\0\0\0\0\0\0\xff\x01\x05\0\xfa\xff"
                      "hello\x86\xa6\x10\x36\x05\0\0\0"),
    };
    struct fixture *f = *state;
    const char *why = "";

    for (size_t i = 0; i < ARRAY_SIZE(streams); i++) {
        assert_int_equal(unpack(f, streams[i], 5, &why), ERR_OK);
        assert_true(slice_equal(buf_slice(&f->out), SLICE_LITERAL("hello")));
        assert_int_equal(unpack(f, streams[i], 4, &why), ERR_TOO_LARGE);
    }
}

/* 64 KiB are one step of the unpacking. */
static void the_bound_is_exact(void **state)
{
    struct fixture *f = *state;
    const char *why;

    for (size_t size = 65534; size <= 65538; size++) {
        pack(f, size);
        assert_int_equal(unpack(f, buf_slice(&f->packed), size, &why), ERR_OK);
        assert_int_equal(unpack(f, buf_slice(&f->packed), size - 1, &why), ERR_TOO_LARGE);
        assert_int_equal(f->out.size, 0);
    }
    pack(f, 100);
    assert_int_equal(unpack(f, buf_slice(&f->packed), 0, &why), ERR_TOO_LARGE);
}

/* 64 MiB in 64 KiB: it costs the bound, not what it claims. */
static void a_bomb_takes_no_more_than_its_bound(void **state)
{
    struct fixture *f = *state;
    const char *why;

    memset(buf_reserve(&f->plain, 64u << 20), 0, 64u << 20);
    f->plain.size = 64u << 20;
    assert_true(gzip_encode(&f->gzip, buf_slice(&f->plain), &f->packed));
    assert_true(f->packed.size < 512u << 10);
    assert_int_equal(unpack(f, buf_slice(&f->packed), 1u << 20, &why), ERR_TOO_LARGE);
    assert_int_equal(f->out.size, 0);
    assert_true(f->out.capacity <= 4u << 20);
}

static void what_is_cut_short_is_refused(void **state)
{
    struct fixture *f = *state;

    pack(f, 2000);
    for (size_t size = 0; size < f->packed.size; size++) {
        const char *why = NULL;
        err e = unpack(f, (struct slice){ f->packed.data, size }, SIZE_MAX_BYTES, &why);
        assert_int_equal(e, ERR_INVALID);
        assert_string_equal(why, "the gzip stream ends too soon");
        assert_int_equal(f->out.size, 0);
    }
}

static void what_follows_the_stream_is_refused(void **state)
{
    struct fixture *f = *state;
    const char *why = NULL;

    pack(f, 2000);
    size_t size = f->packed.size;
    buf_put_u8(&f->packed, 'x');
    assert_int_equal(unpack(f, buf_slice(&f->packed), SIZE_MAX_BYTES, &why), ERR_INVALID);
    assert_string_equal(why, "more bytes behind the gzip stream");
    f->packed.size = size;
    struct buf twice = { 0 };
    buf_append(&twice, f->packed.data, size);
    buf_append(&twice, f->packed.data, size);
    assert_int_equal(unpack(f, buf_slice(&twice), SIZE_MAX_BYTES, &why), ERR_INVALID);
    assert_string_equal(why, "a second gzip member behind the first");
    buf_deinit(&twice);
}

/* A byte that is wrong anywhere: never another text, and the next message is well again. */
static void what_is_corrupt_is_refused(void **state)
{
    struct fixture *f = *state;
    const char *why = NULL;

    pack(f, 3000);
    for (size_t i = 0; i < f->packed.size; i++) {
        bool free_byte = i >= 4 && i <= 9; /* Time, kind of packing and system: for people. */
        f->packed.data[i] ^= 0x55;
        err e = unpack(f, buf_slice(&f->packed), SIZE_MAX_BYTES, &why);
        f->packed.data[i] ^= 0x55;
        if (e == ERR_OK)
            assert_true(free_byte && slice_equal(buf_slice(&f->out), buf_slice(&f->plain)));
    }
    assert_int_equal(unpack(f, SLICE_LITERAL("not gzip at all"), 100, &why), ERR_INVALID);
    assert_string_equal(why, "not a gzip stream, or a corrupt one");
    assert_int_equal(unpack(f, SLICE_LITERAL("\x78\x9c\x03\0\0\0\0\x01"), 100, &why), ERR_INVALID);
    assert_int_equal(unpack(f, buf_slice(&f->packed), SIZE_MAX_BYTES, &why), ERR_OK);
}

static void what_does_not_get_smaller_stays_as_it_is(void **state)
{
    struct fixture *f = *state;
    uint32_t noise = 1;
    const char *why;

    for (size_t i = 0; i < 100000; i++) {
        noise = noise * 1664525u + 1013904223u;
        buf_put_u8(&f->plain, (uint8_t)(noise >> 24));
    }
    buf_put_u8(&f->packed, 'x');
    assert_false(gzip_encode(&f->gzip, buf_slice(&f->plain), &f->packed));
    assert_false(gzip_encode(&f->gzip, SLICE_LITERAL(""), &f->packed));
    assert_false(gzip_encode(&f->gzip, SLICE_LITERAL("ab"), &f->packed));
    assert_int_equal(f->packed.size, 1);
    pack(f, 5000); /* What was given up on leaves nothing behind. */
    assert_int_equal(unpack(f, buf_slice(&f->packed), 5000, &why), ERR_OK);
    assert_true(slice_equal(buf_slice(&f->out), buf_slice(&f->plain)));
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(what_was_packed_comes_out_again),
        TEST(other_writers_are_understood),
        TEST(the_bound_is_exact),
        TEST(a_bomb_takes_no_more_than_its_bound),
        TEST(what_is_cut_short_is_refused),
        TEST(what_follows_the_stream_is_refused),
        TEST(what_is_corrupt_is_refused),
        TEST(what_does_not_get_smaller_stays_as_it_is),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
