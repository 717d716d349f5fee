#include "node/core/document/backup_rows.h"

#include <inttypes.h>
#include <string.h>

#include "node/core/codec/json_canon.h"
#include "node/core/mergeable/absorb.h"
#include "node/core/mergeable/message.h"
#include "node/core/mergeable/tally.h"
#include "runtime/base/check.h"
#include "runtime/base/utf8.h"

#define NUMBER_BYTES    8u
#define TAIL_BYTES      3u /* A zero, and the number of the part. */
#define KEY_BYTES_MAX   512u
#define PARTS_MAX       UINT16_MAX
#define PART_BYTES_MAX  (256u * 1024u)
#define VALUE_BYTES_MAX (PART_BYTES_MAX + MERGE_VALUE_BYTES_MAX + 4096u)
#define LARGE_BYTES     (512u * 1024u) /* That a record may pass the end of a page by. */
#define TOLD_BYTES      65u            /* Of a name in an error. */
#define UNNUMBERED      1u             /* The actor of cells in a backup. */

/* ---- cells under other dots ---- */

/* A fold says which dots of its actor are in it; here it becomes an increment like others. */
static bool unfold(struct slice value, struct buf *ret_value)
{
    struct merge_tally tally;

    if (merge_tally_decode(value, &tally) != ERR_OK || tally.rank == 0)
        return false;
    tally.rank = 0;
    merge_tally_encode(&tally, ret_value);
    return true;
}

static void add_cell(struct merge_record *record, const struct merge_cell *cell,
                     struct merge_dot dot)
{
    struct merge_cell_form form = { .path = merge_cell_path(cell),
                                    .value = merge_cell_value(cell),
                                    .dot = dot,
                                    .hlc = cell->hlc,
                                    .expires_ms = cell->expires_ms,
                                    .op = cell->op };
    struct buf value = { 0 };

    if (record->policy == MERGE_POLICY_COUNTER && unfold(form.value, &value))
        form.value = buf_slice(&value);
    merge_record_add(record, merge_cell_new(&form));
    buf_deinit(&value);
}

/* Cells stand in the order of path and dot; the new dots keep it. */
static void add_cells(struct merge_record *record, const struct merge_record *from, uint32_t begin,
                      uint32_t end, struct merge_dot before)
{
    for (uint32_t i = begin; i < end; i++) {
        before.counter++;
        if (!causal_covers(&record->context, before))
            add_cell(record, from->cells[i], before);
    }
}

/* ---- rows of a backup ---- */

static err refuse_rows(struct document_context *context)
{
    return refuse_invalid(context->arena, context->refusal, "rows",
                          "rows as ReadDocuments gives them", "");
}

static const struct document_rule *rule_at(const struct document_rules *rules, uint64_t number)
{
    for (uint32_t i = 0; i < rules->count; i++) {
        if (rules->list[i].number == number)
            return &rules->list[i];
    }
    return NULL;
}

static uint64_t number_of(const struct merge_key *key)
{
    struct slice name = merge_key_name(key);
    struct reader reader = reader_from(name);

    return name.size < NUMBER_BYTES ? UINT64_MAX : read_u64_be(&reader);
}

static void put_key(const struct merge_key *key, uint32_t part, struct buf *out)
{
    struct slice entity = merge_key_entity(key), name = merge_key_name(key);

    buf_put_u32(out, (uint32_t)(entity.size + 1 + name.size + TAIL_BYTES));
    buf_append(out, entity.data, entity.size);
    buf_put_u8(out, 0);
    buf_append(out, name.data, name.size);
    buf_put_u8(out, 0);
    buf_put_u16_be(out, (uint16_t)part);
}

static void put_value(const char *collection, const struct merge_record *record, struct buf *out)
{
    struct buf value = { 0 };

    buf_put_u8(&value, (uint8_t)strlen(collection));
    buf_append(&value, collection, strlen(collection));
    merge_record_encode(record, &value);
    buf_put_bytes(out, buf_slice(&value));
    buf_deinit(&value);
}

/* The cells from `begin` that fit one row. */
static uint32_t end_of_part(const struct merge_record *record, uint32_t begin)
{
    uint64_t bytes = 0;
    uint32_t end = begin;

    while (end < record->count && bytes < PART_BYTES_MAX) {
        bytes += record->cells[end]->path_size + record->cells[end]->value_size + 64u;
        end++;
    }
    return end;
}

