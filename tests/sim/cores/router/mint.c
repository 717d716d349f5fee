/*
 * What keys make out of nothing (router/core/mint_guard.h), through several routers that end and
 * start again, and whose answers from etcd are lost. What a call asks for is counted while it is
 * made; the limits, and what etcd has, are kept here.
 */
#include <stdio.h>
#include <string.h>

#include "holdfast/internal/v1/mailbox.pb-c.h"
#include "holdfast/v1/ledger.pb-c.h"
#include "holdfast/v1/mailbox.pb-c.h"
#include "holdfast/v1/transaction.pb-c.h"
#include "idl/error_code.h"
#include "router/core/mint_guard.h"
#include "router/core/node_form.h"
#include "runtime/base/check.h"
#include "tests/sim/cores/rsim.h"

#define GOODS   4u
#define KEYS    3u
#define ROUTERS 3u
#define DAY_MS  86400000ull

static const char *const names[GOODS] = { "gold", "gems", "item/sword", "item/pet" };

/* Of each of the goods; `named`: the list has it. */
struct amounts {
    bool named[GOODS];
    uint64_t of[GOODS];
};

struct minting {
    struct rsim *sim;
    struct mint_guard *guards[ROUTERS];
    uint32_t routers;
    bool exact; /* One router, of which no share was lost: a limit is reached to the last one. */
    uint64_t wall_ms;
    struct amounts asked; /* Of the call that is being made. */
    struct {
        uint64_t day;
        uint64_t made[GOODS];      /* By calls that passed. */
        struct mint_limits record; /* In etcd. */
    } keys[KEYS];
};

static uint64_t sum(uint64_t a, uint64_t b)
{
    return a + b < a ? UINT64_MAX : a + b;
}

static char *limits_make(struct rsim *sim, struct amounts *ret_limits)
{
    char text[256] = "";
    size_t used = 0;

    *ret_limits = (struct amounts){ .named = { false } };
    if (rsim_chance(sim, 25))
        return text_lend("");
    for (uint32_t i = 0; i < GOODS; i++) {
        if (rsim_chance(sim, 30))
            continue;
        ret_limits->named[i] = true;
        ret_limits->of[i] = rsim_between(sim, 1, rsim_chance(sim, 30) ? 200 : 12);
        used += (size_t)snprintf(text + used, sizeof text - used, "%s%s:%llu", used > 0 ? "," : "",
                                 names[i], (unsigned long long)ret_limits->of[i]);
    }
    return arena_printf(&sim->arena, "%s", text);
}

/* ---- calls ---- */

static void currencies_make(struct minting *m, size_t *ret_count,
                            Holdfast__V1__CurrencyAmount ***ret_list)
{
    struct rsim *sim = m->sim;

    *ret_count = rsim_between(sim, 0, 2);
    *ret_list = arena_alloc(&sim->arena, 2 * sizeof **ret_list);
    for (size_t i = 0; i < *ret_count; i++) {
        Holdfast__V1__CurrencyAmount *one = arena_alloc(&sim->arena, sizeof *one);
        uint32_t which = (uint32_t)rsim_between(sim, 0, 1);

        holdfast__v1__currency_amount__init(one);
        one->currency = text_lend(names[which]);
        one->amount = (int64_t)rsim_between(sim, 0, 7);
        if (rsim_chance(sim, 3))
            one->amount = INT64_MAX;
        if (one->amount > 0) {
            m->asked.named[which] = true;
            m->asked.of[which] = sum(m->asked.of[which], (uint64_t)one->amount);
        } else if (rsim_chance(sim, 50)) {
            one->amount = -one->amount - 1;
        }
        (*ret_list)[i] = one;
    }
}

static void items_make(struct minting *m, size_t *ret_count, Holdfast__V1__ItemSpec ***ret_list)
{
    struct rsim *sim = m->sim;

    *ret_count = rsim_between(sim, 0, 3);
    *ret_list = *ret_count > 0 ? arena_alloc(&sim->arena, 3 * sizeof **ret_list) : NULL;
    for (size_t i = 0; i < *ret_count; i++) {
        Holdfast__V1__ItemSpec *one = arena_alloc(&sim->arena, sizeof *one);
        uint32_t which = 2 + (uint32_t)rsim_between(sim, 0, 1);

        holdfast__v1__item_spec__init(one);
        one->kind = text_lend(names[which] + strlen("item/"));
        m->asked.named[which] = true;
        m->asked.of[which]++;
        (*ret_list)[i] = one;
    }
}

