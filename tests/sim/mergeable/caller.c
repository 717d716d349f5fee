/* Game servers that write and read at any member, each with what it saw before. */
#include <stdio.h>
#include <string.h>

#include "node/core/mergeable/message.h"
#include "node/core/mergeable/read.h"
#include "node/core/mergeable/write.h"
#include "runtime/base/check.h"
#include "tests/sim/mergeable/msim.h"

static struct node *up_node(struct msim *sim)
{
    struct node *node = &sim->nodes[msim_between(sim, 0, NODES - 1)];

    return node->replica != NULL ? node : NULL;
}

static struct session *session_for(struct msim *sim, uint32_t key)
{
    struct session *session = &sim->sessions[msim_between(sim, 0, SESSIONS - 1)];

    if (session->key != key || !session->used) {
        buf_clear(&session->token);
        session->used = true;
        session->key = key;
        oracle_session_begin(session);
    }
    return session;
}

static void forget(struct session *session)
{
    buf_clear(&session->token);
    session->used = false;
    oracle_session_begin(session);
}

/* The paths of the forms: few, so that sides meet; nested ones for documents. */
static const char *path_of(struct msim *sim, uint32_t key)
{
    static const char *const fields[] = { "a", "b", "c" };
    static const char *const leaves[] = { "a", "a/x", "a/y", "b/x/1", "b/x" };
    static const char *const names[] = { "n", "m" };

    switch (key % FORMS) {
    case 1:
    case 3:
        return fields[msim_between(sim, 0, 2)];
    case 2:
        return leaves[msim_between(sim, 0, 4)];
    case COUNTERS:
        return names[msim_between(sim, 0, 1)];
    default:
        return "";
    }
}

struct wish {
    struct merge_write write;
    struct merge_edit edits[2];
    uint8_t values[2][VALUE_BYTES];
};

struct slice msim_value(const struct msim *sim, uint32_t key, uint64_t number,
                        uint8_t ret_bytes[VALUE_BYTES])
{
    /* Half of the entities have large ones. */
    size_t size = sim->large && key >= KEYS / 2 ? 8 + number % (VALUE_BYTES - 7) : 8;

    store_u64(ret_bytes, number);
    for (size_t i = 8; i < size; i++)
        ret_bytes[i] = (uint8_t)(ret_bytes[i % 8] + i);
    return (struct slice){ ret_bytes, size };
}

static void make_wish(struct msim *sim, uint32_t key, struct wish *wish)
{
    uint32_t count = 1;

    *wish = (struct wish){ .write = { .key = sim->keys[key], .policy = msim_policy(key) } };
    wish->write.durability = (enum merge_durability)msim_between(sim, 0, 2);
    wish->write.whole = msim_chance(sim, key % FORMS == 0 ? 500 : 60);
    bool fades = sim->fades_ms != 0 && sim->now_ms >= sim->fades_ms && msim_chance(sim, 700);

    wish->write.whole |= fades;
    if (wish->write.whole && (fades || msim_chance(sim, 500)))
        count = 0;
    else if (key % FORMS != 0 && key % FORMS != 4 && msim_chance(sim, 200))
        count = 2;
    for (uint32_t i = 0; i < count; i++) {
        struct merge_edit *edit = &wish->edits[i];

        edit->value = msim_value(sim, key, msim_next(sim), wish->values[i]);
        edit->path = slice_from_text(path_of(sim, key));
        edit->remove = msim_chance(sim, 250);
        if (msim_chance(sim, 150))
            edit->expires_ms = sim->now_ms + msim_between(sim, 100, 8000);
    }
    if (count == 2 && slice_equal(wish->edits[0].path, wish->edits[1].path))
        count = 1;
    wish->write.edits = wish->edits;
    wish->write.edit_count = count;
    wish->write.op = msim_chance(sim, 500) ? msim_next(sim) : 0;
    if (key % FORMS != COUNTERS)
        return;
    wish->write.whole &= count == 0;
    wish->write.op_ms = sim->now_ms - msim_between(sim, 0, 300);
    for (uint32_t i = 0; i < count; i++) {
        wish->edits[i].value = (struct slice){ 0 };
        wish->edits[i].remove = msim_chance(sim, sim->counts_most ? 200 : 60);
        wish->edits[i].delta = (int64_t)msim_between(sim, 0, 90) - 30;
    }
}