/* One record may be larger than a row: its members may have written much at once. */
static void put_record(const struct merge_row *row, const char *collection, struct buf *out)
{
    uint32_t begin = 0;

    for (uint32_t part = 0; begin < row->record.count && part <= PARTS_MAX; part++) {
        uint32_t end = end_of_part(&row->record, begin);
        struct merge_record made = { .policy = row->record.policy, .erasure = row->record.erasure };

        add_cells(&made, &row->record, begin, end, (struct merge_dot){ .actor = UNNUMBERED });
        causal_deinit(&made.context);
        made.context = (struct causal){ 0 };
        put_key(row->key, part, out);
        put_value(collection, &made, out);
        merge_record_deinit(&made);
        begin = end;
    }
}

/* The key of a row of whatever part. ERR_CORRUPT: malformed. */
static err key_decode(struct slice bytes, struct merge_key **ret_key, uint32_t *ret_part)
{
    const uint8_t *zero = bytes.size > 0 ? memchr(bytes.data, 0, bytes.size) : NULL;
    struct slice entity = { bytes.data, zero != NULL ? (size_t)(zero - bytes.data) : 0 };

    if (zero == NULL || bytes.size < entity.size + 1 + NUMBER_BYTES + 1 + TAIL_BYTES)
        return ERR_CORRUPT;
    struct slice name = { zero + 1, bytes.size - entity.size - 1 - TAIL_BYTES };
    struct reader tail = reader_from((struct slice){ name.data + name.size, TAIL_BYTES });

    if (read_u8(&tail) != 0)
        return ERR_CORRUPT;
    *ret_part = read_u16_be(&tail);
    return merge_key_new(entity, name, ret_key) == ERR_OK ? ERR_OK : ERR_CORRUPT;
}

static err find_after(struct document_context *context, struct slice after, uint32_t *ret_place)
{
    struct merge_key *key = NULL;
    uint32_t part;

    *ret_place = 0;
    if (after.size == 0)
        return ERR_OK;
    if (key_decode(after, &key, &part) != ERR_OK)
        return refuse_invalid(context->arena, context->refusal, "after",
                              "the key of the last row of a page", "");
    *ret_place = merge_store_after(&context->replica->store, key);
    merge_key_unref(key);
    return ERR_OK;
}

err backup_rows_read(struct document_context *context, struct slice after, uint32_t bytes_max,
                     struct backup_page *ret_page)
{
    const struct merge_store *store = &context->replica->store;
    struct buf *rows = &ret_page->rows;
    uint32_t at;
    err e = find_after(context, after, &at);

    if (e != ERR_OK)
        return e;
    for (; at < store->count && (rows->size == 0 || rows->size < bytes_max); at++) {
        const struct merge_row *row = &store->rows[at];
        uint64_t number = number_of(row->key);
        const struct document_rule *rule = number > 0 ? rule_at(context->rules, number) : NULL;

        if (number > 0 && rule == NULL && !context->rules->complete)
            return document_unavailable(context,
                                        "this member does not know a collection of documents yet");
        if (number > 0 && rule == NULL) {
            ret_page->left_out++;
            continue;
        }
        size_t before = rows->size;

        if (rule == NULL || !rule->deleted)
            put_record(row, rule != NULL ? rule->name : "", rows);
        if (before > 0 && rows->size > (uint64_t)bytes_max + LARGE_BYTES) {
            rows->size = before; /* It has the next page for itself. */
            break;
        }
    }
    ret_page->last = at == store->count;
    return ERR_OK;
}

bool backup_rows_any(const struct document_rules *rules, const struct merge_store *store)
{
    for (uint32_t i = 0; i < store->count; i++) {
        const struct merge_row *row = &store->rows[i];

        if (row->record.count > 0 && !document_rules_deleted(rules, number_of(row->key)))
            return true;
    }
    return false;
}

/* ---- back ---- */

struct row {
    struct merge_key *key; /* Under the number that the collection has here. A reference. */
    uint32_t part;
    struct merge_record record; /* Of the backup's cells. */
};

