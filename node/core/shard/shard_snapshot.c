#include "node/core/shard/shard_snapshot.h"

void snapshot_actions_clear(struct snapshot_actions *actions)
{
    actions->close = actions->read = actions->fresh = false;
    actions->drop = actions->store = actions->install = false;
    buf_clear(&actions->after);
    buf_clear(&actions->rows);
    buf_clear(&actions->meta_row);
}

void snapshot_actions_deinit(struct snapshot_actions *actions)
{
    buf_deinit(&actions->after);
    buf_deinit(&actions->rows);
    buf_deinit(&actions->meta_row);
}

bool snapshot_is_carried_apart(struct slice key)
{
    return table_of(key)->carried == TABLE_CARRIED_APART;
}

bool snapshot_rows_next(struct reader *reader, struct slice *ret_key, struct slice *ret_value)
{
    if (reader->bad || reader_left(reader) == 0)
        return false;
    *ret_key = read_bytes(reader, STATE_KEY_BYTES_MAX);
    *ret_value = read_bytes(reader, STATE_VALUE_BYTES_MAX);
    reader->bad |= ret_key->size == 0 || (!reader->bad && snapshot_is_carried_apart(*ret_key));
    return !reader->bad;
}