static void count_refusal(struct msim *sim, err e, const struct merge_refusal *refusal)
{
    sim->counts->refused_clock += strcmp(refusal->field, "clock") == 0;
    sim->counts->refused_syncing += strcmp(refusal->field, "syncing") == 0;
    sim->counts->refused_majority += strcmp(refusal->field, "majority") == 0;
    sim->counts->siblings_refused += e == ERR_FULL && strcmp(refusal->field, "siblings") == 0;
    sim->counts->tokens_lost += e == ERR_STALE_EPOCH;
    sim->counts->retries_late += e == ERR_CONFLICT && strcmp(refusal->field, "op_ms") == 0;
    PROMISE(sim, e != ERR_INVALID && e != ERR_TOO_LARGE && e != ERR_CORRUPT,
            "a sound write is refused: %s of %s", err_name(e), refusal->field);
}

/* By its wall clock, or one that it has heard of, the operation is too old: not by the hybrid time
 * that a write under a clock that was ahead left behind. */
static void judge_expired(struct msim *sim, const struct node *node, uint64_t op_ms)
{
    uint64_t latest_ms = msim_wall(sim, node);

    for (uint32_t i = 0; i < node->replica->peer_count; i++)
        if (node->replica->peers[i].told_ms > latest_ms)
            latest_ms = node->replica->peers[i].told_ms;
    PROMISE(sim, latest_ms > op_ms + OP_WINDOW_MS, "an operation of %lld ms ago has expired",
            (long long)(latest_ms - op_ms));
}

/* Another attempt's value stood there: nothing changes but what was taken in. */
static void judge_again(struct msim *sim, const struct merge_record *before,
                        const struct merge_record *after)
{
    PROMISE(sim, merge_record_equal(before, after, false),
            "an operation that stands is carried out once more");
    sim->counts->stood++;
}

/* A write leaves what it sets under its own dot, nothing else, and nothing of what it removes. */
static void judge_write(struct msim *sim, const struct merge_write *write,
                        const struct merge_record *after, struct merge_dot dot)
{
    uint32_t set = 0, own = 0;

    if (after->policy == MERGE_POLICY_COUNTER) /* counting_judge says more. */
        return;
    for (uint32_t i = 0; i < write->edit_count; i++)
        set += !write->edits[i].remove;
    for (uint32_t i = 0; i < after->count; i++) {
        own += merge_dot_equal(after->cells[i]->dot, dot);
        for (uint32_t j = 0; after->policy != MERGE_POLICY_VECTOR && j < write->edit_count; j++)
            PROMISE(sim,
                    !slice_equal(merge_cell_path(after->cells[i]), write->edits[j].path) ||
                        merge_dot_equal(after->cells[i]->dot, dot),
                    "a write leaves what it replaces");
    }
    PROMISE(sim, own == set, "a write of %u values leaves %u", set, own);
}

/* What a replica has just told a caller, it knows; but for what it has of the caller alone, who
 * saw more than this replica when it wrote. */
static void judge_token(struct msim *sim, const struct node *node, const struct session *session,
                        bool wrote)
{
    struct merge_record record;

    if (session->token.size == 0)
        return;
    err e = merge_read(node->replica, sim->keys[session->key], buf_slice(&session->token), &record);

    PROMISE(sim, e == ERR_OK || (wrote && e == ERR_NEED),
            "a context is refused where it was told: %s", err_name(e));
    if (e == ERR_OK)
        merge_record_deinit(&record);
}

static bool is_listed(const uint32_t *list, uint32_t count, uint32_t cell)
{
    for (uint32_t i = 0; i < count; i++)
        if (list[i] == cell)
            return true;
    return false;
}

/* With VECTOR a write takes the place of what its caller saw, or wrote, and of what was replaced
 * already where it read. */
static void judge_replaced(struct msim *sim, const struct session *session,
                           const struct merge_record *before, const struct merge_record *after)
{
    for (uint32_t i = 0; i < before->count; i++) {
        const struct merge_cell *cell = before->cells[i];
        uint32_t number = oracle_cell(sim, cell);
        bool stays = false;

        for (uint32_t j = 0; j < after->count && !stays; j++)
            stays = merge_dot_equal(after->cells[j]->dot, cell->dot);
        PROMISE(sim,
                stays || is_listed(session->seen, session->seen_count, number) ||
                    is_listed(session->own, session->own_count, number) ||
                    causal_covers(&session->past, cell->dot),
                "a write replaces what its caller never saw");
    }
}

