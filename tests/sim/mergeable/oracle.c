/*
 * What must be true, said from the writes alone. A value that was written is there, at every
 * member, until a write that saw it, and that survived, replaced it; what such a write replaced
 * never comes back; what was acknowledged survives while a disk that had it does.
 */
#include <stdlib.h>
#include <string.h>

#include "node/core/mergeable/disk.h"
#include "node/core/mergeable/message.h"
#include "runtime/base/check.h"
#include "tests/sim/mergeable/msim.h"

static bool has_cell(const struct merge_record *record, const struct cell *cell)
{
    for (uint32_t i = 0; i < record->count; i++) {
        const struct merge_cell *at = record->cells[i];

        if (merge_dot_equal(at->dot, cell->dot) &&
            slice_equal(merge_cell_path(at), (struct slice){ cell->path, cell->path_size }))
            return true;
    }
    return false;
}

uint32_t oracle_cell(const struct msim *sim, const struct merge_cell *cell)
{
    for (uint32_t i = sim->cell_count; i > 0; i--) {
        const struct cell *at = &sim->cells[i - 1];

        if (merge_dot_equal(at->dot, cell->dot) &&
            slice_equal(merge_cell_path(cell), (struct slice){ at->path, at->path_size }))
            return i - 1;
    }
    return UINT32_MAX;
}

/* ---- writes ---- */

static void note_cell(struct msim *sim, const struct merge_cell *cell, uint64_t erasure,
                      uint32_t write)
{
    if (sim->cell_count == sim->cell_capacity) {
        sim->cell_capacity = sim->cell_capacity > 0 ? sim->cell_capacity * 2 : 256;
        sim->cells = mem_realloc(sim->cells, sim->cell_capacity * sizeof *sim->cells);
    }
    struct cell *noted = &sim->cells[sim->cell_count++];

    *noted = (struct cell){ .dot = cell->dot,
                            .path_size = cell->path_size,
                            .hlc = cell->hlc,
                            .expires_ms = cell->expires_ms,
                            .value = load_u64(merge_cell_value(cell).data),
                            .erasure = erasure,
                            .write = write };
    CHECK(cell->path_size <= sizeof noted->path && cell->value_size >= 8);
    memcpy(noted->path, cell->bytes, cell->path_size);
}

static void note_remover(struct cell *cell, uint32_t write)
{
    if (cell->remover_count < CELL_REMOVERS)
        cell->removers[cell->remover_count++] = write;
}

uint32_t oracle_write(struct msim *sim, const struct noted *noted)
{
    uint32_t number = sim->write_count;

    if (sim->write_count == sim->write_capacity) {
        sim->write_capacity = sim->write_capacity > 0 ? sim->write_capacity * 2 : 256;
        sim->writes = mem_realloc(sim->writes, sim->write_capacity * sizeof *sim->writes);
    }
    for (uint32_t i = 0; i < number; i++)
        PROMISE(sim, !merge_dot_equal(sim->writes[i].dot, noted->written.dot),
                "a dot is given to two writes");
    sim->writes[sim->write_count++] = (struct write){ .dot = noted->written.dot,
                                                      .key = noted->key,
                                                      .node = (uint32_t)noted->node->id,
                                                      .ticket = noted->written.ticket,
                                                      .boot = noted->node->boot,
                                                      .erasure = noted->after->erasure,
                                                      .durability = noted->durability };
    if (noted->key % FORMS == COUNTERS) {
        counting_write(sim, noted, number);
        return number;
    }
    for (uint32_t i = 0; i < noted->after->count; i++)
        if (merge_dot_equal(noted->after->cells[i]->dot, noted->written.dot))
            note_cell(sim, noted->after->cells[i], noted->after->erasure, number);
    for (uint32_t i = 0; i < noted->before->count; i++) {
        uint32_t cell = oracle_cell(sim, noted->before->cells[i]);

        PROMISE(sim, cell != UINT32_MAX, "a value that no write made");
        if (!has_cell(noted->after, &sim->cells[cell]))
            note_remover(&sim->cells[cell], number);
    }
    for (uint32_t i = 0; noted->session != NULL && i < noted->session->seen_count; i++) {
        struct cell *cell = &sim->cells[noted->session->seen[i]];

        if (!has_cell(noted->after, cell))
            note_remover(cell, number);
    }
    return number;
}

