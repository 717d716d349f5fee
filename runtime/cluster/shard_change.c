#include "runtime/cluster/shard_change.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

bool shard_change_is_open(const struct shard_record *record)
{
    return record->phase == SHARD_JOINT || record->learner != 0;
}

/* The members after the change. */
static void change_members(struct shard_record *next, uint64_t adding, uint64_t removing)
{
    next->new_member_count = 0;
    for (uint32_t i = 0; i < next->member_count; i++) {
        if (next->members[i] != removing)
            next->new_members[next->new_member_count++] = next->members[i];
    }
    if (adding != 0)
        next->new_members[next->new_member_count++] = adding;
}

static err check_change(const struct shard_record *now, uint64_t adding, uint64_t removing,
                        struct record_error *ret_why)
{
    uint32_t count = now->member_count;

    if (adding == 0 && removing == 0)
        return record_refuse(ERR_INVALID, ret_why, "no node comes and none goes");
    if (adding != 0 && replica_is_among(now->members, count, adding))
        return record_refuse(ERR_INVALID, ret_why, "replica %" PRIu64 " is a member already",
                             adding);
    if (removing != 0 && !replica_is_among(now->members, count, removing))
        return record_refuse(ERR_INVALID, ret_why, "replica %" PRIu64 " is no member", removing);
    if (adding == 0 && count == 1)
        return record_refuse(ERR_INVALID, ret_why,
                             "replica %" PRIu64 " is the only member: none would be left",
                             removing);
    if (removing == 0 && count == CLUSTER_MEMBERS_MAX)
        return record_refuse(ERR_INVALID, ret_why, "%" PRIu32 " members, at most %d", count + 1,
                             (int)CLUSTER_MEMBERS_MAX);
    return ERR_OK;
}

err shard_change_begin(const struct shard_record *now, uint64_t adding, uint64_t removing,
                       struct shard_record *ret_next, struct record_error *ret_why)
{
    struct shard_record next = *now;

    if (shard_change_is_open(now))
        return record_refuse(ERR_CONFLICT, ret_why,
                             "a change is under way already: epoch %" PRIu64 ", config %" PRIu64,
                             now->epoch, now->config);
    err e = check_change(now, adding, removing, ret_why);
    if (e != ERR_OK)
        return e;
    next.epoch++;
    if (adding != 0) {
        next.learner = adding;
        next.leaving = removing;
    } else {
        next.config++;
        next.phase = SHARD_JOINT;
        change_members(&next, 0, removing);
    }
    *ret_next = next;
    return ERR_OK;
}

err shard_change_join(const struct shard_record *now, struct shard_record *ret_next,
                      struct record_error *ret_why)
{
    struct shard_record next = *now;

    if (now->learner == 0)
        return record_refuse(ERR_CONFLICT, ret_why, "no node learns");
    next.epoch++;
    next.config++;
    next.phase = SHARD_JOINT;
    change_members(&next, now->learner, now->leaving);
    next.learner = 0;
    next.leaving = 0;
    *ret_next = next;
    return ERR_OK;
}

/* Back to one set of members. */
static err settle(struct shard_record *next, uint64_t heir, struct record_error *ret_why)
{
    next->epoch++;
    next->config++;
    next->phase = SHARD_STABLE;
    next->new_member_count = 0;
    memset(next->new_members, 0, sizeof next->new_members);
    next->learner = 0;
    next->leaving = 0;
    if (replica_is_among(next->members, next->member_count, next->owner))
        return ERR_OK;
    if (!replica_is_among(next->members, next->member_count, heir))
        return record_refuse(ERR_INVALID, ret_why,
                             "replica %" PRIu64 " would own the shard, and is no member then",
                             heir);
    next->owner = heir;
    return ERR_OK;
}

err shard_change_leave(const struct shard_record *now, uint64_t heir, struct shard_record *ret_next,
                       struct record_error *ret_why)
{
    struct shard_record next = *now;

    if (now->phase != SHARD_JOINT)
        return record_refuse(ERR_CONFLICT, ret_why, "no joint phase to leave");
    next.member_count = now->new_member_count;
    memcpy(next.members, now->new_members, sizeof next.members);
    err e = settle(&next, heir, ret_why);
    if (e == ERR_OK)
        *ret_next = next;
    return e;
}

err shard_change_abort(const struct shard_record *now, uint64_t heir, struct shard_record *ret_next,
                       struct record_error *ret_why)
{
    struct shard_record next = *now;

    if (!shard_change_is_open(now))
        return record_refuse(ERR_CONFLICT, ret_why, "no change is under way");
    err e = settle(&next, heir, ret_why);
    if (e == ERR_OK)
        *ret_next = next;
    return e;
}
