/* ListShardEvents, and METHOD_TRIM_EVENTS, which takes the oldest away. */
#include <stdio.h>
#include <string.h>

#include "node/core/codec/arena_proto.h"
#include "node/core/definition/definition.h"
#include "node/core/handler/event.h"
#include "node/core/handler/event_row.h"
#include "node/core/rows/rows.h"
#include "node/rpc/fixture_edges.h"
#include "node/rpc/fixture_shards.h"
#include "runtime/base/hex.h"

#define KIND(name) HOLDFAST__V1__EVENT_KIND__EVENT_KIND_##name
#define DAY_MS     (24ull * 3600u * 1000u)

typedef Holdfast__Internal__V1__ListShardEventsRequest list_request;
typedef Holdfast__Internal__V1__ListShardEventsResponse list_response;

static list_request from(const list_response *page)
{
    list_request request = HOLDFAST__INTERNAL__V1__LIST_SHARD_EVENTS_REQUEST__INIT;

    request.limit = 1000;
    if (page == NULL)
        return request;
    request.after = page->next;
    request.life = page->life;
    return request;
}

static const list_response *list(struct fixture *f, const list_request *request)
{
    const list_response *page = fixture_read(f, METHOD_LIST_SHARD_EVENTS, &request->base);

    assert_non_null(page);
    return page;
}

static const list_response *list_after(struct fixture *f, const list_response *before)
{
    const list_request request = from(before);

    return list(f, &request);
}

static const struct event_log *log_of(struct fixture *f)
{
    return &applier_meta(f->applier)->events;
}

/* As a hand in the database could. */
static void spoil(struct fixture *f, const struct row_key *key, struct slice value)
{
    struct state *state = applier_state(f->applier);
    struct slice before;

    assert_int_equal(state_find(state, row_key_slice(key), &before), STATE_PRESENT);
    state_begin(state);
    state_put(state, row_key_slice(key), value);
    state_commit(state);
}

static void define_retention(struct fixture *f, uint64_t revision, int64_t keep_ms, uint32_t max)
{
    Holdfast__Internal__V1__DefineRequest request = HOLDFAST__INTERNAL__V1__DEFINE_REQUEST__INIT;
    Holdfast__V1__DefinitionBody body = HOLDFAST__V1__DEFINITION_BODY__INIT;
    Holdfast__V1__EventRetentionBody retention = HOLDFAST__V1__EVENT_RETENTION_BODY__INIT;
    defined given = HOLDFAST__INTERNAL__V1__DEFINED__INIT;
    defined *list[] = { &given };

    retention.keep_ms = keep_ms;
    retention.events_max = max;
    body.kind_case = HOLDFAST__V1__DEFINITION_BODY__KIND_EVENT_RETENTION;
    body.event_retention = &retention;
    given.number = 40 + f->shard;
    given.version = revision;
    given.revision = revision;
    given.name = (char *)(uintptr_t) "events";
    given.body = &body;
    given.deleted = keep_ms == 0;
    request.generation = 1;
    request.to_revision = revision;
    request.last = true;
    request.definitions = list;
    request.n_definitions = 1;
    assert_non_null(fixture_mutate(f, METHOD_DEFINE, &request.base));
}

