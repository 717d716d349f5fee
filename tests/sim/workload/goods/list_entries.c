/* LedgerService.ListEntries: a player's ledger, from either end, filtered, a page at a time. */
#include <string.h>

#include "runtime/base/check.h"
#include "runtime/base/hash.h"
#include "tests/sim/oracle/list.h"
#include "tests/sim/servers/workload.h"

#define KIND(name) HOLDFAST__V1__LEDGER_KIND__LEDGER_KIND_##name

static void encode(const struct sim *sim, const struct sim_op *op, struct request_parts *parts,
                   struct buf *out)
{
    Holdfast__V1__ListEntriesRequest request = HOLDFAST__V1__LIST_ENTRIES_REQUEST__INIT;
    Holdfast__V1__LedgerKind kinds[] = { KIND(GRANT), KIND(TRANSFER) };
    uint32_t filter = op->twist / 16 % 6;

    request.player_id = parts->player;
    request.read = request_read(op, parts);
    request.ascending = op->twist & 1;
    request.page_size = request_page(op, op->twist / 2 % 8, 200);
    request.cursor = request_text(op->cursor);
    request.kinds = kinds;
    if (filter == 0)
        request.n_kinds = 1 + op->twist / 96 % 2;
    else if (filter == 1)
        request.currency = request_text(request_currency(op->twist / 96 % SIM_CURRENCIES));
    else if (filter == 2 && op->uid[0] != '\0')
        request.item_uid = request_text(op->uid);
    else if (filter == 3 && op->target > 0)
        request.op_id = request_text(sim->ops[op->target].id);
    else if (filter == 4)
        request.from_ms = op->around_ms;
    else if (filter == 5)
        request.to_ms = op->around_ms;
    request_pack(&request.base, out);
}

static void taken(struct sim *sim, const struct sim_op *op, struct slice body)
{
    Holdfast__V1__ListEntriesResponse *response =
        holdfast__v1__list_entries_response__unpack(NULL, body.size, body.data);

    CHECK(response != NULL);
    server_ask_on(sim, op, response->next_cursor);
    holdfast__v1__list_entries_response__free_unpacked(response, NULL);
}

static bool has_item(const struct told *t, const struct entry_model *entry, const char *uid)
{
    uint32_t item = goods_item_find(&t->sim->oracle->book, uid);

    for (uint32_t i = 0; i < entry->item_count; i++) {
        if (entry->items[i] == item)
            return true;
    }
    return false;
}

static bool matches(const struct told *t, const struct entry_model *entry)
{
    const Holdfast__V1__ListEntriesRequest *r = (const void *)t->request;
    bool kind = r->n_kinds == 0;

    for (size_t i = 0; i < r->n_kinds; i++)
        kind |= entry->kind == (int)r->kinds[i];
    if (!kind || (r->from_ms > 0 && entry->at_ms < (uint64_t)r->from_ms) ||
        (r->to_ms > 0 && entry->at_ms >= (uint64_t)r->to_ms))
        return false;
    if (r->currency[0] != '\0' && (entry->changed >> model_currency(r->currency) & 1) == 0)
        return false;
    if (r->op_id[0] != '\0' && entry->op_hash != hash_u64(slice_from_text(r->op_id)))
        return false;
    return r->item_uid[0] == '\0' || has_item(t, entry, r->item_uid);
}

static bool same_changes(const struct entry_model *entry, const Holdfast__V1__LedgerEntry *told)
{
    uint32_t seen = 0;

    for (size_t i = 0; i < told->n_changes; i++) {
        const Holdfast__V1__LedgerChange *change = told->changes[i];
        uint32_t currency = model_currency(change->currency);
        seen |= 1u << currency;
        if (change->amount != entry->amounts[currency] ||
            change->balance_after != entry->balances[currency] ||
            change->reserved != entry->reserved[currency])
            return false;
    }
    return seen == entry->changed;
}

/* Of the first version by kind. */
static bool takes_items(const struct entry_model *entry)
{
    if (entry->extended)
        return entry->items_taken;
    return entry->item_count > 0 &&
           (entry->kind == KIND(TRANSFER) || entry->kind == KIND(TXN_TAKE));
}

static bool same(const struct told *t, const struct entry_model *entry,
                 const Holdfast__V1__LedgerEntry *told)
{
    bool alike = told->seq == entry->seq && (int)told->kind == entry->kind &&
                 (uint64_t)told->at_ms == entry->at_ms && told->refers_to == entry->refers_to &&
                 (told->items_taken != 0) == takes_items(entry) &&
                 hash_u64(slice_from_text(told->op_id)) == entry->op_hash &&
                 told->n_items == entry->item_count && told->hash.len == sizeof entry->hash &&
                 memcmp(told->hash.data, entry->hash, sizeof entry->hash) == 0;

    for (uint32_t i = 0; alike && i < entry->item_count; i++)
        alike =
            strcmp(told->items[i]->uid, t->sim->oracle->book.items[entry->items[i] - 1].uid) == 0;
    return alike && same_changes(entry, told);
}

static uint64_t count_until(const struct player_model *player, uint64_t index)
{
    uint64_t count = player->entry_count;

    while (count > 0 && player->entries[count - 1].index > index)
        count--;
    return count;
}

static void check_head(const struct told *t, const struct player_model *player, uint64_t count)
{
    const Holdfast__V1__ListEntriesResponse *response = (const void *)t->response;

    if (response->head_seq != count)
        told_fail(t, "how long the ledger is", response->head_seq, count);
    else if (count > 0 && (response->head_hash.len != 32 ||
                           memcmp(response->head_hash.data, player->entries[count - 1].hash, 32)))
        told_fail(t, "what the ledger ends in", count, count);
}

static void told(const struct told *t)
{
    const Holdfast__V1__ListEntriesRequest *request = (const void *)t->request;
    const Holdfast__V1__ListEntriesResponse *response = (const void *)t->response;
    const struct player_model *player = told_player(t);
    size_t size = request->page_size > 0 ? request->page_size : 50;
    uint64_t index = told_index(t), from = list_from(t, request->cursor);
    size_t at = 0;

    if (index == 0 || from == LIST_UNKNOWN)
        return;
    uint64_t count = count_until(player, index);
    check_head(t, player, count);
    for (uint64_t i = 0; i < count && t->sim->failure[0] == '\0'; i++) {
        const struct entry_model *entry = &player->entries[request->ascending ? i : count - 1 - i];
        bool before = from > 0 && (request->ascending ? entry->seq <= from : entry->seq >= from);
        if (before || !matches(t, entry) || at == size)
            continue;
        if (at == response->n_entries || !same(t, entry, response->entries[at])) {
            told_fail(t, "an entry of the ledger is told otherwise, or not at all", at, entry->seq);
            return;
        }
        from = entry->seq;
        at++;
    }
    if (response->n_entries != at)
        told_fail(t, "more entries than there are", response->n_entries, at);
    else if (at > 0 && response->next_cursor[0] != '\0') /* There may be none behind it. */
        list_goes_on(t, response->next_cursor, true, from);
    else if (at == size && from != (request->ascending ? count : 1) && request->n_kinds == 0 &&
             request->currency[0] + request->item_uid[0] + request->op_id[0] == 0 &&
             request->from_ms + request->to_ms == 0)
        told_fail(t, "no next page of a ledger that goes on", from, count);
}

const struct workload_row workload_list_entries = {
    .method = METHOD_LIST_ENTRIES,
    .shares = { [WISH_READ] = { .place = 2, .weight = 6 } },
    .encode = encode,
    .taken = taken,
    .rule = { .about_another = true, .told = told },
};
