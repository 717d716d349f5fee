/* What lists of one player may tell, as of an entry: its ledger, items, reservations and mail.
 * Pages go on where the one before ended. Part of the model. */
#include <stdlib.h>
#include <string.h>

#include "runtime/base/check.h"
#include "runtime/base/hash.h"
#include "tests/sim/oracle/list.h"

/* ---- pages ---- */
/* A cursor stands for a place in one list; 0: the beginning. */
uint64_t list_from(const struct told *t, const char *cursor)
{
    const struct oracle *oracle = t->sim->oracle;
    uint64_t hash = hash_u64(slice_from_text(cursor));

    if (cursor[0] == '\0')
        return 0;
    for (uint32_t i = 0; i < LIST_CURSORS; i++) {
        if (oracle->cursors[i].hash == hash)
            return oracle->cursors[i].place;
    }
    return LIST_UNKNOWN;
}

void list_goes_on(const struct told *t, const char *next_cursor, bool more, uint64_t place)
{
    struct oracle *oracle = t->sim->oracle;

    t->sim->counts.pages_told += more;
    if ((next_cursor[0] != '\0') != more) {
        told_fail(t, "whether there is another page", next_cursor[0] != '\0', more);
        return;
    }
    if (!more)
        return;
    oracle->cursors[oracle->cursor_count % LIST_CURSORS].hash =
        hash_u64(slice_from_text(next_cursor));
    oracle->cursors[oracle->cursor_count++ % LIST_CURSORS].place = place;
}

/* ---- items ---- */
static int by_uid(const void *a, const void *b)
{
    const struct listed_item *left = a, *right = b;

    return strcmp(left->item->uid, right->item->uid);
}

/* By UID; what this shard has of an item as of the entry is its last step here. */
uint32_t list_items(const struct told *t, uint64_t index, struct listed_item **ret_items)
{
    const struct goods_book *book = &t->sim->oracle->book;
    const struct step_model **last = mem_zalloc(sizeof(void *) * (book->item_count + 1));
    uint32_t player = (uint32_t)(told_player(t) - t->sim->oracle->players);
    uint32_t count = 0;

    for (uint32_t i = 0; i < book->step_count; i++) {
        const struct step_model *step = &book->steps[i];
        if (step->shard == t->call->shard && step->index <= index)
            last[step->item] = step;
    }
    *ret_items = mem_alloc(sizeof **ret_items * (book->item_count + 1));
    for (uint32_t i = 1; i <= book->item_count; i++) {
        if (last[i] != NULL && last[i]->held && last[i]->player == player)
            (*ret_items)[count++] = (struct listed_item){ &book->items[i - 1], last[i]->number };
    }
    free(last);
    qsort(*ret_items, count, sizeof **ret_items, by_uid);
    return count;
}

bool list_is_item(const struct listed_item *item, const Holdfast__V1__Item *told)
{
    return strcmp(told->uid, item->item->uid) == 0 && strcmp(told->kind, item->item->kind) == 0 &&
           strcmp(told->attributes, item->item->attributes) == 0 && told->step == item->step &&
           (uint64_t)told->minted_at_ms == item->item->minted_ms;
}

/* ---- reservations ---- */
static int by_entry(const void *a, const void *b)
{
    const struct op_model *const *left = a, *const *right = b;

    return (*left)->ledger_seq < (*right)->ledger_seq ? -1 : 1;
}

uint32_t list_reservations(const struct told *t, uint64_t index, const struct op_model **ret_ops)
{
    const struct oracle *oracle = t->sim->oracle;
    uint32_t player = (uint32_t)(told_player(t) - oracle->players);
    uint32_t count = 0;

    for (uint32_t i = 0; i < oracle->op_count && count < LIST_RESERVATIONS; i++) {
        const struct op_model *op = &oracle->ops[i];
        if (op->ledger_seq > 0 && op->player == player && op->index > 0 && op->index <= index &&
            (op->closed_index == 0 || op->closed_index > index))
            ret_ops[count++] = op;
    }
    qsort(ret_ops, count, sizeof *ret_ops, by_entry);
    return count;
}

/* ---- mail ---- */
static int by_id(const void *a, const void *b)
{
    const struct mail_model *const *left = a, *const *right = b;

    return strcmp((*left)->id, (*right)->id);
}

uint32_t list_mails(const struct told *t, uint64_t index, const struct mail_model **ret_mails)
{
    const struct goods_book *book = &t->sim->oracle->book;
    uint32_t player = (uint32_t)(told_player(t) - t->sim->oracle->players);
    uint32_t count = 0;

    for (uint32_t i = 0; i < book->mail_count && count < LIST_MAILS; i++) {
        const struct mail_model *mail = &book->mails[i];
        if (mail->player == player && mail->came_index <= index &&
            (!mail->gone || mail->gone_index > index))
            ret_mails[count++] = mail;
    }
    qsort(ret_mails, count, sizeof *ret_mails, by_id);
    return count;
}
