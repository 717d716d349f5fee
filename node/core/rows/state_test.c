#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "node/core/rows/rows.h"
#include "node/core/rows/state.h"
#include "runtime/base/check.h"

static void check_free(struct state *state)
{
    state_check(state);
    state_free(state);
}

static struct slice S(const char *text) {
    return slice_from_text(text);
}

static void
put(struct state *state, const char *key, const char *value)
{
    state_begin(state);
    state_put(state, S(key), S(value));
    state_commit(state);
}

static void assert_row(struct state *state, const char *key, const char *value)
{
    struct slice found = { 0 };

    assert_int_equal(state_find(state, S(key), &found), STATE_PRESENT);
    assert_true(slice_equal(found, S(value)));
}

static void assert_found(struct state *state, const char *key, enum state_found expected)
{
    struct slice value;
    assert_int_equal(state_find(state, S(key), &value), expected);
}

static void checkpoint(struct state *state, bool written)
{
    const struct state_write *writes;
    uint32_t count;

    assert_true(state_checkpoint_begin(state, &writes, &count));
    state_checkpoint_end(state, written);
}

static void a_rollback_restores_rows_bytes_and_dirtiness_exactly(void **context)
{
    struct state *state = state_new(1);
    struct state_stats before;
    struct state_stats after;
    struct slice clean = SLICE_LITERAL("clean");
    (void)context;

    put(state, "pdirty", "old");
    assert_true(state_load(state, state_load_generation(state), S("pclean"), &clean));
    assert_true(state_load(state, state_load_generation(state), S("pabsent"), NULL));
    state_stats_get(state, &before);
    state_begin(state);
    state_put(state, S("pdirty"), S("new"));
    state_put(state, S("pdirty"), S("newer"));
    state_delete(state, S("pclean"));
    state_put(state, S("pabsent"), S("made"));
    state_put(state, S("pmissing"), S("made"));
    state_delete(state, S("k-item"));
    assert_row(state, "pdirty", "newer");
    assert_found(state, "pclean", STATE_ABSENT);
    state_rollback(state);
    assert_row(state, "pdirty", "old");
    assert_row(state, "pclean", "clean");
    assert_found(state, "pabsent", STATE_ABSENT);
    assert_found(state, "pmissing", STATE_MISSING);
    state_stats_get(state, &after);
    assert_int_equal(before.rows, after.rows);
    assert_int_equal(before.bytes, after.bytes);
    assert_int_equal(before.dirty_rows, after.dirty_rows);
    assert_int_equal(before.dirty_bytes, after.dirty_bytes);
    check_free(state);
}

static void a_checkpoint_keeps_values_as_they_stood_while_rows_change(void **context)
{
    struct state *state = state_new(1);
    const struct state_write *writes;
    struct state_stats stats;
    uint32_t count;
    (void)context;

    put(state, "pa", "1");
    put(state, "pb", "1");
    assert_true(state_checkpoint_begin(state, &writes, &count));
    assert_int_equal(count, 2);
    assert_false(state_checkpoint_begin(state, &writes, &count));
    put(state, "pa", "2");
    state_evict(state, 0);
    assert_row(state, "pb", "1");
    for (uint32_t i = 0; i < 2; i++)
        assert_memory_equal(writes[i].value->bytes, "1", 1);
    state_checkpoint_end(state, true);
    state_stats_get(state, &stats);
    assert_int_equal(stats.dirty_rows, 1);
    state_evict(state, 0);
    assert_row(state, "pa", "2");
    assert_found(state, "pb", STATE_MISSING);
    check_free(state);
}

static void a_checkpoint_that_failed_leaves_its_rows_dirty(void **context)
{
    struct state *state = state_new(1);
    const struct state_write *writes;
    uint32_t count;
    (void)context;

    put(state, "pa", "1");
    checkpoint(state, false);
    state_evict(state, 0);
    assert_row(state, "pa", "1");
    assert_true(state_checkpoint_begin(state, &writes, &count));
    assert_int_equal(count, 1);
    state_checkpoint_end(state, true);
    check_free(state);
}

