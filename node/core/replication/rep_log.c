#include <stdlib.h>

#include "node/core/replication/rep_internal.h"
#include "runtime/base/check.h"

#define WINDOW_CAPACITY_MIN 64u

struct rep_slot *rep_log_slot(const struct rep *rep, uint64_t index)
{
    const struct rep_window *w = &rep->window;

    if (index <= w->base_index || index > w->last_index)
        return NULL;
    return &w->slots[index & (w->capacity - 1u)];
}

static uint64_t bytes_end(const struct rep *rep, uint64_t index)
{
    const struct rep_window *w = &rep->window;

    CHECK(index >= w->base_index && index <= w->last_index);
    return index == w->base_index ? w->base_bytes : rep_log_slot(rep, index)->bytes_end;
}

uint64_t rep_log_bytes(const struct rep *rep, uint64_t from_index, uint64_t to_index)
{
    return to_index < from_index ? 0 : bytes_end(rep, to_index) - bytes_end(rep, from_index - 1);
}

uint64_t rep_memory_bytes(const struct rep *rep)
{
    const struct rep_window *w = &rep->window;
    uint64_t each = sizeof(struct entry) + 16u;

    return w->capacity * sizeof(struct rep_slot) + (w->last_index - w->base_index) * each +
           rep_log_bytes(rep, w->base_index + 1, w->last_index);
}

struct hash128 rep_log_hash(const struct rep *rep, uint64_t index)
{
    const struct rep_window *w = &rep->window;

    CHECK(index >= w->base_index && index <= w->last_index);
    return index == w->base_index ? w->base_hash : rep_log_slot(rep, index)->entry->hash;
}

uint64_t rep_log_last_ms(const struct rep *rep)
{
    const struct rep_slot *last = rep_log_slot(rep, rep->window.last_index);

    return last != NULL ? last->entry->owner_ms : rep->window.base_ms;
}

struct dot rep_log_last_dot(const struct rep *rep)
{
    const struct vector *v = &rep->vector;

    if (v->count == 0)
        return (struct dot){ .epoch = v->folded_epoch };
    const struct vector_item *last = &v->items[v->count - 1];
    return (struct dot){ last->epoch, last->owner, last->counter };
}

static void window_grow(struct rep_window *w)
{
    uint32_t capacity = w->capacity > 0 ? w->capacity * 2 : WINDOW_CAPACITY_MIN;
    struct rep_slot *slots = mem_zalloc(capacity * sizeof slots[0]);

    CHECK(capacity > w->capacity);
    for (uint64_t index = w->base_index + 1; index <= w->last_index; index++)
        slots[index & (capacity - 1u)] = w->slots[index & (w->capacity - 1u)];
    free(w->slots);
    w->slots = slots;
    w->capacity = capacity;
}

bool rep_log_has_room(const struct rep *rep)
{
    uint64_t count_max = (uint64_t)rep->limits.inflight_entries_max * REP_UNAPPLIED_FACTOR;
    uint64_t bytes_max = (uint64_t)rep->limits.inflight_bytes_max * REP_UNAPPLIED_FACTOR;

    return rep->commit_index - rep->applied_index < count_max &&
           rep_log_bytes(rep, rep->applied_index + 1, rep->commit_index) < bytes_max;
}

bool rep_log_follows(const struct rep *rep, const struct entry *entry)
{
    struct dot last = rep_log_last_dot(rep);
    uint64_t last_index = rep->window.last_index;
    struct start start;

    if (entry->index != last_index + 1)
        return false;
    if (!hash128_equal(entry->prev_hash, rep_log_hash(rep, last_index)))
        return false;
    if (entry->owner_ms < rep_log_last_ms(rep))
        return false;
    if (entry->dot.epoch == last.epoch)
        return entry->kind != ENTRY_START && entry->dot.owner == last.owner &&
               entry->dot.counter == last.counter + 1;
    if (entry->dot.epoch < last.epoch || entry->dot.counter != 1 || entry->kind != ENTRY_START)
        return false;
    return start_decode(entry->body, &start) == ERR_OK && start.base_index == last_index;
}

