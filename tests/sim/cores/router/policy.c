/* What a policy may be before it is stored (router/core/policy_rules.h, idl/policy_limit.h). */
#include <string.h>

#include "idl/error_code.h"
#include "router/core/policy_rules.h"
#include "runtime/base/check.h"
#include "tests/sim/cores/rsim.h"

#define CURRENCIES 66u
#define AMOUNT_MAX 9007199254740991ll

struct drafted {
    Holdfast__V1__Policy policy;
    Holdfast__V1__CurrencyPolicy currencies[CURRENCIES], *list[CURRENCIES];
    bool bad;
};

/* A number about its limits, or 0 for its default. */
static uint64_t number_make(struct rsim *sim, struct drafted *d, uint64_t low, uint64_t high)
{
    uint64_t number = low;

    switch (rsim_between(sim, 0, 9)) {
    case 0:
        number = rsim_about(sim, low);
        break;
    case 1:
        number = rsim_about(sim, high);
        break;
    case 2:
        number = rsim_between(sim, low, high);
        break;
    default:
        return 0;
    }
    d->bad |= number != 0 && (number < low || number > high);
    return number;
}

static void currency_make(struct rsim *sim, struct drafted *d, uint32_t place)
{
    static const char *const names[] = { "gold_1", "", "Gold", "a-b", "z9" };
    Holdfast__V1__CurrencyPolicy *one = d->list[place] = &d->currencies[place];
    uint64_t name = rsim_between(sim, 0, 19);

    holdfast__v1__currency_policy__init(one);
    one->name = arena_printf(&sim->arena, "c%u", place);
    if (name < 5) {
        one->name = text_lend(names[name]);
        d->bad |= name > 0 && name < 4;
    } else if (name == 5) {
        size_t size = rsim_about(sim, 32);
        char *text = arena_zalloc(&sim->arena, size + 1);
        memset(text, 'c', size);
        one->name = text;
        d->bad |= size > 32;
    }
    for (uint32_t i = 0; i < place; i++)
        d->bad |= strcmp(one->name, d->list[i]->name) == 0;
    if (rsim_chance(sim, 30))
        one->max_balance = rsim_chance(sim, 70) ? (int64_t)rsim_between(sim, 0, 2) - 1
                                                : AMOUNT_MAX - 1 + (int64_t)rsim_between(sim, 0, 2);
    if (rsim_chance(sim, 30))
        one->min_balance = rsim_chance(sim, 70)
                               ? (int64_t)rsim_between(sim, 0, 2) - 1
                               : -AMOUNT_MAX - 1 + (int64_t)rsim_between(sim, 0, 2);
    d->bad |= one->max_balance < 0 || one->max_balance > AMOUNT_MAX || one->min_balance > 0 ||
              one->min_balance < -AMOUNT_MAX;
}

static void draft(struct rsim *sim, struct drafted *d)
{
    size_t count = rsim_chance(sim, 90) ? rsim_between(sim, 0, 4) : rsim_about(sim, 64);

    d->bad = count > 64;
    holdfast__v1__policy__init(&d->policy);
    d->policy.version = rsim_between(sim, 0, 9);
    d->policy.operation_window_ms = number_make(sim, d, 900000, 604800000);
    d->policy.operations_max = number_make(sim, d, 1000, 100000000);
    d->policy.items_max = (uint32_t)number_make(sim, d, 1, 1000000);
    d->policy.mailbox_max = (uint32_t)number_make(sim, d, 1, 100000);
    d->policy.n_currencies = count;
    d->policy.currencies = d->list;
    for (uint32_t i = 0; i < count; i++)
        currency_make(sim, d, i);
}

static void completed_check(struct rsim *sim, const Holdfast__V1__Policy *was,
                            const Holdfast__V1__Policy *now)
{
    PROMISE(sim, now->version == was->version && now->n_currencies == was->n_currencies,
            "another policy");
    PROMISE(sim,
            now->operation_window_ms ==
                (was->operation_window_ms != 0 ? was->operation_window_ms : 86400000),
            "operation_window_ms");
    PROMISE(sim, now->operations_max == (was->operations_max != 0 ? was->operations_max : 2000000),
            "operations_max");
    PROMISE(sim, now->items_max == (was->items_max != 0 ? was->items_max : 10000), "items_max");
    PROMISE(sim, now->mailbox_max == (was->mailbox_max != 0 ? was->mailbox_max : 1000),
            "mailbox_max");
    for (size_t i = 0; i < was->n_currencies; i++) {
        const Holdfast__V1__CurrencyPolicy *a = was->currencies[i], *b = now->currencies[i];

        PROMISE(sim,
                strcmp(a->name, b->name) == 0 && a->min_balance == b->min_balance &&
                    b->max_balance == (a->max_balance != 0 ? a->max_balance : AMOUNT_MAX),
                "the currency %s", a->name);
    }
    sim->counts.policies_completed++;
}

