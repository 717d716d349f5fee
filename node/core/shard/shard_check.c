/*
 * shard_check: walks what a shard keeps in memory and checks what its files rely on. Tests do so
 * after every step, the simulator after some. What costs nothing is checked by shard_step itself.
 */
#include "node/core/shard/shard_internal.h"
#include "runtime/base/check.h"

static bool waits_for_rows(const struct call *call)
{
    return call->place == CALL_LOADING || call->place == CALL_FETCHING;
}

static void check_call(const struct shard *shard, const struct call *call, enum call_place place)
{
    const struct call_list *list = &shard->calls[place];
    bool sending = place == CALL_SENDING;

    CHECK(call->place == place);
    CHECK(call->previous != NULL ? call->previous->next == call : list->first == call);
    CHECK(call->next != NULL ? call->next->previous == call : list->last == call);
    CHECK((call->waiter.row != NULL) == waits_for_rows(call));
    CHECK(place != CALL_READING);
    CHECK(IMPLIES(place == CALL_LAGGING, call->index > applier_applied_index(shard->applier)));
    CHECK(IMPLIES(place == CALL_AHEAD, call->at_least.epoch != 0));
    CHECK(IMPLIES(place == CALL_PROPOSED, call->index > 0));
    CHECK(IMPLIES(place == CALL_CONFIRMING, call->round > 0));
    CHECK(IMPLIES(sending, call->seq > 0 && call->destination < shard->limits.shard_count));
    if (call->previous == NULL)
        return;
    CHECK(IMPLIES(place == CALL_PROPOSED, call->previous->index <= call->index));
    CHECK(IMPLIES(place == CALL_CONFIRMING, call->previous->round <= call->round));
    CHECK(IMPLIES(place == CALL_LAGGING, call->previous->index <= call->index));
    CHECK(IMPLIES(place == CALL_AHEAD, call->previous->at_least.epoch <= call->at_least.epoch));
}

static void check_calls(const struct shard *shard)
{
    uint32_t all = 0;

    for (int place = 0; place < CALL_PLACES; place++) {
        const struct call_list *list = &shard->calls[place];
        uint32_t count = 0;
        for (const struct call *call = list->first; call != NULL; call = call->next) {
            CHECK(++count <= list->count);
            check_call(shard, call, (enum call_place)place);
        }
        CHECK(count == list->count);
        CHECK((list->last == NULL) == (count == 0));
        all += count;
    }
    CHECK(all == shard->call_count);
    CHECK(all <= shard->limits.waiting_calls_max);
    CHECK(shard->calls_by_id.count <= all);
    CHECK(shard->calls_by_what.count == shard->calls[CALL_QUEUED].count +
                                            shard->calls[CALL_STEALING].count +
                                            shard->calls[CALL_SENDING].count);
    link_table_check(&shard->calls_by_id);
    link_table_check(&shard->calls_by_what);
}

static void check_holds(const struct read_holds *holds)
{
    uint32_t active = 0;

    CHECK(holds->count <= holds->capacity);
    CHECK(holds->count <= READ_HOLDS_MAX);
    for (uint32_t i = 0; i < holds->count; i++) {
        const struct read_hold *hold = &holds->list[i];
        CHECK(hold->entity.size > 0);
        CHECK(hold->reader_count <= READ_HOLD_READERS_MAX);
        active += hold->reader_count > 0;
        for (uint32_t j = 0; j < hold->reader_count; j++) {
            CHECK(hold->readers[j].reader != 0);
            CHECK(hold->readers[j].pass_count <= READ_HOLD_PASS_MAX);
        }
    }
    CHECK(active == holds->active);
}

static void check_snapshot(const struct shard *shard)
{
    const struct snapshot_source *source = &shard->source;
    const struct snapshot_target *target = &shard->target;

    CHECK(IMPLIES(source->reading, source->open && source->viewed));
    CHECK(IMPLIES(source->viewed, source->open));
    CHECK(IMPLIES(target->storing, target->active));
    CHECK(IMPLIES(target->part > 0, target->active));
}

void shard_check(const struct shard *shard)
{
    check_calls(shard);
    check_holds(&shard->holds_of_reads);
    check_snapshot(shard);
    channel_lanes_check(&shard->lanes, shard->limits.shard_count);
    asked_rows_check(&shard->asked);
    state_check(applier_state(shard->applier));
    meta_check(applier_meta(shard->applier));
    rep_peers_check(shard->rep);
}

void shard_check_step(const struct shard *shard)
{
    uint64_t applied = applier_applied_index(shard->applier);
    const struct channel_lanes *lanes = &shard->lanes;
    uint32_t calls = 0;

    for (int place = 0; place < CALL_PLACES; place++)
        calls += shard->calls[place].count;
    CHECK(calls == shard->call_count);
    CHECK(shard->served == shard_serves(shard));
    CHECK(IMPLIES(!shard->served, lanes->count == 0));
    CHECK(IMPLIES(!shard->served, shard->holds_of_reads.count == 0));
    CHECK(IMPLIES(!shard->served, shard->due_index == 0));
    CHECK(IMPLIES(!shard->served, shard->contain_index == 0));
    CHECK(lanes->blocked <= lanes->count);
    CHECK(applied <= rep_commit_index(shard->rep));
    CHECK(shard->clean_index <= applied);
    CHECK(IMPLIES(shard->checkpoint_open, shard->checkpoint_index <= applied));
    CHECK(IMPLIES(shard->checkpoint_open, shard->checkpoint_index >= shard->clean_index));
    CHECK(shard->applying_index == 0);
    /* A backup of a shard that has taken the cut would hold what came after it. */
    CHECK(IMPLIES(shard->armed_cut != 0, shard_meta(shard)->cut_id < shard->armed_cut));
}