static void rows_read_before_an_eviction_are_not_taken_in_after_it(void **context)
{
    struct state *state = state_new(1);
    uint64_t before = state_load_generation(state);
    (void)context;

    put(state, "pa", "new");
    checkpoint(state, true);
    state_evict(state, 0);
    assert_false(state_load(state, before, S("pa"), NULL));
    assert_found(state, "pa", STATE_MISSING);
    struct slice value = SLICE_LITERAL("new");
    assert_true(state_load(state, state_load_generation(state), S("pa"), &value));
    assert_row(state, "pa", "new");
    check_free(state);
}

static void a_loaded_row_never_replaces_what_memory_knows(void **context)
{
    struct state *state = state_new(1);
    struct slice old = SLICE_LITERAL("old");
    (void)context;

    put(state, "pa", "new");
    assert_true(state_load(state, state_load_generation(state), S("pa"), &old));
    assert_row(state, "pa", "new");
    state_begin(state);
    state_delete(state, S("pa"));
    state_commit(state);
    assert_true(state_load(state, state_load_generation(state), S("pa"), &old));
    assert_found(state, "pa", STATE_ABSENT);
    check_free(state);
}

static void only_the_least_recently_used_clean_rows_are_dropped(void **context)
{
    struct state *state = state_new(1);
    struct state_stats stats;
    (void)context;

    put(state, "pa", "1");
    put(state, "pb", "1");
    put(state, "pc", "1");
    checkpoint(state, true);
    put(state, "pd", "dirty");
    assert_row(state, "pa", "1");
    state_stats_get(state, &stats);
    state_evict(state, (size_t)stats.bytes - 1);
    assert_found(state, "pb", STATE_MISSING);
    assert_row(state, "pa", "1");
    assert_row(state, "pc", "1");
    state_evict(state, 0);
    assert_row(state, "pd", "dirty");
    assert_found(state, "pa", STATE_MISSING);
    check_free(state);
}

static void players_are_kept_before_documents(void **context)
{
    struct state *state = state_new(1);
    struct state_stats stats;
    struct slice value;
    char document[300] = "{}";
    (void)context;

    put(state, "pa", "1");
    state_begin(state);
    state_put(state, S("sa"), (struct slice){ (uint8_t *)document, sizeof document });
    state_put(state, S("sb"), (struct slice){ (uint8_t *)document, sizeof document });
    state_commit(state);
    checkpoint(state, true);
    assert_int_equal(state_find(state, S("sa"), &value), STATE_PRESENT);
    state_stats_get(state, &stats);
    /* The player is the oldest of the three by use. */
    state_evict(state, (size_t)stats.bytes - 1);
    assert_found(state, "sb", STATE_MISSING);
    assert_row(state, "pa", "1");
    assert_int_equal(state_find(state, S("sa"), &value), STATE_PRESENT);
    /* Documents above their half gone, the rest is by use again. */
    state_evict(state, 0);
    assert_found(state, "pa", STATE_MISSING);
    assert_found(state, "sa", STATE_MISSING);
    check_free(state);
}

struct visited {
    char keys[256];
};

static bool note(void *context, struct slice key, struct slice value)
{
    struct visited *visited = context;

    (void)value;
    size_t used = strlen(visited->keys);
    (void)snprintf(visited->keys + used, sizeof visited->keys - used, "%.*s ", (int)key.size,
                   (const char *)key.data);
    return true;
}

static err visit(struct state *state, const struct state_range *range, struct need *need,
                 struct visited *ret_visited)
{
    ret_visited->keys[0] = 0;
    return state_range_visit(state, range, need, note, ret_visited);
}

