/*
 * A shard's rows in memory over those in a database, by the promises of state.h: transactions with
 * marks, ranges, checkpoints that fail or go on while rows change, evictions, loads that come late.
 * Every row and every range is what a plain list of keys and values says.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "node/core/codec/op.h"
#include "node/core/rows/rows.h"
#include "node/core/rows/state.h"
#include "runtime/base/check.h"
#include "tests/sim/cores/rsim.h"

#define ENTITIES  3u
#define EACH      4u
#define KEYS      160u
#define TURNS     260u
#define CHANGES   8u
#define MARKS     4u
#define LOADS_MAX 20u
#define VALUE_MAX 400u

struct cell {
    uint32_t value; /* 0: there is none. Else what the bytes are made of. */
};

struct cells {
    struct cell list[KEYS];
};

struct memory {
    struct rsim *sim;
    struct state *state;
    struct row_key keys[KEYS]; /* Sorted. */
    uint32_t count;
    struct cells now, database;
    struct cells seen;        /* By the observer. */
    uint32_t values;          /* Given out so far. */
    bool inside;              /* A transaction is open: nothing is loaded. */
    uint32_t chosen[CHANGES]; /* Rows that are in memory before it begins, as apply has them. */
    struct need need;
    /* An open checkpoint: what the database is to hold after it. */
    bool open;
    struct cells frozen;
    const struct state_write *writes;
    uint32_t write_count;
};

static bool chance(struct memory *m, uint32_t per_hundred)
{
    return rsim_chance(m->sim, per_hundred);
}

static uint32_t below(struct memory *m, uint32_t count)
{
    return (uint32_t)rsim_between(m->sim, 0, count - 1);
}

/* The bytes of a value, in memory that lasts until the next call. */
static struct slice bytes_of(uint32_t value)
{
    static uint8_t bytes[VALUE_MAX];
    uint32_t size = 4 + value * 2654435761u % (VALUE_MAX - 4);

    memset(bytes, (int)(value % 251), sizeof bytes);
    store_u32(bytes, value);
    return (struct slice){ bytes, value % 3 == 0 ? size : 4 + size % 20 };
}

static bool is_value(struct slice found, uint32_t value)
{
    return value == 0 ? found.size == 0 : slice_equal(found, bytes_of(value));
}

static uint32_t place_of(struct memory *m, struct slice key)
{
    for (uint32_t i = 0; i < m->count; i++) {
        if (slice_equal(row_key_slice(&m->keys[i]), key))
            return i;
    }
    rsim_broken(m->sim, "a row that never was");
}

/* ---- keys of tables that are kept in every way ---- */

static struct row_key *next_key(struct memory *m)
{
    CHECK(m->count < KEYS);
    return &m->keys[m->count++];
}

static void add_dated(struct memory *m, struct slice entity, uint32_t place)
{
    uint8_t random[10] = { (uint8_t)place };
    char text[UUID_TEXT_SIZE];
    const struct uuid uuid = uuid_v7_make(1000 + place, random);
    struct op_id id;
    const char *why;

    uuid_print(&uuid, text);
    CHECK(op_id_parse(slice_from_text(text), &id, &why) == ERR_OK);
    row_key_operation(next_key(m), entity, &id);
}

static void add_entity(struct memory *m, const char *name, uint32_t number)
{
    struct slice entity = slice_from_text(name);
    uint8_t uid[ITEM_UID_BYTES] = { 0 };

    row_key_player(next_key(m), entity);
    row_key_mailbox(next_key(m), entity);
    for (uint32_t i = 0; i < EACH; i++) {
        const char letter = (char)('a' + i);
        const struct slice text = { (const uint8_t *)&letter, 1 };
        uid[15] = (uint8_t)i;
        row_key_section(next_key(m), entity, text);
        row_key_ledger(next_key(m), entity, i);
        row_key_item(next_key(m), entity, uid);
        row_key_mail(next_key(m), entity, uid);
        row_key_timer(next_key(m), 5 + i, entity);
        row_key_reservation(next_key(m), entity, i);
        add_dated(m, entity, number * EACH + i);
        struct row_key *favored = next_key(m);
        row_key_favored_prefix(favored, entity, 7, FAVORED_EDGES);
        row_key_favored_add(favored, FAVORED_EDGES, i, text);
    }
}

