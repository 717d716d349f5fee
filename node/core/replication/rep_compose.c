/* Messages to other members: what each tells of this replica, and the entries in it. */
#include "node/core/replication/rep_internal.h"
#include "runtime/base/check.h"

struct rep_message rep_message_make(const struct rep *rep, enum rep_message_type type)
{
    struct rep_message message = {
        .type = type,
        .shard = rep->shard,
        .generation = rep->generation,
        .config = rep->promise.config,
        .epoch = rep->promise.epoch,
        .owner = rep->promise.owner,
        .cut_id = rep->cut_id,
        .votes = rep->votes,
        .quarantined = rep->differs,
        .commit_index = rep->commit_index,
        .applied_index = rep->applied_index,
        .apply_version = rep->apply_version_max,
    };

    if (rep->outcomes != NULL) {
        const struct rep_outcome *last = &rep->outcomes[rep->applied_index % REP_OUTCOMES_MAX];
        if (last->index == rep->applied_index)
            message.outcome = last->hash;
    }
    return message;
}

uint32_t rep_message_fill_from(const struct rep *rep, struct rep_message *message,
                               struct entry *const *entries, uint32_t entry_count)
{
    uint32_t count = 0;
    size_t bytes = 0;

    CHECK(message->entries == NULL);
    while (count < entry_count && count < rep->limits.append_entries_max) {
        bytes += entries[count]->encoded.size;
        if (count > 0 && bytes > rep->limits.append_bytes_max)
            break;
        count++;
    }
    if (count == 0)
        return 0;
    message->entries = mem_alloc(count * sizeof message->entries[0]);
    for (uint32_t i = 0; i < count; i++)
        message->entries[i] = entry_ref(entries[i]);
    message->entry_count = count;
    return count;
}

uint64_t rep_message_fill(const struct rep *rep, struct rep_message *message, uint64_t from_index,
                          uint64_t to_index)
{
    uint64_t last = from_index;

    CHECK(message->entries == NULL && from_index <= to_index);
    if (to_index - from_index >= rep->limits.append_entries_max)
        to_index = from_index + rep->limits.append_entries_max - 1;
    while (last < to_index &&
           rep_log_bytes(rep, from_index, last + 1) <= rep->limits.append_bytes_max)
        last++;
    message->entry_count = (uint32_t)(last - from_index + 1);
    message->entries = mem_alloc(message->entry_count * sizeof message->entries[0]);
    for (uint64_t index = from_index; index <= last; index++) {
        const struct rep_slot *slot = rep_log_slot(rep, index);
        CHECK(slot != NULL);
        message->entries[index - from_index] = entry_ref(slot->entry);
    }
    return last;
}