static void a_change_and_its_event_are_committed_together(void **state)
{
    struct fixture *f = *state;
    const list_response *page = list_after(f, NULL);

    assert_int_equal(page->n_events, 0);
    assert_false(page->more || page->gap);
    assert_non_null(fixture_grant(f, "ann", "unheld", 5));
    page = list_after(f, page);
    assert_int_equal(page->n_events, 1);
    const Holdfast__V1__Event *event = page->events[0];
    assert_int_equal(event->kind, KIND(LEDGER));
    assert_string_equal(event->entity, "player:ann");
    assert_int_equal(event->at_ms, f->now_ms);
    assert_int_equal(event->dot->epoch, f->epoch);
    assert_int_equal(event->dot->counter, f->counter);
    assert_int_equal(strlen(event->op_id), 36);
    assert_int_equal(strlen(event->seq), 2 * EVENT_PLACE_BYTES);
    assert_int_equal(event->body_case, HOLDFAST__V1__EVENT__BODY_LEDGER);
    assert_int_equal(event->ledger->seq, 1);
    assert_int_equal(event->ledger->kind, HOLDFAST__V1__LEDGER_KIND__LEDGER_KIND_GRANT);
    assert_int_equal(event->ledger->n_changes, 1);
    assert_string_equal(event->ledger->changes[0]->currency, "gold");
    assert_int_equal(event->ledger->changes[0]->amount, 5);
    assert_int_equal(event->ledger->changes[0]->balance_after, 5);
    assert_int_equal(list_after(f, page)->n_events, 0);
}

/* Nor is a repetition an event. */
static void what_is_refused_is_no_event(void **state)
{
    struct fixture *f = *state;

    assert_non_null(fixture_start(f, "ann", SERVER_A, HOLDFAST__V1__START_MODE__START_MODE_FAIL,
                                  fixture_op_id(f)));
    assert_null(fixture_grant(f, "ann", "unheld", 5));
    assert_int_equal(list_after(f, NULL)->n_events, 1);
    assert_int_equal(log_of(f)->count, 1);
    char *op_id = fixture_op_id(f);
    assert_non_null(
        fixture_start(f, "bob", SERVER_A, HOLDFAST__V1__START_MODE__START_MODE_FAIL, op_id));
    assert_non_null(
        fixture_start(f, "bob", SERVER_A, HOLDFAST__V1__START_MODE__START_MODE_FAIL, op_id));
    assert_true(f->outcome.duplicate);
    assert_int_equal(list_after(f, NULL)->n_events, 2);
}

static void sessions_begin_and_end(void **state)
{
    struct fixture *f = *state;
    char *token = fixture_start(f, "ann", SERVER_A, HOLDFAST__V1__START_MODE__START_MODE_FAIL,
                                fixture_op_id(f));

    assert_non_null(token);
    assert_non_null(fixture_end(f, "ann", token));
    const list_response *page = list_after(f, NULL);
    assert_int_equal(page->n_events, 2);
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(page->events[i]->kind, KIND(SESSION));
        assert_string_equal(page->events[i]->session->server, SERVER_A);
        assert_int_equal(page->events[i]->session->started, i == 0);
        assert_int_equal(page->events[i]->session->fence, page->events[0]->session->fence);
    }
    assert_true(strcmp(page->events[0]->seq, page->events[1]->seq) < 0);
}

/* A call that changes the `ver` alone is none. */
static void an_edge_that_changes_is_an_event(void **state)
{
    struct fixture *f = *state;

    fixture_define_favorites(f);
    const list_response *page = list_after(f, NULL);
    assert_non_null(fixture_favorite(f, "ann", "pong"));
    assert_non_null(fixture_favorite(f, "ann", "pong"));
    assert_non_null(fixture_unfavorite(f, "ann", "pong"));
    assert_non_null(fixture_unfavorite(f, "ann", "pong"));
    page = list_after(f, page);
    assert_int_equal(page->n_events, 2);
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(page->events[i]->kind, KIND(FAVORITE));
        assert_string_equal(page->events[i]->favorite->collection, "favorites");
        assert_string_equal(page->events[i]->favorite->target_id, "pong");
        assert_int_equal(page->events[i]->favorite->favorited, i == 0);
    }
    assert_int_equal(page->events[1]->favorite->ver, 3);
}