static void load_page(struct state *state, const struct state_range *range, const char *keys,
                      bool complete)
{
    struct slice value = SLICE_LITERAL("db");
    struct slice last = range->after;
    uint64_t generation = state_load_generation(state);

    for (; *keys != 0; keys += 2) {
        char key[4] = { 'k', '/', keys[0], 0 };
        assert_true(state_load(state, generation, S(key), &value));
        last = (struct slice){ (const uint8_t *)keys, 0 };
        static char kept[4];
        memcpy(kept, key, sizeof kept);
        last = S(kept);
        if (keys[1] == 0)
            break;
    }
    assert_true(state_load_range(state, generation, range, last, complete));
}

static void a_range_merges_pages_of_the_database_with_memory(void **context)
{
    struct state *state = state_new(1);
    struct state_range range = { S("k/"), S("k/"), 3 };
    struct need need = { 0 };
    struct visited visited;
    (void)context;

    put(state, "k/c", "new");
    state_begin(state);
    state_delete(state, S("k/b"));
    state_commit(state);
    put(state, "k/z", "far");
    put(state, "k0other", "x");
    assert_int_equal(visit(state, &range, &need, &visited), ERR_NEED);
    assert_int_equal(need.range_count, 1);
    assert_string_equal(visited.keys, "");
    need_clear(&need);
    load_page(state, &range, "a b d", false);
    assert_int_equal(visit(state, &range, &need, &visited), ERR_OK);
    assert_string_equal(visited.keys, "k/a k/c k/d ");
    range.limit = 5;
    assert_int_equal(visit(state, &range, &need, &visited), ERR_NEED);
    struct reader reader = reader_from(buf_slice(&need.ranges));
    struct state_range more = { .prefix = read_bytes(&reader, 99) };
    more.after = read_bytes(&reader, 99);
    more.limit = read_u32(&reader);
    assert_true(slice_equal(more.after, S("k/d")));
    load_page(state, &more, "e", true);
    assert_int_equal(visit(state, &range, &need, &visited), ERR_OK);
    assert_string_equal(visited.keys, "k/a k/c k/d k/e k/z ");
    range.after = S("k/d");
    assert_int_equal(visit(state, &range, &need, &visited), ERR_OK);
    assert_string_equal(visited.keys, "k/e k/z ");
    need_deinit(&need);
    check_free(state);
}

static void evicting_a_row_forgets_that_its_page_was_loaded(void **context)
{
    struct state *state = state_new(1);
    struct state_range range = { S("k/"), S("k/"), 3 };
    struct need need = { 0 };
    struct visited visited;
    (void)context;

    load_page(state, &range, "a b", true);
    assert_int_equal(visit(state, &range, &need, &visited), ERR_OK);
    uint64_t generation = state_load_generation(state);
    state_evict(state, 0);
    assert_true(state_load_generation(state) > generation);
    assert_int_equal(visit(state, &range, &need, &visited), ERR_NEED);
    assert_false(state_load_range(state, generation, &range, S("k/b"), true));
    need_deinit(&need);
    check_free(state);
}

#define OWNERS 5000u /* More than there are trees: several share one. */

static struct slice item_key(struct row_key *key, uint32_t owner, uint32_t place)
{
    char entity[32];
    uint8_t uid[ITEM_UID_BYTES];

    (void)snprintf(entity, sizeof entity, "player:%u", owner);
    item_uid_make(3, 1, place, 0, uid);
    row_key_item(key, slice_from_text(entity), uid);
    return row_key_slice(key);
}

struct items {
    uint32_t owner, count;
};

/* 0 of the owner was deleted; the others come in order. */
static bool next_item(void *context, struct slice key, struct slice value)
{
    struct items *items = context;
    struct row_key expected;

    assert_true(slice_equal(key, item_key(&expected, items->owner, ++items->count)));
    assert_int_equal(value.size, 1);
    return true;
}