static Holdfast__V1__GrantRequest *grant_make(struct minting *m)
{
    Holdfast__V1__GrantRequest *request = arena_alloc(&m->sim->arena, sizeof *request);

    holdfast__v1__grant_request__init(request);
    currencies_make(m, &request->n_currencies, &request->currencies);
    items_make(m, &request->n_items, &request->items);
    return request;
}

static ProtobufCMessage *batch_make(struct minting *m)
{
    Holdfast__V1__BatchGrantRequest *batch = arena_alloc(&m->sim->arena, sizeof *batch);

    holdfast__v1__batch_grant_request__init(batch);
    batch->n_requests = rsim_between(m->sim, 0, 3);
    batch->requests = arena_alloc(&m->sim->arena, 3 * sizeof *batch->requests);
    for (size_t i = 0; i < batch->n_requests; i++)
        batch->requests[i] = grant_make(m);
    return &batch->base;
}

/* What leaves or moves is nothing new. */
static ProtobufCMessage *transaction_make(struct minting *m)
{
    Holdfast__V1__ExecuteTransactionRequest *request = arena_alloc(&m->sim->arena, sizeof *request);

    holdfast__v1__execute_transaction_request__init(request);
    request->n_changes = rsim_between(m->sim, 0, 3);
    request->changes = arena_alloc(&m->sim->arena, 3 * sizeof *request->changes);
    for (size_t i = 0; i < request->n_changes; i++) {
        Holdfast__V1__TransactionChange *change = arena_alloc(&m->sim->arena, sizeof *change);

        holdfast__v1__transaction_change__init(change);
        request->changes[i] = change;
        if (rsim_chance(m->sim, 60)) {
            Holdfast__V1__TransactionGrant *grant = arena_alloc(&m->sim->arena, sizeof *grant);
            holdfast__v1__transaction_grant__init(grant);
            currencies_make(m, &grant->n_currencies, &grant->currencies);
            items_make(m, &grant->n_items, &grant->items);
            change->change_case = HOLDFAST__V1__TRANSACTION_CHANGE__CHANGE_GRANT;
            change->grant = grant;
        } else {
            const struct amounts kept = m->asked;
            Holdfast__V1__TransactionSpend *spend = arena_alloc(&m->sim->arena, sizeof *spend);
            holdfast__v1__transaction_spend__init(spend);
            currencies_make(m, &spend->n_currencies, &spend->currencies);
            change->change_case = HOLDFAST__V1__TRANSACTION_CHANGE__CHANGE_SPEND;
            change->spend = spend;
            m->asked = kept;
        }
    }
    return &request->base;
}

/* Each recipient gets all of it. */
static const ProtobufCMessage *mail_make(struct minting *m)
{
    static char *const everybody[] = { "ada", "bob", "eve" };
    Holdfast__V1__DeliverMailRequest *request = arena_alloc(&m->sim->arena, sizeof *request);
    const ProtobufCMessage *form = NULL;

    holdfast__v1__deliver_mail_request__init(request);
    request->n_to_player_ids = rsim_between(m->sim, 1, 3);
    request->to_player_ids = (char **)(uintptr_t)everybody;
    currencies_make(m, &request->n_currencies, &request->currencies);
    items_make(m, &request->n_items, &request->items);
    for (uint32_t i = 0; i < GOODS; i++) {
        uint64_t one = m->asked.of[i];
        for (size_t k = 1; k < request->n_to_player_ids; k++)
            m->asked.of[i] = sum(m->asked.of[i], one);
    }
    CHECK(node_form_make(method_find(METHOD_DELIVER_MAIL), &request->base, &m->sim->arena, &form,
                         &m->sim->detail) == ERR_OK);
    return form;
}

/* ---- what is promised ---- */

static bool is_denied(const struct minting *m, const char *grants, const struct amounts *list)
{
    bool denied = false;

    for (uint32_t i = 0; grants[0] != 0 && i < GOODS; i++)
        denied |= m->asked.named[i] && (!list->named[i] || m->asked.of[i] > list->of[i]);
    return denied;
}

static uint64_t recorded(const struct minting *m, uint32_t key, uint32_t good)
{
    uint32_t place = mint_limits_find(&m->keys[key].record, names[good]);

    return place != UINT32_MAX ? m->keys[key].record.goods[place].amount : 0;
}

/* Of the goods that have a sum, one is over it with this call: by what passed, or by what routers
 * took. */