static void a_version_of_a_definition_is_an_event_of_one_shard(void **state)
{
    struct fixture_collection hats = { 7, 20, "hats", POLICY_LAST, 0, false };
    struct fixture shard;
    (void)state;

    fixture_init_shard(&shard, 2, 4);
    for (uint64_t number = 100; number < 104; number++) {
        hats.number = number;
        hats.revision += 10;
        fixture_define(&shard, &hats);
        fixture_define(&shard, &hats); /* Again: it is there already. */
    }
    hats.number = 102;
    hats.revision += 10;
    hats.deleted = true;
    fixture_define(&shard, &hats);
    const list_response *page = list_after(&shard, NULL);
    assert_int_equal(page->n_events, 2);
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(page->events[i]->kind, KIND(DEFINITION));
        assert_string_equal(page->events[i]->entity, "definition:collection/hats");
        assert_string_equal(page->events[i]->definition->kind, "collection");
        assert_string_equal(page->events[i]->definition->name, "hats");
        assert_int_equal(page->events[i]->definition->number, 102);
        assert_int_equal(page->events[i]->definition->deleted, i == 1);
    }
    fixture_deinit(&shard);
}

static void filters_leave_out_and_the_place_goes_on(void **state)
{
    struct fixture *f = *state;
    const Holdfast__V1__EventKind sessions[] = { KIND(SESSION) };

    for (int i = 0; i < 10; i++)
        assert_non_null(fixture_grant(f, i % 2 == 0 ? "ann" : "bob", "unheld", 1));
    assert_non_null(fixture_start(f, "ann", SERVER_A, HOLDFAST__V1__START_MODE__START_MODE_FAIL,
                                  fixture_op_id(f)));
    list_request request = from(NULL);
    request.entity_prefix = (char *)(uintptr_t) "player:b";
    const list_response *page = list(f, &request);
    assert_int_equal(page->n_events, 5);
    for (size_t i = 0; i < 5; i++)
        assert_string_equal(page->events[i]->entity, "player:bob");
    request = from(page);
    assert_int_equal(list(f, &request)->n_events, 0);
    request = from(NULL);
    request.n_kinds = 1;
    request.kinds = (Holdfast__V1__EventKind *)(uintptr_t)sessions;
    assert_int_equal(list(f, &request)->n_events, 1);
    request.entity_prefix = (char *)(uintptr_t) "player:b";
    assert_int_equal(list(f, &request)->n_events, 0);
}

/* Also where the last one that it has room for is followed by others. */
static void a_page_that_filters_goes_on_behind_its_last_event(void **state)
{
    struct fixture *f = *state;
    Holdfast__V1__EventKind ledgers[] = { KIND(LEDGER) };
    const list_response *page = NULL;
    uint64_t told = 0;

    for (int i = 0; i < 20; i++)
        assert_non_null(fixture_grant(f, i % 3 == 0 ? "ann" : "bob", "unheld", 1));
    do {
        list_request request = from(page);
        request.limit = 3;
        request.kinds = ledgers;
        request.n_kinds = 1;
        request.entity_prefix = text_lend("player:b");
        page = list(f, &request);
        assert_true(page->n_events <= 3 && !page->gap);
        for (size_t i = 0; i < page->n_events; i++)
            assert_int_equal(page->events[i]->ledger->seq, ++told);
    } while (page->more);
    assert_int_equal(told, 13);
}

/* No other that begins with it. */
static void an_entity_is_one_alone(void **state)
{
    struct fixture *f = *state;
    list_request request = from(NULL);

    assert_non_null(fixture_grant(f, "ann", "unheld", 1));
    assert_non_null(fixture_grant(f, "anna", "unheld", 1));
    request.entity = text_lend("player:ann");
    const list_response *page = list(f, &request);
    assert_int_equal(page->n_events, 1);
    assert_string_equal(page->events[0]->entity, "player:ann");
    request.entity = text_lend("player:an");
    assert_int_equal(list(f, &request)->n_events, 0);
}

