#include "router/core/rate_limit.h"

#include <stdlib.h>

#include "runtime/base/buf.h"
#include "runtime/base/check.h"

#define WAYS        8u
#define SETS        (RATE_TABLE_BUCKETS / WAYS)
#define SECOND_US   1000000u
#define DEBT_US_MAX ((uint64_t)RATE_RETRY_AFTER_MAX * 1000u)

struct named_bucket {
    uint64_t name;
    struct rate_bucket bucket;
};

struct rate_table {
    struct named_bucket buckets[SETS][WAYS];
};

static uint64_t cost_us(uint32_t rate_per_s)
{
    return rate_per_s < SECOND_US ? SECOND_US / rate_per_s : 1;
}

/* The bucket as time until it is full; a whole second is empty (generic cell rate algorithm). */
static uint64_t missing_us(const struct rate_bucket *bucket, uint64_t now_us)
{
    return bucket->full_at_us > now_us ? bucket->full_at_us - now_us : 0;
}

bool rate_has(const struct rate_bucket *bucket, uint32_t rate_per_s, uint64_t now_ms,
              uint32_t *ret_retry_after_ms)
{
    uint64_t wanted_us;

    if (rate_per_s == 0)
        return true;
    wanted_us = missing_us(bucket, now_ms * 1000) + cost_us(rate_per_s);
    if (wanted_us <= SECOND_US)
        return true;
    *ret_retry_after_ms = (uint32_t)((wanted_us - SECOND_US + 999) / 1000);
    return false;
}

bool rate_take(struct rate_bucket *bucket, uint32_t rate_per_s, uint64_t now_ms,
               uint32_t *ret_retry_after_ms)
{
    if (!rate_has(bucket, rate_per_s, now_ms, ret_retry_after_ms))
        return false;
    rate_charge(bucket, rate_per_s, 1, now_ms);
    return true;
}

void rate_charge(struct rate_bucket *bucket, uint32_t rate_per_s, uint32_t count, uint64_t now_ms)
{
    uint64_t now_us = now_ms * 1000;
    uint64_t missing;

    if (rate_per_s == 0)
        return;
    missing = missing_us(bucket, now_us) + count * cost_us(rate_per_s);
    bucket->full_at_us = now_us + (missing < SECOND_US + DEBT_US_MAX - cost_us(rate_per_s)
                                       ? missing
                                       : SECOND_US + DEBT_US_MAX - cost_us(rate_per_s));
}

uint32_t rate_turn_ms(struct rate_bucket *bucket, uint32_t rate_per_s, uint64_t now_ms)
{
    uint64_t now_us = now_ms * 1000;
    uint64_t last_us = now_us + (uint64_t)RATE_TURN_MS_MAX * 1000;
    uint32_t wait_ms = 0;

    if (rate_has(bucket, rate_per_s, now_ms, &wait_ms))
        return 0;
    uint64_t turn_us = now_us + (uint64_t)wait_ms * 1000;
    uint64_t behind_us = bucket->promised_us + cost_us(rate_per_s);
    if (turn_us < behind_us)
        turn_us = behind_us;
    if (turn_us > last_us)
        turn_us = last_us;
    bucket->promised_us = turn_us;
    uint32_t turn_ms = (uint32_t)((turn_us - now_us + 999) / 1000);
    return turn_ms > wait_ms ? turn_ms : wait_ms;
}

struct rate_table *rate_table_new(void)
{
    return mem_zalloc(sizeof(struct rate_table));
}

void rate_table_free(struct rate_table *table)
{
    free(table);
}

struct rate_bucket *rate_table_get(struct rate_table *table, uint64_t name)
{
    struct named_bucket *set = table->buckets[name % SETS];
    struct named_bucket *fullest = &set[0];

    for (uint32_t i = 0; i < WAYS; i++) {
        if (set[i].name == name)
            return &set[i].bucket;
        if (set[i].bucket.full_at_us < fullest->bucket.full_at_us)
            fullest = &set[i];
    }
    *fullest = (struct named_bucket){ .name = name };
    return &fullest->bucket;
}

void rate_table_check(const struct rate_table *table)
{
    for (uint32_t i = 0; i < SETS; i++) {
        for (uint32_t j = 0; j < WAYS; j++) {
            const struct named_bucket *one = &table->buckets[i][j];

            if (one->name == 0) /* Or never used. */
                continue;
            CHECK(one->name % SETS == i);
            for (uint32_t k = 0; k < j; k++)
                CHECK(table->buckets[i][k].name != one->name);
        }
    }
}
