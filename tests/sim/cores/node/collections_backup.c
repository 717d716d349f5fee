/* A backup of the documents, and a restore into a new cluster: all that stands comes back, under
 * other numbers, however the pages and the parts are cut; no context of before holds. */
#include <inttypes.h>
#include <string.h>

#include "node/core/document/backup_rows.h"
#include "node/core/mergeable/rounds.h"
#include "runtime/base/check.h"
#include "tests/sim/cores/node/collections.h"

#define ACTOR 0xabcdefull

static struct document_context context_at(struct hall *h, uint32_t member)
{
    struct document_context context = pair_context(&h->pair, (int)member);

    h->pair.refusal = (struct refusal){ 0 };
    return context;
}

/* The rows of member 0, page by page. */
static void back_up(struct hall *h, struct buf *rows)
{
    struct document_context context = context_at(h, 0);
    struct backup_page page = { 0 };
    struct buf after = { 0 };

    while (!page.last) {
        struct slice key = { 0 };

        buf_clear(&page.rows);
        err e = backup_rows_read(&context, buf_slice(&after),
                                 (uint32_t)rsim_between(h->sim, 1, 900), &page);

        PROMISE(h->sim, e == ERR_OK && page.left_out == 0, "a page of a backup is refused");
        PROMISE(h->sim, page.last || page.rows.size > 0, "a page of a backup has nothing");
        buf_append(rows, page.rows.data, page.rows.size);
        struct reader reader = reader_from(buf_slice(&page.rows));

        while (reader_left(&reader) > 0) {
            key = read_bytes(&reader, UINT32_MAX);
            (void)read_bytes(&reader, UINT32_MAX);
        }
        buf_clear(&after);
        buf_append(&after, key.data, key.size);
    }
    buf_deinit(&after);
    buf_deinit(&page.rows);
}

/* Into one member, a few rows at a time; each part may come twice. Cells in all. */
static uint64_t put_back(struct hall *h, uint32_t member, struct slice rows)
{
    struct reader reader = reader_from(rows);
    uint64_t next = 0;

    while (reader_left(&reader) > 0) {
        const uint8_t *begin = reader.at;
        uint64_t first = next, again = 0;

        for (uint64_t i = rsim_between(h->sim, 1, 4); i > 0 && reader_left(&reader) > 0; i--) {
            (void)read_bytes(&reader, UINT32_MAX);
            (void)read_bytes(&reader, UINT32_MAX);
        }
        const struct backup_part part = { ACTOR, first, { begin, (size_t)(reader.at - begin) } };
        const struct backup_part later = { ACTOR, first + 1, part.rows };
        struct document_context context = context_at(h, member);

        PROMISE(h->sim, backup_rows_put(&context, &later, &again) != ERR_OK,
                "a part is taken before those that come first");
        context = context_at(h, member);
        PROMISE(h->sim, backup_rows_put(&context, &part, &next) == ERR_OK, "a part is refused: %s",
                h->pair.refusal.message);
        PROMISE(h->sim, backup_rows_put(&context, &part, &again) == ERR_OK && again == next,
                "a part that comes again is another one");
    }
    return next;
}

static void check_bad(struct hall *h)
{
    struct document_context context = context_at(h, 0);
    struct backup_page page = { 0 };
    uint64_t next;

    PROMISE(h->sim, backup_rows_read(&context, SLICE_LITERAL("k"), 100, &page) != ERR_OK,
            "rows behind what is no key are told");
    PROMISE(h->sim, h->pair.refusal.code != 0, "a refusal has no code");
    context = context_at(h, 0);
    PROMISE(h->sim,
            backup_rows_put(&context,
                            &(struct backup_part){ ACTOR, 0, SLICE_LITERAL("\0\0\0\1x\0\0\0\1y") },
                            &next) != ERR_OK,
            "what is no row is taken");
    buf_deinit(&page.rows);
}

static bool any_stands(const struct hall *h)
{
    bool any = false;

    for (uint32_t i = 0; i < SHELVES; i++) {
        for (uint32_t k = 0; k < SHELF_PAPERS && !h->shelves[i].deleted; k++)
            any |= paper_count(&h->shelves[i].papers[k], h->shelves[i].papers[k].known[0]) > 0;
    }
    return any;
}

static void renew(struct hall *h)
{
    struct pair old = h->pair;

    for (uint32_t i = 0; i < TICKETS_MAX; i++)
        h->done[i].told.ticket = 0;
    pair_init(&h->pair);
    h->pair.now_ms = old.now_ms;
    for (uint32_t i = 0; i < PAPER_MEMBERS; i++) {
        h->pair.replicas[i]->restoring = true;
        h->heard_ms[i] = 0;
    }
    for (uint32_t i = SHELVES; i-- > 0;) {
        h->shelves[i].number = 1000 + ++h->numbers;
        h->shelves[i].version = 0;
        shelf_define(h, &h->shelves[i]);
    }
    h->pair.rules.complete = true;
    pair_deinit(&old);
}

void hall_restore(struct hall *h)
{
    struct buf rows = { 0 };
    uint64_t cells[PAPER_MEMBERS];

    hall_exchange(h);
    check_bad(h);
    back_up(h, &rows);
    PROMISE(h->sim, (rows.size > 0) || !any_stands(h), "a backup has nothing");
    PROMISE(h->sim, (rows.size > 0) == backup_rows_any(&h->pair.rules, &h->pair.replicas[0]->store),
            "whether a backup has rows is told otherwise");
    renew(h);
    cells[0] = put_back(h, 0, buf_slice(&rows));
    PROMISE(h->sim, cells[0] == 0 || !backup_cells_are_whole(h->pair.replicas[0], ACTOR, cells[0]),
            "one member is taken for a majority");
    if (rsim_chance(h->sim, 50)) {
        cells[1] = put_back(h, 1, buf_slice(&rows));
        PROMISE(h->sim, cells[0] == cells[1], "a restore makes other cells at another member");
    }
    for (uint32_t i = 0; i < 3; i++) {
        h->pair.now_ms += WAITS_REPORT_MS;
        for (uint32_t k = 0; k < PAPER_MEMBERS; k++)
            merge_tick(h->pair.replicas[k], h->pair.now_ms);
        hall_exchange(h);
    }
    PROMISE(h->sim, backup_cells_are_whole(h->pair.replicas[0], ACTOR, cells[0]),
            "what both members have is not whole");
    PROMISE(h->sim, !backup_cells_are_whole(h->pair.replicas[0], ACTOR, cells[0] + 1),
            "more than there is is whole");
    for (uint32_t i = 0; i < PAPER_MEMBERS; i++)
        h->pair.replicas[i]->restoring = false;
    h->sim->counts.collections_restored += cells[0] > 0;
    buf_deinit(&rows);
}