static void items_of_each_entity_come_in_order_however_many_entities_there_are(void **context)
{
    static const uint32_t places[] = { 2, 0, 3, 1 };
    struct state *state = state_new(1);
    struct row_key key;
    struct need need = { 0 };
    (void)context;

    state_begin(state);
    for (uint32_t i = 0; i < ARRAY_SIZE(places); i++) {
        for (uint32_t owner = 0; owner < OWNERS; owner++)
            state_put(state, item_key(&key, owner, places[i]), S("x"));
    }
    for (uint32_t owner = 0; owner < OWNERS; owner++)
        state_delete(state, item_key(&key, owner, 0));
    state_commit(state);
    for (uint32_t owner = 0; owner < OWNERS; owner += 7) {
        struct slice full = item_key(&key, owner, 0);
        struct slice prefix = { full.data, full.size - ITEM_UID_BYTES };
        struct state_range range = { prefix, prefix, 10 };
        struct items items = { .owner = owner };
        uint64_t generation = state_load_generation(state);
        assert_true(state_load_range(state, generation, &range, prefix, true));
        assert_int_equal(state_range_visit(state, &range, &need, next_item, &items), ERR_OK);
        assert_int_equal(items.count, 3);
    }
    checkpoint(state, true);
    state_evict(state, 0);
    struct state_stats stats;
    state_stats_get(state, &stats);
    assert_int_equal(stats.rows, 0);
    need_deinit(&need);
    check_free(state);
}

static bool count_item(void *context, struct slice key, struct slice value)
{
    (void)key;
    (void)value;
    ++*(uint32_t *)context;
    return true;
}

/* Rows of both kinds, in the tree and beside it, are found by ranges and leave no trace. */
static void rows_that_came_after_a_range_are_in_the_next_one(void **context)
{
    struct state *state = state_new(1);
    struct need need = { 0 };
    struct row_key key;
    struct slice full = item_key(&key, 1, 0);
    struct slice prefix = { full.data, full.size - ITEM_UID_BYTES };
    struct state_range range = { prefix, prefix, 100 };
    uint32_t count = 0;
    (void)context;

    assert_true(state_load_range(state, state_load_generation(state), &range, prefix, true));
    for (uint32_t place = 0; place < 20; place++) {
        struct row_key item;
        state_begin(state);
        state_put(state, item_key(&item, 1, place * 7 % 20), S("x"));
        if (place % 5 == 4)
            state_rollback(state);
        else
            state_commit(state);
        if (place % 3 == 2) {
            count = 0;
            assert_int_equal(state_range_visit(state, &range, &need, count_item, &count), ERR_OK);
            assert_int_equal(count, place + 1 - (place + 1) / 5);
        }
    }
    checkpoint(state, true);
    state_evict(state, 0);
    assert_int_equal(state_range_visit(state, &range, &need, count_item, &count), ERR_NEED);
    need_deinit(&need);
    check_free(state);
}

static void items_that_nobody_looked_at_leave_before_players(void **context)
{
    struct state *state = state_new(1);
    struct state_stats stats;
    struct row_key old, fresh;
    struct slice value;
    struct slice old_key = item_key(&old, 1, 1);
    struct slice fresh_key = item_key(&fresh, 1, 2);
    (void)context;

    state_begin(state);
    state_put(state, old_key, S("x"));
    state_put(state, S("pa"), S("x"));
    state_put(state, fresh_key, S("x"));
    state_commit(state);
    assert_int_equal(state_find(state, old_key, &value), STATE_PRESENT);
    checkpoint(state, true);
    assert_int_equal(state_find(state, old_key, &value), STATE_PRESENT);
    state_stats_get(state, &stats);
    state_evict(state, (size_t)stats.bytes - 1);
    assert_found(state, "pa", STATE_PRESENT);
    assert_int_equal(state_find(state, fresh_key, &value), STATE_MISSING);
    assert_int_equal(state_find(state, old_key, &value), STATE_PRESENT);
    check_free(state);
}

