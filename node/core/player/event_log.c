#include "node/core/player/event_log.h"

int event_place_compare(const struct event_place *a, const struct event_place *b)
{
    if (a->epoch != b->epoch)
        return a->epoch < b->epoch ? -1 : 1;
    if (a->counter != b->counter)
        return a->counter < b->counter ? -1 : 1;
    return (a->place > b->place) - (a->place < b->place);
}

void event_log_init(struct event_log *log)
{
    *log = (struct event_log){
        .keep_ms = EVENT_KEEP_MS_DEFAULT,
        .events_max = EVENTS_MAX_DEFAULT,
    };
}

bool event_log_is_used(const struct event_log *log)
{
    return log->count > 0 || log->trimmed.epoch > 0 || log->unlearned ||
           log->keep_ms != EVENT_KEEP_MS_DEFAULT || log->events_max != EVENTS_MAX_DEFAULT;
}

void event_log_encode(const struct event_log *log, struct buf *out)
{
    buf_put_u64(out, log->count);
    buf_put_u64(out, log->oldest_ms);
    buf_put_u64(out, log->trimmed.epoch);
    buf_put_u64(out, log->trimmed.counter);
    buf_put_u32(out, log->trimmed.place);
    buf_put_u64(out, log->keep_ms);
    buf_put_u64(out, log->events_max);
    buf_put_u8(out, log->unlearned);
}

void event_log_read(struct reader *reader, struct event_log *log)
{
    log->count = read_u64(reader);
    log->oldest_ms = read_u64(reader);
    log->trimmed.epoch = read_u64(reader);
    log->trimmed.counter = read_u64(reader);
    log->trimmed.place = read_u32(reader);
    log->keep_ms = read_u64(reader);
    log->events_max = read_u64(reader);
    uint8_t unlearned = read_u8(reader);
    log->unlearned = unlearned != 0;
    log->written = 0;
    log->removed = 0;
    log->trimmed_count = 0;
    reader->bad |= unlearned > 1 || log->keep_ms == 0 || log->events_max == 0;
}
