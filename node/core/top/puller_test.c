/* The puller over shards of the test's making: what it asks in which order, and what it makes of
 * answers, of failures and of answers that make no sense. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "holdfast/internal/v1/node.pb-c.h"
#include "idl/method.h"
#include "node/core/top/puller.h"
#include "runtime/base/check.h"
#include "runtime/codec/proto_codec.h"

#define SHARDS     4u
#define COLLECTION 7u
#define AT_MS      90000000

/* What the shards do. Homes log all they are told, unless they fail. */
struct world {
    struct puller *puller;
    uint64_t now_ms, unix_ms;
    int64_t since_ms; /* Of the sources' clocks. */
    bool owned[SHARDS];
    struct source_dot logged[SHARDS][SHARDS]; /* By home and source. */
    struct source_dot newest[SHARDS][SHARDS]; /* By source and home: what it tells. */
    bool emptied[SHARDS][SHARDS];             /* Likewise. */
    bool fails[SHARDS][METHOD_ID_MAX];
    bool gaps;
    uint32_t sweeps_left;
    size_t item_bytes; /* Of what a source tells of a home. */
    /* What it was asked, this round. */
    uint32_t asked[METHOD_ID_MAX], order[METHOD_ID_MAX], calls;
    uint32_t taken[SHARDS], swept[SHARDS]; /* Parts, by home. */
    struct pull_home forgot[SHARDS][8];
    uint32_t forgot_count[SHARDS];
    uint64_t applied[SHARDS];       /* By source: entries. */
    uint64_t noted[SHARDS][SHARDS]; /* By source and home: the entry that changed it last. */
    uint32_t listed;                /* Homes that said how far they are, this round. */
    bool earlier;        /* Programs that tell of the homes alone that say how far they are. */
    bool unsure[SHARDS]; /* A source that cannot tell what is new. */
    bool forgets_more;
};

static int setup(void **state)
{
    struct world *w = mem_zalloc(sizeof *w);

    w->puller = puller_new(SHARDS);
    w->now_ms = 5000;
    w->unix_ms = AT_MS;
    w->owned[1] = w->owned[2] = true;
    puller_watch(w->puller, w->now_ms);
    *state = w;
    return 0;
}

static int teardown(void **state)
{
    struct world *w = *state;

    puller_free(w->puller);
    free(w);
    return 0;
}

#define PULLER_TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

static void *unpack(const ProtobufCMessageDescriptor *descriptor, struct slice bytes)
{
    void *message = protobuf_c_message_unpack(descriptor, NULL, bytes.size, bytes.data);

    assert_non_null(message);
    return message;
}

static void put_items(const struct world *w, struct source_dot dot, struct buf *out)
{
    struct pull_item item = {
        .dot = dot, .collection = COLLECTION, .target = slice_from_text("pong"), .count = 1
    };

    do
        pull_item_encode(&item, out);
    while (out->size < w->item_bytes);
}

static void say_pulled(struct world *w, uint32_t home, struct buf *out)
{
    Holdfast__Internal__V1__GetPulledResponse response =
        HOLDFAST__INTERNAL__V1__GET_PULLED_RESPONSE__INIT;
    struct buf sources = { 0 };

    for (uint32_t i = 0; i < SHARDS; i++) {
        if (w->logged[home][i].epoch > 0)
            pull_home_encode(&(struct pull_home){ i, w->logged[home][i] }, &sources);
    }
    response.sources = (ProtobufCBinaryData){ sources.size, sources.data };
    proto_encode(&response.base, out);
    buf_deinit(&sources);
}

/* What a source has for a home that is so far. */
static void part_of(struct world *w, uint32_t source, const struct pull_home *home,
                    struct buf *parts)
{
    struct pull_part part = { .home = home->home, .to = home->after };
    struct buf items = { 0 };

    assert_true(w->owned[home->home]);
    part.emptied = w->emptied[source][home->home];
    if (source_dot_is_above(w->newest[source][home->home], home->after)) {
        part.to = w->newest[source][home->home];
        put_items(w, part.to, &items);
    }
    part.items = buf_slice(&items);
    pull_part_encode(&part, parts);
    buf_deinit(&items);
}