/* Its row has the entity and a seq; whether the entry is in memory makes no difference. */
static void what_a_ledgers_event_tells_is_its_entry(void **state)
{
    struct fixture *f = *state;
    Holdfast__V1__GrantRequest request = HOLDFAST__V1__GRANT_REQUEST__INIT;
    Holdfast__V1__CurrencyAmount gold = HOLDFAST__V1__CURRENCY_AMOUNT__INIT;
    Holdfast__V1__CurrencyAmount *amounts[] = { &gold };
    Holdfast__V1__ItemSpec sword = HOLDFAST__V1__ITEM_SPEC__INIT;
    Holdfast__V1__ItemSpec *items[] = { &sword, &sword };
    char *op_id = fixture_op_id(f);

    assert_non_null(fixture_grant(f, "bob", "unheld", 4));
    gold.currency = text_lend("gold");
    gold.amount = 7;
    sword.kind = text_lend("sword");
    request.player_id = text_lend("bob");
    request.op_id = op_id;
    request.authority = text_lend("unheld");
    request.reason = text_lend("match");
    request.currencies = amounts;
    request.n_currencies = 1;
    request.items = items;
    request.n_items = 2;
    assert_non_null(fixture_mutate(f, METHOD_GRANT, &request.base));
    for (int round = 0; round < 2; round++) {
        const list_response *page = list_after(f, NULL);
        assert_int_equal(page->n_events, 2);
        const Holdfast__V1__Event *event = page->events[1];
        assert_string_equal(event->entity, "player:bob");
        assert_string_equal(event->op_id, op_id);
        assert_int_equal(event->at_ms, f->now_ms);
        assert_int_equal(event->dot->counter, f->counter);
        assert_int_equal(event->dot->owner, page->events[0]->dot->owner);
        assert_true(event->dot->owner > 0);
        assert_int_equal(event->ledger->seq, 2);
        assert_int_equal(event->ledger->changes[0]->amount, 7);
        assert_int_equal(event->ledger->changes[0]->balance_after, 11);
        assert_string_equal(event->ledger->reason, "match");
        assert_int_equal(event->ledger->items, 2);
        assert_false(event->ledger->items_taken);
        fixture_restart(f);
    }
}

/* With a player's id as long as a UUID. */
static void a_grants_event_is_small(void **state)
{
    struct fixture *f = *state;
    size_t found = 0;

    assert_non_null(fixture_grant(f, "0190a6f2-7c1e-7b3a-9d4f-5e6a7b8c9d0e", "unheld", 5));
    fixture_checkpoint(f);
    for (uint32_t i = 0; i < f->row_count; i++) {
        const struct fixture_row *row = &f->rows[i];
        if (row->key.data[0] != TABLE_EVENT)
            continue;
        found++;
        assert_in_range(row->key.size + row->value.size, 1, 80);
    }
    assert_int_equal(found, 1);
}

/* Its player is held back, and no reader is told what is not known. */
static void an_event_whose_entry_cannot_be_read_is_a_gap(void **state)
{
    struct fixture *f = *state;
    struct row_key key;

    for (int i = 0; i < 3; i++)
        assert_non_null(fixture_grant(f, "ann", "unheld", 1));
    row_key_ledger(&key, SLICE_LITERAL("player:ann"), 2);
    spoil(f, &key, SLICE_LITERAL("\x01\x02"));
    const list_response *page = list_after(f, NULL);
    assert_true(page->gap);
    assert_int_equal(page->n_events, 2);
    assert_int_equal(page->events[0]->ledger->seq, 1);
    assert_int_equal(page->events[1]->ledger->seq, 3);
    const struct damage *damage = applier_take_damage(f->applier);
    assert_non_null(damage);
    assert_string_equal(damage->player, "ann");
    fixture_contain(f, "ann");
    Holdfast__V1__RepairPlayerRequest *repair = fixture_repair_request(f, "ann");
    char *hex = arena_zalloc(&f->arena, 2 * key.size + 1);
    hex_print(key.bytes, key.size, hex);
    repair->rows = &hex;
    repair->n_rows = 1;
    assert_non_null(fixture_mutate(f, METHOD_REPAIR_PLAYER, &repair->base));
    page = list_after(f, NULL);
    assert_true(page->gap);
    assert_int_equal(page->n_events, 2);
    assert_null(applier_take_damage(f->applier));
    assert_false(list_after(f, page)->gap);
}

