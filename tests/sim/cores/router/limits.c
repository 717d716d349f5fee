/*
 * What keys, addresses and the whole router may have at once (router/core/rate_limit.h,
 * admission.h). A bucket is told a second time as what it holds, in microseconds of its rate.
 */
#include <string.h>

#include "router/core/admission.h"
#include "router/core/rate_limit.h"
#include "runtime/cluster/authority_text.h"
#include "tests/sim/cores/rsim.h"

#define SECOND_US 1000000

/* ---- one bucket ---- */

struct level {
    int64_t holds_us; /* A whole second is full; below zero it owes. */
    uint64_t at_ms;
};

static void fill(struct level *level, uint64_t now_ms)
{
    uint64_t passed_us = (now_ms - level->at_ms) * 1000;

    if (passed_us > 100 * SECOND_US)
        passed_us = 100 * SECOND_US;
    level->holds_us += (int64_t)passed_us;
    if (level->holds_us > SECOND_US)
        level->holds_us = SECOND_US;
    level->at_ms = now_ms;
}

static void take_one(struct rsim *sim, struct rate_bucket *bucket, struct level *level,
                     uint32_t rate, uint64_t now_ms)
{
    int64_t cost_us = rate < SECOND_US ? SECOND_US / rate : 1;
    int64_t missing_us = cost_us - level->holds_us;
    uint32_t retry_ms = 0, asked_ms = 0;
    bool there = missing_us <= 0;

    PROMISE(sim, rate_has(bucket, rate, now_ms, &asked_ms) == there, "a token is there, or is not");
    PROMISE(sim, rate_take(bucket, rate, now_ms, &retry_ms) == there, "the rate of %u is not kept",
            rate);
    if (there) {
        level->holds_us -= cost_us;
        return;
    }
    PROMISE(sim, retry_ms == asked_ms && retry_ms == (uint32_t)((missing_us + 999) / 1000),
            "to be asked again in %u ms; a token comes in %lld us", retry_ms,
            (long long)missing_us);
    PROMISE(sim, retry_ms <= RATE_RETRY_AFTER_MAX, "a wait of %u ms", retry_ms);
    sim->counts.rate_refused++;
    if (!rsim_chance(sim, 30))
        return;
    PROMISE(sim, rate_has(bucket, rate, now_ms + retry_ms, &asked_ms), "it was told too early");
    PROMISE(sim, !rate_has(bucket, rate, now_ms + retry_ms - 1, &asked_ms), "it was told too late");
}

static void bucket_run(struct rsim *sim)
{
    static const uint32_t rates[] = { 0, 1, 2, 3, 7, 50, 1000, 999999, 1000000, 1000001 };
    struct rate_bucket bucket = { 0 };
    struct level level = { SECOND_US, 0 };
    uint32_t rate = RSIM_PICK(sim, rates), retry_ms = 0;
    uint64_t now_ms = rsim_between(sim, 0, 10000);

    for (uint32_t i = 0; i < 40; i++) {
        now_ms +=
            rsim_chance(sim, 60) ? 0 : rsim_between(sim, 0, rsim_chance(sim, 10) ? 3000 : 300);
        if (rate == 0) {
            rate_charge(&bucket, rate, 1000, now_ms);
            PROMISE(sim, rate_take(&bucket, rate, now_ms, &retry_ms), "no limit is a limit");
            continue;
        }
        fill(&level, now_ms);
        if (rsim_chance(sim, 85)) {
            take_one(sim, &bucket, &level, rate, now_ms);
            continue;
        }
        uint32_t count = (uint32_t)rsim_between(sim, 0, rsim_chance(sim, 20) ? 20000000 : 20);
        int64_t cost_us = rate < SECOND_US ? SECOND_US / rate : 1;
        int64_t least_us = cost_us - (int64_t)RATE_RETRY_AFTER_MAX * 1000;
        rate_charge(&bucket, rate, count, now_ms);
        level.holds_us -= count * cost_us;
        sim->counts.rate_in_debt += level.holds_us < 0;
        if (level.holds_us < least_us)
            level.holds_us = least_us;
    }
}

/* More names than there is room for in one place: the one that may do most is given up. */
static void names_run(struct rsim *sim)
{
    struct rate_table *table = rate_table_new();
    uint64_t base = rsim_between(sim, 1, 2000), levels[9];
    uint32_t given_up = 0;

    for (uint32_t i = 0; i < 9; i++) {
        struct rate_bucket *bucket = rate_table_get(table, base + i * 2048u);
        PROMISE(sim, bucket->full_at_us == 0, "a new name is not full");
        levels[i] = rsim_between(sim, 1, 1000000);
        bucket->full_at_us = levels[i];
        if (i < 8 && levels[i] < levels[given_up])
            given_up = i;
    }
    for (uint32_t i = 0; i < 9; i++) {
        if (i != given_up && levels[i] != levels[given_up])
            PROMISE(sim, rate_table_get(table, base + i * 2048u)->full_at_us == levels[i],
                    "a name that was held back is forgotten");
    }
    PROMISE(sim, rate_table_get(table, base + 1)->full_at_us == 0, "two names share a bucket");
    sim->counts.names_given_up++;
    rate_table_check(table);
    rate_table_free(table);
}

/* ---- admission ---- */

static uint64_t most_of(uint32_t in_flight_max, enum admission_priority priority)
{
    uint64_t percent = priority == ADMISSION_BULK ? 60 : priority == ADMISSION_ORDINARY ? 85 : 100;
    uint64_t most = in_flight_max * percent / 100;

    return most > 0 ? most : 1;
}

struct load {
    struct admission admission;
    uint32_t weights[256], count, in_flight;
    uint64_t refused[ADMISSION_PRIORITY_COUNT], refused_weight[ADMISSION_PRIORITY_COUNT];
};