/* Those that said nothing, as far as they are wanted and something changed. */
static void say_others(struct world *w, uint32_t source,
                       const Holdfast__Internal__V1__PullPartialsRequest *asked, const bool *listed,
                       struct buf *parts)
{
    for (uint32_t i = 0; i < SHARDS; i++) {
        const struct pull_home home = { i, w->logged[i][source] };
        if (listed[i] || (asked->wanted.data[i / 8] >> i % 8 & 1) == 0)
            continue;
        if (w->noted[source][i] > asked->since_counter || w->emptied[source][i])
            part_of(w, source, &home, parts);
    }
}

static void say_partials(struct world *w, uint32_t source, struct slice request, struct buf *out)
{
    Holdfast__Internal__V1__PullPartialsRequest *asked =
        unpack(&holdfast__internal__v1__pull_partials_request__descriptor, request);
    Holdfast__Internal__V1__PullPartialsResponse response =
        HOLDFAST__INTERNAL__V1__PULL_PARTIALS_RESPONSE__INIT;
    struct reader reader = reader_from((struct slice){ asked->homes.data, asked->homes.len });
    bool listed[SHARDS] = { false };
    struct buf parts = { 0 };
    struct pull_home home;

    assert_int_equal(asked->shard, source);
    response.at_ms = AT_MS + w->since_ms + source;
    response.as_of_epoch = 3;
    response.as_of_owner = 1;
    response.as_of_counter = w->applied[source];
    while (pull_home_next(&reader, &home)) {
        assert_memory_equal(&home.after, &w->logged[home.home][source], sizeof home.after);
        listed[home.home] = true;
        w->listed++;
        part_of(w, source, &home, &parts);
    }
    assert_false(reader.bad);
    assert_int_equal(asked->wanted.len, asked->since_epoch > 0 ? 1 : 0);
    response.follows = !w->earlier && (asked->since_epoch == 0 || !w->unsure[source]);
    if (response.follows && asked->since_epoch > 0)
        say_others(w, source, asked, listed, &parts);
    response.parts = (ProtobufCBinaryData){ parts.size, parts.data };
    proto_encode(&response.base, out);
    buf_deinit(&parts);
    protobuf_c_message_free_unpacked(&asked->base, NULL);
}

static void say_taken(struct world *w, uint32_t home, struct slice request, struct buf *out)
{
    Holdfast__Internal__V1__TakePartialsRequest *asked =
        unpack(&holdfast__internal__v1__take_partials_request__descriptor, request);
    Holdfast__Internal__V1__TakePartialsResponse response =
        HOLDFAST__INTERNAL__V1__TAKE_PARTIALS_RESPONSE__INIT;

    w->taken[home] = (uint32_t)asked->n_parts;
    w->swept[home] += asked->sweep > 0;
    for (size_t i = 0; i < asked->n_parts; i++) {
        const Holdfast__Internal__V1__PulledPart *part = asked->parts[i];
        const struct source_dot after = { part->after_epoch, part->after_counter };
        assert_true(part->items.len <= TAKE_BYTES_MAX);
        assert_memory_equal(&after, &w->logged[home][part->source], sizeof after);
        if (w->gaps)
            response.gaps++;
        else
            w->logged[home][part->source] = (struct source_dot){ part->to_epoch, part->to_counter };
        response.taken++;
    }
    if (asked->sweep > 0 && w->sweeps_left > 0) {
        w->sweeps_left--;
        response.swept = (ProtobufCBinaryData){ 4, (uint8_t *)text_lend("next") };
    }
    proto_encode(&response.base, out);
    protobuf_c_message_free_unpacked(&asked->base, NULL);
}

static void say_forgotten(struct world *w, uint32_t source, struct slice request, struct buf *out)
{
    Holdfast__Internal__V1__ForgetPartialsRequest *asked =
        unpack(&holdfast__internal__v1__forget_partials_request__descriptor, request);
    Holdfast__Internal__V1__ForgetPartialsResponse response =
        HOLDFAST__INTERNAL__V1__FORGET_PARTIALS_RESPONSE__INIT;
    struct reader reader = reader_from((struct slice){ asked->homes.data, asked->homes.len });
    struct pull_home home;

    assert_int_equal(asked->shard, source);
    w->forgot_count[source] = 0;
    while (pull_home_next(&reader, &home)) {
        w->forgot[source][w->forgot_count[source]++] = home;
        w->emptied[source][home.home] = w->forgets_more;
    }
    response.forgotten = w->forgot_count[source];
    response.more = w->forgets_more;
    proto_encode(&response.base, out);
    protobuf_c_message_free_unpacked(&asked->base, NULL);
}