void oracle_acked(struct msim *sim, const struct node *node, uint64_t ticket)
{
    for (uint32_t i = sim->write_count; i > 0; i--) {
        struct write *write = &sim->writes[i - 1];

        if (write->node != node->id || write->boot != node->boot || write->ticket != ticket)
            continue;
        write->acked_at = ++sim->acked_last;
        sim->counts->acked++;
        sim->counts->majority_acked += write->durability == MERGE_MAJORITY;
        return;
    }
}

/* ---- reads ---- */

static bool is_later(const struct merge_cell *a, const struct merge_cell *b)
{
    if (a->hlc != b->hlc)
        return a->hlc > b->hlc;
    if (a->dot.actor != b->dot.actor)
        return a->dot.actor > b->dot.actor;
    return a->dot.counter > b->dot.counter;
}

/* The last write of each path wins, then it counts whether that has expired. Whether a document
 * hides it is for nested paths to say. */
static bool wins(const struct merge_record *record, const struct merge_cell *cell, uint64_t now_ms)
{
    for (uint32_t i = 0; i < record->count; i++)
        if (slice_equal(merge_cell_path(record->cells[i]), merge_cell_path(cell)) &&
            is_later(record->cells[i], cell))
            return false;
    return cell->expires_ms == 0 || cell->expires_ms > now_ms;
}

static bool is_nested(struct slice a, struct slice b)
{
    struct slice inner = a.size > b.size ? a : b, outer = a.size > b.size ? b : a;

    return inner.size > outer.size && memcmp(inner.data, outer.data, outer.size) == 0 &&
           inner.data[outer.size] == '/';
}

void oracle_shown(struct msim *sim, const struct merge_record *record, uint64_t now_ms)
{
    struct merge_view view;
    uint32_t expected = 0;

    if (record->policy == MERGE_POLICY_COUNTER)
        return;
    merge_view_init(&view, record, now_ms);
    sim->counts->siblings += record->policy == MERGE_POLICY_VECTOR && view.count > 1;
    for (uint32_t i = 0; i < record->count; i++) {
        const struct merge_cell *cell = record->cells[i];

        sim->counts->expired += cell->expires_ms != 0 && cell->expires_ms <= now_ms;
        expected += wins(record, cell, now_ms);
    }
    for (uint32_t i = 0; i < view.count; i++) {
        PROMISE(sim, view.cells[i]->expires_ms == 0 || view.cells[i]->expires_ms > now_ms,
                "a read shows what has expired");
        PROMISE(sim, record->policy == MERGE_POLICY_VECTOR || wins(record, view.cells[i], now_ms),
                "a read shows what is not the last write");
        for (uint32_t j = 0; record->policy == MERGE_POLICY_MERGE && j < i; j++)
            PROMISE(sim, !is_nested(merge_cell_path(view.cells[i]), merge_cell_path(view.cells[j])),
                    "a read shows a value and what is inside of it");
    }
    if (record->policy == MERGE_POLICY_LWW || record->policy == MERGE_POLICY_SET)
        PROMISE(sim, view.count == expected, "a read shows %u values of %u", view.count, expected);
    merge_view_deinit(&view);
}

/* A write that may be gone without a broken promise. */
static bool is_losable(const struct write *write)
{
    return write->acked_at == 0 || write->durability == MERGE_MEMORY || write->exempt;
}

/* No row says anything of it any more: a clock that is voided forgets it. */
static bool was_erased(const struct msim *sim, const struct write *write)
{
    return write->erasure < sim->erasures[write->key / FORMS];
}

static bool was_removed(const struct msim *sim, const struct cell *cell)
{
    for (uint32_t i = 0; i < cell->remover_count; i++)
        if (!is_losable(&sim->writes[cell->removers[i]]))
            return true;
    return false;
}

static void remember(uint32_t *list, uint32_t *count, uint32_t cell)
{
    for (uint32_t i = 0; i < *count; i++)
        if (list[i] == cell)
            return;
    if (*count < SESSION_CELLS)
        list[(*count)++] = cell;
}