static uint64_t bytes_of(struct state *state)
{
    struct state_stats stats;

    state_stats_get(state, &stats);
    return stats.bytes;
}

static void ledger_rows_are_found_wherever_they_are_kept(void **context)
{
    struct state *state = state_new(1);
    const struct state_write *writes;
    uint32_t count;
    (void)context;

    put(state, "la1", "first");
    assert_row(state, "la1", "first");
    put(state, "la2", "second");
    assert_true(state_checkpoint_begin(state, &writes, &count));
    assert_int_equal(count, 2);
    put(state, "la3", "third");
    assert_row(state, "la2", "second");
    assert_row(state, "la3", "third");
    assert_true(slice_equal(writes[1].key, S("la2")));
    assert_memory_equal(writes[1].value->bytes, "second", 6);
    state_checkpoint_end(state, true);
    /* What was looked at meanwhile is written once more. */
    assert_true(state_checkpoint_begin(state, &writes, &count));
    assert_int_equal(count, 2);
    state_checkpoint_end(state, true);
    put(state, "la4", "fourth");
    checkpoint(state, true);
    assert_found(state, "la4", STATE_MISSING);
    state_evict(state, 0);
    assert_int_equal(bytes_of(state), 0);
    check_free(state);
}

static void a_ledger_row_that_was_not_written_comes_with_the_next_checkpoint(void **context)
{
    struct state *state = state_new(1);
    const struct state_write *writes;
    uint32_t count;
    (void)context;

    put(state, "la1", "first");
    assert_true(state_checkpoint_begin(state, &writes, &count));
    put(state, "la2", "second");
    state_checkpoint_end(state, false);
    assert_true(state_checkpoint_begin(state, &writes, &count));
    assert_int_equal(count, 2);
    assert_true(slice_equal(writes[0].key, S("la1")));
    assert_true(slice_equal(writes[1].key, S("la2")));
    state_checkpoint_end(state, true);
    assert_int_equal(bytes_of(state), 0);
    check_free(state);
}

static void a_rollback_takes_ledger_rows_back_looked_at_or_not(void **context)
{
    struct state *state = state_new(1);
    (void)context;

    for (int look = 0; look < 3; look++) {
        uint64_t before = bytes_of(state);
        put(state, "la0", "kept");
        uint64_t kept = bytes_of(state);
        assert_true(kept > before);
        state_begin(state);
        state_put(state, S("la1"), S("one"));
        uint32_t mark = state_mark(state);
        state_put(state, S("la2"), S("two"));
        if (look == 1)
            assert_row(state, "la2", "two");
        state_put(state, S("la3"), S("three"));
        if (look == 2)
            assert_row(state, "la3", "three");
        state_rollback_to(state, mark);
        assert_found(state, "la2", STATE_MISSING);
        assert_found(state, "la3", STATE_MISSING);
        assert_row(state, "la1", "one");
        state_rollback(state);
        assert_found(state, "la1", STATE_MISSING);
        assert_row(state, "la0", "kept");
        state_begin(state);
        state_put(state, S("la0"), S("changed"));
        state_rollback(state);
        assert_row(state, "la0", "kept");
        state_begin(state);
        state_delete(state, S("la0"));
        state_commit(state);
        assert_found(state, "la0", STATE_ABSENT);
        checkpoint(state, true);
        state_evict(state, 0);
        assert_int_equal(bytes_of(state), before);
    }
    check_free(state);
}

/* A page that was loaded before a history grew says nothing of the new rows once they are gone. */
static void written_histories_are_asked_for_again(void **context)
{
    struct state *state = state_new(1);
    struct state_range range = { S("k/"), S("k/"), 10 };
    struct need need = { 0 };
    struct visited visited;
    (void)context;

    load_page(state, &range, "a", true);
    put(state, "k/b", "new");
    assert_int_equal(visit(state, &range, &need, &visited), ERR_OK);
    assert_string_equal(visited.keys, "k/a k/b ");
    put(state, "k/c", "new");
    uint64_t generation = state_load_generation(state);
    checkpoint(state, true);
    assert_true(state_load_generation(state) > generation);
    assert_false(state_load(state, generation, S("k/c"), NULL));
    assert_int_equal(visit(state, &range, &need, &visited), ERR_NEED);
    need_deinit(&need);
    check_free(state);
}

