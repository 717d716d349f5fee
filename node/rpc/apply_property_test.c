/*
 * Random histories on one shard: servers come and go, steal, write, retry, seal; time passes. The
 * same log is applied by a replica that keeps every row and by one that evicts, checkpoints and
 * restarts at random: outcomes and rows must be alike, and what the ledger says must add up.
 */
#include "node/rpc/fixture.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/check.h"

#define SEEDS        16u
#define STEPS        600u
#define PLAYERS      4u
#define SERVERS      5u
#define IDS_REMEMBER 48u

struct world {
    struct fixture busy; /* Chooses what happens; all rows in memory, never checkpointed. */
    struct fixture lean; /* Applies the same entries with as little memory as it gets. */
    uint64_t random;
    uint32_t reach[32];
    char players[PLAYERS][16];
    char servers[SERVERS][INCARNATION_TEXT_SIZE];
    uint64_t next_server;
    char ids[IDS_REMEMBER][UUID_TEXT_SIZE];
    uint32_t id_count;
};

enum reach {
    REACH_COMMITTED,
    REACH_REFUSED,
    REACH_PENDING,
    REACH_DUPLICATE,
    REACH_DECIDED,
    REACH_FREED,
    REACH_STALE,
    REACH_NEED,
    REACH_RESTART,
    REACH_PRUNED,
    REACH_SEALED,
    REACH_ITEMS,
    REACH_ITEMS_SPENT,
    REACH_REVERSED,
    REACH_COUNT
};

static uint64_t draw(struct world *w, uint64_t below)
{
    w->random ^= w->random << 13;
    w->random ^= w->random >> 7;
    w->random ^= w->random << 17;
    return (w->random * 0x2545f4914f6cdd1dull >> 33) % below;
}

static char *some_player(struct world *w)
{
    return w->players[draw(w, PLAYERS)];
}

/* A new id mostly, sometimes one used before, for whatever request. */
static char *some_id(struct world *w)
{
    if (w->id_count > 0 && draw(w, 6) == 0)
        return w->ids[draw(w, w->id_count < IDS_REMEMBER ? w->id_count : IDS_REMEMBER)];
    uint64_t age_ms = draw(w, 20) == 0 ? draw(w, 2000000) : draw(w, 2000);
    char *kept = w->ids[w->id_count++ % IDS_REMEMBER];
    memcpy(kept, fixture_op_id_at(&w->busy, w->busy.now_ms - age_ms), UUID_TEXT_SIZE);
    return kept;
}

static char *some_authority(struct world *w, const char *player)
{
    static const char *const others[] = { "unheld", "system:mail", SERVER_A "-1" };

    if (draw(w, 4) == 0)
        return fixture_authority(&w->busy, others[draw(w, 3)]);
    Holdfast__V1__GetSessionResponse *session = fixture_session(&w->busy, player);
    if (session->incarnation[0] == 0)
        return fixture_authority(&w->busy, "unheld");
    uint64_t fence = session->fence - (session->fence > 1 && draw(w, 8) == 0);
    return fixture_authority(
        &w->busy, arena_printf(&w->busy.arena, "%s-%" PRIu64, session->incarnation, fence));
}

static void do_start(struct world *w)
{
    Holdfast__V1__StartSessionRequest request = HOLDFAST__V1__START_SESSION_REQUEST__INIT;

    request.player_id = some_player(w);
    request.op_id = some_id(w);
    request.attempt = (uint32_t)draw(w, 3);
    request.incarnation = w->servers[draw(w, SERVERS)];
    request.mode = (Holdfast__V1__StartMode)draw(w, 4);
    request.grace_ms = (uint32_t)draw(w, 4) * 1000;
    fixture_mutate(&w->busy, METHOD_START_SESSION, &request.base);
}

static void do_grant(struct world *w)
{
    Holdfast__V1__GrantRequest request = HOLDFAST__V1__GRANT_REQUEST__INIT;
    Holdfast__V1__CurrencyAmount gems = HOLDFAST__V1__CURRENCY_AMOUNT__INIT;
    Holdfast__V1__CurrencyAmount *amounts[] = { &gems };
    Holdfast__V1__ItemSpec item = HOLDFAST__V1__ITEM_SPEC__INIT;
    Holdfast__V1__ItemSpec *items[] = { &item, &item, &item };

    gems.currency = (char *)(draw(w, 2) == 0 ? "gems" : "gold");
    gems.amount = 1 + (int64_t)draw(w, 300);
    item.kind = (char *)"orb";
    request.player_id = some_player(w);
    request.op_id = draw(w, 10) == 0 ? arena_printf(&w->busy.arena, "receipt:%" PRIu64, draw(w, 30))
                                     : some_id(w);
    request.attempt = (uint32_t)draw(w, 3);
    request.authority = some_authority(w, request.player_id);
    request.currencies = amounts;
    request.n_currencies = 1;
    request.items = items;
    request.n_items = draw(w, 4) == 0 ? draw(w, 4) : 0;
    if (fixture_mutate(&w->busy, METHOD_GRANT, &request.base) != NULL && request.n_items > 0)
        w->reach[REACH_ITEMS]++;
}