static void answer(struct world *w, const struct pull_call *call)
{
    struct buf body = { 0 };

    w->asked[call->method]++;
    w->order[call->method] = ++w->calls;
    if (call->method == METHOD_GET_PULLED)
        say_pulled(w, call->shard, &body);
    else if (call->method == METHOD_PULL_PARTIALS)
        say_partials(w, call->shard, call->request, &body);
    else if (call->method == METHOD_TAKE_PARTIALS)
        say_taken(w, call->shard, call->request, &body);
    else
        say_forgotten(w, call->shard, call->request, &body);
    bool fails = w->fails[call->shard][call->method];
    puller_check(w->puller);
    puller_answered(w->puller, call->token, !fails, fails ? (struct slice){ 0 } : buf_slice(&body));
    puller_check(w->puller);
    buf_deinit(&body);
}

/* A whole round; when the next one is to begin. */
static uint64_t round_of(struct world *w)
{
    struct pull_call call;

    memset(w->asked, 0, sizeof w->asked);
    memset(w->taken, 0, sizeof w->taken);
    puller_begin(w->puller, w->now_ms, w->unix_ms, w->owned);
    while (puller_next(w->puller, &call))
        answer(w, &call);
    assert_false(puller_is_busy(w->puller));
    puller_begin(w->puller, puller_next_ms(w->puller) - 1, w->unix_ms, w->owned);
    assert_false(puller_is_busy(w->puller)); /* It is not time yet. */
    w->now_ms = puller_next_ms(w->puller);
    return w->now_ms;
}

static int64_t pulled_ms(const struct world *w, uint32_t home)
{
    return puller_pulled_ms(w->puller, home);
}

static void has_changed(struct world *w, uint32_t source, uint32_t home)
{
    w->noted[source][home] = ++w->applied[source];
    w->newest[source][home].epoch = 3;
    w->newest[source][home].counter++;
}

static void a_round_asks_each_shard_once_and_logs_once_a_home(void **state)
{
    struct world *w = *state;

    has_changed(w, 0, 1);
    has_changed(w, 1, 1);
    has_changed(w, 3, 2);
    has_changed(w, 3, 0); /* Of a home that is another node's. */
    assert_int_equal(round_of(w), 5000 + PULLER_BUSY_MS);
    assert_int_equal(w->asked[METHOD_GET_PULLED], 2);
    assert_int_equal(w->asked[METHOD_PULL_PARTIALS], SHARDS);
    assert_int_equal(w->asked[METHOD_TAKE_PARTIALS], 2);
    assert_int_equal(w->asked[METHOD_FORGET_PARTIALS], 0);
    assert_true(w->order[METHOD_GET_PULLED] < w->order[METHOD_PULL_PARTIALS]);
    assert_true(w->order[METHOD_PULL_PARTIALS] < w->order[METHOD_TAKE_PARTIALS]);
    assert_int_equal(w->taken[1], 2);
    assert_int_equal(w->taken[2], 1);
    assert_int_equal(puller_stats(w->puller).items, 3);
    assert_int_equal(round_of(w), 5000 + PULLER_BUSY_MS + PULLER_EVERY_MS); /* Nothing new. */
    assert_int_equal(w->asked[METHOD_GET_PULLED], 0);
    assert_int_equal(w->asked[METHOD_PULL_PARTIALS], SHARDS);
    assert_int_equal(w->asked[METHOD_TAKE_PARTIALS], 0);
    has_changed(w, 0, 1);
    (void)round_of(w);
    assert_int_equal(w->taken[1], 1);
    assert_int_equal(puller_stats(w->puller).rounds, 3);
}

/* Twice as often while there are both: something to log, and somebody who reads lists. */
static void rounds_come_faster_where_it_matters(void **state)
{
    struct world *w = *state;

    w->now_ms = 5000 + PULLER_WATCH_MS;
    has_changed(w, 0, 1);
    assert_int_equal(round_of(w), 5000 + PULLER_WATCH_MS + PULLER_BUSY_MS);
    has_changed(w, 0, 1);
    uint64_t begun = w->now_ms;
    assert_int_equal(round_of(w), begun + PULLER_EVERY_MS); /* No list was read for long. */
    puller_watch(w->puller, w->now_ms);
    begun = w->now_ms;
    assert_int_equal(round_of(w), begun + PULLER_EVERY_MS); /* Nothing has changed. */
    has_changed(w, 0, 1);
    begun = w->now_ms;
    assert_int_equal(round_of(w), begun + PULLER_BUSY_MS);
}