static void refused_check(struct rsim *sim, struct load *load, enum admission_priority priority,
                          uint32_t retry_ms)
{
    uint64_t exact_ms = 50 + 950ull * load->in_flight / load->admission.in_flight_max;
    uint64_t most_ms = exact_ms < 1000 ? exact_ms : 1000;

    load->refused[priority]++;
    PROMISE(sim, retry_ms >= 50 && retry_ms <= 1000, "a wait of %u ms", retry_ms);
    PROMISE(sim, retry_ms == most_ms, "the wait does not rise with the load");
    PROMISE(sim, load->admission.refused[priority] == load->refused[priority],
            "a refusal is not counted");
}

static void enter_one(struct rsim *sim, struct load *load)
{
    enum admission_priority priority = (enum admission_priority)rsim_between(sim, 0, 2);
    uint64_t most = most_of(load->admission.in_flight_max, priority);
    uint64_t room = most > load->in_flight ? most - load->in_flight : 0;
    uint32_t weight = (uint32_t)(rsim_chance(sim, 40) && room > 0 ? rsim_about(sim, room)
                                                                  : rsim_between(sim, 1, 6));
    bool fits;
    uint32_t retry_ms = 0;

    if (rsim_chance(sim, 40)) {
        uint64_t heavy = load->refused_weight[priority] > 0 ? load->refused_weight[priority] : 1;
        bool full = load->in_flight > 0 && load->in_flight + heavy > most;
        PROMISE(sim, admission_is_full(&load->admission, priority, &retry_ms) == full,
                "full for a call of %llu with %u of %llu in flight, or not",
                (unsigned long long)heavy, load->in_flight, (unsigned long long)most);
        if (full)
            refused_check(sim, load, priority, retry_ms);
        sim->counts.full_before_read += full;
    }
    if (weight == 0)
        return;
    fits = load->in_flight == 0 || load->in_flight + weight <= most;
    PROMISE(sim, admission_enter(&load->admission, priority, weight, &retry_ms) == fits,
            "%u calls with %u in flight, of priority %d, of %u: let in or not", weight,
            load->in_flight, (int)priority, load->admission.in_flight_max);
    if (fits) {
        load->in_flight += weight;
        load->weights[load->count++] = weight;
    } else {
        refused_check(sim, load, priority, retry_ms);
        load->refused_weight[priority] = weight < most / 16 ? weight : most / 16;
        sim->counts.weights_refused++;
    }
    PROMISE(sim, load->admission.in_flight == load->in_flight, "calls in flight are miscounted");
}

static void admission_run(struct rsim *sim)
{
    static const uint32_t limits[] = { 1, 2, 3, 10, 99, 100, 640, 5000 };
    struct load load = { .count = 0 };

    admission_init(&load.admission, RSIM_PICK(sim, limits));
    for (uint32_t priority = 0; priority < ADMISSION_PRIORITY_COUNT; priority++) {
        uint32_t percent = (uint32_t)rsim_between(sim, 0, 100);
        enum admission_priority one = (enum admission_priority)priority;
        uint64_t share = most_of(load.admission.in_flight_max, one) * percent / 100;
        PROMISE(sim, admission_share(&load.admission, one, percent) == (share > 0 ? share : 1),
                "%u percent of the places of priority %u", percent, priority);
    }
    for (uint32_t i = 0; i < 200; i++) {
        if (load.count > 0 && (load.count == 200 || rsim_chance(sim, 40))) {
            uint32_t weight = load.weights[--load.count];
            admission_leave(&load.admission, weight);
            load.in_flight -= weight;
        } else {
            enter_one(sim, &load);
        }
    }
}

/* By the table of methods: what saves waits first, what back-end services ask overtakes. */
static void priorities_run(struct rsim *sim)
{
    static const char *const authorities[] = { "", "system:payments", "session:1-2-3", "unheld",
                                               "systems" };
    size_t count;
    const struct method_info *all = method_all(&count);

    for (size_t i = 0; i < count; i++) {
        const struct method_info *method = &all[i];
        ProtobufCMessage *message = arena_alloc(&sim->arena, method->request->sizeof_message);
        const char *authority = RSIM_PICK(sim, authorities);
        const ProtobufCFieldDescriptor *field =
            protobuf_c_message_descriptor_get_field_by_name(method->request, "authority");
        enum admission_priority most = ADMISSION_ORDINARY, wanted;

        protobuf_c_message_init(method->request, message);
        if (field != NULL && field->type == PROTOBUF_C_TYPE_STRING)
            memcpy((char *)message + field->offset, &authority, sizeof authority);
        if (method->priority == METHOD_PRIORITY_BULK)
            most = ADMISSION_BULK;
        if (method->priority == METHOD_PRIORITY_URGENT ||
            method->priority == METHOD_PRIORITY_AUTHORITY)
            most = ADMISSION_URGENT;
        wanted = most;
        if (method->priority == METHOD_PRIORITY_AUTHORITY &&
            (field == NULL || strncmp(authority, "system:", 7) != 0))
            wanted = ADMISSION_ORDINARY;
        PROMISE(sim, admission_priority_max(method) == most, "%s: the priority it may have",
                method->name);
        PROMISE(sim, admission_priority_of(method, message) == wanted,
                "%s under \"%s\" has the priority %d, not %d", method->name, authority,
                (int)admission_priority_of(method, message), (int)wanted);
    }
}

void room_limits(struct rsim *sim)
{
    for (uint32_t i = 0; i < 12; i++)
        bucket_run(sim);
    if (sim->seed % 8 == 1)
        names_run(sim);
    for (uint32_t i = 0; i < 3; i++)
        admission_run(sim);
    priorities_run(sim);
}