static void do_spend(struct world *w)
{
    Holdfast__V1__SpendRequest request = HOLDFAST__V1__SPEND_REQUEST__INIT;
    Holdfast__V1__CurrencyAmount debt = HOLDFAST__V1__CURRENCY_AMOUNT__INIT;
    Holdfast__V1__CurrencyAmount *amounts[] = { &debt };

    debt.currency = (char *)(draw(w, 3) == 0 ? "debt" : "gold");
    debt.amount = 1 + (int64_t)draw(w, 200);
    request.player_id = some_player(w);
    request.op_id = some_id(w);
    request.authority = some_authority(w, request.player_id);
    request.currencies = amounts;
    request.n_currencies = 1;
    fixture_mutate(&w->busy, METHOD_SPEND, &request.base);
}

static void do_spend_items(struct world *w)
{
    Holdfast__V1__SpendRequest request = HOLDFAST__V1__SPEND_REQUEST__INIT;
    Holdfast__V1__CurrencyAmount gold = HOLDFAST__V1__CURRENCY_AMOUNT__INIT;
    Holdfast__V1__CurrencyAmount *amounts[] = { &gold };

    request.player_id = some_player(w);
    Holdfast__V1__ListItemsResponse *held = fixture_items(&w->busy, some_player(w));
    Holdfast__V1__ListItemsResponse *own = fixture_items(&w->busy, request.player_id);
    if (own->n_items > 0 && draw(w, 5) > 0)
        held = own;
    if (held->n_items == 0)
        return;
    size_t first = draw(w, held->n_items);
    char *uids[2] = { held->items[first]->uid, held->items[held->n_items - 1]->uid };
    gold.currency = (char *)"gold";
    gold.amount = 1 + (int64_t)draw(w, 60);
    request.op_id = some_id(w);
    request.authority = some_authority(w, request.player_id);
    request.item_uids = uids;
    request.n_item_uids = first + 1 < held->n_items ? 2 : 1;
    request.currencies = amounts;
    request.n_currencies = draw(w, 2);
    if (fixture_mutate(&w->busy, METHOD_SPEND, &request.base) != NULL)
        w->reach[REACH_ITEMS_SPENT]++;
}

static void do_reverse(struct world *w)
{
    Holdfast__V1__ReverseEntryRequest request = HOLDFAST__V1__REVERSE_ENTRY_REQUEST__INIT;

    request.player_id = some_player(w);
    request.op_id = some_id(w);
    request.target_op_id = w->ids[draw(w, w->id_count < IDS_REMEMBER ? w->id_count : IDS_REMEMBER)];
    if (draw(w, 8) == 0)
        request.target_op_id = arena_printf(&w->busy.arena, "receipt:%" PRIu64, draw(w, 30));
    if (draw(w, 4) == 0)
        request.target_seq = draw(w, 20);
    request.authority = some_authority(w, request.player_id);
    request.reason = (char *)"test";
    if (fixture_mutate(&w->busy, METHOD_REVERSE_ENTRY, &request.base) != NULL)
        w->reach[REACH_REVERSED]++;
}

/* An element goes into a set, another out of it. */
static Holdfast__V1__PatchList *some_patch(struct world *w)
{
    static const char *const paths[] = { "/l", "/a/b", "/z" };
    static const char *const values[] = { "1", "2", "[1]", "\"y\"" };
    struct arena *arena = &w->busy.arena;
    Holdfast__V1__PatchList *list = arena_alloc(arena, sizeof *list);

    holdfast__v1__patch_list__init(list);
    list->n_steps = 1 + draw(w, 3);
    list->steps = arena_alloc(arena, list->n_steps * sizeof *list->steps);
    for (size_t i = 0; i < list->n_steps; i++) {
        list->steps[i] = arena_alloc(arena, sizeof *list->steps[i]);
        holdfast__v1__patch_step__init(list->steps[i]);
        list->steps[i]->kind = draw(w, 2) == 0 ? HOLDFAST__V1__PATCH_KIND__PATCH_KIND_ADD
                                               : HOLDFAST__V1__PATCH_KIND__PATCH_KIND_DISCARD;
        list->steps[i]->path = text_lend(paths[draw(w, 3)]);
        list->steps[i]->json = text_lend(values[draw(w, 4)]);
    }
    return list;
}