/* That with which the log goes on behind `entry`, if it did with `version` before it. */
static uint32_t version_behind(const struct entry *entry, uint32_t version)
{
    struct start start;

    if (entry->kind != ENTRY_START || start_decode(entry->body, &start) != ERR_OK)
        return version;
    return start.apply_version > version ? start.apply_version : version;
}

/* What START says of these holds even if it is truncated later: each only rises. */
static void learn_from_start(struct rep *rep, const struct entry *entry)
{
    struct start start;

    if (start_decode(entry->body, &start) != ERR_OK)
        return;
    if (start.generation > rep->generation)
        rep->generation = start.generation;
    if (rep->peers == NULL && start.membership.config > rep->membership.config)
        rep->membership = start.membership;
}

void rep_log_push(struct rep *rep, struct entry *entry)
{
    struct rep_window *w = &rep->window;

    CHECK(rep_log_follows(rep, entry));
    CHECK(entry->dot.epoch <= rep->promise.epoch);
    if (w->last_index - w->base_index == w->capacity)
        window_grow(w);
    uint64_t end = bytes_end(rep, w->last_index) + entry->encoded.size;
    w->last_index++;
    *rep_log_slot(rep, w->last_index) =
        (struct rep_slot){ .entry = entry_ref(entry), .ticket = UINT64_MAX, .bytes_end = end };
    vector_append(&rep->vector, entry->dot.epoch, entry->dot.owner);
    rep->apply_version = version_behind(entry, rep->apply_version);
    if (entry->kind == ENTRY_START)
        learn_from_start(rep, entry);
}

void rep_log_write(struct rep *rep, struct rep_out *out)
{
    while (rep->written_index < rep->window.last_index) {
        struct rep_slot *slot = rep_log_slot(rep, ++rep->written_index);
        rep_write_entry(rep, slot->entry, out);
        slot->ticket = rep->ticket_step;
    }
}

/* Epochs folded above the truncation point are counted again from what is in memory. */
static void vector_cut(struct rep *rep, uint64_t keep_index)
{
    if (keep_index >= rep->vector.folded_index) {
        vector_truncate(&rep->vector, keep_index);
        return;
    }
    rep->vector = rep->applied_vector;
    for (uint64_t index = rep->applied_index + 1; index <= keep_index; index++) {
        struct dot dot = rep_log_slot(rep, index)->entry->dot;
        vector_append(&rep->vector, dot.epoch, dot.owner);
    }
}

/* A START that is overruled raised nothing: the owner who overruled it may have taken in a member
 * that cannot apply what it said. */
static void version_cut(struct rep *rep, uint64_t keep_index)
{
    rep->apply_version = rep->applied_version;
    for (uint64_t index = rep->applied_index + 1; index <= keep_index; index++)
        rep->apply_version = version_behind(rep_log_slot(rep, index)->entry, rep->apply_version);
}

void rep_log_truncate(struct rep *rep, uint64_t keep_index, struct rep_out *out)
{
    struct rep_window *w = &rep->window;

    CHECK(keep_index >= rep->commit_index);
    CHECK(keep_index >= rep->verified_index);
    if (keep_index >= w->last_index)
        return;
    rep_log_write(rep, out); /* Truncation in the log comes after what it truncates. */
    rep_write_truncate(rep, keep_index, out);
    while (w->last_index > keep_index) {
        rep_note_orphan(out, rep_log_slot(rep, w->last_index)->entry);
        entry_unref(rep_log_slot(rep, w->last_index)->entry);
        w->last_index--;
    }
    vector_cut(rep, keep_index);
    version_cut(rep, keep_index);
    if (rep->durable_index > keep_index)
        rep->durable_index = keep_index;
    rep->written_index = keep_index;
}

/* Applied, durable entries leave memory: beyond recent_bytes_max, or nearly at once if every member
 * has them, so that their memory is used again while the processor still holds it. */
