/* Answers of ListShardEvents, held against the model as of the entry that they name. */
#include <stdlib.h>
#include <string.h>

#include "holdfast/internal/v1/node.pb-c.h"
#include "node/core/handler/event.h"
#include "runtime/base/check.h"
#include "runtime/base/hash.h"
#include "runtime/base/hex.h"
#include "tests/sim/events/event_model.h"

#define KIND(name) HOLDFAST__V1__EVENT_KIND__EVENT_KIND_##name

typedef Holdfast__Internal__V1__ListShardEventsRequest list_request;
typedef Holdfast__Internal__V1__ListShardEventsResponse list_response;

void event_told_number(const Holdfast__V1__Event *event, uint64_t *ret_number, bool *ret_flag)
{
    *ret_flag = false;
    *ret_number = 0;
    if (event->kind == KIND(LEDGER)) {
        *ret_number = event->ledger->seq;
    } else if (event->kind == KIND(FAVORITE)) {
        *ret_number = event->favorite->ver;
        *ret_flag = event->favorite->favorited != 0;
    } else if (event->kind == KIND(SESSION)) {
        *ret_number = event->session->fence;
        *ret_flag = event->session->started != 0;
    } else if (event->kind == KIND(ERASURE)) {
        *ret_number = event->erasure->number;
    } else if (event->kind == KIND(DEFINITION)) {
        *ret_number = event->definition->version;
        *ret_flag = event->definition->deleted != 0;
    }
}

static bool passes(const list_request *request, const struct event_seen *event)
{
    bool kind = request->n_kinds == 0;

    for (size_t i = 0; i < request->n_kinds; i++)
        kind |= request->kinds[i] == event->kind;
    if (request->entity[0] != '\0' && strcmp(event->entity, request->entity) != 0)
        return false;
    return kind &&
           strncmp(event->entity, request->entity_prefix, strlen(request->entity_prefix)) == 0;
}

/* What the entry of the ledger says, which the event's row does not. */
static bool is_as_its_entry(const struct told *t, const Holdfast__V1__Event *event,
                            const struct event_seen *seen)
{
    const struct player_model *player = &t->sim->oracle->players[seen->player];
    const Holdfast__V1__LedgerEvent *told = event->ledger;

    if (seen->kind != KIND(LEDGER))
        return true;
    if (seen->number == 0 || seen->number > player->entry_count)
        return false;
    const struct entry_model *entry = &player->entries[seen->number - 1];
    uint32_t changed = 0;
    bool alike = (int)told->kind == entry->kind && told->refers_to == entry->refers_to &&
                 told->items == entry->item_count &&
                 hash_u64(slice_from_text(event->op_id)) == entry->op_hash;
    for (size_t i = 0; i < told->n_changes; i++) {
        const Holdfast__V1__LedgerChange *change = told->changes[i];
        uint32_t currency = model_currency(change->currency);
        changed |= 1u << currency;
        alike &= change->amount == entry->amounts[currency] &&
                 change->balance_after == entry->balances[currency] &&
                 change->reserved == entry->reserved[currency];
    }
    return alike && changed == entry->changed;
}

static void check_event(const struct told *t, const Holdfast__V1__Event *event,
                        const struct event_seen *seen)
{
    uint8_t wanted[EVENT_PLACE_BYTES], got[EVENT_PLACE_BYTES];
    uint64_t number;
    bool flag;

    event_place_print(&seen->place, wanted);
    event_told_number(event, &number, &flag);
    if (hex_parse(slice_from_text(event->seq), sizeof got, got) != ERR_OK ||
        memcmp(got, wanted, sizeof got) != 0)
        told_fail(t, "an event of another entry than the next one", event->dot->counter,
                  seen->place.counter);
    else if (event->kind != seen->kind || number != seen->number || flag != seen->flag ||
             strcmp(event->entity, seen->entity) != 0 || event->at_ms != (int64_t)seen->at_ms)
        told_fail(t, "an event is told otherwise than it was written", number, seen->number);
    else if (!is_as_its_entry(t, event, seen))
        told_fail(t, "an event tells another entry of the ledger than its own", number,
                  seen->number);
}

/* Whether what the reader knows ends before something that was gone then. */
static bool is_gap(const struct shard_events *shard, const struct event_place *known,
                   uint64_t index)
{
    for (uint32_t i = 0; i < shard->gone; i++) {
        const struct event_seen *event = &shard->seen[i];
        if (event->gone_index <= index && event_place_compare(&event->place, known) > 0)
            return true;
    }
    return false;
}

