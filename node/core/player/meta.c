#include "node/core/player/meta.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/base/check.h"

#define META_VERSION    11u
#define META_VERSION_10 10u /* Written while the row has nothing of what is new in 11. */
#define META_VERSION_9                                                                             \
    9u /* Written while each expired server stands for itself: apply version 9 reads it. */
#define META_VERSION_8                                                                             \
    8u /* Written while no edge is flagged and no event was trimmed under version 9. */
#define META_VERSION_WITHOUT_EVENTS                                                                \
    7u                                 /* Written while there are none: apply version 6 reads it.  \
                                        */
#define META_VERSION_WITHOUT_KEYS   6u /* Written while there are none: apply version 4 reads it. */
#define META_VERSION_WITHOUT_TOLD   5u
#define META_VERSION_WITHOUT_USE    4u
#define OPERATION_WINDOW_MS_DEFAULT (24ull * 3600u * 1000u)
#define OPERATIONS_MAX_DEFAULT      2000000u
#define ITEMS_MAX_DEFAULT           10000u
#define MAILBOX_MAX_DEFAULT         1000u

struct policy policy_default(void)
{
    return (struct policy){
        .generation = POLICY_GENERATION_FIRST,
        .operation_window_ms = OPERATION_WINDOW_MS_DEFAULT,
        .operations_max = OPERATIONS_MAX_DEFAULT,
        .items_max = ITEMS_MAX_DEFAULT,
        .mailbox_max = MAILBOX_MAX_DEFAULT,
    };
}

void meta_init(struct meta *meta)
{
    memset(meta, 0, sizeof *meta);
    meta->policy = policy_default();
    meta->apply_version = 1;
    meta->inboxes_told = true;
    event_log_init(&meta->events);
}

void meta_deinit(struct meta *meta)
{
    free(meta->expired);
    meta->expired = NULL;
    meta->expired_count = 0;
    free(meta->quarantine);
    meta->quarantine = NULL;
    meta->quarantine_count = 0;
    totals_deinit(&meta->totals);
    for (uint32_t i = 0; i < CUTS_KEPT; i++)
        totals_deinit(&meta->cuts[i].totals);
}

static void put_incarnation(struct incarnation incarnation, struct buf *out)
{
    buf_put_u64(out, incarnation.generation);
    buf_put_u64(out, incarnation.revision);
}

static struct incarnation read_incarnation(struct reader *reader)
{
    struct incarnation incarnation;
    incarnation.generation = read_u64(reader);
    incarnation.revision = read_u64(reader);
    return incarnation;
}

static void put_membership(const struct membership *membership, struct buf *out)
{
    buf_put_u64(out, membership->config);
    buf_put_u32(out, membership->count);
    buf_put_u32(out, membership->new_count);
    for (uint32_t i = 0; i < membership->count; i++)
        buf_put_u64(out, membership->members[i]);
    for (uint32_t i = 0; i < membership->new_count; i++)
        buf_put_u64(out, membership->new_members[i]);
}

static void read_membership(struct reader *reader, struct membership *membership)
{
    membership->config = read_u64(reader);
    membership->count = read_u32(reader);
    membership->new_count = read_u32(reader);
    if (membership->count > MEMBERS_MAX || membership->new_count > MEMBERS_MAX) {
        reader->bad = true;
        return;
    }
    for (uint32_t i = 0; i < membership->count; i++)
        membership->members[i] = read_u64(reader);
    for (uint32_t i = 0; i < membership->new_count; i++)
        membership->new_members[i] = read_u64(reader);
}

static void put_policy(const struct policy *policy, struct buf *out)
{
    buf_put_u64(out, policy->version);
    buf_put_u64(out, policy->operation_window_ms);
    buf_put_u64(out, policy->operations_max);
    buf_put_u32(out, policy->items_max);
    buf_put_u32(out, policy->mailbox_max);
    buf_put_u32(out, policy->currency_count);
    for (uint32_t i = 0; i < policy->currency_count; i++) {
        buf_put_bytes(out, slice_from_text(policy->currencies[i].name));
        buf_put_u64(out, (uint64_t)policy->currencies[i].min_balance);
        buf_put_u64(out, (uint64_t)policy->currencies[i].max_balance);
        buf_put_u64(out, (uint64_t)policy->currencies[i].lowest_min);
    }
}

