/* Ranges of trees that are deep, or that change while they are walked. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "node/core/rows/state_row.h"
#include "runtime/base/check.h"
#include "runtime/base/hash.h"

#define DEPTH (3 * ORDER_WALK_MAX)

struct world {
    struct state *state;
    struct need need;
    char seen[2048];
};

static const struct state_range all = { { (const uint8_t *)"k/", 2 },
                                        { (const uint8_t *)"k/", 2 },
                                        UINT32_MAX };

static void init(struct world *w)
{
    *w = (struct world){ .state = state_new(1) };
    uint64_t generation = state_load_generation(w->state);
    assert_true(state_load_range(w->state, generation, &all, all.after, true));
}

static void deinit(struct world *w)
{
    state_check(w->state);
    state_free(w->state);
    need_deinit(&w->need);
}

static void put(struct world *w, const char *key)
{
    state_begin(w->state);
    state_put(w->state, slice_from_text(key), SLICE_LITERAL("x"));
    state_commit(w->state);
}

static void note(struct world *w, struct slice key)
{
    size_t used = strlen(w->seen);

    snprintf(w->seen + used, sizeof w->seen - used, "%.*s ", (int)key.size, (const char *)key.data);
}

static bool see(void *context, struct slice key, struct slice value)
{
    (void)value;
    note(context, key);
    return true;
}

/* A key whose priority is among the `place`-th part of all: its row stands above those before it.
 */
static void find_key(uint32_t place, char ret_key[16])
{
    const uint64_t part = UINT64_MAX / DEPTH;

    for (uint32_t i = 0;; i++) {
        snprintf(ret_key, 16, "k/%02u%04x", place, i);
        if (hash_u64(slice_from_text(ret_key)) / part == place)
            return;
    }
}

static void a_tree_that_leans_to_one_side_is_walked_whole(void **context)
{
    char keys[DEPTH][16], wanted[2048] = "";
    struct world w;
    (void)context;

    init(&w);
    for (uint32_t i = 0; i < DEPTH; i++) {
        find_key(i, keys[i]);
        put(&w, keys[i]);
        snprintf(wanted + strlen(wanted), sizeof wanted - strlen(wanted), "%s ", keys[i]);
    }
    assert_int_equal(state_range_visit(w.state, &all, &w.need, see, &w), ERR_OK);
    assert_string_equal(w.seen, wanted);
    deinit(&w);
}

static bool count(void *context, struct slice key, struct slice value)
{
    (void)key;
    (void)value;
    ++*(uint32_t *)context;
    return true;
}

/* At its third row another one comes behind it, and another range brings that into the tree. */
static bool see_and_change(void *context, struct slice key, struct slice value)
{
    struct world *w = context;
    uint32_t rows = 0;

    (void)value;
    note(w, key);
    if (!slice_equal(key, SLICE_LITERAL("k/c")))
        return true;
    put(w, "k/cc");
    put(w, "k/bb");
    assert_int_equal(state_range_visit(w->state, &all, &w->need, count, &rows), ERR_OK);
    assert_int_equal(rows, 8);
    return true;
}

static void a_tree_that_changes_is_walked_as_it_stands(void **context)
{
    static const char *const keys[] = { "k/f", "k/a", "k/d", "k/c", "k/e", "k/b" };
    struct world w;
    (void)context;

    init(&w);
    for (uint32_t i = 0; i < ARRAY_SIZE(keys); i++)
        put(&w, keys[i]);
    assert_int_equal(state_range_visit(w.state, &all, &w.need, see_and_change, &w), ERR_OK);
    assert_string_equal(w.seen, "k/a k/b k/c k/cc k/d k/e k/f ");
    deinit(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_tree_that_leans_to_one_side_is_walked_whole),
        cmocka_unit_test(a_tree_that_changes_is_walked_as_it_stands),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