/* How many homes said how far they are, over all sources. */
static uint32_t listed_in(struct world *w)
{
    w->listed = 0;
    (void)round_of(w);
    return w->listed;
}

/* What is asked and told follows what changed. */
static void only_homes_that_have_not_logged_all_say_how_far_they_are(void **state)
{
    struct world *w = *state;

    has_changed(w, 0, 1);
    assert_int_equal(listed_in(w), 2 * SHARDS);
    assert_int_equal(w->taken[1], 1);
    w->applied[2]++; /* Of what is no count. */
    uint64_t bytes = puller_stats(w->puller).bytes, asked = puller_stats(w->puller).asked_bytes;
    assert_int_equal(listed_in(w), 0);
    assert_int_equal(puller_stats(w->puller).bytes, bytes);
    assert_in_range(puller_stats(w->puller).asked_bytes - asked, SHARDS, SHARDS * 20);
    assert_int_equal(puller_stats(w->puller).unchanged, SHARDS);
    has_changed(w, 3, 2); /* It tells so in the same answer, */
    has_changed(w, 3, 0); /* and not of another node's home. */
    assert_int_equal(listed_in(w), 0);
    assert_int_equal(w->asked[METHOD_TAKE_PARTIALS], 1);
    assert_int_equal(w->taken[2], 1);
    w->fails[1][METHOD_PULL_PARTIALS] = true; /* What is not answered says nothing. */
    has_changed(w, 1, 1);
    assert_int_equal(listed_in(w), 0);
    w->fails[1][METHOD_PULL_PARTIALS] = false;
    (void)round_of(w);
    assert_int_equal(w->taken[1], 1);
}

/* An earlier program, for as long as it runs; or one that put rows of any age, once. */
static void a_source_that_cannot_tell_what_is_new_is_told_how_far_every_home_is(void **state)
{
    struct world *w = *state;

    (void)round_of(w);
    has_changed(w, 3, 2);
    w->noted[3][2] = 0; /* Under a dot of before. */
    w->unsure[3] = true;
    w->since_ms = 500;
    assert_int_equal(listed_in(w), 0);
    assert_int_equal(pulled_ms(w, 2), AT_MS); /* Not as new as that answer. */
    assert_int_equal(listed_in(w), 2);
    assert_int_equal(w->taken[2], 1);
    assert_int_equal(pulled_ms(w, 2), AT_MS + 500);
    w->earlier = true;
    assert_int_equal(listed_in(w), 0);
    assert_int_equal(listed_in(w), 2 * SHARDS);
    w->earlier = w->unsure[3] = false;
    assert_int_equal(listed_in(w), 2 * SHARDS);
    assert_int_equal(listed_in(w), 0);
}

static void another_home_says_how_far_it_is(void **state)
{
    struct world *w = *state;

    has_changed(w, 2, 3); /* Before this node owns that home. */
    (void)round_of(w);
    assert_int_equal(listed_in(w), 0);
    w->owned[3] = true;
    assert_int_equal(listed_in(w), SHARDS);
    assert_int_equal(w->taken[3], 1);
    assert_int_equal(listed_in(w), 0);
    has_changed(w, 0, 1); /* It may have been logged, or not. */
    w->fails[1][METHOD_TAKE_PARTIALS] = true;
    (void)round_of(w);
    w->fails[1][METHOD_TAKE_PARTIALS] = false;
    assert_int_equal(listed_in(w), 1);
    assert_int_equal(listed_in(w), 0);
}

/* While it does not say how far it is, sources go on; what they had for it is asked for later. */
static void a_home_that_did_not_ask_misses_nothing(void **state)
{
    struct world *w = *state;

    has_changed(w, 0, 1);
    w->fails[1][METHOD_TAKE_PARTIALS] = true;
    (void)round_of(w);
    w->fails[1][METHOD_TAKE_PARTIALS] = false;
    w->fails[1][METHOD_GET_PULLED] = true;
    has_changed(w, 3, 1);
    (void)round_of(w);
    assert_int_equal(w->taken[1], 0);
    w->fails[1][METHOD_GET_PULLED] = false;
    assert_int_equal(listed_in(w), SHARDS);
    assert_int_equal(w->taken[1], 1);
    assert_memory_equal(&w->logged[1][3], &w->newest[3][1], sizeof w->logged[1][3]);
    assert_int_equal(pulled_ms(w, 1), AT_MS);
}

