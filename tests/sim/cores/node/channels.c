/*
 * The two ends of a channel between shards, which cannot be read at times (docs/containment.md;
 * node/core/repair/channel_repair.h): ann pays bob, batches and answers are lost, late or come
 * twice, ends are spoilt and repaired. Each payment arrives once, and no number comes again.
 */
#include <string.h>

#include "holdfast/v1/mailbox.pb-c.h"
#include "node/core/apply/apply.h"
#include "node/core/rows/rows.h"
#include "node/rpc/fixture_shards.h"
#include "runtime/base/check.h"
#include "tests/sim/cores/rsim.h"

#define STEPS    24u
#define PAYS_MAX 10u
#define LATE_MAX 4u
#define GOLD     100
#define SENDER   "636f0001"
#define RECEIVER "63690000"

typedef Holdfast__V1__ChannelEnd channel_end;

struct lane {
    struct rsim *sim;
    struct fixture_shards s;
    char ann[16], bob[16];
    deliver_request *requests[LATE_MAX];
    deliver_response *answers[LATE_MAX];
    uint32_t paid, carried;
    int64_t gold;
    uint64_t last; /* The highest number that a record may have. */
    bool spoilt[2];
};

static struct fixture *on(struct lane *l, uint32_t shard)
{
    return &l->s.shards[shard];
}

static void pay(struct lane *l)
{
    Holdfast__V1__TransferCurrenciesRequest request =
        HOLDFAST__V1__TRANSFER_CURRENCIES_REQUEST__INIT;
    Holdfast__V1__CurrencyAmount amount = HOLDFAST__V1__CURRENCY_AMOUNT__INIT,
                                 *list[] = { &amount };

    if (l->paid == PAYS_MAX)
        return;
    amount.currency = text_lend("gold");
    amount.amount = (int64_t)rsim_between(l->sim, 1, 9);
    request.player_id = l->ann;
    request.to_player_id = l->bob;
    request.op_id = fixture_op_id(on(l, 0));
    request.authority = fixture_authority(on(l, 0), "unheld");
    request.currencies = list;
    request.n_currencies = 1;
    PROMISE(l->sim, fixture_mutate(on(l, 0), METHOD_TRANSFER_CURRENCIES, &request.base) == NULL,
            "a payment is done before it arrived");
    bool pends = on(l, 0)->outcome.kind == OUTCOME_PENDING;
    PROMISE(l->sim, pends == !l->spoilt[0], "a payment through an end that is spoilt, or is not");
    PROMISE(l->sim, pends || on(l, 0)->error->code == ERROR(QUARANTINED),
            "a spoilt end is told as something else");
    l->paid += pends;
    l->last += pends;
    l->gold += pends ? amount.amount : 0;
}

/* What the sender has open goes over; the answer is settled, lost or late. */
static void carry(struct lane *l)
{
    if (l->spoilt[0])
        return;
    deliver_request *request = fixture_batch(&l->s, 0, 1);
    l->requests[rsim_between(l->sim, 0, LATE_MAX - 1)] = request;
    if (l->spoilt[1]) {
        PROMISE(l->sim, fixture_mutate(on(l, 1), METHOD_CHANNEL_DELIVER, &request->base) == NULL,
                "an end that is spoilt decides");
        return;
    }
    deliver_response *answer = fixture_deliver(&l->s, 1, request);
    l->carried++;
    if (rsim_chance(l->sim, 50))
        fixture_settle(&l->s, 0, 1, answer);
    else
        l->answers[rsim_between(l->sim, 0, LATE_MAX - 1)] = answer;
}

static void come_late(struct lane *l)
{
    deliver_request *request = l->requests[rsim_between(l->sim, 0, LATE_MAX - 1)];
    deliver_response *answer = l->answers[rsim_between(l->sim, 0, LATE_MAX - 1)];

    if (request != NULL && !l->spoilt[1])
        (void)fixture_deliver(&l->s, 1, request);
    if (answer != NULL && !l->spoilt[0])
        fixture_settle(&l->s, 0, 1, answer);
}

static void spoil(struct lane *l, uint32_t shard)
{
    struct state *state = applier_state(on(l, shard)->applier);
    struct row_key key;

    if (l->carried == 0)
        return;
    row_key_channel(&key, shard == 0, 1 - shard);
    state_begin(state);
    state_put(state, row_key_slice(&key), SLICE_LITERAL("\xff\xfe"));
    state_commit(state);
    l->spoilt[shard] = true;
}

/* ---- repairs ---- */

static channel_end end_of(struct lane *l, uint32_t shard)
{
    Holdfast__V1__GetChannelRequest request = HOLDFAST__V1__GET_CHANNEL_REQUEST__INIT;

    request.shard = shard;
    request.other_shard = 1 - shard;
    const Holdfast__V1__GetChannelResponse *told =
        fixture_read(on(l, shard), METHOD_GET_CHANNEL, &request.base);
    const channel_end *end = shard == 0 ? told->outgoing : told->incoming;
    PROMISE(l->sim, end != NULL && end->unreadable == l->spoilt[shard],
            "the end at shard %u can be read, or not", shard);
    return *end;
}