static struct merge_dot dot_of_op(const struct merge_record *record, uint64_t op)
{
    for (uint32_t i = 0; i < record->count; i++)
        if (record->cells[i]->op == op)
            return record->cells[i]->dot;
    return (struct merge_dot){ 0 };
}

static void write_at(struct msim *sim, struct node *node, const struct merge_write *write,
                     struct session *session)
{
    uint32_t key = session->key;
    struct merge_record before, after;
    struct merge_refusal refusal = { 0 };
    struct noted noted = { .key = key,
                           .node = node,
                           .durability = write->durability,
                           .before = &before,
                           .after = &after };
    bool stands;
    bool covers = write->token.size > 0 && (write->whole || key % FORMS == 4);

    merge_record_full(node->replica, write->key, &before);
    err e = merge_write(node->replica, msim_wall(sim, node), write, &noted.written, &refusal);

    merge_record_full(node->replica, write->key, &after);
    stands = merge_edits_stand(&before, write->op);
    if (e == ERR_OK) {
        if (stands)
            judge_again(sim, &before, &after);
        else
            judge_write(sim, write, &after, noted.written.dot);
        if (msim_policy(key) == MERGE_POLICY_VECTOR && (covers || !write->whole))
            judge_replaced(sim, session, &before, &after);
        noted.session = covers ? session : NULL;
        (void)oracle_write(sim, &noted);
        if (key % FORMS == COUNTERS)
            counting_judge(sim, &after, key, msim_wall(sim, node));
        sim->counts->writes++;
        sim->counts->deletes += write->whole && write->edit_count == 0;
        sim->counts->memory += write->durability == MERGE_MEMORY;
        struct buf token = { 0 };

        oracle_session_wrote(sim, session, &after,
                             stands ? dot_of_op(&after, write->op) : noted.written.dot);
        e = merge_token_written(node->replica, write, &after, noted.written.dot, &token);
        buf_deinit(&session->token);
        session->token = token;
        if (e != ERR_OK)
            forget(session);
        judge_token(sim, node, session, true);
    } else {
        count_refusal(sim, e, &refusal);
        if (e == ERR_CONFLICT)
            judge_expired(sim, node, write->op_ms);
        if (e == ERR_STALE_EPOCH)
            forget(session);
    }
    merge_record_deinit(&before);
    merge_record_deinit(&after);
    msim_drain(sim, node);
}

/* An increment is kept for retries, sooner or later, at any member. */
static void keep_retry(struct msim *sim, uint32_t key, const struct merge_write *write)
{
    struct again *retry = &sim->retries[msim_between(sim, 0, RETRIES - 1)];
    const struct merge_edit *edit = &write->edits[0];

    if (key % FORMS != COUNTERS || write->op == 0 || write->edit_count != 1 || edit->remove)
        return;
    *retry = (struct again){ .used = true,
                             .key = key,
                             .path = { (char)edit->path.data[0] },
                             .delta = edit->delta,
                             .op = write->op,
                             .op_ms = write->op_ms,
                             .expires_ms = edit->expires_ms,
                             .durability = write->durability };
}

static void call_retry(struct msim *sim)
{
    struct again *retry = &sim->retries[msim_between(sim, 0, RETRIES - 1)];
    struct node *node = up_node(sim);

    if (!retry->used || node == NULL)
        return;
    struct merge_edit edit = { .path = slice_from_text(retry->path),
                               .delta = retry->delta,
                               .expires_ms = retry->expires_ms };
    struct merge_write write = { .key = sim->keys[retry->key],
                                 .policy = MERGE_POLICY_COUNTER,
                                 .durability = retry->durability,
                                 .edit_count = 1,
                                 .edits = &edit,
                                 .op = retry->op,
                                 .op_ms = retry->op_ms };
    struct session *session = session_for(sim, retry->key);

    forget(session);
    session->used = true;
    sim->counts->retries++;
    write_at(sim, node, &write, session);
    retry->used = msim_chance(sim, 700);
}

