/* Pages of a backup that a document fills which no frame holds: its rows are kept as they were at
 * one moment, and told in several pages. A page that is asked for again is told again. */
#include <stdlib.h>

#include "node/core/document/backup_rows.h"
#include "node/io/mergeable/mergers_internal.h"
#include "runtime/base/check.h"

#define PAGE_BYTES_MAX (2u * 1024u * 1024u)
#define ALL_BYTES_MAX  (128u * 1024u * 1024u)
#define QUIET_MS_MAX   60000u

struct merge_rest {
    struct merge_rest *next;
    uint32_t shard, life; /* Whose rows they are. */
    bool last;            /* No record follows. */
    uint64_t asked_ms;
    struct buf rows;
};

static void drop_quiet(struct mergers *mergers, uint64_t now_ms)
{
    for (struct merge_rest **at = &mergers->rests; *at != NULL;) {
        struct merge_rest *rest = *at;
        if (now_ms - rest->asked_ms <= QUIET_MS_MAX) {
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

/* Where the rows behind that key begin; 0: it is none of them, or the last. */
static size_t place_behind(const struct merge_rest *rest, struct slice after)
{
    struct reader reader = reader_from(buf_slice(&rest->rows));

    while (reader_left(&reader) > 0) {
        struct slice key = read_bytes(&reader, UINT32_MAX);

        (void)read_bytes(&reader, UINT32_MAX);
        if (slice_equal(key, after))
            return reader_left(&reader) > 0 ? rest->rows.size - reader_left(&reader) : 0;
    }
    return 0;
}

bool mergers_rest_find(struct mergers *mergers, uint32_t shard, struct slice after,
                       struct backup_page *page)
{
    for (struct merge_rest *rest = mergers->rests; rest != NULL; rest = rest->next) {
        if (rest->shard != shard || rest->life != mergers->shards[shard].life)
            continue;
        size_t begin = place_behind(rest, after);

        if (begin == 0)
            continue;
        rest->asked_ms = loop_now_ms(mergers->options.loop);
        cut_page(rest, begin, page);
        return true;
    }
    return false;
}

err mergers_rest_keep(struct mergers *mergers, uint32_t shard, struct backup_page *page)
{
    uint64_t bytes = page->rows.size;

    if (bytes <= PAGE_BYTES_MAX)
        return ERR_OK;
    for (const struct merge_rest *rest = mergers->rests; rest != NULL; rest = rest->next)
        bytes += rest->rows.size;
    if (bytes > ALL_BYTES_MAX)
        return ERR_FULL;
    struct merge_rest *rest = mem_zalloc(sizeof *rest);

    *rest = (struct merge_rest){ .next = mergers->rests,
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
