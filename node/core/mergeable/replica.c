#include "node/core/mergeable/replica.h"

#include <stdlib.h>

#include "runtime/base/check.h"

#define OUT_MAX (1u << 20) /* Of messages and answers that the shell has not taken. */

struct merge_replica *merge_new(const struct merge_options *options)
{
    struct merge_replica *replica = mem_zalloc(sizeof *replica);

    CHECK(options->member != 0 && options->chunk_records_max > 0);
    CHECK(options->closed_max > 0 && options->closed_max < MCLOCK_ACTORS_MAX / 2);
    replica->options = *options;
    replica->pending = mem_zalloc(MERGE_PENDING_MAX * sizeof *replica->pending);
    dot_index_init(&replica->index, options->index_dots_max);
    return replica;
}

void merge_pull_end(struct merge_pull *pull)
{
    merge_key_unref(pull->after);
    mclock_deinit(&pull->mine);
    mclock_deinit(&pull->theirs);
    *pull = (struct merge_pull){ 0 };
}

void merge_peer_deinit(struct merge_peer *peer)
{
    merge_pull_end(&peer->pull);
    lacking_deinit(&peer->lacking);
    mclock_deinit(&peer->clock);
    *peer = (struct merge_peer){ 0 };
}

void merge_out_clear(struct merge_out *out)
{
    for (uint32_t i = 0; i < out->message_count; i++)
        buf_deinit(&out->messages[i].bytes);
    for (uint32_t i = 0; i < out->done_count; i++)
        if (out->done[i].record != NULL) {
            merge_record_deinit(out->done[i].record);
            free(out->done[i].record);
        }
    out->message_count = out->done_count = 0;
    buf_clear(&out->log);
}

void merge_free(struct merge_replica *replica)
{
    if (replica == NULL)
        return;
    merge_out_clear(&replica->out);
    free(replica->out.messages);
    free(replica->out.done);
    buf_deinit(&replica->out.log);
    for (uint32_t i = 0; i < replica->peer_count; i++)
        merge_peer_deinit(&replica->peers[i]);
    for (uint32_t i = 0; i < replica->pending_count; i++) {
        merge_key_unref(replica->pending[i].key);
        merge_record_deinit(&replica->pending[i].merged);
    }
    free(replica->pending);
    for (uint32_t i = 0; i < replica->damaged_count; i++)
        merge_key_unref(replica->damaged[i]);
    free(replica->damaged);
    dot_index_deinit(&replica->index);
    merge_store_deinit(&replica->store);
    mclock_deinit(&replica->clock);
    free(replica);
}

struct buf *merge_out_message(struct merge_replica *replica, uint64_t to, uint64_t after_log)
{
    struct merge_out *out = &replica->out;

    CHECK(out->message_count < OUT_MAX);
    if (out->message_count == out->message_capacity) {
        out->message_capacity = out->message_capacity > 0 ? out->message_capacity * 2 : 16;
        out->messages = mem_realloc(out->messages, out->message_capacity * sizeof *out->messages);
    }
    struct merge_message *message = &out->messages[out->message_count++];

    *message = (struct merge_message){
        .to = to, .after_log = after_log > replica->closed_log ? after_log : replica->closed_log
    };
    return &message->bytes;
}

void merge_out_done(struct merge_replica *replica, struct merge_done done)
{
    struct merge_out *out = &replica->out;

    CHECK(out->done_count < OUT_MAX);
    if (out->done_count == out->done_capacity) {
        out->done_capacity = out->done_capacity > 0 ? out->done_capacity * 2 : 16;
        out->done = mem_realloc(out->done, out->done_capacity * sizeof *out->done);
    }
    out->done[out->done_count++] = done;
}

void merge_out_log(struct merge_replica *replica, struct slice record)
{
    buf_put_bytes(&replica->out.log, record);
    replica->log_end++;
}

struct merge_peer *merge_peer_find(struct merge_replica *replica, uint64_t member)
{
    for (uint32_t i = 0; i < replica->peer_count; i++)
        if (replica->peers[i].member == member)
            return &replica->peers[i];
    return NULL;
}

bool merge_peer_speaks(const struct merge_replica *replica, const struct merge_peer *peer)
{
    return peer->reported && peer->config == replica->members.membership.config;
}

static uint64_t process_hash(uint64_t member, uint64_t boot)
{
    uint8_t bytes[16];

    store_u64(bytes, member);
    store_u64(bytes + 8, boot);
    return hash_u64((struct slice){ bytes, sizeof bytes });
}

uint64_t merge_processes_view(const struct merge_replica *replica)
{
    uint64_t view = process_hash(replica->options.member, replica->options.boot);

    for (uint32_t i = 0; i < replica->peer_count; i++) /* In whatever order. */
        view += process_hash(replica->peers[i].member, replica->peers[i].boot);
    return view;
}

bool merge_peers_agree(const struct merge_replica *replica)
{
    uint64_t view = merge_processes_view(replica);

    for (uint32_t i = 0; i < replica->peer_count; i++) {
        const struct merge_peer *peer = &replica->peers[i];

        if (!merge_peer_speaks(replica, peer) || peer->syncing || peer->view != view)
            return false;
    }
    return replica->members.membership.config != 0 && !replica->syncing;
}

bool merge_all_have(const struct merge_replica *replica, struct merge_dot dot)
{
    if (replica->members.membership.config ==
        0) /* While the log is replayed, peers are not known. */
        return false;
    for (uint32_t i = 0; i < replica->peer_count; i++)
        if (!merge_peer_speaks(replica, &replica->peers[i]) ||
            !mclock_covers(&replica->peers[i].clock, dot))
            return false;
    return mclock_covers(&replica->clock, dot);
}

bool merge_clock_speaks_for(const struct merge_replica *replica, const struct merge_key *key)
{
    for (uint32_t i = 0; i < replica->damaged_count; i++)
        if (merge_key_compare(replica->damaged[i], key) == 0)
            return false;
    return !replica->damage_unnamed || merge_store_find(&replica->store, key) != NULL;
}

bool merge_is_member(const struct merge_replica *replica, uint64_t member)
{
    return membership_has(&replica->members.membership, member);
}