static void call_write(struct msim *sim)
{
    uint32_t key = (uint32_t)msim_between(sim, 0, KEYS - 1);

    if (sim->counts_most && msim_chance(sim, 700))
        key = key / FORMS * FORMS + COUNTERS;
    struct node *node = up_node(sim);
    struct session *session = session_for(sim, key);
    struct wish wish;

    if (node == NULL)
        return;
    make_wish(sim, key, &wish);
    if (msim_chance(sim, 700))
        wish.write.token = buf_slice(&session->token);
    if (wish.write.token.size == 0) { /* It knows nothing of what was there before. */
        forget(session);
        session->used = true;
    }
    write_at(sim, node, &wish.write, session);
    keep_retry(sim, key, &wish.write);
    if (msim_chance(sim, 60) && (node = up_node(sim)) != NULL) {
        /* The answer was lost on the way: the same again, somewhere. */
        wish.write.token = (struct slice){ 0 };
        forget(session);
        session->used = true;
        write_at(sim, node, &wish.write, session);
    }
}

static void forge(struct msim *sim, const struct node *node, const struct session *session)
{
    uint8_t bytes[MERGE_TOKEN_BYTES_MAX];
    size_t size = session->token.size;
    struct merge_record record;
    uint64_t kind = msim_between(sim, 0, 2);
    uint32_t key = session->key;

    memcpy(bytes, session->token.data, size);
    if (kind == 0)
        bytes[msim_between(sim, 0, size - 1)] ^= (uint8_t)(1u << msim_between(sim, 0, 7));
    else if (kind == 1)
        size = msim_between(sim, 1, size - 1);
    else
        key = (key + 1) % KEYS;
    err e = merge_read(node->replica, sim->keys[key], (struct slice){ bytes, size }, &record);

    PROMISE(sim, e == ERR_INVALID || e == ERR_UNAVAILABLE || e == ERR_STALE_EPOCH,
            "a forged context is taken: %s", err_name(e));
    sim->counts->tokens_forged += e == ERR_INVALID;
}

/* One that has a context of that record; NULL: none has. No dice are thrown for it. */
static struct session *session_of(struct msim *sim, uint32_t key)
{
    for (uint32_t i = 0; i < SESSIONS; i++) {
        struct session *session = &sim->sessions[i];

        if (session->used && session->key == key && session->token.size > 0)
            return session;
    }
    return NULL;
}

/* The session was shown what a read told it. */
static void shown_to(struct msim *sim, struct node *node, struct session *session,
                     const struct merge_record *record)
{
    oracle_session_read(sim, session, record);
    buf_clear(&session->token);
    if (merge_token_of(node->replica, sim->keys[session->key], record, (struct slice){ 0 },
                       &session->token) != ERR_OK)
        forget(session);
    judge_token(sim, node, session, false);
}

static void call_read(struct msim *sim)
{
    struct session *session = &sim->sessions[msim_between(sim, 0, SESSIONS - 1)];
    struct node *node = up_node(sim);
    struct merge_record record;

    if (node == NULL || !session->used)
        return;
    if (session->token.size > 0 && msim_chance(sim, 100))
        forge(sim, node, session);
    if (session->token.size == 0)
        oracle_session_begin(session);
    struct slice token = buf_slice(&session->token);
    err e = merge_read(node->replica, sim->keys[session->key], token, &record);

    sim->counts->not_yet += e == ERR_NEED;
    sim->counts->tokens += e == ERR_OK && token.size > 0;
    PROMISE(sim, e != ERR_INVALID, "an own context is refused");
    if (e == ERR_STALE_EPOCH)
        forget(session);
    if (e != ERR_OK)
        return;
    sim->counts->reads++;
    oracle_shown(sim, &record, msim_wall(sim, node));
    if (session->key % FORMS == COUNTERS)
        counting_judge(sim, &record, session->key, msim_wall(sim, node));
    shown_to(sim, node, session, &record);
    merge_record_deinit(&record);
}