/* All that the answer has to tell of, in order; it may end early if it says that there is more. */
static void check_page(const struct told *t, struct event_place known, uint64_t index)
{
    const struct shard_events *shard = &events_of(t->sim)->shards[t->call->shard];
    const list_request *request = (const void *)t->request;
    const list_response *response = (const void *)t->response;
    struct event_place next = { 0 };
    size_t told = 0;

    if (event_place_parse((struct slice){ response->next.data, response->next.len }, &next) !=
        ERR_OK) {
        told_fail(t, "the next place of events", response->next.len, EVENT_PLACE_BYTES);
        return;
    }
    for (uint32_t i = 0; i < shard->count; i++) {
        const struct event_seen *event = &shard->seen[i];
        if (event->index > index)
            break;
        if ((event->gone_index > 0 && event->gone_index <= index) ||
            event_place_compare(&event->place, &known) <= 0)
            continue;
        if (event_place_compare(&event->place, &next) > 0) {
            if (!response->more)
                told_fail(t, "events are left out, and there are no more", event->index, index);
            break;
        }
        if (!passes(request, event))
            continue;
        if (told == response->n_events) {
            told_fail(t, "an event is left out, of entry", event->index, 0);
            return;
        }
        check_event(t, response->events[told++], event);
    }
    if (told != response->n_events)
        told_fail(t, "how many events", response->n_events, told);
    if (response->n_events > request->limit)
        told_fail(t, "more events than asked for", response->n_events, request->limit);
}

static uint32_t count_up_to(const struct shard_events *shard, uint64_t index,
                            const struct event_place *place)
{
    uint32_t count = 0;

    while (count < shard->count && shard->seen[count].index <= index &&
           (place == NULL || event_place_compare(&shard->seen[count].place, place) <= 0))
        count++;
    return count;
}

static uint32_t gone_by(const struct shard_events *shard, uint64_t index)
{
    uint32_t gone = 0;

    while (gone < shard->gone && shard->seen[gone].gone_index <= index)
        gone++;
    return gone;
}

/* Which of the shard's events these are, and how many a reader who counts has lost. */
static void check_counts(const struct told *t, uint64_t index, bool gap)
{
    const struct shard_events *shard = &events_of(t->sim)->shards[t->call->shard];
    const list_request *request = (const void *)t->request;
    const list_response *response = (const void *)t->response;
    uint64_t known = request->after.len > 0 && !gap ? request->passed : gone_by(shard, index) + 1u;
    bool tells_lost =
        response->_lost_case == HOLDFAST__INTERNAL__V1__LIST_SHARD_EVENTS_RESPONSE___LOST_LOST;
    struct event_place next;

    /* A replica that has applied no START of version 9 yet does not count, and has no events. */
    if (applier_meta(t->shard->applier)->apply_version < CONSUMER_APPLY_VERSION ||
        (response->last == 0 && count_up_to(shard, index, NULL) == 0))
        return;
    CHECK(event_place_parse((struct slice){ response->next.data, response->next.len }, &next) ==
          ERR_OK);
    uint64_t up_to = count_up_to(shard, index, &next) + 1u;
    if (response->last != count_up_to(shard, index, NULL) + 1u)
        told_fail(t, "how many events there were", response->last,
                  count_up_to(shard, index, NULL) + 1u);
    else if (response->begin != known)
        told_fail(t, "how many events were before the page", response->begin, known);
    else if ((known > 0 || !response->more) && response->passed != up_to)
        told_fail(t, "how many events are passed", response->passed, up_to);
    else if (tells_lost != (gap && request->passed > 0))
        told_fail(t, "whether it is known what was lost", tells_lost, !tells_lost);
    else if (tells_lost && response->lost != gone_by(shard, index) + 1u - request->passed)
        told_fail(t, "how many events were lost", response->lost,
                  gone_by(shard, index) + 1u - request->passed);
    t->sim->counts.events_lost += tells_lost && response->lost > 0;
}

void event_told(const struct told *t)
{
    const list_request *request = (const void *)t->request;
    const list_response *response = (const void *)t->response;
    struct shard_events *shard = &events_of(t->sim)->shards[t->call->shard];
    uint64_t index = told_index(t);
    struct event_place known = { 0 };

    if (index == 0)
        return;
    bool after = event_place_parse((struct slice){ request->after.data, request->after.len },
                                   &known) == ERR_OK;
    bool gap = after && is_gap(shard, &known, index);
    if ((response->gap != 0) != gap)
        told_fail(t, "whether events are missing", response->gap != 0, gap);
    check_page(t, known, index);
    if (t->sim->failure[0] == '\0')
        check_counts(t, index, gap);
    if (index > shard->told_index)
        shard->told_index = index;
    t->sim->counts.events_told += response->n_events;
    t->sim->counts.events_pages += response->more && after;
    t->sim->counts.events_filtered += request->n_kinds > 0 && response->n_events > 0;
    t->sim->counts.events_gaps += gap;
}
