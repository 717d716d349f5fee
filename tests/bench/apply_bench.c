/*
 * apply_bench: what one Grant costs the state machine, from its committed entry to its outcome:
 * decode, deduplicate, check the session, change the wallet, write ledger, player and outcome.
 * Prints nanoseconds of processor time per operation, for the way to the log (prepare) and from
 * it (apply), in batches as a shard does them. A checkpoint runs every CHECKPOINT_EVERY grants,
 * outside the clock.
 *
 *   apply_bench [operations] [players] [gold | item] [totals | bare] [events | none]
 *
 * "item": each grant mints an item too. "bare": without the running totals of the audit
 * (node/core/goods/audit.c), which a shard always keeps: what they cost is the difference. "none":
 * under the apply version before there were events (node/core/handler/event.h), likewise.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "holdfast/internal/v1/node.pb-c.h"
#include "holdfast/v1/ledger.pb-c.h"
#include "holdfast/v1/session.pb-c.h"
#include "idl/method.h"
#include "node/core/apply/apply.h"
#include "node/core/codec/arena_proto.h"
#include "node/core/entry/start.h"
#include "node/core/handler/event.h"
#include "node/rpc/handlers.h"
#include "runtime/base/check.h"

#define START_MS         1750000000000ull
#define CHECKPOINT_EVERY 100000u
#define BATCH            250u
#define SERVER           "1-4711"

struct bench {
    struct applier *applier;
    struct arena arena;
    struct need need;
    uint64_t index;
    uint64_t ids;
    uint64_t prepare_ns;
    uint64_t apply_ns;
    bool items;
    uint32_t apply_version;
};

static uint64_t now_ns(void)
{
    struct timespec now;
    CHECK(clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now) == 0);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static char *next_id(struct bench *bench)
{
    static char text[UUID_TEXT_SIZE];
    uint8_t random[10] = { 0 };

    store_u64(random + 2, ++bench->ids * 0x9e3779b97f4a7c15ull);
    struct uuid uuid = uuid_v7_make(START_MS + bench->ids / 100, random);
    uuid_print(&uuid, text);
    return text;
}

static struct entry *entry_make(struct bench *bench, enum entry_kind kind, struct slice body)
{
    struct dot dot = { 1, 1, bench->index + 1 };
    struct hash128 none = { { 0 } };
    return entry_new(kind,
                     &(struct entry_head){ .index = ++bench->index,
                                           .dot = dot,
                                           .owner_ms = START_MS + bench->ids / 100,
                                           .prev_hash = none },
                     body);
}

/* What an entry asks for and is not in memory is nowhere: the shard began empty. */
static void load_as_absent(struct bench *bench)
{
    struct state *state = applier_state(bench->applier);
    struct reader keys = reader_from(buf_slice(&bench->need.keys));

    CHECK(bench->need.key_count > 0);
    while (reader_left(&keys) > 0)
        CHECK(state_load(state, state_load_generation(state),
                         read_bytes(&keys, STATE_KEY_BYTES_MAX), NULL));
    need_clear(&bench->need);
}

static void apply(struct bench *bench, enum entry_kind kind, struct slice body)
{
    struct outcome outcome;
    struct entry *entry = entry_make(bench, kind, body);
    err e = applier_apply(bench->applier, entry, &bench->need, &outcome);

    while (e == ERR_NEED) {
        load_as_absent(bench);
        e = applier_apply(bench->applier, entry, &bench->need, &outcome);
    }
    CHECK(e == ERR_OK);
    CHECK(outcome.kind == OUTCOME_COMMITTED || kind == ENTRY_START);
    entry_unref(entry);
}

static void prepare(struct bench *bench, uint32_t method, struct slice request, struct buf *body)
{
    struct refusal refusal;

    arena_reset(&bench->arena);
    const struct applier_asked asked = { method, request, START_MS + bench->ids / 100,
                                         &bench->arena };
    CHECK(applier_prepare(bench->applier, &asked, body, &refusal) == ERR_OK);
}

static void mutate(struct bench *bench, uint32_t method, const ProtobufCMessage *request)
{
    struct arena packed = { 0 };
    struct buf body = { 0 };

    prepare(bench, method, arena_pack(&packed, request), &body);
    apply(bench, ENTRY_OP, buf_slice(&body));
    buf_deinit(&body);
    arena_deinit(&packed);
}

static void begin(struct bench *bench)
{
    struct start start = {
        .membership = { .config = 1, .count = 3, .members = { 1, 2, 3 } },
        .generation = 1,
        .apply_version = bench->apply_version,
    };
    Holdfast__V1__CurrencyPolicy gold = HOLDFAST__V1__CURRENCY_POLICY__INIT;
    Holdfast__V1__CurrencyPolicy *currencies[] = { &gold };
    Holdfast__V1__Policy policy = HOLDFAST__V1__POLICY__INIT;
    Holdfast__Internal__V1__ApplyPolicyRequest request =
        HOLDFAST__INTERNAL__V1__APPLY_POLICY_REQUEST__INIT;
    struct buf body = { 0 };

    bench->applier = applier_new(0, node_handlers());
    CHECK(applier_restore(bench->applier, (struct slice){ 0 }) == ERR_OK);
    start_encode(&start, &body);
    apply(bench, ENTRY_START, buf_slice(&body));
    buf_deinit(&body);
    gold.name = (char *)"gold";
    policy.version = 1;
    policy.currencies = currencies;
    policy.n_currencies = 1;
    request.policy = &policy;
    mutate(bench, METHOD_APPLY_POLICY, &request.base);
}