static void a_node_without_homes_asks_nothing(void **state)
{
    struct world *w = *state;

    memset(w->owned, 0, sizeof w->owned);
    (void)round_of(w);
    assert_int_equal(w->calls, 0);
    assert_int_equal(puller_stats(w->puller).rounds, 0);
}

/* All that the sources had by then is logged: by the clock of the one that was read first. */
static void a_home_knows_until_when_all_shards_were_pulled(void **state)
{
    struct world *w = *state;

    assert_int_equal(pulled_ms(w, 1), 0);
    w->fails[2][METHOD_PULL_PARTIALS] = true;
    has_changed(w, 0, 1);
    (void)round_of(w);
    assert_int_equal(w->taken[1], 1); /* The others go on. */
    assert_int_equal(pulled_ms(w, 1), 0);
    assert_int_equal(puller_stats(w->puller).failed, 1);
    w->fails[2][METHOD_PULL_PARTIALS] = false;
    (void)round_of(w);
    assert_int_equal(pulled_ms(w, 1), AT_MS);
    assert_int_equal(pulled_ms(w, 0), 0);
}

/* Calls until there is one of that method, which is left open. */
static struct pull_call answer_until(struct world *w, uint32_t method)
{
    struct pull_call call;

    for (;;) {
        assert_true(puller_next(w->puller, &call));
        if (call.method == method)
            return call;
        answer(w, &call);
    }
}

/* As old as its own last answer: not as the slowest home's, nor as what is forgotten. */
static void no_home_waits_for_what_others_do(void **state)
{
    struct world *w = *state;
    struct pull_call first, second;

    has_changed(w, 0, 1);
    has_changed(w, 3, 2);
    (void)round_of(w);
    w->emptied[3][1] = true;
    has_changed(w, 0, 1);
    has_changed(w, 0, 2);
    w->since_ms = 800;
    puller_begin(w->puller, w->now_ms, w->unix_ms, w->owned);
    first = answer_until(w, METHOD_TAKE_PARTIALS);
    assert_true(puller_next(w->puller, &second));
    assert_int_equal(second.method, METHOD_TAKE_PARTIALS);
    assert_int_equal(pulled_ms(w, 1), AT_MS); /* What is told is not logged yet. */
    answer(w, &first);
    assert_int_equal(pulled_ms(w, 1), AT_MS + 800);
    assert_int_equal(pulled_ms(w, 2), AT_MS);
    answer(w, &second);
    assert_int_equal(answer_until(w, METHOD_FORGET_PARTIALS).shard, 3);
    assert_int_equal(pulled_ms(w, 2), AT_MS + 800);
    assert_true(puller_is_busy(w->puller));
}

/* A home with nothing to log is as old as the pull. */
static void a_home_with_nothing_to_log_waits_for_none_that_has(void **state)
{
    struct world *w = *state;

    has_changed(w, 0, 1);
    (void)round_of(w); /* Both are swept. */
    has_changed(w, 0, 1);
    w->since_ms = 700;
    puller_begin(w->puller, w->now_ms, w->unix_ms, w->owned);
    assert_int_equal(answer_until(w, METHOD_TAKE_PARTIALS).shard, 1);
    assert_int_equal(pulled_ms(w, 2), AT_MS + 700);
    assert_int_equal(pulled_ms(w, 1), AT_MS);
}

/* The worst of its homes; by the clocks of the sources. */
static void a_node_knows_how_far_it_is_behind(void **state)
{
    struct world *w = *state;

    assert_int_equal(puller_behind_ms(w->puller, AT_MS), 0);
    w->fails[2][METHOD_PULL_PARTIALS] = true;
    (void)round_of(w);
    assert_int_equal(puller_behind_ms(w->puller, AT_MS + 700), 700); /* Since it owns them. */
    w->fails[2][METHOD_PULL_PARTIALS] = false;
    w->fails[1][METHOD_TAKE_PARTIALS] = true;
    has_changed(w, 0, 1);
    w->unix_ms = AT_MS + 5000;
    w->owned[2] = false;
    w->owned[3] = true;
    (void)round_of(w);
    assert_int_equal(puller_behind_ms(w->puller, AT_MS + 6000), 6000);
    w->owned[1] = false;
    (void)round_of(w);
    assert_int_equal(puller_behind_ms(w->puller, AT_MS + 6000), 1000);
    assert_int_equal(puller_behind_ms(w->puller, AT_MS), 0); /* Its clock went back. */
    w->owned[3] = false;
    (void)round_of(w);
    assert_int_equal(puller_behind_ms(w->puller, AT_MS + 9000), 0);
}

