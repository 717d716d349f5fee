#include "node/core/favorite/hours.h"

#include <string.h>

#include "runtime/base/check.h"

/* The place of the first hour that is not below `hour`. */
static uint32_t place_of(const struct hours *hours, uint32_t hour)
{
    uint32_t low = 0, high = hours->count;

    while (low < high) {
        uint32_t middle = (low + high) / 2;
        if (hours->list[middle].hour < hour)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static bool is_at(const struct hours *hours, uint32_t place, uint32_t hour)
{
    return place < hours->count && hours->list[place].hour == hour;
}

static uint32_t newest(const struct hours *hours)
{
    return hours->count > 0 ? (uint32_t)hours->list[hours->count - 1].hour : 0;
}

static void drop(struct hours *hours, uint32_t place, uint32_t count)
{
    CHECK(place + count <= hours->count);
    memmove(&hours->list[place], &hours->list[place + count],
            (hours->count - place - count) * sizeof *hours->list);
    hours->count -= count;
}

void hours_prune(struct hours *hours, uint32_t hour)
{
    if (hour >= HOURS_MAX)
        drop(hours, 0, place_of(hours, hour - HOURS_MAX + 1));
}

static bool is_too_old(const struct hours *hours, uint32_t hour)
{
    uint32_t last = newest(hours);
    return last >= HOURS_MAX && hour <= last - HOURS_MAX;
}

static void raise(struct hours *hours, uint32_t hour, uint64_t by)
{
    hours_prune(hours, hour);
    uint32_t place = place_of(hours, hour);
    if (is_at(hours, place, hour)) {
        struct hour_count *at = &hours->list[place];
        at->count = by > HOURS_COUNT_MAX - at->count ? HOURS_COUNT_MAX : at->count + by;
        return;
    }
    if (by == 0 || is_too_old(hours, hour))
        return;
    CHECK(hours->count < HOURS_MAX); /* They are distinct, and within HOURS_MAX of the newest. */
    memmove(&hours->list[place + 1], &hours->list[place],
            (hours->count - place) * sizeof *hours->list);
    hours->list[place] = (struct hour_count){ hour, by };
    hours->count++;
}

static void lower(struct hours *hours, uint32_t hour, uint64_t by)
{
    uint32_t place = place_of(hours, hour);

    if (!is_at(hours, place, hour))
        return;
    if (hours->list[place].count > by)
        hours->list[place].count -= by;
    else
        drop(hours, place, 1);
}

void hours_add(struct hours *hours, uint32_t hour)
{
    raise(hours, hour, 1);
}

void hours_add_many(struct hours *hours, uint32_t hour, uint64_t by)
{
    raise(hours, hour, by < HOURS_COUNT_MAX ? by : HOURS_COUNT_MAX);
}

void hours_remove(struct hours *hours, uint32_t hour)
{
    lower(hours, hour, 1);
}

void hours_replace(struct hours *hours, const struct hours *before, const struct hours *after)
{
    for (uint32_t i = 0; i < after->count; i++)
        raise(hours, (uint32_t)after->list[i].hour, after->list[i].count);
    for (uint32_t i = 0; i < before->count; i++)
        lower(hours, (uint32_t)before->list[i].hour, before->list[i].count);
}

void hours_trim(struct hours *hours, uint64_t most)
{
    uint64_t sum = hours_sum(hours, UINT32_MAX, UINT32_MAX);

    while (sum > most && hours->count > 0) {
        uint64_t over = sum - most;
        uint64_t goes = hours->list[0].count < over ? hours->list[0].count : over;
        lower(hours, (uint32_t)hours->list[0].hour, goes);
        sum -= goes;
    }
}

uint64_t hours_sum(const struct hours *hours, uint32_t hour, uint32_t width)
{
    uint64_t sum = 0;

    for (uint32_t i = hours->count; i > 0; i--) {
        const struct hour_count *at = &hours->list[i - 1];
        if (hour >= width && at->hour <= hour - width)
            break;
        sum += at->count;
    }
    return sum;
}

void hours_encode(const struct hours *hours, struct buf *out)
{
    uint64_t before = 0;

    buf_put_u8(out, (uint8_t)hours->count);
    for (uint32_t i = 0; i < hours->count; i++) {
        buf_put_compact(out, hours->list[i].hour - before);
        buf_put_compact(out, hours->list[i].count);
        before = hours->list[i].hour;
    }
}

void hours_read(struct reader *reader, struct hours *ret_hours)
{
    uint64_t hour = 0, first = 0, left = HOURS_COUNT_MAX;

    *ret_hours = (struct hours){ 0 };
    uint32_t count = read_u8(reader);
    reader->bad |= count > HOURS_MAX;
    for (uint32_t i = 0; i < count && !reader->bad; i++) {
        uint64_t step = read_compact(reader);
        uint64_t counted = read_compact(reader);
        hour += step;
        first = i == 0 ? hour : first;
        reader->bad |= step == 0 || step > UINT32_MAX || hour > UINT32_MAX || counted == 0 ||
                       counted > left || hour - first >= HOURS_MAX;
        ret_hours->list[i] = (struct hour_count){ hour, counted };
        left -= counted;
    }
    if (!reader->bad)
        ret_hours->count = count;
}