/* A player's row is known to be absent, as after a prefetch. */
static void start_session(struct bench *bench, uint64_t player, char *ret_token)
{
    Holdfast__V1__StartSessionRequest request = HOLDFAST__V1__START_SESSION_REQUEST__INIT;
    struct state *state = applier_state(bench->applier);
    char id[32];
    char key[40];

    (void)snprintf(id, sizeof id, "%" PRIu64, player);
    (void)snprintf(key, sizeof key, "pplayer:%s", id);
    CHECK(state_load(state, state_load_generation(state), slice_from_text(key), NULL));
    request.player_id = id;
    request.op_id = next_id(bench);
    request.incarnation = (char *)SERVER;
    mutate(bench, METHOD_START_SESSION, &request.base);
    (void)snprintf(ret_token, TOKEN_TEXT_SIZE, "%s-1", SERVER);
}

static struct slice grant_pack(struct bench *bench, struct arena *arena, uint64_t player,
                               char *token)
{
    Holdfast__V1__GrantRequest request = HOLDFAST__V1__GRANT_REQUEST__INIT;
    Holdfast__V1__CurrencyAmount gold = HOLDFAST__V1__CURRENCY_AMOUNT__INIT;
    Holdfast__V1__CurrencyAmount *amounts[] = { &gold };
    Holdfast__V1__ItemSpec item = HOLDFAST__V1__ITEM_SPEC__INIT;
    Holdfast__V1__ItemSpec *items[] = { &item };
    char authority[80];
    char id[32];

    (void)snprintf(id, sizeof id, "%" PRIu64, player);
    (void)snprintf(authority, sizeof authority, "session:%s", token);
    gold.currency = (char *)"gold";
    gold.amount = 10;
    request.player_id = id;
    request.op_id = next_id(bench);
    request.authority = authority;
    request.currencies = amounts;
    request.n_currencies = 1;
    request.reason = (char *)"match_reward";
    item.kind = (char *)"sword";
    request.items = items;
    request.n_items = bench->items;
    return arena_pack(arena, &request.base);
}

/* BATCH grants on their way to the log, then from it. */
static void grant_batch(struct bench *bench, uint64_t first, uint64_t players, char *token)
{
    static struct slice requests[BATCH];
    static struct buf bodies[BATCH];
    static struct entry *entries[BATCH];
    struct arena arena = { 0 };
    struct outcome outcome;

    for (uint64_t i = 0; i < BATCH; i++)
        requests[i] = grant_pack(bench, &arena, (first + i) * 7919 % players, token);
    uint64_t begin_ns = now_ns();
    for (uint64_t i = 0; i < BATCH; i++) {
        buf_clear(&bodies[i]);
        prepare(bench, METHOD_GRANT, requests[i], &bodies[i]);
    }
    bench->prepare_ns += now_ns() - begin_ns;
    for (uint64_t i = 0; i < BATCH; i++)
        entries[i] = entry_make(bench, ENTRY_OP, buf_slice(&bodies[i]));
    begin_ns = now_ns();
    for (uint64_t i = 0; i < BATCH; i++) {
        CHECK(applier_apply(bench->applier, entries[i], &bench->need, &outcome) == ERR_OK);
        CHECK(outcome.kind == OUTCOME_COMMITTED && !outcome.duplicate);
    }
    bench->apply_ns += now_ns() - begin_ns;
    for (uint64_t i = 0; i < BATCH; i++)
        entry_unref(entries[i]);
    arena_deinit(&arena);
}

static void checkpoint(struct bench *bench)
{
    struct state *state = applier_state(bench->applier);
    const struct state_write *writes;
    uint32_t count;

    CHECK(state_checkpoint_begin(state, &writes, &count));
    state_checkpoint_end(state, true);
}

int main(int argc, char **argv)
{
    uint64_t operations = argc > 1 ? strtoull(argv[1], NULL, 10) : 500000;
    uint64_t players = argc > 2 ? strtoull(argv[2], NULL, 10) : 2000;
    struct bench bench = { 0 };
    struct state_stats stats;
    char token[TOKEN_TEXT_SIZE];

    bench.apply_version =
        argc > 5 && strcmp(argv[5], "none") == 0 ? EVENT_APPLY_VERSION - 1 : APPLY_VERSION;
    begin(&bench);
    bench.items = argc > 3 && strcmp(argv[3], "item") == 0;
    if (argc > 4 && strcmp(argv[4], "bare") == 0)
        state_observe(applier_state(bench.applier), (struct state_observer){ 0 });
    for (uint64_t i = 0; i < players; i++)
        start_session(&bench, i, token);
    for (uint64_t i = 0; i < operations; i += BATCH) {
        grant_batch(&bench, i, players, token);
        if (i % CHECKPOINT_EVERY < BATCH)
            checkpoint(&bench);
    }
    state_stats_get(applier_state(bench.applier), &stats);
    printf("grants %" PRIu64 ", players %" PRIu64 ", rows %" PRIu64 ", bytes %" PRIu64 "\n",
           operations, players, stats.rows, stats.bytes);
    printf("prepare %" PRIu64 " ns, apply %" PRIu64 " ns per grant\n",
           bench.prepare_ns / operations, bench.apply_ns / operations);
    applier_free(bench.applier);
    arena_deinit(&bench.arena);
    need_deinit(&bench.need);
    return 0;
}
