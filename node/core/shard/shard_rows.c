/* Rows on their way from the database. */
#include "node/core/shard/shard_internal.h"
#include "runtime/base/check.h"

/* The last of them; NULL: there are none. */
static struct asked_row *ask_keys(struct shard *shard, struct shard_out *out)
{
    struct reader reader = reader_from(buf_slice(&shard->need.keys));
    struct asked_row *row = NULL;

    while (reader_left(&reader) > 0) {
        struct slice key = read_bytes(&reader, STATE_KEY_BYTES_MAX);
        CHECK(!reader.bad);
        if (asked_rows_add(&shard->asked, key, &row))
            need_add_key(&out->need, key);
    }
    return row;
}

static struct asked_row *ask_ranges(struct shard *shard, struct shard_out *out)
{
    struct reader reader = reader_from(buf_slice(&shard->need.ranges));
    struct asked_row *row = NULL;

    while (reader_left(&reader) > 0) {
        const uint8_t *begin = reader.at;
        struct state_range range;
        range.prefix = read_bytes(&reader, STATE_KEY_BYTES_MAX);
        range.after = read_bytes(&reader, STATE_KEY_BYTES_MAX);
        range.limit = read_u32(&reader);
        CHECK(!reader.bad);
        if (asked_rows_add(&shard->asked, (struct slice){ begin, (size_t)(reader.at - begin) },
                           &row))
            need_add_range(&out->need, &range);
    }
    return row;
}

static struct asked_row *ask(struct shard *shard, struct shard_out *out)
{
    struct asked_row *key = ask_keys(shard, out);
    struct asked_row *range = ask_ranges(shard, out);

    out->need.load_generation = state_load_generation(applier_state(shard->applier));
    need_clear(&shard->need);
    return range != NULL ? range : key;
}

void shard_ask_rows(struct shard *shard, struct shard_out *out)
{
    (void)ask(shard, out);
}

void shard_wait_rows(struct shard *shard, struct call *call, enum call_place place,
                     struct shard_out *out)
{
    struct asked_row *last = ask(shard, out);

    CHECK(place == CALL_LOADING || place == CALL_FETCHING);
    if (last == NULL) { /* It names no row: it looks again later. */
        call_move(shard, call, place == CALL_LOADING ? CALL_TURN : CALL_ANSWERING);
        return;
    }
    call_move(shard, call, place);
    row_waiter_begin(&call->waiter, last);
}

/* True: it was asked for, and what came of it is stale. */
static bool arrived(struct shard *shard, struct slice key, bool loaded)
{
    struct asked_row *row = asked_rows_find(&shard->asked, key);

    if (row == NULL)
        return false;
    row->again = !loaded;
    if (!loaded)
        return true;
    while (row->first != NULL) {
        struct call *call = CONTAINER_OF(row->first, struct call, waiter);
        call_move(shard, call, call->place == CALL_LOADING ? CALL_READING : CALL_ANSWERING);
    }
    asked_rows_remove(&shard->asked, row);
    return false;
}

void shard_rows_arrived(struct shard *shard, const struct shard_event *event, struct shard_out *out)
{
    struct state *state = applier_state(shard->applier);

    for (uint32_t i = 0; i < event->row_count; i++) {
        const struct shard_row *row = &event->rows[i];
        bool loaded =
            state_load(state, event->load_generation, row->key, row->absent ? NULL : &row->value);
        if (event->range == NULL && arrived(shard, row->key, loaded))
            need_add_key(&shard->need, row->key);
    }
    if (event->range != NULL) {
        struct need name = { 0 };
        need_add_range(&name, event->range);
        struct slice last =
            event->row_count > 0 ? event->rows[event->row_count - 1].key : event->range->after;
        bool loaded =
            state_load_range(state, event->load_generation, event->range, last, event->complete);
        if (arrived(shard, buf_slice(&name.ranges), loaded))
            need_add_range(&shard->need, event->range);
        need_deinit(&name);
    }
    shard_ask_rows(shard, out);
}
