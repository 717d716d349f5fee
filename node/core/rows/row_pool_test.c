#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "node/core/rows/row_pool.h"
#include "runtime/base/check.h"

#define PIECES 3000u

static size_t size_of(unsigned piece)
{
    return piece * 31u % 700u; /* Some are larger than what is pooled. */
}

static void fill(uint8_t *memory, unsigned piece)
{
    memset(memory, (int)(piece % 251u), size_of(piece));
}

static void assert_filled(const uint8_t *memory, unsigned piece)
{
    for (size_t i = 0; i < size_of(piece); i++)
        assert_int_equal(memory[i], piece % 251u);
}

static void pieces_do_not_overlap_and_are_aligned(void **state)
{
    static uint8_t *pieces[PIECES];
    struct row_pool pool = { 0 };

    (void)state;
    for (unsigned i = 0; i < PIECES; i++) {
        pieces[i] = row_pool_take(&pool, size_of(i));
        assert_int_equal((uintptr_t)pieces[i] % 16, 0);
        fill(pieces[i], i);
    }
    /* Every third goes and comes back as another size's. */
    for (unsigned i = 0; i < PIECES; i += 3)
        row_pool_give(&pool, pieces[i], size_of(i));
    for (unsigned i = 0; i < PIECES; i += 3) {
        unsigned mirrored = (PIECES - 1) / 3 * 3 - i;
        pieces[mirrored] = row_pool_take(&pool, size_of(mirrored));
        fill(pieces[mirrored], mirrored);
    }
    for (unsigned i = 0; i < PIECES; i++) {
        assert_filled(pieces[i], i);
        row_pool_give(&pool, pieces[i], size_of(i));
    }
    row_pool_deinit(&pool);
}

static void take_all(struct row_pool *pool, void **pieces, unsigned count, size_t size_bytes)
{
    for (unsigned i = 0; i < count; i++)
        pieces[i] = row_pool_take(pool, size_bytes);
}

static void give_all(struct row_pool *pool, void **pieces, unsigned count, size_t size_bytes)
{
    for (unsigned i = 0; i < count; i++)
        row_pool_give(pool, pieces[i], size_bytes);
}

static void the_same_number_of_pieces_needs_no_more_memory(void **state)
{
    static void *pieces[PIECES];
    struct row_pool pool = { 0 };

    (void)state;
    take_all(&pool, pieces, PIECES, 200);
    size_t slabs = pool.slab_count;
    for (unsigned round = 0; round < 50; round++) {
        give_all(&pool, pieces, PIECES / 2, 200);
        take_all(&pool, pieces, PIECES / 2, 200);
        assert_true(pool.slab_count <= slabs);
    }
    give_all(&pool, pieces, PIECES, 200);
    row_pool_deinit(&pool);
}

/* Or a node whose load turns from short rows to long ones would hold twice its cache. */
static void memory_that_is_not_used_leaves_the_pool(void **state)
{
    static void *pieces[PIECES];
    struct row_pool pool = { 0 };

    (void)state;
    for (size_t size = 16; size <= ROW_POOL_BYTES_MAX; size += 16) {
        take_all(&pool, pieces, PIECES, size);
        give_all(&pool, pieces, PIECES, size);
        assert_true(pool.slab_count <= size / 16);
    }
    row_pool_deinit(&pool);
    assert_int_equal(pool.slab_count, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pieces_do_not_overlap_and_are_aligned),
        cmocka_unit_test(the_same_number_of_pieces_needs_no_more_memory),
        cmocka_unit_test(memory_that_is_not_used_leaves_the_pool),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