static void a_long_run_of_rows_is_checkpointed_whole_and_leaves_nothing(void **context)
{
    static uint8_t bytes[40000];
    struct state *state = state_new(1);
    const struct state_write *writes;
    uint32_t count;
    char key[16];
    (void)context;

    for (uint32_t i = 0; i < 300; i++) {
        memset(bytes, (int)i, sizeof bytes);
        (void)snprintf(key, sizeof key, "l%03u", i);
        state_begin(state);
        state_put(state, S(key), (struct slice){ bytes, i * 131 });
        state_commit(state);
    }
    assert_true(state_checkpoint_begin(state, &writes, &count));
    assert_int_equal(count, 300);
    for (uint32_t i = 0; i < count; i++) {
        memset(bytes, (int)i, sizeof bytes);
        (void)snprintf(key, sizeof key, "l%03u", i);
        assert_true(slice_equal(writes[i].key, S(key)));
        assert_int_equal(writes[i].value->size, i * 131);
        assert_memory_equal(writes[i].value->bytes, bytes, i * 131);
    }
    state_checkpoint_end(state, true);
    assert_int_equal(bytes_of(state), 0);
    check_free(state);
}

/* As when a doubled item takes the same step twice: no rule of the product writes such a row again.
 */
static void of_a_row_put_twice_in_one_run_the_later_write_holds(void **context)
{
    struct state *state = state_new(1);
    const struct state_write *writes;
    uint32_t count;
    (void)context;

    put(state, "k-item-3", "held");
    put(state, "k-item-4", "other");
    put(state, "k-item-3", "gone");
    assert_true(state_checkpoint_begin(state, &writes, &count));
    const struct blob *last = NULL;
    for (uint32_t i = 0; i < count; i++) {
        if (slice_equal(writes[i].key, S("k-item-3")))
            last = writes[i].value;
    }
    assert_non_null(last);
    assert_true(slice_equal((struct slice){ last->bytes, last->size }, S("gone")));
    assert_row(state, "k-item-3", "gone"); /* It is looked at while the checkpoint is written. */
    state_checkpoint_end(state, false);
    assert_row(state, "k-item-3", "gone");
    check_free(state);
}

static void operation_key(struct row_key *key, uint64_t ms)
{
    uint8_t random[10] = { 0 };
    struct op_id id = { .uuid = uuid_v7_make(ms, random), .text = SLICE_LITERAL("x") };
    row_key_operation(key, SLICE_LITERAL("player:a"), &id);
}

static enum state_found find_operation(struct state *state, uint64_t ms)
{
    struct row_key key;
    struct slice value;
    operation_key(&key, ms);
    return state_find(state, row_key_slice(&key), &value);
}

static void operations_leave_oldest_first_and_younger_ones_need_no_database(void **context)
{
    struct state *state = state_new(1);
    struct state_stats stats;
    struct row_key key;
    (void)context;

    state_set_operations_known_ms(state, 1000);
    assert_int_equal(find_operation(state, 1000), STATE_MISSING);
    assert_int_equal(find_operation(state, 1001), STATE_ABSENT);
    for (uint64_t ms = 2000; ms < 2010; ms++) {
        operation_key(&key, ms);
        state_begin(state);
        state_put(state, row_key_slice(&key), S("outcome"));
        state_commit(state);
    }
    checkpoint(state, true);
    state_stats_get(state, &stats);
    state_evict(state, (size_t)stats.bytes / 2);
    assert_int_equal(find_operation(state, 2000), STATE_MISSING);
    assert_int_equal(find_operation(state, 2009), STATE_PRESENT);
    assert_int_equal(find_operation(state, 2010), STATE_ABSENT);
    assert_int_equal(find_operation(state, 1500), STATE_MISSING);
    check_free(state);
}

