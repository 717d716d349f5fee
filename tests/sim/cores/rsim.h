/*
 * rsim: what router, coordinator and node decide, each core alone, under random callers, keys,
 * clocks, nodes and damage. One seed is one run through every room of a core; a room drives one
 * part of it and says its rules a second time, from what the headers and docs promise and never
 * from the code. The first promise that does not hold ends the seed.
 *
 * Each reach counter names a case that some seed of a batch has to meet.
 */
#ifndef TESTS_SIM_CORES_RSIM_H
#define TESTS_SIM_CORES_RSIM_H

#include <stdbool.h>
#include <stdint.h>
#include <stdnoreturn.h>

#include "holdfast/v1/error.pb-c.h"
#include "runtime/base/arena.h"

/* clang-format off */
#define RSIM_ROUTER_REACH(X) \
    X(answers_passed_on) X(calls_unknown) X(calls_too_late) X(calls_undone) X(calls_cancelled) \
    X(calls_too_large) X(hints_followed) X(hints_dropped) X(refused_again) \
    X(rate_refused) X(rate_in_debt) X(names_given_up) X(weights_refused) X(full_before_read) \
    X(keys_found) X(keys_recalled) X(keys_expired) X(keys_collided) X(tokens_proven) \
    X(tokens_recalled) X(tokens_forged) X(rights_denied) X(rights_unreal) X(tokens_taken_off) \
    X(tokens_not_believed) X(secrets_unknown) X(answers_signed) X(own_player) X(other_player) \
    X(mint_refused) X(mint_day_over) X(mint_untold) X(mint_keys_full) X(mint_shares_lost) X(authority_filled) \
    X(authority_refused) X(op_id_filled) X(op_id_other) X(batches_split) X(batches_too_many) \
    X(fields_shared) X(fields_too_large) X(operations_twice) X(answers_joined) X(mail_spread) \
    X(swaps_flattened) X(renewals) X(renewals_lost) X(renewals_unknown) X(policies_completed) \
    X(policies_refused) X(versions_refused) X(drops_refused) X(cursors_read) X(cursors_refused) \
    X(nodes_forgotten) X(envelopes_refused) X(entities_found) X(moves_allowed) X(moves_refused) \
    X(zones_respected) X(drains_refused) X(removals_refused) X(rebalanced) X(restores_planned) \
    X(restores_refused) X(reads_answered) X(reads_busy) X(reads_drained) X(reads_settled) \
    X(reads_paused) X(restores_needless) X(restores_forked) X(restores_joint) \
    X(shares_refused) X(sums_whole) \
    X(names_bound) X(names_replaced) X(names_refused) X(names_turned_down) \
    X(online_listed) X(online_turned) X(online_again) X(tops_merged) X(tops_given_up) X(counts_evicted) X(counts_hit) \
    X(targets_evicted) X(endpoints_spared) X(endpoints_told) X(endpoints_left_out) X(settings_taken) X(settings_forgotten) \
    X(asks_refused) X(households_refused)
#define RSIM_COORDINATOR_REACH(X) \
    X(owners_spread) X(owners_drained) X(owners_claimed) X(owners_restarted) \
    X(owners_failed_over) X(owners_relieved) X(comers_zoned) X(changes_begun) X(changes_done) \
    X(changes_aborted) X(clusters_at_rest) X(servers_marked) X(servers_held) \
    X(servers_forgotten) X(imbalances) X(players_contained) X(definitions_refused) \
    X(definitions_made) X(definitions_forgotten) X(definitions_listed) X(changes_refused) X(changes_unknown) \
    X(changes_put_off) X(changes_after_doubt) X(shards_doubted) X(servers_timed) X(holds_timed) \
    X(writes_retried) X(handovers_timed) X(claims_timed) X(joins_timed) X(repairs_timed) \
    X(loads_exchanged) X(changes_vouched) X(changes_unvouched) X(records_doubted) \
    X(replicas_sent_away) X(replicas_back) X(owners_spared) \
    X(spans_full) X(answers_timed) X(terms_ended) X(wishes_judged) \
    X(searches_explained) X(searches_unexplained) X(claims_even) X(claims_joint) \
    X(shelves_full) X(shelves_emptied) X(sums_wrong)