static void evict(struct rep *rep)
{
    struct rep_window *w = &rep->window;
    uint64_t shared_index = rep_retain_index(rep);
    uint64_t keep =
        rep->applied_index < rep->durable_index ? rep->applied_index : rep->durable_index;

    while (w->base_index < keep) {
        uint64_t bytes = bytes_end(rep, keep) - w->base_bytes;
        bool shared = w->base_index < shared_index && bytes > REP_SHARED_BYTES;
        if (!shared && bytes <= rep->limits.recent_bytes_max)
            return;
        struct rep_slot *slot = rep_log_slot(rep, w->base_index + 1);
        w->base_hash = slot->entry->hash;
        w->base_ms = slot->entry->owner_ms;
        w->base_bytes = slot->bytes_end;
        entry_unref(slot->entry);
        w->base_index++;
    }
}

void rep_log_persisted(struct rep *rep, uint64_t ticket)
{
    CHECK(ticket <= rep->ticket_last);
    if (ticket > rep->ticket_persisted)
        rep->ticket_persisted = ticket;
    while (rep->durable_index < rep->written_index) {
        const struct rep_slot *next = rep_log_slot(rep, rep->durable_index + 1);
        if (next->ticket > rep->ticket_persisted)
            break;
        rep->durable_index++;
    }
    evict(rep);
}

void rep_log_applied(struct rep *rep, uint64_t index)
{
    CHECK(index <= rep->commit_index);
    while (rep->applied_index < index) {
        const struct entry *entry = rep_log_slot(rep, ++rep->applied_index)->entry;
        vector_append(&rep->applied_vector, entry->dot.epoch, entry->dot.owner);
        rep->applied_version = version_behind(entry, rep->applied_version);
    }
    evict(rep);
}

/* A snapshot carries no promise, but a replica that stores an entry of an epoch has promised it. */
static void promise_at_least(struct rep *rep, struct dot dot)
{
    if (dot.epoch <= rep->promise.epoch)
        return;
    rep->promise.epoch = dot.epoch;
    rep->promise.owner = dot.owner;
}

void rep_log_init(struct rep *rep, const struct rep_image *image)
{
    struct rep_window *w = &rep->window;

    CHECK(vector_index(&image->vector) == image->applied_index);
    w->base_index = image->applied_index;
    w->base_hash = image->applied_hash;
    w->base_ms = image->applied_ms;
    w->last_index = image->applied_index;
    rep->vector = image->vector;
    rep->applied_vector = image->vector;
    rep->apply_version = image->apply_version;
    rep->applied_version = image->apply_version;
    rep->applied_index = image->applied_index;
    promise_at_least(rep, rep_log_last_dot(rep));
    for (uint32_t i = 0; i < image->entry_count; i++) {
        struct entry *entry = image->entries[i];
        promise_at_least(rep, entry->dot);
        rep_log_push(rep, entry);
        rep_log_slot(rep, entry->index)->ticket = 0;
    }
    rep->written_index = w->last_index;
    rep->durable_index = w->last_index;
    rep->commit_index = image->commit_index;
    if (rep->commit_index < rep->applied_index)
        rep->commit_index = rep->applied_index;
    if (rep->commit_index > w->last_index)
        rep->commit_index = w->last_index;
}

void rep_log_deinit(struct rep *rep)
{
    struct rep_window *w = &rep->window;

    while (w->last_index > w->base_index) {
        entry_unref(rep_log_slot(rep, w->last_index)->entry);
        w->last_index--;
    }
    free(w->slots);
    w->slots = NULL;
}

void rep_log_check(const struct rep *rep)
{
    const struct rep_window *w = &rep->window;
    const struct rep_slot *last = rep_log_slot(rep, w->last_index);

    CHECK(w->base_index <= rep->applied_index);
    CHECK(rep->applied_index <= rep->commit_index);
    CHECK(rep->commit_index <= w->last_index);
    CHECK(rep->durable_index <= rep->written_index);
    CHECK(rep->written_index <= w->last_index);
    CHECK(rep->verified_index <= w->last_index);
    CHECK(vector_index(&rep->vector) == w->last_index);
    CHECK(vector_index(&rep->applied_vector) == rep->applied_index);
    CHECK(rep->applied_version <= rep->apply_version);
    if (last == NULL)
        return;
    CHECK(last->entry->index == w->last_index);
    CHECK(dot_compare(last->entry->dot, rep_log_last_dot(rep)) == 0);
    CHECK(hash128_equal(last->entry->prev_hash, rep_log_hash(rep, w->last_index - 1)));
}