static void read_policy(struct reader *reader, struct policy *policy)
{
    policy->generation = POLICY_GENERATION_FIRST;
    policy->version = read_u64(reader);
    policy->operation_window_ms = read_u64(reader);
    policy->operations_max = read_u64(reader);
    policy->items_max = read_u32(reader);
    policy->mailbox_max = read_u32(reader);
    policy->currency_count = read_u32(reader);
    if (policy->currency_count > CURRENCIES_MAX) {
        reader->bad = true;
        return;
    }
    for (uint32_t i = 0; i < policy->currency_count; i++) {
        struct slice name = read_bytes(reader, CURRENCY_NAME_BYTES_MAX);
        memset(policy->currencies[i].name, 0, sizeof policy->currencies[i].name);
        if (name.size > 0)
            memcpy(policy->currencies[i].name, name.data, name.size);
        reader->bad |= strlen(policy->currencies[i].name) != name.size;
        policy->currencies[i].min_balance = (int64_t)read_u64(reader);
        policy->currencies[i].max_balance = (int64_t)read_u64(reader);
        policy->currencies[i].lowest_min = (int64_t)read_u64(reader);
    }
}

static void read_policy_past(struct reader *reader, struct policy *policy)
{
    policy->generation = read_u64(reader);
    policy->dropped_min = (int64_t)read_u64(reader);
    reader->bad |= policy->generation == 0 || policy->dropped_min > 0;
}

static bool has_ranges(const struct meta *meta)
{
    for (uint32_t i = 0; i < meta->expired_count; i++) {
        if (incarnation_compare(meta->expired[i].first, meta->expired[i].last) != 0)
            return true;
    }
    return false;
}

static uint8_t version_of(const struct meta *meta)
{
    if (meta->policy.generation != POLICY_GENERATION_FIRST || meta->policy.dropped_min < 0 ||
        meta->versions_above > 0)
        return META_VERSION;
    if (meta->expired_count > EXPIRED_MAX_OF_ONES || has_ranges(meta))
        return META_VERSION_10;
    if (meta->review_count > 0 || meta->events.trimmed_count > 0)
        return META_VERSION_9;
    if (event_log_is_used(&meta->events))
        return META_VERSION_8;
    return meta->key_count > 0 ? META_VERSION_WITHOUT_EVENTS : META_VERSION_WITHOUT_KEYS;
}

void meta_encode(const struct meta *meta, struct buf *out)
{
    uint8_t version = version_of(meta);

    buf_put_u8(out, version);
    buf_put_u64(out, meta->applied_index);
    dot_encode(meta->applied_dot, out);
    buf_put_hash(out, meta->applied_hash);
    buf_put_hash(out, meta->outcome_hash);
    buf_put_u64(out, meta->owner_ms);
    vector_encode(&meta->vector, out);
    put_membership(&meta->membership, out);
    buf_put_u64(out, meta->generation);
    buf_put_u32(out, meta->apply_version);
    buf_put_u64(out, meta->cut_id);
    buf_put_u64(out, meta->floor_ms);
    buf_put_u64(out, meta->operation_count);
    buf_put_u64(out, meta->operation_ms_max);
    buf_put_u64(out, meta->session_count);
    buf_put_u64(out, meta->outbox_open);
    put_incarnation(meta->lowest_live, out);
    buf_put_u32(out, meta->expired_count);
    for (uint32_t i = 0; i < meta->expired_count; i++)
        put_incarnation(meta->expired[i].last, out);
    put_policy(&meta->policy, out);
    buf_put_u32(out, meta->quarantine_count);
    for (uint32_t i = 0; i < meta->quarantine_count; i++) {
        buf_put_u64(out, meta->quarantine[i].at_ms);
        buf_put_bytes(out, slice_from_text(meta->quarantine[i].player));
        buf_put_bytes(out, slice_from_text(meta->quarantine[i].reason));
    }
    buf_put_u64(out, meta->unread_rows);
    totals_encode(&meta->totals, out);
    for (uint32_t i = 0; i < CUTS_KEPT; i++) {
        buf_put_u64(out, meta->cuts[i].id);
        buf_put_u64(out, meta->cuts[i].open);
        totals_encode(&meta->cuts[i].totals, out);
    }
    buf_put_u8(out, (uint8_t)meta->use.kind);
    buf_put_hash(out, meta->use.restore_id);
    buf_put_u64(out, meta->use.parts);
    buf_put_u64(out, meta->use.rows.count);
    buf_put_u64(out, meta->use.rows.sums[0]);
    buf_put_u64(out, meta->use.rows.sums[1]);
    buf_put_u8(out, meta->inboxes_told);
    if (version > META_VERSION_WITHOUT_KEYS)
        buf_put_u64(out, meta->key_count);
    if (version > META_VERSION_WITHOUT_EVENTS)
        event_log_encode(&meta->events, out);
    if (version > META_VERSION_8) {
        buf_put_u64(out, meta->review_count);
        buf_put_u64(out, meta->review_since_ms);
        buf_put_u64(out, meta->events.trimmed_count);
    }
    for (uint32_t i = 0; version > META_VERSION_9 && i < meta->expired_count; i++)
        put_incarnation(meta->expired[i].first, out);
    if (version > META_VERSION_10) {
        buf_put_u64(out, meta->policy.generation);
        buf_put_u64(out, (uint64_t)meta->policy.dropped_min);
        buf_put_u64(out, meta->versions_above);
    }
}