#define RSIM_NODE_REACH(X) \
    X(players_rebuilt) X(rows_repaired) X(entries_lost) X(repairs_refused) X(records_repaired) \
    X(decisions_repaired) X(records_given_back) X(records_went_through) X(shards_restored) \
    X(restores_resumed) X(parts_refused) X(documents_refused) X(documents_merged) X(documents_stepped) \
    X(ids_refused) X(bank_writes) X(bank_refusals) X(bank_faults) X(bank_repeated) X(bank_mismatches) \
    X(bank_expiries) X(bank_reads) X(edits_done) X(edits_refused) X(profiles_filled) \
    X(sessions_started) X(sessions_asked_for) X(sessions_refused) X(sessions_ended) X(sessions_due) \
    X(ids_decided) X(ids_turned_down) X(ids_sealed) X(ids_forgotten) X(ids_kept_below) X(ids_pending_below) \
    X(wards_held) X(wards_searched) X(wards_policies) \
    X(edges_changed) X(edges_refused) X(edges_forgotten) X(edges_paged) \
    X(tops_hours) X(tops_rounds) X(tops_repaired) X(tops_restored) X(tops_taken) X(tops_known) X(tops_gaps) \
    X(tops_forgotten) X(tops_listed) X(events_of_ledgers) X(events_trimmed) X(events_read) \
    X(memory_changes) X(memory_undone) X(memory_ranges) X(memory_checkpoints) X(memory_evictions) \
    X(logs_committed) X(tallies_added) X(tallies_refused) X(tallies_purged) X(tallies_undone) \
    X(readers_moved) X(readers_refused) X(readers_full) X(spans_ignored) X(shards_followed) \
    X(bounds_kept) X(bounds_passed) X(roles_changed) X(roles_refused) X(roles_repeated) \
    X(decisions_stated) X(decisions_told_again) \
    X(collections_read) X(collections_siblings) X(collections_replaced) X(collections_repeated) X(collections_unseen) \
    X(collections_majority) X(collections_listed) X(collections_refused) X(collections_swept) X(collections_at_limits) \
    X(collections_restored) X(connections_read) X(connections_listed) X(connections_refused) \
    X(connections_full) X(connections_ended) X(connections_swept) X(users_written) X(users_read) \
    X(users_unseen) X(users_refused) X(channels_repaired) X(channels_both) \
    X(recounts_spoilt) X(recounts_checked) X(recounts_rebuilt) X(gates_closed) X(gates_open)
/* clang-format on */

struct rsim_counts {
#define RSIM_FIELD(name) uint64_t name;
    RSIM_ROUTER_REACH(RSIM_FIELD)
    RSIM_COORDINATOR_REACH(RSIM_FIELD)
    RSIM_NODE_REACH(RSIM_FIELD)
#undef RSIM_FIELD
};

struct rsim {
    uint64_t seed;
    uint64_t random;
    const char *room; /* Being run. */
    struct arena arena;
    Holdfast__V1__ErrorDetail detail; /* Of the refusal that a room looks at. */
    struct rsim_counts counts;
};

uint64_t rsim_next(struct rsim *sim);
/* Both included. */
uint64_t rsim_between(struct rsim *sim, uint64_t low, uint64_t high);
bool rsim_chance(struct rsim *sim, uint32_t per_hundred);
/* `at`, or one beside it: where limits are decided. `at` is above 0. */
uint64_t rsim_about(struct rsim *sim, uint64_t at);
#define RSIM_PICK(sim, list) ((list)[rsim_between(sim, 0, sizeof(list) / sizeof((list)[0]) - 1)])

/* The seed has failed: says so and ends the process. */
noreturn void rsim_broken(struct rsim *sim, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* A promise; what is told names it. */
#define PROMISE(sim, condition, ...) ((condition) ? (void)0 : rsim_broken(sim, "" __VA_ARGS__))

/* sim->detail is a refusal that helps its reader: that code and a message; INVALID_ARGUMENT about a
 * field names it, or says in `limit` what was expected. `field` NULL: any. */
void rsim_refused(struct rsim *sim, Holdfast__V1__ErrorCode code, const char *field);

/* The rooms of each core. */
/* clang-format off */
#define RSIM_ROUTER_ROOMS(X) \
    X(call) X(limits) X(keys) X(rights) X(mint) X(defaults) X(batch) X(renew) X(policy) \
    X(cursors) X(shares) X(reads) X(route) X(members) X(restore)
#define RSIM_COORDINATOR_ROOMS(X) X(owners) X(servers) X(audits) X(searches) X(claims) X(kinds) X(definitions) X(ahead) \
    X(timings) X(turns) X(budgets) X(loads) X(vouched) X(damages) X(late) X(spans) \
    X(terms)
#define RSIM_NODE_ROOMS(X) X(repair) X(records) X(backup) X(documents) X(texts) X(bank) X(sections) X(sessions) \
    X(ids) X(wardens) X(edges) X(tops) X(events) X(memory) X(logs)
/* What a room meets under a seed depends on its place among all rooms: new ones come last. */
#define RSIM_ROUTER_LATER(X) X(names) X(pages) X(memos) X(endpoints)
#define RSIM_COORDINATOR_LATER(X) X(shelf) X(sums)
#define RSIM_NODE_LATER(X) X(tallies) X(readers) X(follows) X(bounds) X(roles) X(collections) X(connections) X(users) X(finishes) X(channels) X(recounts) X(gates)
/* clang-format on */
#define RSIM_ROOM(name) void room_##name(struct rsim *sim);
RSIM_ROUTER_ROOMS(RSIM_ROOM)
RSIM_COORDINATOR_ROOMS(RSIM_ROOM)
RSIM_NODE_ROOMS(RSIM_ROOM)
RSIM_ROUTER_LATER(RSIM_ROOM)
RSIM_COORDINATOR_LATER(RSIM_ROOM)
RSIM_NODE_LATER(RSIM_ROOM)
#undef RSIM_ROOM

#endif
