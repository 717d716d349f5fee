/*
 * gzip_fuzz: gzip streams as callers may send them: [u16 size_max][stream]. What is unpacked is
 * never more than was allowed, is all of the stream, and comes out the same when it was packed
 * again; a stream that broke leaves the state fit for the next one.
 */
#include "runtime/base/check.h"
#include "runtime/codec/gzip.h"
#include "tests/fuzz/fuzz.h"

#define HELLO "hello, hello, hello, hello, hello, hello"

static void check_refused(err e, const struct buf *out, const char *why)
{
    CHECK(e == ERR_TOO_LARGE || (e == ERR_INVALID && why != NULL && why[0] != 0));
    CHECK(out->size == 1 && out->data[0] == '<');
}

/* Also that the states are fit for use, whatever was done with them before. */
static void check_packs(struct gzip *gzip, struct slice plain)
{
    struct buf packed = { 0 };
    struct buf again = { 0 };
    const char *why = NULL;

    if (gzip_encode(gzip, plain, &packed)) {
        CHECK(packed.size < plain.size);
        CHECK(gzip_decode(gzip, buf_slice(&packed), plain.size, &again, &why) == ERR_OK);
        CHECK(slice_equal(buf_slice(&again), plain));
        again.size = 0;
        CHECK(gzip_decode(gzip, buf_slice(&packed), plain.size - 1, &again, &why) == ERR_TOO_LARGE);
    } else {
        CHECK(packed.size == 0);
    }
    buf_deinit(&packed);
    buf_deinit(&again);
}

void fuzz_one(struct slice input)
{
    struct gzip gzip = { 0 };
    struct reader reader = reader_from(input);
    size_t size_max = read_u16(&reader);
    struct slice packed = read_raw(&reader, reader_left(&reader));
    struct buf out = { 0 };
    const char *why = NULL;

    if (reader.bad)
        return;
    buf_put_u8(&out, '<');
    err e = gzip_decode(&gzip, packed, size_max, &out, &why);
    if (e == ERR_OK) {
        CHECK(out.size <= size_max + 1 && out.data[0] == '<');
        check_packs(&gzip, (struct slice){ out.data + 1, out.size - 1 });
    } else {
        check_refused(e, &out, why);
    }
    check_packs(&gzip, packed);
    check_packs(&gzip, SLICE_LITERAL(HELLO));
    buf_deinit(&out);
    gzip_deinit(&gzip);
}

static void seed(struct fuzz_seeds *seeds, const char *name, uint16_t size_max, struct slice packed)
{
    struct buf bytes = { 0 };

    buf_put_u16(&bytes, size_max);
    buf_append(&bytes, packed.data, packed.size);
    fuzz_seed_add(seeds, name, buf_slice(&bytes));
    buf_deinit(&bytes);
}

void fuzz_seed(struct fuzz_seeds *seeds)
{
    struct gzip gzip = { 0 };
    struct buf packed = { 0 };

    CHECK(gzip_encode(&gzip, SLICE_LITERAL(HELLO), &packed));
    size_t size = packed.size;
    seed(seeds, "whole", sizeof HELLO, buf_slice(&packed));
    seed(seeds, "bound", sizeof HELLO - 1, buf_slice(&packed));
    seed(seeds, "too-large", sizeof HELLO - 2, buf_slice(&packed));
    seed(seeds, "cut", 1000, (struct slice){ packed.data, size - 9 });
    CHECK(gzip_encode(&gzip, SLICE_LITERAL(HELLO), &packed));
    seed(seeds, "two-members", 1000, buf_slice(&packed));
    packed.data[size - 5] ^= 1;
    seed(seeds, "checksum", 1000, (struct slice){ packed.data, size });
    seed(seeds, "stored", 1000,
         SLICE_LITERAL("\x1f\x8b\x08\0\0\0\0\0\0\xff\x01\x05\0\xfa\xff"
                       "hello\x86\xa6\x10\x36\x05\0\0\0"));
    buf_deinit(&packed);
    gzip_deinit(&gzip);
}