static void add_shard(struct memory *m)
{
    uint8_t uid[ITEM_UID_BYTES] = { 0 };

    for (uint32_t i = 0; i < EACH; i++) {
        const char letter = (char)('a' + i);
        const struct slice text = { (const uint8_t *)&letter, 1 };
        uid[0] = (uint8_t)(i / 2);
        row_key_history(next_key(m), uid, i);
        row_key_outbox(next_key(m), i / 2, i);
        row_key_channel(next_key(m), i % 2 == 0, i / 2);
        row_key_definition(next_key(m), i);
        row_key_event(next_key(m), 1, i, 0);
        row_key_pulled(next_key(m), i);
        row_key_partial(next_key(m), 7, text);
        row_key_keyed(next_key(m), 9 + i, slice_from_text("player:a"), slice_from_text("key:a"));
    }
}

static int order(const void *a, const void *b)
{
    return slice_compare(row_key_slice(a), row_key_slice(b));
}

/* ---- looks ---- */

static void load_key(struct memory *m, struct slice key)
{
    uint32_t value = m->database.list[place_of(m, key)].value;
    const struct slice bytes = bytes_of(value);

    PROMISE(m->sim,
            state_load(m->state, state_load_generation(m->state), key, value > 0 ? &bytes : NULL),
            "what was just read is not taken in");
}

static void look(struct memory *m, uint32_t place)
{
    struct slice key = row_key_slice(&m->keys[place]), found = { 0 };
    uint32_t value = m->now.list[place].value;
    enum state_found known = state_find(m->state, key, &found);

    if (known == STATE_MISSING) {
        PROMISE(m->sim, value == m->database.list[place].value,
                "a row of table %c is lost that no checkpoint has written", key.data[0]);
        if (m->inside)
            return;
        load_key(m, key);
        known = state_find(m->state, key, &found);
    }
    PROMISE(m->sim, known != STATE_MISSING, "a row that was loaded is missing");
    PROMISE(m->sim, (known == STATE_PRESENT) == (value > 0), "a row of table %c is %s", key.data[0],
            known == STATE_PRESENT ? "there" : "not there");
    PROMISE(m->sim, known == STATE_ABSENT || is_value(found, value),
            "a row of table %c has another value", key.data[0]);
}

struct walk {
    struct memory *m;
    const struct state_range *range;
    uint32_t at, told, stop_after;
};

static bool is_in(const struct memory *m, const struct state_range *range, uint32_t place)
{
    struct slice key = row_key_slice(&m->keys[place]);

    return slice_begins_with(key, range->prefix) && slice_compare(key, range->after) > 0;
}

static bool visit(void *user, struct slice key, struct slice value)
{
    struct walk *walk = user;
    struct memory *m = walk->m;

    while (walk->at < m->count &&
           (!is_in(m, walk->range, walk->at) || m->now.list[walk->at].value == 0))
        walk->at++;
    PROMISE(m->sim, walk->at < m->count, "a row is told that is not of the range");
    PROMISE(m->sim, slice_equal(key, row_key_slice(&m->keys[walk->at])),
            "a row of table %c is left out of a range", key.data[0]);
    PROMISE(m->sim, is_value(value, m->now.list[walk->at].value),
            "a row of table %c has another value in a range", key.data[0]);
    walk->at++;
    walk->told++;
    return walk->told < walk->stop_after;
}

/* The database's page. */
static void load_range(struct memory *m, const struct state_range *range)
{
    struct slice last = range->after;
    uint32_t count = 0;

    for (uint32_t i = 0; i < m->count && count < range->limit; i++) {
        if (!is_in(m, range, i) || m->database.list[i].value == 0)
            continue;
        load_key(m, row_key_slice(&m->keys[i]));
        last = row_key_slice(&m->keys[i]);
        count++;
    }
    PROMISE(m->sim,
            state_load_range(m->state, state_load_generation(m->state), range, last,
                             count < range->limit),
            "a page that was just read is not taken in");
}

static void load_needed(struct memory *m)
{
    struct reader keys = reader_from(buf_slice(&m->need.keys));
    struct reader ranges = reader_from(buf_slice(&m->need.ranges));
    struct state_range range;

    PROMISE(m->sim, m->need.key_count + m->need.range_count > 0, "nothing is needed");
    while (reader_left(&keys) > 0)
        load_key(m, read_bytes(&keys, STATE_KEY_BYTES_MAX));
    while (reader_left(&ranges) > 0) {
        range.prefix = read_bytes(&ranges, STATE_KEY_BYTES_MAX);
        range.after = read_bytes(&ranges, STATE_KEY_BYTES_MAX);
        range.limit = read_u32(&ranges);
        load_range(m, &range);
    }
    need_clear(&m->need);
}

