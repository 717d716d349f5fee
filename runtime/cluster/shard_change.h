/*
 * shard_change: how the record of a shard may change when its members do (docs/membership.md,
 * DESIGN section 4). Each function makes the next record from the one that stands; the caller that
 * writes it compares the mod_revision of that one, so two changes never mix. Pure.
 *
 *   STABLE -begin-> STABLE with a learner -join-> JOINT -leave-> STABLE, new members
 *   STABLE -begin (none comes)------------------> JOINT
 *   with a learner, or JOINT -abort-> STABLE, as it was
 *
 * Every step raises the epoch; config rises with every change of who counts. ERR_CONFLICT: the
 * record is not in the phase for it. ERR_INVALID: the change makes no sense. Both say why, and
 * leave *ret_next untouched.
 */
#ifndef RUNTIME_CLUSTER_SHARD_CHANGE_H
#define RUNTIME_CLUSTER_SHARD_CHANGE_H

#include "runtime/cluster/cluster_record.h"

/* `adding` comes, `removing` goes; 0: none does. One change at a time. */
NODISCARD err shard_change_begin(const struct shard_record *now, uint64_t adding, uint64_t removing,
                                 struct shard_record *ret_next, struct record_error *ret_why);
/* Only when the owner of now->epoch has said that the learner has caught up. */
NODISCARD err shard_change_join(const struct shard_record *now, struct shard_record *ret_next,
                                struct record_error *ret_why);
/* Only when the owner of now->epoch has said that its START is committed: before, the new members'
 * majority may lack what the old one's holds. `heir` owns the shard if the owner goes. */
NODISCARD err shard_change_leave(const struct shard_record *now, uint64_t heir,
                                 struct shard_record *ret_next, struct record_error *ret_why);
/* At any time: what was committed in the joint phase, a majority of the old members has too. `heir`
 * owns the shard if the owner is not one of them. */
NODISCARD err shard_change_abort(const struct shard_record *now, uint64_t heir,
                                 struct shard_record *ret_next, struct record_error *ret_why);
/* True while a change is under way. */
bool shard_change_is_open(const struct shard_record *record);

#endif