/* Of another player's entry, or of another time's: what a hand in the database could leave. */
static void an_event_of_another_entry_is_a_gap(void **state)
{
    struct fixture *f = *state;
    struct event_row row = { .at_ms = f->now_ms,
                             .kind = KIND(LEDGER),
                             .entity = SLICE_LITERAL("player:ann"),
                             .ledger_seq = 1 };
    struct event_place place;
    struct row_key key;
    struct buf value = { 0 };

    assert_non_null(fixture_grant(f, "ann", "unheld", 1));
    assert_non_null(fixture_grant(f, "ann", "unheld", 1));
    place = (struct event_place){ f->epoch, f->counter, 0 };
    event_row_key(&key, &place);
    event_row_encode(&row, &value);
    spoil(f, &key, buf_slice(&value));
    const list_response *page = list_after(f, NULL);
    assert_true(page->gap);
    assert_int_equal(page->n_events, 1);
    assert_int_equal(page->events[0]->ledger->seq, 1);
    const struct damage *damage = applier_take_damage(f->applier);
    assert_non_null(damage);
    assert_string_equal(damage->player, ""); /* Nothing says that her ledger is wrong. */
    buf_deinit(&value);
}

/* What has no room comes with the next page, and so does the gap before it. */
static void a_page_has_so_many_bytes(void **state)
{
    struct fixture *f = *state;
    const list_response *page = NULL;
    uint32_t told = 0, pages = 0;
    char reason[LIMIT_REASON_BYTES + 1] = "", player[101] = "";

    memset(reason, 'r', sizeof reason - 1);
    memset(player, 'p', sizeof player - 1);
    for (int i = 0; i < 1000; i++) {
        Holdfast__V1__GrantRequest request = HOLDFAST__V1__GRANT_REQUEST__INIT;
        Holdfast__V1__CurrencyAmount gold = HOLDFAST__V1__CURRENCY_AMOUNT__INIT;
        Holdfast__V1__CurrencyAmount *amounts[] = { &gold };
        gold.currency = text_lend("gold");
        gold.amount = 1;
        request.player_id = player;
        request.op_id = fixture_op_id(f);
        request.authority = text_lend("unheld");
        request.reason = reason;
        request.currencies = amounts;
        request.n_currencies = 1;
        assert_non_null(fixture_mutate(f, METHOD_GRANT, &request.base));
        arena_reset(&f->arena);
    }
    do {
        page = list_after(f, page);
        assert_true(page->n_events > 0);
        assert_in_range(holdfast__internal__v1__list_shard_events_response__get_packed_size(page),
                        1, 300 * 1024);
        for (size_t i = 0; i < page->n_events; i++)
            assert_int_equal(page->events[i]->ledger->seq, ++told);
        pages++;
    } while (page->more);
    assert_int_equal(told, 1000);
    assert_true(pages > 1);
}

static void pages_have_each_event_once_and_in_order(void **state)
{
    struct fixture *f = *state;
    const list_response *page = NULL;
    uint64_t next = 1;
    char seq[2 * EVENT_PLACE_BYTES + 1] = "";

    for (int i = 0; i < 25; i++)
        assert_non_null(fixture_grant(f, "ann", "unheld", 1));
    fixture_next_epoch(f);
    for (int i = 0; i < 5; i++)
        assert_non_null(fixture_grant(f, "ann", "unheld", 1));
    fixture_restart(f);
    fixture_evict(f, 0);
    do {
        list_request request = from(page);
        request.limit = 7;
        page = list(f, &request);
        assert_true(page->n_events <= 7 && !page->gap);
        for (size_t i = 0; i < page->n_events; i++) {
            assert_int_equal(page->events[i]->ledger->seq, next++);
            assert_true(strcmp(seq, page->events[i]->seq) < 0);
            snprintf(seq, sizeof seq, "%s", page->events[i]->seq);
        }
    } while (page->more);
    assert_int_equal(next, 31);
}