/* NULL `field`: it is to be made again. */
static void repair(struct lane *l, uint32_t shard, channel_end *other, const char *field)
{
    Holdfast__V1__RepairRowRequest request = HOLDFAST__V1__REPAIR_ROW_REQUEST__INIT;

    request.shard = shard;
    request.key = text_lend(shard == 0 ? SENDER : RECEIVER);
    request.reason = text_lend("ticket 118");
    request.other_end = other;
    const Holdfast__V1__RepairRowResponse *told =
        fixture_mutate(on(l, shard), METHOD_REPAIR_ROW, &request.base);
    PROMISE(l->sim, (told != NULL) == (field == NULL), "a repair of shard %u: %s", shard,
            told != NULL ? "done" : on(l, shard)->error->message);
    if (told == NULL) {
        PROMISE(l->sim, strcmp(on(l, shard)->error->field, field) == 0, "refused for %s, not %s",
                on(l, shard)->error->field, field);
        return;
    }
    l->spoilt[shard] = false;
    PROMISE(l->sim, told->channel != NULL && !told->channel->unreadable,
            "repaired, and unreadable");
    if (shard == 0) {
        PROMISE(l->sim, told->channel->last_seq >= l->last, "number %llu will come again",
                (unsigned long long)told->channel->last_seq + 1);
        l->last = told->channel->last_seq;
    }
    l->sim->counts.channels_repaired++;
}

/* What could double something is refused; the sender's end comes first, where both are spoilt. */
static void repair_all(struct lane *l)
{
    channel_end ends[2] = { end_of(l, 0), end_of(l, 1) };
    bool both = l->spoilt[0] && l->spoilt[1];

    for (uint32_t i = 0; i < 2; i++) {
        channel_end wrong = ends[1 - i];

        if (!l->spoilt[i]) {
            if (!l->spoilt[1 - i])
                repair(l, i, &wrong, "key");
            continue;
        }
        repair(l, i, NULL, "other_end");
        if (l->spoilt[1 - i])
            continue;
        wrong.watermark = wrong.last_seq + 1;
        repair(l, i, &wrong, "other_end.watermark");
    }
    if (both)
        repair(l, 1, &ends[0], "other_end");
    if (l->spoilt[0]) {
        repair(l, 0, &ends[1], NULL);
        ends[0] = end_of(l, 0);
    }
    if (l->spoilt[1])
        repair(l, 1, &ends[0], NULL);
    l->sim->counts.channels_both += both;
}

/* ---- the run ---- */

static void arrived_check(struct lane *l)
{
    Holdfast__V1__ListMailRequest request = HOLDFAST__V1__LIST_MAIL_REQUEST__INIT;
    int64_t gold = 0;

    request.player_id = l->bob;
    const Holdfast__V1__ListMailResponse *list =
        fixture_read(on(l, 1), METHOD_LIST_MAIL, &request.base);
    PROMISE(l->sim, list != NULL && list->n_mails == l->paid, "%zu of %u payments have arrived",
            list != NULL ? list->n_mails : 0, l->paid);
    for (size_t i = 0; i < list->n_mails; i++)
        gold += list->mails[i]->currencies[0]->amount;
    PROMISE(l->sim, gold == l->gold, "%lld gold has arrived of %lld", (long long)gold,
            (long long)l->gold);
    PROMISE(l->sim, fixture_balance(on(l, 0), l->ann, "gold") == GOLD - gold, "gold is lost");
}

void room_channels(struct rsim *sim)
{
    struct lane *l = arena_zalloc(&sim->arena, sizeof *l);

    l->sim = sim;
    fixture_shards_init(&l->s);
    fixture_name_on(0, "ann", l->ann);
    fixture_name_on(1, "bob", l->bob);
    CHECK(fixture_grant(on(l, 0), l->ann, "unheld", GOLD) != NULL);
    for (uint32_t i = 0; i < STEPS; i++) {
        uint64_t deed = rsim_between(sim, 0, 19);

        if (deed < 7)
            pay(l);
        else if (deed < 12)
            carry(l);
        else if (deed < 14)
            come_late(l);
        else if (deed < 17)
            spoil(l, deed < 16 && rsim_chance(sim, 50));
        else if (deed < 19 && l->carried > 0)
            repair_all(l);
        else if (deed == 19)
            fixture_restart_all(&l->s);
    }
    if (l->carried > 0)
        repair_all(l);
    fixture_carry_all(&l->s);
    arrived_check(l);
    fixture_shards_deinit(&l->s);
}