/* It may have been logged: the home is asked how far it is. */
static void what_a_home_did_not_answer_is_looked_up(void **state)
{
    struct world *w = *state;

    has_changed(w, 0, 1);
    w->fails[1][METHOD_TAKE_PARTIALS] = true;
    (void)round_of(w);
    assert_int_equal(pulled_ms(w, 1), 0);
    assert_int_equal(pulled_ms(w, 2), AT_MS);
    w->fails[1][METHOD_TAKE_PARTIALS] = false;
    (void)round_of(w);
    assert_int_equal(w->asked[METHOD_GET_PULLED], 1);
    assert_int_equal(w->taken[1], 0); /* It is swept, no more. */
    assert_int_equal(pulled_ms(w, 1), AT_MS);
}

/* A repair of its rows may take back how far it is: once a minute it is asked. */
static void a_home_that_a_repair_took_back_is_pulled_again(void **state)
{
    struct world *w = *state;

    has_changed(w, 0, 1);
    (void)round_of(w);
    assert_int_equal(w->taken[1], 1);
    w->now_ms = 5000 + PULLER_LOOK_MS - 1;
    (void)round_of(w);
    assert_int_equal(w->asked[METHOD_GET_PULLED], 0);
    w->logged[1][0] = (struct source_dot){ 0 };
    (void)round_of(w);
    assert_int_equal(w->asked[METHOD_GET_PULLED], 2);
    assert_int_equal(w->taken[1], 1);
    (void)round_of(w);
    assert_int_equal(w->asked[METHOD_GET_PULLED], 0);
}

static void a_home_that_misses_something_is_looked_up(void **state)
{
    struct world *w = *state;

    has_changed(w, 0, 1);
    w->gaps = true;
    (void)round_of(w);
    w->gaps = false;
    (void)round_of(w);
    assert_int_equal(w->asked[METHOD_GET_PULLED], 1);
    assert_int_equal(w->taken[1], 1);
}

static void a_home_that_comes_back_is_looked_up(void **state)
{
    struct world *w = *state;

    (void)round_of(w);
    w->owned[1] = false;
    has_changed(w, 0, 1);
    (void)round_of(w);
    assert_int_equal(w->asked[METHOD_TAKE_PARTIALS], 0);
    w->logged[1][0] = w->newest[0][1]; /* By another owner. */
    w->owned[1] = true;
    (void)round_of(w);
    assert_int_equal(w->asked[METHOD_GET_PULLED], 1);
    assert_int_equal(w->taken[1], 0);
    w->fails[1][METHOD_GET_PULLED] = true;
    w->owned[1] = false;
    (void)round_of(w);
    w->owned[1] = true;
    has_changed(w, 0, 1);
    (void)round_of(w); /* How far it is, it does not say: nothing is pulled for it. */
    assert_int_equal(w->asked[METHOD_TAKE_PARTIALS], 0);
}

/* What is too much for one entry comes in the next one, right after. */
static void an_entry_has_a_limit(void **state)
{
    struct world *w = *state;

    w->item_bytes = PULL_PART_BYTES_MAX - PULL_ITEM_BYTES_MAX;
    for (uint32_t source = 0; source < SHARDS; source++)
        has_changed(w, source, 1);
    assert_int_equal(round_of(w), 5000 + PULLER_AGAIN_MS);
    assert_in_range(w->taken[1], 1, SHARDS - 1);
    uint32_t first = w->taken[1];
    assert_int_equal(pulled_ms(w, 1), 0);
    for (uint32_t rounds = 0; first < SHARDS; rounds++) {
        (void)round_of(w);
        assert_true(w->taken[1] > 0);
        first += w->taken[1];
        assert_true(rounds < SHARDS);
    }
    (void)round_of(w);
    assert_int_equal(pulled_ms(w, 1), AT_MS);
}