static void row_deinit(struct row *row)
{
    merge_key_unref(row->key);
    merge_record_deinit(&row->record);
}

static err no_such_collection(struct document_context *context, struct slice name)
{
    return refuse(context->arena, context->refusal, CODE(NOT_FOUND), "rows",
                  "the backup has documents of a collection \"%.*s\", which is not defined here: "
                  "define it as it was, and restore again",
                  (int)name.size, (const char *)name.data);
}

/* The number of the collection here; 0: presence. */
static err number_here(struct document_context *context, struct slice name,
                       enum merge_policy policy, uint64_t *ret_number)
{
    const struct document_rule *rule =
        name.size > 0 ? document_rules_find(context->rules, name) : NULL;

    if (name.size > 0 && rule == NULL && !context->rules->complete)
        return document_unavailable(context, "this member has not read all definitions yet");
    if (name.size > 0 && rule == NULL)
        return no_such_collection(context, name);
    if (policy != (rule != NULL ? rule->policy : MERGE_POLICY_MERGE))
        return refuse_invalid(
            context->arena, context->refusal, "rows",
            "documents of collections that have the policy of the backup",
            arena_printf(context->arena, "%.*s", (int)name.size, (const char *)name.data));
    *ret_number = rule != NULL ? rule->number : 0;
    return ERR_OK;
}

/* The same key under another number. */
static struct merge_key *key_under(const struct merge_key *key, uint64_t number)
{
    struct slice name = merge_key_name(key);
    struct merge_key *made;
    struct buf bytes = { 0 };

    buf_put_u32_be(&bytes, (uint32_t)(number >> 32));
    buf_put_u32_be(&bytes, (uint32_t)number);
    buf_append(&bytes, name.data + NUMBER_BYTES, name.size - NUMBER_BYTES);
    CHECK(merge_key_new(merge_key_entity(key), buf_slice(&bytes), &made) == ERR_OK);
    buf_deinit(&bytes);
    return made;
}

/* Answers are printed from it as it stands. */
static bool cell_is_sound(const struct merge_record *record, const struct merge_cell *cell)
{
    const char *why;

    if (!utf8_valid(merge_cell_path(cell)))
        return false;
    if (record->policy == MERGE_POLICY_SET || record->policy == MERGE_POLICY_COUNTER)
        return true;
    json_t *value = json_canon_parse(merge_cell_value(cell), &why);

    json_decref(value);
    return value != NULL;
}

/* Those of no collection are shown from a tree: what is unsound in them is left out there. */
static err check_cells(struct document_context *context, const struct row *row,
                       struct slice collection)
{
    struct slice name = merge_key_name(row->key);
    char entity[TOLD_BYTES], key[TOLD_BYTES], path[TOLD_BYTES];

    for (uint32_t i = 0; collection.size > 0 && i < row->record.count; i++) {
        const struct merge_cell *cell = row->record.cells[i];

        if (cell_is_sound(&row->record, cell))
            continue;
        utf8_snippet(entity, sizeof entity, merge_key_entity(row->key));
        utf8_snippet(key, sizeof key,
                     (struct slice){ name.data + NUMBER_BYTES, name.size - NUMBER_BYTES });
        utf8_snippet(path, sizeof path, merge_cell_path(cell));
        return refuse_invalid(context->arena, context->refusal, "rows",
                              "documents whose paths are UTF-8 and whose values are JSON",
                              arena_printf(context->arena, "%.*s of %s, key \"%s\", path \"%s\"",
                                           (int)collection.size, (const char *)collection.data,
                                           entity, key, path));
    }
    return ERR_OK;
}

static err value_decode(struct slice bytes, struct slice *ret_collection,
                        struct merge_record *ret_record)
{
    struct reader reader = reader_from(bytes);
    struct slice name = read_raw(&reader, read_u8(&reader));

    if (reader.bad || name.size > DOCUMENT_NAME_BYTES_MAX ||
        merge_record_decode(&reader, ret_record) != ERR_OK)
        return ERR_CORRUPT;
    *ret_collection = name;
    if (reader_finish(&reader) == ERR_OK && ret_record->count > 0 &&
        causal_is_empty(&ret_record->context) && causal_is_empty(&ret_record->recent))
        return ERR_OK;
    merge_record_deinit(ret_record);
    return ERR_CORRUPT;
}