static void what_is_too_old_goes_and_readers_are_told(void **state)
{
    struct fixture *f = *state;
    const list_response *start = list_after(f, NULL);

    assert_non_null(fixture_grant(f, "ann", "unheld", 1));
    const list_response *one = list_after(f, start);
    f->now_ms += DAY_MS;
    assert_non_null(fixture_grant(f, "ann", "unheld", 1));
    assert_int_equal(log_of(f)->count, 2);
    (void)fixture_pass(f, 5 * DAY_MS);
    assert_int_equal(log_of(f)->count, 2);
    (void)fixture_pass(f, DAY_MS + 60000);
    assert_int_equal(log_of(f)->count, 1);
    const list_response *page = list_after(f, start);
    assert_true(page->gap);
    assert_int_equal(page->n_events, 1);
    assert_int_equal(page->events[0]->ledger->seq, 2);
    assert_false(list_after(f, NULL)->gap); /* It has missed nothing that it was promised. */
    page = list_after(f, one);              /* Nothing that it lacks is gone. */
    assert_false(page->gap);
    assert_int_equal(page->n_events, 1);
    (void)fixture_pass(f, DAY_MS);
    assert_int_equal(log_of(f)->count, 0);
    assert_true(list_after(f, one)->gap);
    fixture_restart(f);
    page = list_after(f, one);
    assert_true(page->gap);
    page = list_after(f, page);
    assert_false(page->gap);
    assert_int_equal(fixture_pass(f, DAY_MS), 0); /* An idle shard writes nothing. */
}

static void what_is_too_many_goes_a_page_at_a_time(void **state)
{
    struct fixture *f = *state;
    const list_response *start = list_after(f, NULL);

    define_retention(f, 20, (int64_t)(30 * DAY_MS), 1000);
    assert_int_equal(log_of(f)->events_max, 1000);
    for (int i = 0; i < 2600; i++) {
        assert_non_null(fixture_grant(f, "ann", "unheld", 1));
        arena_reset(&f->arena);
    }
    uint64_t before = log_of(f)->count;
    assert_true(before >= 2600);
    assert_true(fixture_pass(f, 20000) >= 4);
    assert_int_equal(log_of(f)->count, 1000);
    start = list_after(f, NULL);
    assert_int_equal(start->events[0]->ledger->seq, 1601);
    assert_int_equal(start->n_events, 1000);
    define_retention(f, 30, 60000, 100000000);
    (void)fixture_pass(f, 90000);
    assert_int_equal(log_of(f)->count, 0);
    define_retention(f, 40, 0, 0); /* Deleted: the default holds. */
    assert_int_equal(log_of(f)->keep_ms, EVENT_KEEP_MS_DEFAULT);
    assert_int_equal(log_of(f)->events_max, EVENTS_MAX_DEFAULT);
}

static void places_of_another_life_are_a_gap(void **state)
{
    struct fixture *f = *state;

    assert_non_null(fixture_grant(f, "ann", "unheld", 1));
    const list_response *page = list_after(f, NULL);
    list_request request = from(page);
    request.life++;
    page = list(f, &request);
    assert_true(page->gap);
    assert_int_equal(page->n_events, 1);
    request = from(page);
    request.after.data[0] = 0xff; /* Beyond all that was ever committed here. */
    page = list(f, &request);
    assert_true(page->gap);
    assert_int_equal(page->n_events, 1);
}