static void timers_are_never_dropped_and_their_deletions_leave_nothing(void **context)
{
    struct state *state = state_new(1);
    struct state_stats stats;
    (void)context;

    put(state, "tAAAAAAAAplayer", "x");
    put(state, "tBBBBBBBBplayer", "x");
    checkpoint(state, true);
    state_evict(state, 0);
    assert_row(state, "tAAAAAAAAplayer", "x");
    assert_found(state, "tCCCCCCCCplayer", STATE_ABSENT);
    state_begin(state);
    state_delete(state, S("tAAAAAAAAplayer"));
    state_commit(state);
    checkpoint(state, true);
    state_stats_get(state, &stats);
    assert_int_equal(stats.rows, 1);
    check_free(state);
}

/* Rows come and go in one large table; each is found exactly while it is there. */
static void every_row_is_found_while_the_table_grows_and_shrinks(void **context)
{
    struct state *state = state_new(1);
    struct slice value = SLICE_LITERAL("v");
    char key[16];
    (void)context;

    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < 3000; i++) {
            (void)snprintf(key, sizeof key, "p%d", i);
            assert_true(state_load(state, state_load_generation(state), S(key), &value));
        }
        for (int i = 0; i < 3000; i++) {
            (void)snprintf(key, sizeof key, "p%d", i);
            assert_found(state, key, STATE_PRESENT);
        }
        struct state_stats stats;
        state_stats_get(state, &stats);
        assert_int_equal(stats.rows, 3000);
        state_evict(state, 0);
        state_stats_get(state, &stats);
        assert_int_equal(stats.rows, 0);
        assert_int_equal(stats.bytes, 0);
        assert_found(state, "p7", STATE_MISSING);
    }
    check_free(state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_rollback_restores_rows_bytes_and_dirtiness_exactly),
        cmocka_unit_test(a_checkpoint_keeps_values_as_they_stood_while_rows_change),
        cmocka_unit_test(a_checkpoint_that_failed_leaves_its_rows_dirty),
        cmocka_unit_test(rows_read_before_an_eviction_are_not_taken_in_after_it),
        cmocka_unit_test(a_loaded_row_never_replaces_what_memory_knows),
        cmocka_unit_test(only_the_least_recently_used_clean_rows_are_dropped),
        cmocka_unit_test(players_are_kept_before_documents),
        cmocka_unit_test(a_range_merges_pages_of_the_database_with_memory),
        cmocka_unit_test(evicting_a_row_forgets_that_its_page_was_loaded),
        cmocka_unit_test(items_of_each_entity_come_in_order_however_many_entities_there_are),
        cmocka_unit_test(rows_that_came_after_a_range_are_in_the_next_one),
        cmocka_unit_test(items_that_nobody_looked_at_leave_before_players),
        cmocka_unit_test(ledger_rows_are_found_wherever_they_are_kept),
        cmocka_unit_test(a_ledger_row_that_was_not_written_comes_with_the_next_checkpoint),
        cmocka_unit_test(a_rollback_takes_ledger_rows_back_looked_at_or_not),
        cmocka_unit_test(written_histories_are_asked_for_again),
        cmocka_unit_test(a_long_run_of_rows_is_checkpointed_whole_and_leaves_nothing),
        cmocka_unit_test(of_a_row_put_twice_in_one_run_the_later_write_holds),
        cmocka_unit_test(operations_leave_oldest_first_and_younger_ones_need_no_database),
        cmocka_unit_test(timers_are_never_dropped_and_their_deletions_leave_nothing),
        cmocka_unit_test(every_row_is_found_while_the_table_grows_and_shrinks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