static void add_remove(struct world *w, Holdfast__V1__SectionEdit *edit)
{
    static const char *const paths[] = { "/a/b/0", "/l/0", "/z", "" };

    edit->n_remove = 1;
    edit->remove = arena_alloc(&w->busy.arena, sizeof *edit->remove);
    edit->remove[0] = text_lend(paths[draw(w, 4)]);
}

static Holdfast__V1__SectionEdit *some_edit(struct world *w)
{
    static const char *const names[] = { "quests", "pets", "mmr" };
    static const char *const texts[] = { "{\"a\":1}", "{\"a\":{\"b\":[1,2]},\"c\":1.5}",
                                         "{\"a\":null}", "{\"z\":\"y\"}" };
    Holdfast__V1__SectionEdit *edit =
        arena_alloc(&w->busy.arena, sizeof(Holdfast__V1__SectionEdit));

    holdfast__v1__section_edit__init(edit);
    edit->name = text_lend(names[draw(w, 3)]);
    if (draw(w, 4) == 0) {
        edit->_if_version_case = HOLDFAST__V1__SECTION_EDIT___IF_VERSION_IF_VERSION;
        edit->if_version = draw(w, 6);
    }
    switch (draw(w, 7)) {
    case 0:
        edit->edit_case = HOLDFAST__V1__SECTION_EDIT__EDIT_DELETE;
        edit->delete_ = arena_alloc(&w->busy.arena, sizeof *edit->delete_);
        holdfast__v1__delete_section__init(edit->delete_);
        break;
    case 1:
        edit->edit_case = HOLDFAST__V1__SECTION_EDIT__EDIT_REPLACE;
        edit->replace = text_lend(texts[draw(w, 4)]);
        break;
    case 2:
    case 3:
        edit->edit_case = HOLDFAST__V1__SECTION_EDIT__EDIT_PATCH;
        edit->patch = some_patch(w);
        break;
    default:
        edit->edit_case = HOLDFAST__V1__SECTION_EDIT__EDIT_MERGE;
        edit->merge = text_lend(texts[draw(w, 4)]);
        if (draw(w, 2) == 0)
            add_remove(w, edit);
        break;
    }
    return edit;
}

static void do_update(struct world *w)
{
    Holdfast__V1__UpdateProfileRequest request = HOLDFAST__V1__UPDATE_PROFILE_REQUEST__INIT;
    Holdfast__V1__SectionEdit *edits[] = { some_edit(w) };

    request.player_id = some_player(w);
    request.op_id = some_id(w);
    request.authority = some_authority(w, request.player_id);
    request.edits = edits;
    request.n_edits = 1;
    fixture_mutate(&w->busy, METHOD_UPDATE_PROFILE, &request.base);
}

static void do_end(struct world *w)
{
    Holdfast__V1__EndSessionRequest request = HOLDFAST__V1__END_SESSION_REQUEST__INIT;
    Holdfast__V1__SectionEdit *edits[] = { some_edit(w) };

    request.player_id = some_player(w);
    request.op_id = some_id(w);
    request.authority = some_authority(w, request.player_id);
    request.edits = edits;
    request.n_edits = draw(w, 2);
    fixture_mutate(&w->busy, METHOD_END_SESSION, &request.base);
}

static void do_resolve(struct world *w)
{
    Holdfast__V1__ResolveOperationRequest request = HOLDFAST__V1__RESOLVE_OPERATION_REQUEST__INIT;

    request.entity = arena_printf(&w->busy.arena, "player:%s", some_player(w));
    request.op_id = some_id(w);
    request.seal = draw(w, 2) == 0;
    Holdfast__Internal__V1__OperationAnswer *response =
        fixture_mutate(&w->busy, METHOD_RESOLVE_OPERATION, &request.base);
    if (response != NULL && response->operation->state == OPERATION(ABORTED))
        w->reach[REACH_SEALED]++;
}

/* A server dies and another takes its place. */
static void do_expire(struct world *w)
{
    char *server = w->servers[draw(w, SERVERS)];

    fixture_expire(&w->busy, server, "");
    (void)snprintf(server, INCARNATION_TEXT_SIZE, "1-%" PRIu64, ++w->next_server);
}

static void do_something(struct world *w)
{
    static void (*const actions[])(struct world *) = {
        do_start, do_start,  do_start,  do_grant, do_grant, do_grant,   do_spend_items,
        do_spend, do_update, do_update, do_end,   do_end,   do_resolve, do_reverse,
    };

    arena_reset(&w->busy.arena);
    if (draw(w, 60) == 0)
        do_expire(w);
    else
        actions[draw(w, ARRAY_SIZE(actions))](w);
    if (draw(w, 40) == 0)
        fixture_pass(&w->busy, draw(w, 400000));
    else if (draw(w, 2) == 0)
        fixture_pass(&w->busy, draw(w, 3000));
}