static void an_event_that_cannot_be_read_is_a_gap_and_is_replaced(void **state)
{
    struct fixture *f = *state;
    Holdfast__V1__RepairRowRequest repair = HOLDFAST__V1__REPAIR_ROW_REQUEST__INIT;
    struct event_place place;
    struct row_key key;

    for (int i = 0; i < 3; i++)
        assert_non_null(fixture_grant(f, "ann", "unheld", 1));
    place = (struct event_place){ f->epoch, f->counter - 1, 0 };
    event_row_key(&key, &place);
    spoil(f, &key, SLICE_LITERAL("\x01\x02"));
    const list_response *page = list_after(f, NULL);
    assert_true(page->gap);
    assert_int_equal(page->n_events, 2);
    assert_non_null(applier_take_damage(f->applier));
    repair.reason = (char *)(uintptr_t) "disk";
    repair.shard = f->shard;
    repair.key = arena_zalloc(&f->arena, 2 * key.size + 1);
    hex_print(key.bytes, key.size, repair.key);
    const Holdfast__V1__RepairRowResponse *told =
        fixture_mutate(f, METHOD_REPAIR_ROW, &repair.base);
    assert_non_null(told);
    assert_int_equal(told->row->outcome, HOLDFAST__V1__REPAIR_OUTCOME__REPAIR_OUTCOME_REPLACED);
    page = list_after(f, NULL);
    assert_true(page->gap);
    assert_int_equal(page->n_events, 2);
    assert_null(applier_take_damage(f->applier));
    assert_int_equal(log_of(f)->count, 3);
}

static void a_request_past_a_limit_is_refused(void **state)
{
    struct fixture *f = *state;
    list_request request = from(NULL);

    request.limit = 1001;
    assert_null(fixture_read(f, METHOD_LIST_SHARD_EVENTS, &request.base));
    assert_string_equal(f->error->field, "limit");
    assert_string_equal(f->error->value, "1001");
    request.limit = 1;
    request.after = (ProtobufCBinaryData){ 3, (uint8_t *)(uintptr_t) "abc" };
    assert_null(fixture_read(f, METHOD_LIST_SHARD_EVENTS, &request.base));
    assert_string_equal(f->error->field, "after");
}

/* Their logs must come to the same rows as before. */
static void below_their_apply_version_there_are_none(void **state)
{
    struct fixture *f = *state;

    applier_set_version_max(f->applier, EVENT_APPLY_VERSION - 1);
    assert_non_null(fixture_grant(f, "ann", "unheld", 1));
    assert_int_equal(log_of(f)->count, 0);
    assert_int_equal(list_after(f, NULL)->n_events, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FIXTURE_TEST(a_change_and_its_event_are_committed_together),
        FIXTURE_TEST(what_is_refused_is_no_event),
        FIXTURE_TEST(sessions_begin_and_end),
        FIXTURE_TEST(an_edge_that_changes_is_an_event),
        FIXTURE_TEST(a_version_of_a_definition_is_an_event_of_one_shard),
        FIXTURE_TEST(filters_leave_out_and_the_place_goes_on),
        FIXTURE_TEST(a_page_that_filters_goes_on_behind_its_last_event),
        FIXTURE_TEST(an_entity_is_one_alone),
        FIXTURE_TEST(what_a_ledgers_event_tells_is_its_entry),
        FIXTURE_TEST(a_grants_event_is_small),
        FIXTURE_TEST(an_event_whose_entry_cannot_be_read_is_a_gap),
        FIXTURE_TEST(an_event_of_another_entry_is_a_gap),
        FIXTURE_TEST(a_page_has_so_many_bytes),
        FIXTURE_TEST(pages_have_each_event_once_and_in_order),
        FIXTURE_TEST(what_is_too_old_goes_and_readers_are_told),
        FIXTURE_TEST(what_is_too_many_goes_a_page_at_a_time),
        FIXTURE_TEST(places_of_another_life_are_a_gap),
        FIXTURE_TEST(an_event_that_cannot_be_read_is_a_gap_and_is_replaced),
        FIXTURE_TEST(a_request_past_a_limit_is_refused),
        FIXTURE_TEST(below_their_apply_version_there_are_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