static bool is_over(const struct minting *m, uint32_t key, const struct amounts *list, bool taken)
{
    bool over = false;

    for (uint32_t i = 0; i < GOODS; i++) {
        uint64_t before = taken ? recorded(m, key, i) : m->keys[key].made[i];
        over |= list->named[i] && m->asked.of[i] > 0 && sum(before, m->asked.of[i]) > list->of[i];
    }
    return over;
}

static void day_judge(struct minting *m, uint32_t key, const struct amounts *list, err e)
{
    PROMISE(m->sim, e == ERR_OK || e == ERR_FULL, "a call ends with %d", (int)e);
    if (e == ERR_FULL) {
        PROMISE(m->sim, is_over(m, key, list, !m->exact),
                "a key is refused that has not made what it may");
        return;
    }
    PROMISE(m->sim, !is_over(m, key, list, false), "a key makes more than its limit a day");
    for (uint32_t i = 0; i < GOODS; i++)
        m->keys[key].made[i] = sum(m->keys[key].made[i], m->asked.of[i]);
}

/* As a router asks; ERR_UNAVAILABLE: etcd's answer was lost, with the share. */
static err ask(struct minting *m, uint32_t key, struct mint_guard *guard,
               const struct mint_call *call)
{
    struct mint_limits lack, share, *record = &m->keys[key].record;
    Holdfast__V1__ErrorDetail *detail = &m->sim->detail;

    if (m->keys[key].day != mint_day_of(call)) {
        memset(&m->keys[key], 0, sizeof m->keys[key]);
        m->keys[key].day = mint_day_of(call);
    }
    err e = mint_guard_take(guard, call, &lack, detail);
    if (e != ERR_NEED)
        return e;
    mint_guard_give(guard, call, record, NULL);
    e = mint_guard_take(guard, call, &lack, detail);
    if (e != ERR_NEED)
        return e;
    mint_reserve(call, &lack, record, &share);
    if (m->routers > 1 && rsim_chance(m->sim, 5)) {
        m->sim->counts.mint_shares_lost++;
        return ERR_UNAVAILABLE;
    }
    mint_guard_give(guard, call, record, &share);
    return mint_guard_take(guard, call, &lack, detail);
}

static void day_told(struct minting *m)
{
    uint64_t left_ms = DAY_MS - m->wall_ms % DAY_MS;

    m->sim->counts.mint_day_over++;
    rsim_refused(m->sim, CODE(THROTTLED), NULL);
    PROMISE(m->sim, m->sim->detail.retry_after_ms == left_ms, "the day ends in %llu ms, not %u",
            (unsigned long long)left_ms, m->sim->detail.retry_after_ms);
    PROMISE(m->sim, m->sim->detail.field != NULL && m->sim->detail.limit != NULL,
            "the goods are not named");
}

static void call_make(struct minting *m, struct mint_call *call)
{
    m->asked = (struct amounts){ .named = { false } };
    switch (rsim_between(m->sim, 0, 3)) {
    case 0:
        call->method = method_find(METHOD_GRANT);
        call->message = &grant_make(m)->base;
        break;
    case 1:
        call->method = method_find(METHOD_BATCH_GRANT);
        call->message = batch_make(m);
        break;
    case 2:
        call->method = method_find(METHOD_EXECUTE_TRANSACTION);
        call->message = transaction_make(m);
        break;
    default:
        call->method = method_find(METHOD_DELIVER_MAIL);
        call->message = mail_make(m);
    }
}

static void one_call(struct minting *m, const struct mint_call *keys,
                     const struct amounts lists[][2])
{
    static const enum method_id untold[] = { METHOD_REVERSE_ENTRY, METHOD_RELEASE_QUARANTINE };
    struct rsim *sim = m->sim;
    uint32_t key = (uint32_t)rsim_between(sim, 0, KEYS - 1);
    struct mint_call call = keys[key];
    bool limited = call.grants[0] != 0 || call.per_day[0] != 0;

    call.wall_ms = m->wall_ms;
    call_make(m, &call);
    if (rsim_chance(sim, 10)) {
        call.method = method_find(RSIM_PICK(sim, untold));
        err e = mint_check(&call, &sim->detail);
        PROMISE(sim, e == (limited ? ERR_PERMISSION : ERR_OK), "goods that are not told are made");
        sim->counts.mint_untold += limited;
        return;
    }
    bool denied = is_denied(m, call.grants, &lists[key][0]);
    err e = mint_check(&call, &sim->detail);
    PROMISE(sim, e == (denied ? ERR_PERMISSION : ERR_OK), "%s of a key with \"%s\" a call: %d",
            call.method->name, call.grants, (int)e);
    if (e == ERR_OK) {
        uint32_t router = (uint32_t)rsim_between(sim, 0, m->routers - 1);
        e = ask(m, key, m->guards[router], &call);
        if (e != ERR_UNAVAILABLE)
            day_judge(m, key, &lists[key][1], e);
    }
    sim->counts.mint_refused += e == ERR_PERMISSION;
    if (e == ERR_PERMISSION) {
        rsim_refused(sim, CODE(PERMISSION_DENIED), NULL);
        PROMISE(sim,
                sim->detail.field != NULL && sim->detail.limit != NULL && sim->detail.value != NULL,
                "the goods are not named");
    }
    if (e == ERR_FULL)
        day_told(m);
}