static void note_reach(struct world *w)
{
    const struct outcome *outcome = &w->lean.outcome;

    w->reach[REACH_COMMITTED] += outcome->kind == OUTCOME_COMMITTED;
    w->reach[REACH_REFUSED] += outcome->kind == OUTCOME_REFUSED;
    w->reach[REACH_PENDING] += outcome->kind == OUTCOME_PENDING;
    w->reach[REACH_DUPLICATE] += outcome->duplicate;
    w->reach[REACH_DECIDED] += outcome->decided_op_id.size > 0;
    w->reach[REACH_FREED] += outcome->session_freed;
    w->reach[REACH_STALE] += outcome->stale_write;
    w->reach[REACH_PRUNED] += outcome->method == METHOD_PRUNE_OPERATIONS;
}

static void disturb(struct world *w)
{
    switch (draw(w, 12)) {
    case 0:
        fixture_checkpoint(&w->lean);
        fixture_evict(&w->lean, 0);
        break;
    case 1:
        fixture_checkpoint(&w->lean);
        fixture_evict(&w->lean, draw(w, 20000));
        break;
    case 2:
        fixture_evict(&w->lean, draw(w, 20000));
        break;
    case 3:
        if (draw(w, 4) == 0) {
            fixture_restart(&w->lean);
            w->reach[REACH_RESTART]++;
        }
        break;
    default:
        break;
    }
}

/* The lean replica applies what the busy one has applied since. */
static void follow(struct world *w, uint32_t *applied)
{
    for (; *applied < w->busy.entry_count; (*applied)++) {
        disturb(w);
        fixture_apply_entry(&w->lean, w->busy.entries[*applied]);
        note_reach(w);
    }
    assert_true(hash128_equal(applier_outcome_hash(w->busy.applier),
                              applier_outcome_hash(w->lean.applier)));
}

/* Nothing comes from nowhere and nothing is lost: on both replicas the chain holds, and balances
 * and items are what the ledger's entries sum up to. */
static void audit(struct world *w, const char *player)
{
    static const char *const currencies[] = { "gold", "gems", "debt" };
    struct fixture_sums lean, busy;

    for (size_t i = 0; i < ARRAY_SIZE(currencies); i++) {
        arena_reset(&w->lean.arena);
        fixture_audit(&w->lean, player, currencies[i], &lean);
        arena_reset(&w->busy.arena);
        fixture_audit(&w->busy, player, currencies[i], &busy);
        assert_memory_equal(&lean, &busy, sizeof lean);
    }
}

/* What the shard counts is what its rows say. */
static void audit_counts(const struct fixture *f)
{
    uint64_t operations = 0, keys = 0;

    for (uint32_t i = 0; i < f->row_count; i++) {
        operations += f->rows[i].key.data[0] == TABLE_OPERATION;
        keys += f->rows[i].key.data[0] == TABLE_KEYED;
    }
    assert_int_equal(operations, applier_meta(f->applier)->operation_count);
    assert_int_equal(keys, applier_meta(f->applier)->key_count);
}

static void run_seed(struct world *w, uint64_t seed)
{
    uint32_t applied = 0;

    w->random = seed * 0x9e3779b97f4a7c15ull + 1;
    w->id_count = 0;
    fixture_init(&w->busy);
    memset(&w->lean, 0, sizeof w->lean);
    fixture_init(&w->lean);
    applied = w->lean.entry_count; /* Both began alike: START and the policy. */
    for (uint32_t i = 0; i < PLAYERS; i++)
        (void)snprintf(w->players[i], sizeof w->players[i], "p%u", i);
    for (uint32_t i = 0; i < SERVERS; i++)
        (void)snprintf(w->servers[i], sizeof w->servers[i], "1-%u", 100 + i);
    w->next_server = 200;
    fixture_policy(&w->busy, 900000, 1000);
    for (uint32_t i = 0; i < STEPS; i++) {
        do_something(w);
        follow(w, &applied);
    }
    w->lean.now_ms = w->busy.now_ms;
    for (uint32_t i = 0; i < PLAYERS; i++)
        audit(w, w->players[i]);
    w->reach[REACH_NEED] += (uint32_t)w->lean.need_rounds;
    assert_true(hash128_equal(fixture_digest(&w->busy), fixture_digest(&w->lean)));
    audit_counts(&w->lean);
    fixture_deinit(&w->busy);
    fixture_deinit(&w->lean);
}

static void eviction_checkpoints_and_restarts_change_no_outcome_and_no_row(void **state)
{
    static struct world world;
    (void)state;

    for (uint64_t seed = 1; seed <= SEEDS; seed++)
        run_seed(&world, seed);
    for (int i = 0; i < REACH_COUNT; i++) {
        if (world.reach[i] == 0)
            print_error("mechanism %d was never exercised\n", i);
        assert_true(world.reach[i] > 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(eviction_checkpoints_and_restarts_change_no_outcome_and_no_row),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