/* A table, or what one entity has in it: tables that keep no order have no ranges. */
static bool choose_range(struct memory *m, struct state_range *ret_range)
{
    const struct row_key *key = &m->keys[below(m, m->count)];
    const struct table_facts *facts = table_of(row_key_slice(key));
    struct slice entity = row_entity(row_key_slice(key));

    *ret_range = (struct state_range){ .prefix = { key->bytes, 1 } };
    if (facts->order == TABLE_ORDER_NONE)
        return false;
    if (facts->order == TABLE_ORDER_ENTITY)
        ret_range->prefix.size = (size_t)(entity.data - key->bytes) + entity.size + 1;
    ret_range->limit = (uint32_t)rsim_between(m->sim, 1, 6);
    if (chance(m, 20))
        ret_range->limit = KEYS;
    if (chance(m, 50))
        ret_range->after = row_key_slice(&m->keys[below(m, m->count)]);
    return true;
}

static void walk(struct memory *m)
{
    struct state_range range;
    struct walk walk = { .m = m, .range = &range };
    uint32_t loads = 0, wanted = 0;

    if (!choose_range(m, &range))
        return;
    walk.stop_after = chance(m, 70) ? KEYS : 1;
    while (state_range_visit(m->state, &range, &m->need, visit, &walk) != ERR_OK) {
        PROMISE(m->sim, walk.told == 0, "rows are told of a page that is not all there");
        if (m->inside) {
            need_clear(&m->need);
            return;
        }
        PROMISE(m->sim, ++loads < LOADS_MAX, "a page is never all there");
        load_needed(m);
    }
    for (uint32_t i = 0; i < m->count; i++)
        wanted += is_in(m, &range, i) && m->now.list[i].value > 0;
    wanted = wanted < range.limit ? wanted : range.limit;
    wanted = wanted < walk.stop_after ? wanted : walk.stop_after;
    PROMISE(m->sim, walk.told == wanted, "%u rows of a range of table %c are told, not %u",
            walk.told, range.prefix.data[0], wanted);
    m->sim->counts.memory_ranges++;
}

/* ---- changes ---- */

static void observe(void *user, struct slice key, struct slice before, struct slice after)
{
    struct memory *m = user;

    if (key.data[0] == TABLE_NOTE)
        return;
    struct cell *seen = &m->seen.list[place_of(m, key)];
    PROMISE(m->sim, before.size == 0 || is_value(before, seen->value),
            "a row of table %c is told to have been another one", key.data[0]);
    seen->value = after.size > 0 ? load_u32(after.data) : 0;
}

static void change(struct memory *m)
{
    uint32_t place = m->chosen[below(m, CHANGES)];
    struct slice key = row_key_slice(&m->keys[place]);
    struct cell *cell = &m->now.list[place];

    if (cell->value > 0 || chance(m, 30))
        look(m, place); /* Rows that are not looked at are written once (state_run.h). */
    bool fresh = cell->value == 0 && m->database.list[place].value == 0 &&
                 (!m->open || m->frozen.list[place].value == 0);
    if (cell->value > 0 && chance(m, 45)) {
        if (table_of(key)->run == 0 && chance(m, 30))
            state_forget(m->state, key);
        else
            state_delete(m->state, key);
        cell->value = 0;
        return;
    }
    cell->value = ++m->values;
    if (fresh && chance(m, 60))
        state_put_new(m->state, key, bytes_of(cell->value));
    else
        state_put(m->state, key, bytes_of(cell->value));
}

static void transact(struct memory *m)
{
    struct cells before = m->now, marked[MARKS];
    uint32_t marks[MARKS], mark_count = 0;

    for (uint32_t i = 0; i < CHANGES; i++) {
        m->chosen[i] = below(m, m->count);
        if (m->now.list[m->chosen[i]].value > 0 || chance(m, 50))
            look(m, m->chosen[i]); /* The observer is told what was there. */
    }
    state_begin(m->state);
    m->inside = true;
    for (uint64_t i = rsim_between(m->sim, 1, CHANGES); i > 0; i--) {
        change(m);
        if (mark_count < MARKS && chance(m, 20)) {
            marked[mark_count] = m->now;
            marks[mark_count++] = state_mark(m->state);
        }
        if (mark_count > 0 && chance(m, 15)) {
            state_rollback_to(m->state, marks[--mark_count]);
            m->now = marked[mark_count];
            m->sim->counts.memory_undone++;
        }
        look(m, below(m, m->count));
        if (chance(m, 10))
            walk(m);
    }
    m->inside = false;
    if (chance(m, 25)) {
        state_rollback(m->state);
        m->now = before;
        m->sim->counts.memory_undone++;
    } else {
        state_commit(m->state);
        m->sim->counts.memory_changes++;
    }
}

/* ---- the database ---- */

