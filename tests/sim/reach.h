/*
 * reach: what a batch of seeds has to have met at least once, each a counter in struct sim_counts.
 * A new mechanism is a new name here, counted where the simulator sees it happen.
 */
#ifndef TESTS_SIM_REACH_H
#define TESTS_SIM_REACH_H

/* What has been exercised. A zero over a whole batch of seeds fails it. */
/* clang-format off */
#define SIM_REACH(X)                                                                               \
    X(promotions) X(truncated_entries) X(seals) X(aborted_answers) X(steals) X(waits_granted)      \
    X(expiries) X(expired_refused) X(duplicates) X(mismatches) X(versions_held)                    \
    X(versions_refused) X(pruned_ops) X(keys_pruned) X(keys_reused) X(callers_told)                \
    X(callers_again) X(ops_expired) X(checkpoints) X(checkpoints_failed) X(db_flushes)             \
    X(log_cuts) X(evictions) X(need_rounds) X(stale_rows) X(log_reads) X(unknown_txns)             \
    X(late_txns) X(stale_writes_refused) X(grants_freed) X(read_rounds) X(refused_funds)           \
    X(refused_locked) X(refused_session_lost) X(refused_final) X(attempts_raised)                  \
    X(unknown_told) X(retries) X(claims) X(failovers) X(owners_declined) X(restarted_owners)       \
    X(elections) X(reattached) X(committed) X(reads_checked) X(reads_aged) X(renewals)             \
    X(get_operations) X(policies) X(policies_late) X(policies_bind) X(edits_refused)               \
    X(pages_told) X(invalid_refused) X(channels_told) X(contained) X(released)                     \
    X(refused_contained) X(deposed_calls) X(late_packets_applied) X(shards_damaged)                \
    X(damage_stops) X(snapshots) X(snapshot_views) X(snapshot_parts) X(snapshots_abandoned)        \
    X(installs_cut) X(promotions_resumed) X(changes_begun) X(changes_done) X(changes_aborted)      \
    X(drained) X(exchanges) X(replicas_dropped) X(joint_promotions) X(repairs_begun)               \
    X(repairs_done) X(repairs_resumed) X(damaged_dropped) X(promises_rotten) X(salvages)           \
    X(learners_rotten) X(transfers_local) X(transfers_opened) X(transfers_settled)                 \
    X(transfers_refunded) X(transfers_cancelled) X(transfers_across_owners)                        \
    X(credits_repeated) X(told_at_decision) X(settles_of_several) X(credits_below_watermark)       \
    X(watermarks) X(inbox_drops) X(mails_claimed) X(mails_returned) X(seals_too_late)              \
    X(conservation_checks) X(in_flight_checks) X(items_spent) X(txn_items_spent) X(reversals)      \
    X(refused_items) X(refused_reversed) X(traces) X(reservations) X(posted) X(voided)             \
    X(reservations_expired) X(refused_closed) X(refused_expired) X(closed_just_before)             \
    X(refused_before_due) X(txns_local) X(txns_opened) X(txns_committed) X(txns_refused)           \
    X(txns_conflicted) X(txns_sealed) X(txns_seals_late) X(txn_late_votes) X(txn_poisoned)         \
    X(txns_across_owners) X(txn_conflicts_told) X(txn_escrow_checks) X(txn_reads)                  \
    X(txn_reads_again) X(txn_reads_of_trades) X(txn_reads_busy) X(txn_reads_registered)            \
    X(txn_reads_drained) X(txn_reads_settled) X(txn_reads_paused) X(reads_waited)                  \
    X(reads_timed_out) X(reads_turned_away) X(writes_yielded) X(prepares_later)                    \
    X(trading_reads) X(trading_swaps) X(audit_cuts) X(audit_cuts_carried)                          \
    X(audit_cuts_awaited) X(audit_cuts_corrected) X(receipts_local) X(receipts_asked)              \
    X(receipts_bound) X(receipts_rejected) X(receipts_cancelled) X(receipts_paid)                  \
    X(receipts_refused) X(receipts_put_off) X(receipts_across_owners) X(receipts_told)             \
    X(definitions_made) X(definitions_made_again) X(definitions_rolled_back)                       \
    X(definitions_deleted) X(definitions_in_force) X(definitions_told_again)                       \
    X(definitions_unknown) X(definitions_conflicted) X(definitions_swept) X(defines)               \
    X(defines_late) X(favorites_made) X(favorites_kept) X(favorites_gone) X(favorites_never)       \
    X(favorites_late) X(favorites_full) X(favorites_unknown) X(favorites_again)                    \
    X(favorites_lists) X(favorites_pages) X(favorites_ties) X(favorites_statuses)                  \
    X(favorites_partials) X(favorites_by_target) X(servers_held) X(refused_full)                   \
    X(evacuations) X(promotions_upgraded) X(programs_refused) X(programs_stopped)                  \
    X(etcd_rolled_back) X(rollbacks_noticed) X(restores_accepted) X(restores_interrupted)          \
    X(restores_refused) X(restores_of_members)
/* What a build without the means to damage records cannot do, it need not have done. */
#ifdef HOLDFAST_DEBUG_INJECT
#define SIM_INJECTED(X) X(damages)
#else
#define SIM_INJECTED(X)
#endif
/* Troubles made. */
#define SIM_FAULTS(X)                                                                              \
    X(messages_lost) X(messages_doubled) X(packets_late) X(crashes) X(torn_crashes)                \
    X(database_lost) X(pauses) X(partitions) X(one_way_cuts) X(isolations) X(clock_skews)          \
    X(clock_jumps) X(etcd_outages) X(etcd_cuts) X(leases_revoked) X(watch_delays)                  \
    X(watch_resets) X(coordinators_killed) X(servers_killed) X(servers_paused) X(answers_lost)     \
    X(disk_stalls) X(duels) X(deposals) X(replicas_isolated) X(unseatings) X(stale_reads)          \
    X(bits_flipped) X(servers_flapped) X(credits_late) SIM_INJECTED(X) X(nodes_come)               \
    X(nodes_gone) X(nodes_removed) X(nodes_drained) X(shards_moved) X(disks_filled)                \
    X(upgrades) X(programs_taken_back)
/* clang-format on */

#endif
