/* Pages of a backup that a document fills which no frame holds: its rows are kept as they were at
 * one moment, and told in several pages to the reading that met it there: another one, or a later
 * one, has a rest of its own. A page that is asked for again is told again. */
#include <stdlib.h>

#include "node/core/document/backup_rows.h"
#include "node/io/mergeable/mergers_internal.h"
#include "runtime/base/check.h"

#define PAGE_BYTES_MAX (2u * 1024u * 1024u)
#define ALL_BYTES_MAX  (128u * 1024u * 1024u)
#define QUIET_MS_MAX   60000u
#define TOLD_MS_MAX    5000u /* All of it: its last page may still be asked for again. */

struct merge_rest {
    struct merge_rest *next;
    uint64_t number;
    uint32_t shard, life; /* Whose rows they are. */
    bool last;            /* No record followed. */
    bool told;            /* To the end. */
    uint64_t asked_ms;
    struct buf rows;
};

static void drop_quiet(struct mergers *mergers, uint64_t now_ms)
{
    for (struct merge_rest **at = &mergers->rests; *at != NULL;) {
        struct merge_rest *rest = *at;
        if (now_ms - rest->asked_ms <= (rest->told ? TOLD_MS_MAX : QUIET_MS_MAX)) {
            at = &rest->next;
            continue;
        }
        *at = rest->next;
        buf_deinit(&rest->rows);
        free(rest);
    }
}

void mergers_rests_deinit(struct mergers *mergers)
{
    drop_quiet(mergers, UINT64_MAX);
}

void mergers_rests_tick(struct mergers *mergers, uint64_t now_ms)
{
    drop_quiet(mergers, now_ms);
}

/* From the row at `begin`; at least one. */
static void cut_page(const struct merge_rest *rest, size_t begin, struct backup_page *page)
{
    struct reader reader =
        reader_from((struct slice){ rest->rows.data + begin, rest->rows.size - begin });
    size_t left = reader_left(&reader), end = 0;

    while (reader_left(&reader) > 0) {
        (void)read_bytes(&reader, UINT32_MAX);
        (void)read_bytes(&reader, UINT32_MAX);
        if (end > 0 && left - reader_left(&reader) > PAGE_BYTES_MAX)
            break;
        end = left - reader_left(&reader);
    }
    buf_clear(&page->rows);
    buf_append(&page->rows, rest->rows.data + begin, end);
    page->last = rest->last && end == left;
}

/* Where the rows behind that key begin. False: it is none of them. */
static bool place_behind(const struct merge_rest *rest, struct slice after, size_t *ret_begin)
{
    struct reader reader = reader_from(buf_slice(&rest->rows));

    while (reader_left(&reader) > 0) {
        struct slice key = read_bytes(&reader, UINT32_MAX);

        (void)read_bytes(&reader, UINT32_MAX);
        *ret_begin = rest->rows.size - reader_left(&reader);
        if (slice_equal(key, after))
            return true;
    }
    return false;
}

err mergers_rest_find(struct mergers *mergers, const struct rest_place *place,
                      struct backup_page *page)
{
    struct merge_rest *rest = mergers->rests;
    size_t begin;

    while (rest != NULL && rest->number != place->number)
        rest = rest->next;
    if (rest == NULL || rest->shard != place->shard ||
        rest->life != mergers->shards[place->shard].life ||
        !place_behind(rest, place->after, &begin))
        return ERR_NOT_FOUND;
    rest->asked_ms = loop_now_ms(mergers->options.loop);
    rest->told = begin == rest->rows.size;
    if (!rest->told)
        cut_page(rest, begin, page);
    return ERR_OK;
}

err mergers_rest_keep(struct mergers *mergers, uint32_t shard, struct backup_page *page,
                      uint64_t *ret_number)
{
    uint64_t bytes = page->rows.size;

    *ret_number = 0;
    if (bytes <= PAGE_BYTES_MAX)
        return ERR_OK;
    for (const struct merge_rest *rest = mergers->rests; rest != NULL; rest = rest->next)
        bytes += rest->rows.size;
    if (bytes > ALL_BYTES_MAX)
        return ERR_FULL;
    struct merge_rest *rest = mem_zalloc(sizeof *rest);

    *ret_number = ++mergers->rest_number;
    *rest = (struct merge_rest){ .next = mergers->rests,
                                 .number = *ret_number,
                                 .shard = shard,
                                 .life = mergers->shards[shard].life,
                                 .last = page->last,
                                 .asked_ms = loop_now_ms(mergers->options.loop),
                                 .rows = page->rows };
    page->rows = (struct buf){ 0 };
    mergers->rests = rest;
    cut_page(rest, 0, page);
    return ERR_OK;
}
