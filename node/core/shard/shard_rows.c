/* Rows on their way from the database. */
#include "node/core/shard/shard_internal.h"
#include "runtime/base/check.h"

static void ask_keys(struct shard *shard, struct shard_out *out)
{
    struct reader reader = reader_from(buf_slice(&shard->need.keys));

    while (reader_left(&reader) > 0) {
        struct slice key = read_bytes(&reader, STATE_KEY_BYTES_MAX);
        CHECK(!reader.bad);
        if (key_set_add(&shard->loading, key))
            need_add_key(&out->need, key);
    }
}

static void ask_ranges(struct shard *shard, struct shard_out *out)
{
    struct reader reader = reader_from(buf_slice(&shard->need.ranges));

    while (reader_left(&reader) > 0) {
        const uint8_t *begin = reader.at;
        struct state_range range;
        range.prefix = read_bytes(&reader, STATE_KEY_BYTES_MAX);
        range.after = read_bytes(&reader, STATE_KEY_BYTES_MAX);
        range.limit = read_u32(&reader);
        CHECK(!reader.bad);
        if (key_set_add(&shard->loading, (struct slice){ begin, (size_t)(reader.at - begin) }))
            need_add_range(&out->need, &range);
    }
}

void shard_ask_rows(struct shard *shard, struct shard_out *out)
{
    ask_keys(shard, out);
    ask_ranges(shard, out);
    out->need.load_generation = state_load_generation(applier_state(shard->applier));
    need_clear(&shard->need);
}

void shard_rows_arrived(struct shard *shard, const struct shard_event *event, struct shard_out *out)
{
    struct state *state = applier_state(shard->applier);

    for (uint32_t i = 0; i < event->row_count; i++) {
        const struct shard_row *row = &event->rows[i];
        bool asked = event->range == NULL && key_set_remove(&shard->loading, row->key);
        if (!state_load(state, event->load_generation, row->key,
                        row->absent ? NULL : &row->value) &&
            asked)
            need_add_key(&shard->need, row->key);
    }
    if (event->range != NULL) {
        struct need name = { 0 };
        need_add_range(&name, event->range);
        key_set_remove(&shard->loading, buf_slice(&name.ranges));
        need_deinit(&name);
        struct slice last =
            event->row_count > 0 ? event->rows[event->row_count - 1].key : event->range->after;
        if (!state_load_range(state, event->load_generation, event->range, last, event->complete))
            need_add_range(&shard->need, event->range);
    }
    shard_ask_rows(shard, out);
}