static void read_use(struct reader *reader, struct shard_use *use)
{
    uint8_t kind = read_u8(reader);

    reader->bad |= kind > USE_RESTORING;
    use->kind = (enum use_kind)kind;
    use->restore_id = read_hash(reader);
    use->parts = read_u64(reader);
    use->rows.count = read_u64(reader);
    use->rows.sums[0] = read_u64(reader);
    use->rows.sums[1] = read_u64(reader);
}

static void read_reviews(struct reader *reader, struct meta *meta)
{
    meta->review_count = read_u64(reader);
    meta->review_since_ms = read_u64(reader);
}

static bool read_told(struct reader *reader)
{
    uint8_t told = read_u8(reader);

    reader->bad |= told > 1;
    return told != 0;
}

static void read_expired(struct reader *reader, struct meta *meta)
{
    uint32_t count = read_u32(reader);

    if (reader->bad || count > EXPIRED_MAX) {
        reader->bad = true;
        return;
    }
    if (count > 0)
        meta->expired = mem_alloc(sizeof *meta->expired * count);
    meta->expired_count = count;
    for (uint32_t i = 0; i < count; i++)
        meta->expired[i].first = meta->expired[i].last = read_incarnation(reader);
}

/* Of a row that has ranges. */
static void read_firsts(struct reader *reader, struct meta *meta)
{
    for (uint32_t i = 0; i < meta->expired_count && !reader->bad; i++) {
        struct expired_range *range = &meta->expired[i];

        range->first = read_incarnation(reader);
        reader->bad |= incarnation_compare(range->first, range->last) > 0 ||
                       (i > 0 && incarnation_compare(range[-1].last, range->first) >= 0);
    }
}

/* False: there is a NUL in it, so it would read back as another. */
static bool read_fixed(struct reader *reader, char *to, size_t size)
{
    struct slice text = read_bytes(reader, (uint32_t)size - 1);

    text_copy(to, size, text);
    return strlen(to) == text.size;
}

static void read_quarantine(struct reader *reader, struct meta *meta)
{
    uint32_t count = read_u32(reader);

    if (reader->bad || count > QUARANTINE_MAX) {
        reader->bad = true;
        return;
    }
    if (count > 0)
        meta->quarantine = mem_zalloc(sizeof *meta->quarantine * count);
    meta->quarantine_count = count;
    for (uint32_t i = 0; i < count; i++) {
        struct quarantined *each = &meta->quarantine[i];
        each->at_ms = read_u64(reader);
        reader->bad |= !read_fixed(reader, each->player, sizeof each->player) ||
                       !read_fixed(reader, each->reason, sizeof each->reason) ||
                       (i > 0 && strcmp(each[-1].player, each->player) >= 0);
    }
}

static void read_meta(struct reader *reader, struct meta *meta)
{
    meta->applied_index = read_u64(reader);
    meta->applied_dot = dot_decode(reader);
    meta->applied_hash = read_hash(reader);
    meta->outcome_hash = read_hash(reader);
    meta->owner_ms = read_u64(reader);
    if (vector_decode(reader, &meta->vector) != ERR_OK)
        reader->bad = true;
    read_membership(reader, &meta->membership);
    meta->generation = read_u64(reader);
    meta->apply_version = read_u32(reader);
    meta->cut_id = read_u64(reader);
    meta->floor_ms = read_u64(reader);
    meta->operation_count = read_u64(reader);
    meta->operation_ms_max = read_u64(reader);
    meta->session_count = read_u64(reader);
    meta->outbox_open = read_u64(reader);
    meta->lowest_live = read_incarnation(reader);
    read_expired(reader, meta);
    read_policy(reader, &meta->policy);
    read_quarantine(reader, meta);
    meta->unread_rows = read_u64(reader);
    totals_decode(reader, &meta->totals);
    for (uint32_t i = 0; i < CUTS_KEPT; i++) {
        meta->cuts[i].id = read_u64(reader);
        meta->cuts[i].open = read_u64(reader);
        totals_decode(reader, &meta->cuts[i].totals);
    }
}

