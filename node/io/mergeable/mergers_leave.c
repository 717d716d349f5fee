#include "node/core/mergeable/members.h"
#include "node/io/mergeable/mergers_internal.h"

static uint32_t count_lacking(const struct mergers *mergers, const struct merger *merger)
{
    const struct mergers_options *options = &mergers->options;
    const struct membership *m = &merger->members.membership;
    uint32_t lacking = 0;

    for (uint32_t i = 0; i < m->new_count; i++) {
        uint64_t member = m->new_members[i];
        bool takes = member == options->self || options->takes == NULL ||
                     options->takes(options->user, member);

        lacking += takes && !merge_member_is_ready(merger->replica, member);
    }
    return lacking;
}

uint32_t mergers_lacking(struct mergers *mergers, uint32_t shard)
{
    struct merger *merger = &mergers->shards[shard];
    uint64_t now_ms = loop_now_ms(mergers->options.loop);

    if (merger->replica == NULL || !merger->started)
        return 0;
    uint64_t config = merger->members.membership.config;
    uint32_t lacking = count_lacking(mergers, merger);

    if (lacking == 0)
        return 0;
    if (merger->joint_config != config) {
        merger->joint_config = config;
        merger->joint_ms = now_ms;
        merger->joint_over = false;
        log_event(mergers->options.log, LOG_INFO, "documents.leave_waits", LOG_N("shard", shard),
                  LOG_N("config", config), LOG_N("members", lacking));
    }
    if (!merger->joint_over && now_ms - merger->joint_ms >= mergers->options.leave_wait_ms) {
        merger->joint_over = true;
        log_event(mergers->options.log, LOG_WARN, "documents.leave_not_awaited",
                  LOG_N("shard", shard), LOG_N("config", config), LOG_N("members", lacking));
    }
    return merger->joint_over ? 0 : lacking;
}