static void see(struct msim *sim, struct session *session, const struct merge_record *record)
{
    for (uint32_t i = 0; record->policy != MERGE_POLICY_COUNTER && i < record->count; i++) {
        uint32_t cell = oracle_cell(sim, record->cells[i]);

        PROMISE(sim, cell != UINT32_MAX, "a value that no write made");
        remember(session->seen, &session->seen_count, cell);
    }
}

void oracle_session_begin(struct session *session)
{
    session->seen_count = session->own_count = session->gone_count = 0;
    causal_deinit(&session->past);
}

static void begin_again(struct session *session, uint64_t erasure)
{
    if (erasure != session->erasure)
        oracle_session_begin(session);
    session->erasure = erasure;
}

/* Those that the last write replaced are gone; how many are left. */
static uint32_t without_replaced(struct msim *sim, struct session *session, uint32_t *list,
                                 uint32_t count)
{
    uint32_t kept = 0, by = sim->write_count - 1;

    for (uint32_t i = 0; i < count; i++) {
        const struct cell *cell = &sim->cells[list[i]];

        if (cell->remover_count > 0 && cell->removers[cell->remover_count - 1] == by)
            remember(session->gone, &session->gone_count, list[i]);
        else
            list[kept++] = list[i];
    }
    return kept;
}

void oracle_session_wrote(struct msim *sim, struct session *session,
                          const struct merge_record *record, struct merge_dot dot)
{
    begin_again(session, record->erasure);
    session->seen_count = without_replaced(sim, session, session->seen, session->seen_count);
    session->own_count = without_replaced(sim, session, session->own, session->own_count);
    for (uint32_t i = 0; record->policy != MERGE_POLICY_COUNTER && i < record->count; i++) {
        if (!merge_dot_equal(record->cells[i]->dot, dot))
            continue;
        uint32_t cell = oracle_cell(sim, record->cells[i]);

        PROMISE(sim, cell != UINT32_MAX, "a value that no write made");
        remember(session->own, &session->own_count, cell);
    }
}

static void judge_there(struct msim *sim, struct session *session, uint32_t number,
                        const struct merge_record *record)
{
    const struct cell *cell = &sim->cells[number];

    /* A member may have taken over what an erasure dropped before it hears of the erasure. */
    if (has_cell(record, cell) || cell->erasure < sim->erasures[session->key / FORMS])
        return;
    PROMISE(sim, cell->remover_count > 0 || is_losable(&sim->writes[cell->write]),
            "a read with a context lacks what the caller saw: write %u, key %u, durability %d",
            cell->write, session->key, (int)sim->writes[cell->write].durability);
    remember(session->gone, &session->gone_count, number);
}

/* Gone stays gone. */
static void keep_past(struct session *session, const struct merge_record *record)
{
    session->seen_count = session->own_count = 0;
    causal_deinit(&session->past);
    causal_copy(&session->past, &record->context);
}

void oracle_session_read(struct msim *sim, struct session *session,
                         const struct merge_record *record)
{
    begin_again(session, record->erasure);
    for (uint32_t i = 0; i < session->seen_count; i++)
        judge_there(sim, session, session->seen[i], record);
    for (uint32_t i = 0; i < session->own_count; i++)
        judge_there(sim, session, session->own[i], record);
    for (uint32_t i = 0; i < session->gone_count; i++) {
        const struct cell *cell = &sim->cells[session->gone[i]];

        PROMISE(sim, !has_cell(record, cell) || !was_removed(sim, cell),
                "a read with a context goes back to what the caller saw replaced");
    }
    keep_past(session, record);
    see(sim, session, record);
}