err meta_decode(struct slice bytes, struct meta *meta)
{
    struct reader reader = reader_from(bytes);
    struct meta read;

    memset(&read, 0, sizeof read);
    uint8_t version = read_u8(&reader);
    if (version > META_VERSION)
        return ERR_TOO_NEW;
    if (version < META_VERSION_WITHOUT_USE)
        return ERR_CORRUPT;
    read_meta(&reader, &read);
    /* Of an older one it was not noted: it must not pass for empty. */
    read.use.kind = USE_SERVING;
    if (version > META_VERSION_WITHOUT_USE)
        read_use(&reader, &read.use);
    if (version > META_VERSION_WITHOUT_TOLD)
        read.inboxes_told = read_told(&reader);
    if (version > META_VERSION_WITHOUT_KEYS)
        read.key_count = read_u64(&reader);
    event_log_init(&read.events);
    if (version > META_VERSION_WITHOUT_EVENTS)
        event_log_read(&reader, &read.events);
    if (version > META_VERSION_8) {
        read_reviews(&reader, &read);
        read.events.trimmed_count = read_u64(&reader);
    }
    if (version > META_VERSION_9)
        read_firsts(&reader, &read);
    if (version > META_VERSION_10) {
        read_policy_past(&reader, &read.policy);
        read.versions_above = read_u64(&reader);
    }
    /* The newest are written only where an older one would not do. */
    reader.bad |= version > META_VERSION_8 && version_of(&read) < version;
    if (reader_finish(&reader) != ERR_OK) {
        meta_deinit(&read);
        return ERR_CORRUPT;
    }
    meta_deinit(meta);
    *meta = read;
    return ERR_OK;
}

static void check_policy(const struct policy *policy)
{
    CHECK(policy->generation > 0);
    CHECK(policy->dropped_min <= 0);
    CHECK(policy->currency_count <= CURRENCIES_MAX);
    for (uint32_t i = 0; i < policy->currency_count; i++) {
        const struct currency *each = &policy->currencies[i];

        CHECK(each->name[0] != 0);
        CHECK(each->min_balance <= each->max_balance);
        CHECK(each->lowest_min <= each->min_balance);
        CHECK(i == 0 || currency_compare(each - 1, each) < 0);
    }
}

void meta_check(const struct meta *meta)
{
    CHECK(meta->applied_index == vector_index(&meta->vector));
    CHECK(meta->expired_count <= EXPIRED_MAX);
    for (uint32_t i = 0; i < meta->expired_count; i++) {
        const struct expired_range *range = &meta->expired[i];
        CHECK(incarnation_compare(range->first, meta->lowest_live) >= 0);
        CHECK(incarnation_compare(range->first, range->last) <= 0);
        CHECK(i == 0 || incarnation_compare(range[-1].last, range->first) < 0);
    }
    CHECK(meta->quarantine_count <= QUARANTINE_MAX);
    for (uint32_t i = 0; i < meta->quarantine_count; i++) {
        CHECK(meta->quarantine[i].player[0] != 0);
        CHECK(i == 0 || strcmp(meta->quarantine[i - 1].player, meta->quarantine[i].player) < 0);
    }
    CHECK(meta->cuts[0].id <= meta->cut_id);
    for (uint32_t i = 1; i < CUTS_KEPT; i++)
        CHECK(meta->cuts[i].id == 0 || meta->cuts[i].id < meta->cuts[i - 1].id);
    check_policy(&meta->policy);
}

bool meta_is_expired(const struct meta *meta, struct incarnation incarnation)
{
    uint32_t low = 0;
    uint32_t high = meta->expired_count;

    if (incarnation_compare(incarnation, meta->lowest_live) < 0)
        return true;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        const struct expired_range *range = &meta->expired[middle];
        if (incarnation_compare(incarnation, range->first) < 0)
            high = middle;
        else if (incarnation_compare(incarnation, range->last) > 0)
            low = middle + 1;
        else
            return true;
    }
    return false;
}