static void checkpoint_begin(struct memory *m)
{
    struct cells written = m->database;

    PROMISE(m->sim, state_checkpoint_begin(m->state, &m->writes, &m->write_count),
            "a checkpoint does not begin");
    m->open = true;
    m->frozen = m->now;
    for (uint32_t i = 0; i < m->write_count; i++) {
        const struct blob *value = m->writes[i].value;
        written.list[place_of(m, m->writes[i].key)].value =
            value != NULL ? load_u32(value->bytes) : 0;
    }
    for (uint32_t i = 0; i < m->count; i++)
        PROMISE(m->sim, written.list[i].value == m->now.list[i].value,
                "a checkpoint would leave another row of table %c", m->keys[i].bytes[0]);
}

/* What was frozen is written as it stood, whatever has become of it since. */
static void checkpoint_end(struct memory *m)
{
    bool written = chance(m, 75);

    for (uint32_t i = 0; i < m->write_count && written; i++) {
        const struct blob *value = m->writes[i].value;
        uint32_t place = place_of(m, m->writes[i].key);
        PROMISE(m->sim,
                value == NULL ||
                    is_value((struct slice){ value->bytes, value->size }, load_u32(value->bytes)),
                "a frozen row of table %c has changed", m->writes[i].key.data[0]);
        m->database.list[place].value = value != NULL ? load_u32(value->bytes) : 0;
    }
    for (uint32_t i = 0; i < m->count && written; i++)
        PROMISE(m->sim, m->database.list[i].value == m->frozen.list[i].value,
                "a checkpoint has left another row of table %c", m->keys[i].bytes[0]);
    state_checkpoint_end(m->state, written);
    m->open = false;
    m->sim->counts.memory_checkpoints += written;
}

static void checkpoint(struct memory *m)
{
    if (m->open)
        checkpoint_end(m);
    else
        checkpoint_begin(m);
}

static void evict(struct memory *m)
{
    struct state_stats before, after;
    uint64_t generation = state_load_generation(m->state);
    uint32_t place = below(m, m->count);
    uint32_t value = m->database.list[place].value;
    const struct slice bytes = bytes_of(value);

    state_stats_get(m->state, &before);
    state_evict(m->state, chance(m, 50) ? 0 : rsim_between(m->sim, 0, 20000));
    state_stats_get(m->state, &after);
    PROMISE(m->sim, after.dirty_rows == before.dirty_rows, "a row that waits is dropped");
    if (after.evictions > before.evictions)
        PROMISE(m->sim,
                !state_load(m->state, generation, row_key_slice(&m->keys[place]),
                            value > 0 ? &bytes : NULL),
                "what was read before an eviction is taken in after it");
    m->sim->counts.memory_evictions += after.evictions > before.evictions;
}

static void all_is_written(struct memory *m)
{
    struct state_stats stats;
    uint32_t timers = 0;

    if (m->open)
        checkpoint_end(m);
    do {
        checkpoint_begin(m);
        checkpoint_end(m);
        state_stats_get(m->state, &stats);
    } while (stats.dirty_rows > 0);
    for (uint32_t i = 0; i < m->count; i++)
        PROMISE(m->sim, m->database.list[i].value == m->now.list[i].value,
                "nothing waits, and a row of table %c is not written", m->keys[i].bytes[0]);
    state_evict(m->state, 0);
    state_stats_get(m->state, &stats);
    for (uint32_t i = 0; i < m->count; i++)
        timers += m->keys[i].bytes[0] == TABLE_TIMER && m->now.list[i].value > 0;
    PROMISE(m->sim, stats.rows == timers, "%" PRIu64 " rows are left of %u timers", stats.rows,
            timers);
    for (uint32_t i = 0; i < m->count; i++)
        look(m, i);
}

static void turn(struct memory *m)
{
    static void (*const deeds[])(struct memory *) = { transact, transact, transact,   transact,
                                                      walk,     walk,     checkpoint, evict };

    RSIM_PICK(m->sim, deeds)(m);
    state_check(m->state);
}

void room_memory(struct rsim *sim)
{
    static const char *const entities[ENTITIES] = { "player:a", "player:ab", "player:b" };
    struct memory *m = mem_zalloc(sizeof *m);

    m->sim = sim;
    m->state = state_new(3);
    state_observe(m->state, (struct state_observer){ observe, m });
    for (uint32_t i = 0; i < ENTITIES; i++)
        add_entity(m, entities[i], i);
    add_shard(m);
    qsort(m->keys, m->count, sizeof *m->keys, order);
    for (uint32_t i = 0; i < TURNS; i++) {
        turn(m);
        if (i % 100 == 99)
            all_is_written(m);
    }
    all_is_written(m);
    state_free(m->state);
    need_deinit(&m->need);
    free(m);
}
