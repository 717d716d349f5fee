/*
 * Whether old members may be left. An owner without documents asks the others whether they have
 * any, by messages of the shell:
 *
 *   ASK   u8 0xd3, u32 shard, u64 config
 *   TELL  u8 0xd4, u32 shard, u64 config, u8 whether it may have documents
 */
#include "node/core/mergeable/members.h"
#include "node/io/mergeable/mergers_internal.h"

#define ASK       0xd3u
#define TELL      0xd4u
#define ASK_MS    500u
#define NOT_FOUND UINT32_MAX

static bool takes(const struct mergers *mergers, uint64_t member)
{
    const struct mergers_options *options = &mergers->options;

    return member == options->self || options->takes == NULL ||
           options->takes(options->user, member);
}

/* Those of the new members that may lack documents; with `all`, however much they have said. */
static uint32_t count_lacking(const struct mergers *mergers, const struct merger *merger, bool all)
{
    const struct membership *m = &merger->record.membership;
    uint32_t lacking = 0;

    for (uint32_t i = 0; i < m->new_count; i++)
        lacking += takes(mergers, m->new_members[i]) &&
                   (all || !merge_member_is_ready(merger->replica, m->new_members[i]));
    return lacking;
}

/* ---- an owner without documents ---- */

/* A database that was set aside may have had some. */
static bool may_hold(const struct mergers *mergers, uint32_t shard)
{
    return mergers->shards[shard].replica != NULL ||
           (mergers->db != NULL && merge_db_lost(mergers->db));
}

static void send_to(struct mergers *mergers, uint64_t to, const struct buf *message)
{
    mergers->options.send(mergers->options.user, to, buf_slice(message));
}

static void ask(struct mergers *mergers, uint32_t shard)
{
    struct merger *merger = &mergers->shards[shard];
    const struct membership *m = &merger->record.membership;
    struct buf message = { 0 };

    merger->holders_asked_ms = loop_now_ms(mergers->options.loop);
    buf_put_u8(&message, ASK);
    buf_put_u32(&message, shard);
    buf_put_u64(&message, m->config);
    for (uint32_t i = 0; i < m->count; i++) {
        if (m->members[i] != mergers->options.self)
            send_to(mergers, m->members[i], &message);
    }
    buf_deinit(&message);
}

/* A majority of the old members, this one among them, has said that it has none. */
static bool is_known_to_be_empty(struct mergers *mergers, uint32_t shard)
{
    const struct merger *merger = &mergers->shards[shard];
    const struct membership *m = &merger->record.membership;
    uint32_t without = 0;

    for (uint32_t i = 0; i < m->count; i++) {
        bool self = m->members[i] == mergers->options.self;
        bool told = merger->told_config == m->config && (merger->told_none >> i & 1) != 0;

        without += self ? !may_hold(mergers, shard) : told || !takes(mergers, m->members[i]);
    }
    return without >= m->count / 2 + 1;
}

static bool asks_again(const struct mergers *mergers, const struct merger *merger)
{
    return loop_now_ms(mergers->options.loop) - merger->holders_asked_ms >= ASK_MS;
}

static uint32_t place_of(const struct membership *m, uint64_t member)
{
    for (uint32_t i = 0; i < m->count; i++) {
        if (m->members[i] == member)
            return i;
    }
    return NOT_FOUND;
}

static void take_tell(struct mergers *mergers, uint64_t from, uint32_t shard, bool holds)
{
    struct merger *merger = &mergers->shards[shard];
    uint64_t config = merger->record.membership.config;
    uint32_t place = place_of(&merger->record.membership, from);

    if (place == NOT_FOUND)
        return;
    if (holds) {
        (void)mergers->need(mergers, shard); /* From now on it is told by reports. */
        return;
    }
    if (merger->told_config != config) {
        merger->told_config = config;
        merger->told_none = 0;
    }
    merger->told_none |= 1u << place;
}

static void take_ask(struct mergers *mergers, uint64_t from, uint32_t shard, uint64_t config)
{
    struct buf message = { 0 };

    buf_put_u8(&message, TELL);
    buf_put_u32(&message, shard);
    buf_put_u64(&message, config);
    buf_put_u8(&message, may_hold(mergers, shard));
    send_to(mergers, from, &message);
    buf_deinit(&message);
}

err mergers_leave_message(struct mergers *mergers, uint64_t from, struct slice message)
{
    struct reader reader = reader_from(message);
    uint8_t kind = read_u8(&reader);

    if (reader.bad || (kind != ASK && kind != TELL))
        return ERR_NOT_FOUND;
    uint32_t shard = read_u32(&reader);
    uint64_t config = read_u64(&reader);
    uint8_t holds = kind == TELL ? read_u8(&reader) : 0;

    if (reader_finish(&reader) != ERR_OK || shard >= mergers->options.shard_count || holds > 1)
        return ERR_CORRUPT;
    if (kind == ASK)
        take_ask(mergers, from, shard, config);
    else if (mergers->shards[shard].record.membership.config == config)
        take_tell(mergers, from, shard, holds == 1);
    return ERR_OK;
}

/* ---- how long it is waited for ---- */

static bool is_over(struct mergers *mergers, uint32_t shard, uint32_t lacking)
{
    struct merger *merger = &mergers->shards[shard];
    uint64_t config = merger->record.membership.config;
    uint64_t now_ms = loop_now_ms(mergers->options.loop);

    if (merger->joint_config != config) {
        merger->joint_config = config;
        merger->joint_ms = now_ms;
        merger->joint_told = merger->joint_over = false;
    }
    if (!merger->joint_told && merger->started) {
        merger->joint_told = true;
        log_event(mergers->options.log, LOG_INFO, "documents.leave_waits", LOG_N("shard", shard),
                  LOG_N("config", config), LOG_N("members", lacking));
    }
    if (!merger->joint_over && now_ms - merger->joint_ms >= mergers->options.leave_wait_ms) {
        merger->joint_over = true;
        log_event(mergers->options.log, LOG_WARN, "documents.leave_not_awaited",
                  LOG_N("shard", shard), LOG_N("config", config), LOG_N("members", lacking));
    }
    return merger->joint_over;
}

uint32_t mergers_lacking(struct mergers *mergers, uint32_t shard)
{
    struct merger *merger = &mergers->shards[shard];

    if (!merger->known || merger->record.membership.new_count == 0)
        return 0;
    if (!merger->started && is_known_to_be_empty(mergers, shard))
        return 0;
    if (!merger->started && asks_again(mergers, merger))
        ask(mergers, shard);
    uint32_t lacking = count_lacking(mergers, merger, !merger->started);

    return lacking == 0 || is_over(mergers, shard, lacking) ? 0 : lacking;
}