static void places_are_swept_when_an_hour_has_passed(void **state)
{
    struct world *w = *state;

    (void)round_of(w);
    memset(w->swept, 0, sizeof w->swept);
    w->unix_ms += HOUR_MS;
    w->sweeps_left = 3;
    uint64_t begun = w->now_ms;
    assert_int_equal(round_of(w), begun + PULLER_AGAIN_MS);
    for (uint32_t i = 0; i < 4; i++)
        (void)round_of(w);
    assert_int_equal(w->swept[1] + w->swept[2], 5); /* One each, and three that had more. */
    assert_int_equal(w->asked[METHOD_TAKE_PARTIALS], 0);
}

/* The owner before may not have swept what an hour ended. */
static void a_home_is_swept_when_the_node_begins_to_own_it(void **state)
{
    struct world *w = *state;

    w->owned[1] = false;
    (void)round_of(w);
    w->unix_ms += HOUR_MS / 2;
    w->owned[1] = true;
    memset(w->swept, 0, sizeof w->swept);
    w->sweeps_left = 1;
    (void)round_of(w);
    (void)round_of(w);
    assert_int_equal(w->swept[1], 2);
    assert_int_equal(w->swept[2], 0);
    (void)round_of(w);
    assert_int_equal(w->swept[1], 2);
}

static void a_home_that_failed_before_the_hour_is_swept(void **state)
{
    struct world *w = *state;

    (void)round_of(w);
    memset(w->swept, 0, sizeof w->swept);
    has_changed(w, 0, 1);
    w->fails[1][METHOD_TAKE_PARTIALS] = true;
    (void)round_of(w);
    w->fails[1][METHOD_TAKE_PARTIALS] = false;
    w->unix_ms += HOUR_MS;
    (void)round_of(w);
    assert_int_equal(w->swept[1], 1);
    assert_int_equal(w->swept[2], 1);
}

/* ---- forgetting ---- */
/* Under the dot that stood in the home's log before this round. */
static void what_a_home_has_logged_is_forgotten(void **state)
{
    struct world *w = *state;

    has_changed(w, 3, 1);
    (void)round_of(w);
    struct source_dot logged = w->logged[1][3];
    has_changed(w, 3, 1);
    w->emptied[3][1] = true;
    uint64_t begun = w->now_ms;
    assert_int_equal(round_of(w), begun + PULLER_BUSY_MS);
    assert_int_equal(w->asked[METHOD_FORGET_PARTIALS], 1);
    assert_true(w->order[METHOD_TAKE_PARTIALS] < w->order[METHOD_FORGET_PARTIALS]);
    assert_int_equal(w->forgot_count[3], 1);
    assert_int_equal(w->forgot[3][0].home, 1);
    assert_memory_equal(&w->forgot[3][0].after, &logged, sizeof logged);
    assert_int_equal(puller_stats(w->puller).forgotten, 1);
    (void)round_of(w);
    assert_int_equal(w->asked[METHOD_FORGET_PARTIALS], 0);
}

static void a_source_that_has_more_to_forget_is_asked_right_after(void **state)
{
    struct world *w = *state;

    w->emptied[0][1] = w->emptied[0][2] = w->emptied[2][2] = true;
    w->forgets_more = true;
    assert_int_equal(round_of(w), 5000 + PULLER_AGAIN_MS);
    assert_int_equal(w->asked[METHOD_FORGET_PARTIALS], 2);
    assert_int_equal(w->forgot_count[0], 2);
    w->forgets_more = false;
    uint64_t begun = w->now_ms;
    assert_int_equal(round_of(w), begun + PULLER_EVERY_MS);
    w->emptied[0][1] = true;
    w->fails[0][METHOD_FORGET_PARTIALS] = true; /* It is asked again in its time. */
    begun = w->now_ms;
    assert_int_equal(round_of(w), begun + PULLER_EVERY_MS);
    assert_int_equal(puller_stats(w->puller).failed, 1);
}

