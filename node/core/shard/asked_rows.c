#include "node/core/shard/asked_rows.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/base/check.h"
#include "runtime/base/hash.h"

static struct asked_row *row_of(struct hash_link *link)
{
    return link != NULL ? CONTAINER_OF(link, struct asked_row, link) : NULL;
}

static struct slice key_of(const struct asked_row *row)
{
    return (struct slice){ row->key, row->key_bytes };
}

struct asked_row *asked_rows_find(const struct asked_rows *rows, struct slice key)
{
    struct asked_row *row = row_of(link_table_first(&rows->table, hash_u64(key)));

    while (row != NULL && !slice_equal(key_of(row), key))
        row = row_of(hash_link_next(&row->link));
    return row;
}

bool asked_rows_add(struct asked_rows *rows, struct slice key, struct asked_row **ret_row)
{
    struct asked_row *row = asked_rows_find(rows, key);
    bool ask = row == NULL || row->again;

    if (row == NULL) {
        row = mem_zalloc(sizeof *row + key.size);
        row->key_bytes = (uint32_t)key.size;
        if (key.size > 0)
            memcpy(row->key, key.data, key.size);
        link_table_add(&rows->table, &row->link, hash_u64(key));
    }
    row->again = false;
    *ret_row = row;
    return ask;
}

void asked_rows_remove(struct asked_rows *rows, struct asked_row *row)
{
    CHECK(row->first == NULL);
    link_table_remove(&rows->table, &row->link);
    free(row);
}

void asked_rows_check(const struct asked_rows *rows)
{
    link_table_check(&rows->table);
    for (uint32_t i = 0; i < rows->table.capacity; i++) {
        struct hash_link *link = rows->table.heads[i];
        for (const struct asked_row *row = row_of(link); row != NULL;
             row = row_of(row->link.next)) {
            CHECK(asked_rows_find(rows, key_of(row)) == row);
            CHECK((row->first == NULL) == (row->last == NULL));
        }
    }
}

void asked_rows_deinit(struct asked_rows *rows)
{
    for (uint32_t i = 0; i < rows->table.capacity && rows->table.count > 0; i++) {
        while (rows->table.count > 0 && rows->table.heads[i] != NULL)
            asked_rows_remove(rows, row_of(rows->table.heads[i]));
    }
    link_table_deinit(&rows->table);
}

void row_waiter_begin(struct row_waiter *waiter, struct asked_row *row)
{
    CHECK(waiter->row == NULL);
    *waiter = (struct row_waiter){ .previous = row->last, .row = row };
    if (row->last != NULL)
        row->last->next = waiter;
    else
        row->first = waiter;
    row->last = waiter;
}

void row_waiter_end(struct row_waiter *waiter)
{
    struct asked_row *row = waiter->row;

    if (row == NULL)
        return;
    if (waiter->previous != NULL)
        waiter->previous->next = waiter->next;
    else
        row->first = waiter->next;
    if (waiter->next != NULL)
        waiter->next->previous = waiter->previous;
    else
        row->last = waiter->previous;
    *waiter = (struct row_waiter){ 0 };
}