/* So many keys have a sum that no other one finds a place, until the day is over; what makes
 * nothing needs none. */
static void keys_full_run(struct rsim *sim)
{
    struct mint_guard *guard = mint_guard_new();
    Holdfast__V1__CurrencyAmount silver = HOLDFAST__V1__CURRENCY_AMOUNT__INIT;
    Holdfast__V1__CurrencyAmount *made[] = { &silver };
    Holdfast__V1__GrantRequest grant = HOLDFAST__V1__GRANT_REQUEST__INIT;
    struct mint_call call = { .method = method_find(METHOD_GRANT),
                              .message = &grant.base,
                              .grants = "",
                              .per_day = "silver:1",
                              .wall_ms = 9 * DAY_MS - 1,
                              .arena = &sim->arena };
    struct mint_limits lack;
    char name[16];

    silver.currency = text_lend("silver");
    silver.amount = 1;
    grant.currencies = made;
    call.key_id = name;
    grant.n_currencies = 1;
    for (uint32_t i = 0; i <= MINT_KEYS_MAX; i++) {
        (void)snprintf(name, sizeof name, "key%u", i);
        err e = mint_guard_take(guard, &call, &lack, &sim->detail);
        PROMISE(sim, e == (i < MINT_KEYS_MAX ? ERR_NEED : ERR_FULL), "key %u finds a place: %d", i,
                (int)e);
    }
    rsim_refused(sim, CODE(THROTTLED), NULL);
    PROMISE(sim, strcmp(sim->detail.value, "0") == 0 && strcmp(sim->detail.limit, "0 a day") == 0,
            "told as %s of %s", sim->detail.value, sim->detail.limit);
    grant.n_currencies = 0;
    PROMISE(sim, mint_guard_take(guard, &call, &lack, &sim->detail) == ERR_OK,
            "what makes nothing finds no place");
    grant.n_currencies = 1;
    call.wall_ms++;
    PROMISE(sim, mint_guard_take(guard, &call, &lack, &sim->detail) == ERR_NEED,
            "no place on the next day");
    sim->counts.mint_keys_full++;
    mint_guard_check(guard);
    mint_guard_free(guard);
}

void room_mint(struct rsim *sim)
{
    struct minting m = { .sim = sim, .wall_ms = 7 * DAY_MS };
    struct mint_call keys[KEYS];
    struct amounts lists[KEYS][2];

    m.routers = (uint32_t)rsim_between(sim, 1, ROUTERS);
    m.exact = m.routers == 1;
    for (uint32_t i = 0; i < ROUTERS; i++)
        m.guards[i] = mint_guard_new();
    for (uint32_t i = 0; i < KEYS; i++)
        keys[i] = (struct mint_call){ .key_id = arena_printf(&sim->arena, "key%u", i),
                                      .grants = limits_make(sim, &lists[i][0]),
                                      .per_day = limits_make(sim, &lists[i][1]),
                                      .arena = &sim->arena };
    for (uint32_t i = 0; i < 30; i++) {
        if (rsim_chance(sim, 12))
            m.wall_ms += rsim_chance(sim, 50) ? DAY_MS - 1 - m.wall_ms % DAY_MS : DAY_MS;
        if (m.routers > 1 && rsim_chance(sim, 5)) { /* One ends, and starts again. */
            uint32_t router = (uint32_t)rsim_between(sim, 0, m.routers - 1);
            mint_guard_free(m.guards[router]);
            m.guards[router] = mint_guard_new();
        }
        one_call(&m, keys, (const struct amounts(*)[2])lists);
    }
    if (sim->seed % 16 == 1)
        keys_full_run(sim);
    for (uint32_t i = 0; i < ROUTERS; i++) {
        mint_guard_check(m.guards[i]);
        mint_guard_free(m.guards[i]);
    }
}