/* ---- what makes no sense ---- */
static void answers_out_of_time_are_ignored(void **state)
{
    struct world *w = *state;
    struct pull_call first, call;

    puller_begin(w->puller, w->now_ms, w->unix_ms, w->owned);
    assert_true(puller_next(w->puller, &first));
    assert_true(puller_is_busy(w->puller));
    uint64_t rounds = puller_stats(w->puller).rounds;
    puller_begin(w->puller, w->now_ms + 9000, w->unix_ms, w->owned);
    assert_int_equal(puller_stats(w->puller).rounds, rounds); /* One is under way. */
    puller_answered(w->puller, 0, true, (struct slice){ 0 });
    puller_answered(w->puller, first.token + 99, true, (struct slice){ 0 });
    puller_answered(w->puller, first.token, true, SLICE_LITERAL("\xff\xff")); /* Nonsense. */
    puller_answered(w->puller, first.token, true, (struct slice){ 0 });
    assert_int_equal(puller_stats(w->puller).failed, 1);
    while (puller_next(w->puller, &call))
        answer(w, &call);
    assert_int_equal(pulled_ms(w, 1), 0);
    assert_int_equal(pulled_ms(w, 2), AT_MS);
}

/* A part of a home that was not asked for, of no home, or a second one. */
static void parts_that_were_not_asked_for_are_left_out(void **state)
{
    struct world *w = *state;
    struct pull_call call;

    puller_begin(w->puller, w->now_ms, w->unix_ms, w->owned);
    while (puller_next(w->puller, &call)) {
        Holdfast__Internal__V1__PullPartialsResponse response =
            HOLDFAST__INTERNAL__V1__PULL_PARTIALS_RESPONSE__INIT;
        struct buf parts = { 0 }, items = { 0 }, body = { 0 };
        if (call.method != METHOD_PULL_PARTIALS) {
            answer(w, &call);
            continue;
        }
        put_items(w, (struct source_dot){ 3, 1 }, &items);
        for (uint32_t home = 0; home < SHARDS + 2; home++) {
            struct pull_part part = {
                .home = home, .emptied = true, .to = { 3, 1 }, .items = buf_slice(&items)
            };
            pull_part_encode(&part, &parts);
            pull_part_encode(&part, &parts);
        }
        response.parts = (ProtobufCBinaryData){ parts.size, parts.data };
        response.at_ms = AT_MS;
        proto_encode(&response.base, &body);
        puller_answered(w->puller, call.token, true, buf_slice(&body));
        buf_deinit(&parts);
        buf_deinit(&items);
        buf_deinit(&body);
    }
    assert_int_equal(w->asked[METHOD_TAKE_PARTIALS], 2);
    assert_int_equal(w->taken[1], SHARDS);
    assert_int_equal(w->taken[2], SHARDS);
    for (uint32_t source = 0; source < SHARDS; source++)
        assert_int_equal(w->forgot_count[source], 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        PULLER_TEST(a_round_asks_each_shard_once_and_logs_once_a_home),
        PULLER_TEST(only_homes_that_have_not_logged_all_say_how_far_they_are),
        PULLER_TEST(a_source_that_cannot_tell_what_is_new_is_told_how_far_every_home_is),
        PULLER_TEST(a_home_that_did_not_ask_misses_nothing),
        PULLER_TEST(rounds_come_faster_where_it_matters),
        PULLER_TEST(another_home_says_how_far_it_is),
        PULLER_TEST(a_node_without_homes_asks_nothing),
        PULLER_TEST(a_home_knows_until_when_all_shards_were_pulled),
        PULLER_TEST(no_home_waits_for_what_others_do),
        PULLER_TEST(a_home_with_nothing_to_log_waits_for_none_that_has),
        PULLER_TEST(a_node_knows_how_far_it_is_behind),
        PULLER_TEST(what_a_home_did_not_answer_is_looked_up),
        PULLER_TEST(a_home_that_a_repair_took_back_is_pulled_again),
        PULLER_TEST(a_home_that_misses_something_is_looked_up),
        PULLER_TEST(a_home_that_comes_back_is_looked_up),
        PULLER_TEST(an_entry_has_a_limit),
        PULLER_TEST(places_are_swept_when_an_hour_has_passed),
        PULLER_TEST(a_home_is_swept_when_the_node_begins_to_own_it),
        PULLER_TEST(a_home_that_failed_before_the_hour_is_swept),
        PULLER_TEST(what_a_home_has_logged_is_forgotten),
        PULLER_TEST(a_source_that_has_more_to_forget_is_asked_right_after),
        PULLER_TEST(answers_out_of_time_are_ignored),
        PULLER_TEST(parts_that_were_not_asked_for_are_left_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