static err row_decode(struct document_context *context, struct slice key_bytes, struct slice value,
                      struct row *ret_row)
{
    struct merge_key *key;
    struct row row = { 0 };
    struct slice collection;
    uint64_t number = 0;

    if (key_decode(key_bytes, &key, &row.part) != ERR_OK)
        return refuse_rows(context);
    if (value_decode(value, &collection, &row.record) != ERR_OK) {
        merge_key_unref(key);
        return refuse_rows(context);
    }
    err e = number_here(context, collection, row.record.policy, &number);

    if (e == ERR_OK)
        row.key = key_under(key, number);
    merge_key_unref(key);
    if (e == ERR_OK)
        e = check_cells(context, &row, collection);
    if (e == ERR_OK)
        *ret_row = row;
    else
        row_deinit(&row);
    return e;
}

/* A later part of a record comes beside what the parts before it brought: alone it would say that
 * those cells were taken away. */
static err row_absorb(struct document_context *context, const struct row *row,
                      struct merge_dot before)
{
    struct merge_replica *replica = context->replica;
    struct merge_record made = { .policy = row->record.policy, .erasure = row->record.erasure };
    const struct merge_record *stored = merge_store_find(&replica->store, row->key);

    if (row->part > 0 && stored != NULL && stored->erasure == made.erasure)
        merge_record_full(replica, row->key, &made);
    add_cells(&made, &row->record, 0, row->record.count, before);
    const struct merge_incoming incoming = { .key = row->key, .record = &made };
    err e = merge_absorb_logged(replica, &incoming);

    merge_record_deinit(&made);
    if (e == ERR_INVALID)
        return refuse_rows(context);
    return e == ERR_OK ? e : document_unavailable(context, "this member cannot take in more now");
}

err backup_rows_put(struct document_context *context, const struct backup_part *part,
                    uint64_t *ret_next)
{
    struct reader reader = reader_from(part->rows);
    struct merge_dot at = { part->actor, part->first };

    if (part->first > MCLOCK_COUNTER_MAX - BACKUP_ROWS_BYTES_MAX)
        return refuse_rows(context);
    const struct mclock_actor *actor = mclock_find(&context->replica->clock, part->actor);

    if (actor != NULL && actor->closed)
        return document_unavailable(context, "this member has ended the restore of that part");
    if (mclock_floor(&context->replica->clock, part->actor) < part->first)
        return document_unavailable(context,
                                    "this member does not have the parts before this one yet");
    while (reader_left(&reader) > 0) {
        struct slice key = read_bytes(&reader, KEY_BYTES_MAX);
        struct slice value = read_bytes(&reader, VALUE_BYTES_MAX);
        struct row row;

        if (reader.bad)
            return refuse_rows(context);
        err e = row_decode(context, key, value, &row);

        if (e != ERR_OK)
            return e;
        e = row_absorb(context, &row, at);
        at.counter += row.record.count;
        row_deinit(&row);
        if (e != ERR_OK)
            return e;
    }
    *ret_next = at.counter;
    return ERR_OK;
}

/* ---- how far it is ---- */

static bool has(const struct merge_replica *replica, uint64_t member, struct merge_dot last)
{
    if (member == replica->options.member)
        return mclock_floor(&replica->clock, last.actor) >= last.counter &&
               replica->log_durable == replica->log_end;
    for (uint32_t i = 0; i < replica->peer_count; i++) {
        const struct merge_peer *peer = &replica->peers[i];

        if (peer->member == member)
            return peer->reported && mclock_floor(&peer->clock, last.actor) >= last.counter;
    }
    return false;
}

static bool has_majority(const struct merge_replica *replica, const uint64_t *members,
                         uint32_t count, struct merge_dot last)
{
    uint32_t have = 0;

    for (uint32_t i = 0; i < count; i++)
        have += has(replica, members[i], last);
    return count == 0 || have >= count / 2 + 1;
}

bool backup_cells_are_whole(const struct merge_replica *replica, uint64_t actor, uint64_t cells)
{
    const struct membership *m = &replica->members.membership;
    const struct merge_dot last = { actor, cells };

    return has_majority(replica, m->members, m->count, last) &&
           has_majority(replica, m->new_members, m->new_count, last);
}