void oracle_majority_read(struct msim *sim, const struct majority_read *read,
                          const struct merge_record *record)
{
    for (uint32_t i = 0; i < sim->cell_count; i++) {
        const struct cell *cell = &sim->cells[i];
        const struct write *made = &sim->writes[cell->write];
        bool there = has_cell(record, cell);

        if (made->key != read->key || cell->erasure != record->erasure)
            continue;
        if (cell->erasure < sim->erasures[read->key / FORMS])
            continue;
        if (made->durability == MERGE_MAJORITY && made->acked_at > 0 && !made->exempt &&
            made->acked_at <= read->acked_before)
            PROMISE(sim, there || cell->remover_count > 0,
                    "a majority's read lacks what a majority acknowledged");
        for (uint32_t j = 0; there && j < cell->remover_count; j++) {
            const struct write *by = &sim->writes[cell->removers[j]];

            PROMISE(sim,
                    by->durability != MERGE_MAJORITY || by->acked_at == 0 || by->exempt ||
                        by->acked_at > read->acked_before,
                    "a majority's read has what a majority acknowledged as replaced");
        }
    }
}

/* ---- losses ---- */

/* Rows show it. Of what nothing is left but a dot, as of a delete, the clock alone knows. */
static bool is_shown(const struct msim *sim, uint32_t write)
{
    for (uint32_t i = 0; i < sim->cell_count; i++)
        if (sim->cells[i].write == write && sim->cells[i].remover_count == 0)
            return true;
    return false;
}

void oracle_loss(struct msim *sim, const struct node *node, uint32_t key)
{
    struct merge_replica *others[NODES] = { 0 };

    for (uint32_t i = 0; i < NODES; i++)
        if (&sim->nodes[i] != node && sim->nodes[i].disk.exists)
            others[i] = msim_recover(sim, &sim->nodes[i]);
    for (uint32_t i = 0; i < sim->write_count; i++) {
        struct write *write = &sim->writes[i];
        bool held = false;

        if (key != UINT32_MAX && write->key != key && is_shown(sim, i))
            continue;
        for (uint32_t j = 0; j < NODES; j++)
            held |= others[j] != NULL && ended_holds(sim, &others[j]->clock, write->dot);
        write->exempt |= !held;
    }
    for (uint32_t i = 0; i < NODES; i++)
        merge_free(others[i]);
}

/* ---- the end ---- */

static void judge_counters(struct msim *sim, const struct merge_replica *replica)
{
    for (uint32_t key = COUNTERS; key < KEYS; key += FORMS) {
        struct merge_record record;

        merge_record_full(replica, sim->keys[key], &record);
        counting_judge(sim, &record, key, sim->now_ms);
        for (uint32_t i = 0; i < record.count; i++)
            sim->counts->folded += merge_cell_value(record.cells[i]).size > 8;
        merge_record_deinit(&record);
    }
}

/* Of ended processes all have left: what no member writes under is closed, then forgotten. */
static void judge_actors(struct msim *sim, const struct merge_replica *replica)
{
    for (uint32_t i = 0; i < replica->clock.count; i++) {
        const struct mclock_actor *actor = &replica->clock.actors[i];
        bool writes = actor->closed;

        for (uint32_t j = 0; j < NODES; j++)
            writes |= sim->nodes[j].replica != NULL && sim->nodes[j].replica->actor == actor->actor;
        sim->counts->closed += actor->closed;
        PROMISE(sim, writes, "an actor that has ended is not closed after healing");
    }
}

/* A caller's context brought dots into it that no clock knows, of writes that no disk has any more:
 * that all members know the delete is never told. */
static bool names_what_was_lost(const struct msim *sim, const struct merge_replica *replica,
                                const struct merge_record *record)
{
    for (uint32_t i = 0; i < record->context.count; i++) {
        const struct causal_entry *entry = &record->context.entries[i];
        struct merge_dot dot = { entry->actor, entry->upto };

        for (uint32_t j = 0; !mclock_covers(&replica->clock, dot) && j < sim->write_count; j++)
            if (sim->writes[j].exempt && merge_dot_equal(sim->writes[j].dot, dot))
                return true;
    }
    return false;
}