static void successor_check(struct rsim *sim, const Holdfast__V1__Policy *next)
{
    Holdfast__V1__Policy current;
    bool none = rsim_chance(sim, 30);

    holdfast__v1__policy__init(&current);
    current.version =
        rsim_chance(sim, 50) ? next->version - (next->version > 0) : rsim_between(sim, 1, 9);
    uint64_t stands = none ? 0 : current.version;
    err e = policy_check_successor(next, none ? NULL : &current, &sim->arena, &sim->detail);
    PROMISE(sim, e == (next->version == stands + 1 ? ERR_OK : ERR_INVALID),
            "version %llu after %llu: %d", (unsigned long long)next->version,
            (unsigned long long)stands, (int)e);
    if (e == ERR_OK)
        return;
    rsim_refused(sim, CODE(VERSION_CONFLICT), "policy.version");
    PROMISE(sim, sim->detail.about != NULL && sim->detail.about->version->current == stands,
            "the version that stands is not told");
    PROMISE(sim,
            strcmp(sim->detail.limit,
                   arena_printf(&sim->arena, "%llu", (unsigned long long)(stands + 1))) == 0 &&
                strcmp(sim->detail.value,
                       arena_printf(&sim->arena, "%llu", (unsigned long long)stands)) == 0,
            "the version that is wanted is not told");
    sim->counts.versions_refused++;
}

static bool has_name(char *const *names, size_t count, const char *name)
{
    for (size_t i = 0; i < count; i++) {
        if (strcmp(names[i], name) == 0)
            return true;
    }
    return false;
}

/* Each name of `current` goes by a drop alone, and each drop takes one away. */
static void drops_check(struct rsim *sim)
{
    static const char *const pool[] = { "gold", "gems", "dust", "fads" };
    Holdfast__V1__CurrencyPolicy currencies[2][ARRAY_SIZE(pool)], *lists[2][ARRAY_SIZE(pool)];
    Holdfast__V1__Policy policies[2];
    char *drops[ARRAY_SIZE(pool)];
    size_t drop_count = 0;
    bool bad = false, none = rsim_chance(sim, 10);

    for (uint32_t p = 0; p < 2; p++) {
        holdfast__v1__policy__init(&policies[p]);
        policies[p].currencies = lists[p];
    }
    for (uint32_t i = 0; i < ARRAY_SIZE(pool); i++) {
        bool was = rsim_chance(sim, 60), is = rsim_chance(sim, 60);
        bool dropped = rsim_chance(sim, was && !is ? 70 : 5);

        for (uint32_t p = 0; p < 2; p++) {
            if (!(p == 0 ? was : is))
                continue;
            Holdfast__V1__CurrencyPolicy *one = &currencies[p][policies[p].n_currencies];
            holdfast__v1__currency_policy__init(one);
            one->name = text_lend(pool[i]);
            lists[p][policies[p].n_currencies++] = one;
        }
        if (dropped)
            drops[drop_count++] = text_lend(pool[i]);
        bad |= dropped != (was && !none && !is);
    }
    const struct policy_drops told = { drops, drop_count };
    err e = policy_check_drops(&policies[1], none ? NULL : &policies[0], &told, &sim->arena,
                               &sim->detail);
    PROMISE(sim, e == (bad ? ERR_INVALID : ERR_OK), "a currency goes unsaid, or cannot go: %d",
            (int)e);
    if (e == ERR_OK)
        return;
    rsim_refused(sim, CODE(INVALID_ARGUMENT), NULL);
    bool is_drop = strncmp(sim->detail.field, "drop_currencies[", 16) == 0;
    PROMISE(sim, is_drop || strcmp(sim->detail.field, "policy.currencies") == 0, "it is about %s",
            sim->detail.field);
    PROMISE(sim, has_name(drops, drop_count, sim->detail.value) == is_drop,
            "%s is told of, which is right", sim->detail.value);
    sim->counts.drops_refused++;
}

void room_policy(struct rsim *sim)
{
    struct drafted *d = arena_alloc(&sim->arena, sizeof *d);
    Holdfast__V1__Policy *complete = NULL;

    PROMISE(sim, policy_complete(NULL, &sim->arena, &complete, &sim->detail) == ERR_INVALID,
            "no policy is one");
    rsim_refused(sim, CODE(INVALID_ARGUMENT), "policy");
    for (uint32_t i = 0; i < 16; i++) {
        draft(sim, d);
        err e = policy_complete(&d->policy, &sim->arena, &complete, &sim->detail);
        PROMISE(sim, e == (d->bad ? ERR_INVALID : ERR_OK), "a policy is taken, or not: %s",
                e != ERR_OK ? sim->detail.message : "");
        if (e == ERR_OK) {
            completed_check(sim, &d->policy, complete);
        } else {
            rsim_refused(sim, CODE(INVALID_ARGUMENT), NULL);
            PROMISE(sim, strncmp(sim->detail.field, "policy.", 7) == 0, "it is about %s",
                    sim->detail.field);
            sim->counts.policies_refused++;
        }
        successor_check(sim, &d->policy);
        drops_check(sim);
    }
}