static void call_majority(struct msim *sim)
{
    struct majority_read *read = &sim->reads[msim_between(sim, 0, 7)];
    struct node *node = up_node(sim);

    if (node == NULL || read->used)
        return;
    buf_deinit(&read->token);
    *read = (struct majority_read){ .node = (uint32_t)node->id,
                                    .key = (uint32_t)msim_between(sim, 0, KEYS - 1),
                                    .boot = node->boot };
    struct session *session = session_of(sim, read->key);

    read->session = session;
    if (session != NULL)
        buf_append(&read->token, session->token.data, session->token.size);
    read->acked_before = sim->acked_last; /* Only these it has to see. */
    err e = merge_read_majority(node->replica, msim_wall(sim, node), sim->keys[read->key],
                                buf_slice(&read->token), &read->ticket);

    PROMISE(sim, e != ERR_INVALID, "an own context is refused");

    read->used = e == ERR_OK;
    msim_drain(sim, node);
}

void msim_done(struct msim *sim, struct node *node, const struct merge_done *done)
{
    if (done->record == NULL && done->result == ERR_OK)
        oracle_acked(sim, node, done->ticket);
    for (uint32_t i = 0; i < 8; i++) {
        struct majority_read *read = &sim->reads[i];

        if (!read->used || read->node != node->id || read->boot != node->boot ||
            read->ticket != done->ticket)
            continue;
        read->used = false;
        sim->counts->majority_not_yet += done->result == ERR_NEED;
        if (done->record == NULL)
            continue;
        sim->counts->majority_reads++;
        if (read->key % FORMS == COUNTERS)
            counting_majority(sim, read, done->record);
        oracle_majority_read(sim, read, done->record);
        if (read->session != NULL && read->session->key == read->key &&
            slice_equal(buf_slice(&read->session->token), buf_slice(&read->token))) {
            sim->counts->majority_tokens++;
            shown_to(sim, node, read->session, done->record);
        }
    }
}

/* A sweep takes away what is not shown any more, and what that hides: a read shows the same. */
static void judge_sweep(struct msim *sim, const struct merge_record *before,
                        const struct merge_record *after, uint32_t key, uint64_t now_ms)
{
    struct merge_view was, is;

    if (key % FORMS == COUNTERS) {
        counting_judge(sim, after, key, now_ms);
        return;
    }
    merge_view_init(&was, before, now_ms);
    merge_view_init(&is, after, now_ms);
    PROMISE(sim, was.count == is.count, "a sweep changes what is shown: %u values to %u", was.count,
            is.count);
    for (uint32_t i = 0; i < was.count; i++)
        PROMISE(sim, merge_dot_equal(was.cells[i]->dot, is.cells[i]->dot),
                "a sweep changes what is shown");
    merge_view_deinit(&was);
    merge_view_deinit(&is);
}

/* One of the members sweeps; owners change, and two may think that they are it. */
void msim_sweep(struct msim *sim)
{
    struct node *node = up_node(sim);
    struct merge_key *key = NULL;
    struct merge_record before[KEYS], after;
    struct noted noted = {
        .node = node, .durability = MERGE_ONE, .after = &after, .is_sweep = true
    };

    if (node == NULL)
        return;
    for (uint32_t i = 0; i < KEYS; i++)
        merge_record_full(node->replica, sim->keys[i], &before[i]);
    if (merge_sweep(node->replica, msim_wall(sim, node), NULL, &key, &noted.written) == ERR_OK) {
        for (uint32_t i = 0; i < KEYS; i++)
            if (merge_key_compare(sim->keys[i], key) == 0)
                noted.key = i;
        noted.before = &before[noted.key];
        merge_record_full(node->replica, key, &after);
        (void)oracle_write(sim, &noted);
        judge_sweep(sim, noted.before, &after, noted.key, msim_wall(sim, node));
        merge_record_deinit(&after);
        merge_key_unref(key);
        sim->counts->sweeps++;
    }
    for (uint32_t i = 0; i < KEYS; i++)
        merge_record_deinit(&before[i]);
    msim_drain(sim, node);
}

void msim_call(struct msim *sim)
{
    if (msim_chance(sim, 350))
        call_write(sim);
    if (msim_chance(sim, 300))
        call_read(sim);
    if (msim_chance(sim, 30))
        call_retry(sim);
    if (msim_chance(sim, 40))
        call_majority(sim);
    if (msim_chance(sim, 30))
        msim_sweep(sim);
}