/* The place of `player`, or where it would be; *ret_found. */
static uint32_t quarantine_place(const struct meta *meta, struct slice player, bool *ret_found)
{
    uint32_t low = 0;
    uint32_t high = meta->quarantine_count;

    *ret_found = false;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        int order = slice_compare(player, slice_from_text(meta->quarantine[middle].player));
        if (order == 0) {
            *ret_found = true;
            return middle;
        }
        if (order < 0)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

const struct quarantined *meta_find_quarantined(const struct meta *meta, struct slice player)
{
    bool found;
    uint32_t place = quarantine_place(meta, player, &found);

    return found ? &meta->quarantine[place] : NULL;
}

bool meta_quarantine(struct meta *meta, struct slice player, struct slice reason, uint64_t at_ms)
{
    bool found;
    uint32_t place = quarantine_place(meta, player, &found);

    if (found || meta->quarantine_count == QUARANTINE_MAX)
        return false;
    meta->quarantine =
        mem_realloc(meta->quarantine, sizeof *meta->quarantine * (meta->quarantine_count + 1u));
    memmove(&meta->quarantine[place + 1], &meta->quarantine[place],
            sizeof *meta->quarantine * (meta->quarantine_count - place));
    meta->quarantine_count++;
    struct quarantined *added = &meta->quarantine[place];
    *added = (struct quarantined){ .at_ms = at_ms };
    text_copy(added->player, sizeof added->player, player);
    text_copy(added->reason, sizeof added->reason, reason);
    return true;
}

void meta_release(struct meta *meta, const struct quarantined *quarantined)
{
    uint32_t place = (uint32_t)(quarantined - meta->quarantine);

    CHECK(place < meta->quarantine_count);
    meta->quarantine_count--;
    memmove(&meta->quarantine[place], &meta->quarantine[place + 1],
            sizeof *meta->quarantine * (meta->quarantine_count - place));
}

int currency_compare(const void *a, const void *b)
{
    const struct currency *left = a, *right = b;

    return strcmp(left->name, right->name);
}

int policy_order(const struct policy *a, const struct policy *b)
{
    if (a->generation != b->generation)
        return a->generation < b->generation ? -1 : 1;
    if (a->version != b->version)
        return a->version < b->version ? -1 : 1;
    return 0;
}

void policy_keep_lowest(const struct policy *before, struct policy *after)
{
    const int64_t dropped_min = before->dropped_min;

    if (after->dropped_min > dropped_min)
        after->dropped_min = dropped_min;
    for (uint32_t i = 0; i < before->currency_count; i++) {
        const struct currency *went = &before->currencies[i];

        if (policy_find_currency(after, slice_from_text(went->name)) == NULL &&
            went->lowest_min < after->dropped_min)
            after->dropped_min = went->lowest_min;
    }
    for (uint32_t i = 0; i < after->currency_count; i++) {
        struct currency *currency = &after->currencies[i];
        const struct currency *stood =
            policy_find_currency(before, slice_from_text(currency->name));
        int64_t lowest_min = stood != NULL ? stood->lowest_min : dropped_min;

        if (lowest_min < currency->lowest_min)
            currency->lowest_min = lowest_min;
    }
}

const struct currency *policy_find_currency(const struct policy *policy, struct slice name)
{
    uint32_t low = 0;
    uint32_t high = policy->currency_count;

    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        const struct currency *currency = &policy->currencies[middle];
        int order = slice_compare(name, slice_from_text(currency->name));
        if (order == 0)
            return currency;
        if (order < 0)
            high = middle;
        else
            low = middle + 1;
    }
    return NULL;
}

struct meta_counts meta_counts_take(const struct meta *meta)
{
    return (struct meta_counts){
        .floor_ms = meta->floor_ms,
        .operation_count = meta->operation_count,
        .key_count = meta->key_count,
        .operation_ms_max = meta->operation_ms_max,
        .session_count = meta->session_count,
        .outbox_open = meta->outbox_open,
        .review_count = meta->review_count,
        .review_since_ms = meta->review_since_ms,
    };
}

void meta_counts_put(struct meta *meta, const struct meta_counts *counts)
{
    meta->floor_ms = counts->floor_ms;
    meta->operation_count = counts->operation_count;
    meta->key_count = counts->key_count;
    meta->operation_ms_max = counts->operation_ms_max;
    meta->session_count = counts->session_count;
    meta->outbox_open = counts->outbox_open;
    meta->review_count = counts->review_count;
    meta->review_since_ms = counts->review_since_ms;
}