static const struct merge_replica *judge_members(struct msim *sim)
{
    const struct membership *m = &sim->members.membership;
    const struct merge_replica *first = msim_node(sim, m->members[0])->replica;

    PROMISE(sim, m->new_count == 0, "a joint configuration does not end");
    PROMISE(sim, sim->members.departing_count == 0, "a removed member does not end");
    for (uint32_t i = 0; i < m->count; i++) {
        const struct merge_replica *replica = msim_node(sim, m->members[i])->replica;

        PROMISE(sim, replica != NULL && !replica->syncing, "member %llu never has everything",
                (unsigned long long)m->members[i]);
        PROMISE(
            sim,
            hash128_equal(merge_store_digest(&replica->store), merge_store_digest(&first->store)),
            "members %llu and %llu differ after healing", (unsigned long long)m->members[0],
            (unsigned long long)m->members[i]);
        PROMISE(sim,
                mclock_includes(&replica->clock, &first->clock) &&
                    mclock_includes(&first->clock, &replica->clock),
                "clocks differ after healing");
        for (uint32_t j = 0; j < replica->store.count; j++)
            PROMISE(sim,
                    replica->store.rows[j].record.count > 0 ||
                        names_what_was_lost(sim, replica, &replica->store.rows[j].record),
                    "a delete is still stored though all members know it");
        PROMISE(sim, replica->index.dot_count == 0, "the index keeps dots that all members have");
        judge_actors(sim, replica);
        sim->counts->eras += replica->clock.era > 0;
        judge_counters(sim, replica);
    }
    return first;
}

/* Of what no disk has any more, an era that the clock has forgotten is no sign that it is held. */
static bool is_held(const struct msim *sim, const struct mclock *clock, const struct write *write)
{
    return (!write->exempt || merge_actor_era(write->dot.actor) >= clock->era) &&
           ended_holds(sim, clock, write->dot);
}

static bool has_held_remover(const struct msim *sim, const struct mclock *clock,
                             const struct cell *cell)
{
    for (uint32_t i = 0; i < cell->remover_count; i++)
        if (is_held(sim, clock, &sim->writes[cell->removers[i]]))
            return true;
    return false;
}

static void judge_cell(struct msim *sim, const struct merge_replica *replica,
                       const struct cell *cell)
{
    const struct write *write = &sim->writes[cell->write];
    const struct merge_record *record = merge_store_find(&replica->store, sim->keys[write->key]);
    bool there = record != NULL && has_cell(record, cell);
    uint64_t number = (unsigned long long)cell->write;

    if (cell->erasure < sim->erasures[write->key / FORMS]) {
        PROMISE(sim, !there, "what was erased is there: write %llu", (unsigned long long)number);
        return;
    }
    if (there)
        PROMISE(sim, !has_held_remover(sim, &replica->clock, cell),
                "what was replaced has come back: write %llu", (unsigned long long)number);
    else if (is_held(sim, &replica->clock, write))
        PROMISE(sim, cell->remover_count > 0, "a value is lost: write %llu of key %u",
                (unsigned long long)number, write->key);
}

static bool value_is_as_written(const struct msim *sim, const struct cell *noted,
                                const struct merge_cell *cell)
{
    uint8_t bytes[VALUE_BYTES];
    struct slice wanted = msim_value(sim, sim->writes[noted->write].key, noted->value, bytes);

    return slice_equal(merge_cell_value(cell), wanted);
}

void oracle_healed(struct msim *sim)
{
    const struct merge_replica *replica = judge_members(sim);

    for (uint32_t i = 0; i < sim->write_count; i++)
        PROMISE(sim,
                is_losable(&sim->writes[i]) || was_erased(sim, &sim->writes[i]) ||
                    ended_holds(sim, &replica->clock, sim->writes[i].dot),
                "an acknowledged write is lost: write %u of key %u", i, sim->writes[i].key);
    for (uint32_t i = 0; i < sim->cell_count; i++)
        judge_cell(sim, replica, &sim->cells[i]);
    for (uint32_t i = 0; i < replica->store.count; i++) {
        const struct merge_record *record = &replica->store.rows[i].record;

        for (uint32_t j = 0; record->policy != MERGE_POLICY_COUNTER && j < record->count; j++) {
            uint32_t number = oracle_cell(sim, record->cells[j]);

            PROMISE(sim, number != UINT32_MAX, "a value that no write made");
            const struct cell *cell = &sim->cells[number];

            PROMISE(sim,
                    cell->hlc == record->cells[j]->hlc &&
                        cell->expires_ms == record->cells[j]->expires_ms &&
                        value_is_as_written(sim, cell, record->cells[j]),
                    "a value is not what was written");
        }
    }
}
