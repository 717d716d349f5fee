#include "client/cli/top/top_page.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "client/cli/console/output.h"

#define LINE_BYTES  256
#define CELL_BYTES  24
#define HEIGHT_MIN  8u
#define METHODS_MIN 3u

struct page {
    const struct top_page_options *options;
    struct buf *out;
    uint32_t lines;
};

static uint32_t lines_left(const struct page *page)
{
    uint32_t height = page->options->height;

    if (height == 0)
        return UINT32_MAX;
    height = height < HEIGHT_MIN ? HEIGHT_MIN : height;
    return height > page->lines ? height - page->lines : 0;
}

/* Names come from elsewhere: nothing in them may move the cursor. */
static void put_printable(struct buf *out, const char *text, size_t size)
{
    for (size_t i = 0; i < size; i++)
        buf_put_u8(out, text[i] >= 0x20 && text[i] <= 0x7e ? (uint8_t)text[i] : '?');
}

__attribute__((format(printf, 2, 3))) static void line(struct page *page, const char *format, ...)
{
    char text[LINE_BYTES];
    va_list list;

    if (lines_left(page) == 0)
        return;
    va_start(list, format);
    int wanted = vsnprintf(text, sizeof text, format, list);
    va_end(list);
    size_t size = wanted < (int)sizeof text ? (size_t)wanted : sizeof text - 1;
    if (page->options->width > 0 && size > page->options->width)
        size = page->options->width;
    while (size > 0 && text[size - 1] == ' ')
        size--;
    put_printable(page->out, text, size);
    buf_put_u8(page->out, '\n');
    page->lines++;
}

/* ---- cells ---- */

static const char *rate_text(double rate, char cell[CELL_BYTES])
{
    if (rate < 0)
        snprintf(cell, CELL_BYTES, "-");
    else if (rate < 9.95)
        snprintf(cell, CELL_BYTES, "%.1f", rate);
    else if (rate < 1e5)
        snprintf(cell, CELL_BYTES, "%.0f", rate);
    else
        snprintf(cell, CELL_BYTES, "%.0fk", rate / 1e3);
    return cell;
}

static const char *ms_text(double ms, char cell[CELL_BYTES])
{
    if (ms < 0)
        snprintf(cell, CELL_BYTES, "-");
    else if (ms < 9.95)
        snprintf(cell, CELL_BYTES, "%.2fms", ms);
    else if (ms < 9950)
        snprintf(cell, CELL_BYTES, "%.0fms", ms);
    else
        snprintf(cell, CELL_BYTES, "%.0fs", ms / 1e3);
    return cell;
}

/* ---- parts ---- */

static void put_head(struct page *page, const struct top_view *view)
{
    const struct top_facts *facts = view->facts;
    char rate[CELL_BYTES], failed[CELL_BYTES], p50[CELL_BYTES], p99[CELL_BYTES];

    line(page, "holdfast %s   shards %u of %u served   coordinator %s   audit %s",
         facts->cluster_id, facts->shards_serving, facts->shard_count,
         facts->coordinator[0] != 0 ? facts->coordinator : "(none)",
         facts->audit[0] != 0 ? facts->audit : "(not told)");
    line(page, "router %s   requests/s %s   failed/s %s   p50 %s   p99 %s   in flight %llu",
         facts->router.name, rate_text(view->requests, rate), rate_text(view->failed, failed),
         ms_text(view->p50, p50), ms_text(view->p99, p99),
         (unsigned long long)facts->router.in_flight);
    line(page, "sessions %llu   transfers in flight %llu, oldest %.1fs   players held back %llu",
         (unsigned long long)view->sessions, (unsigned long long)view->transfers_open,
         (double)view->transfers_oldest_ms / 1e3, (unsigned long long)view->players_quarantined);
    if (page->options->why != NULL)
        line(page, "! an older look: %s", page->options->why);
}

static void put_alerts(struct page *page, const struct top_view *view)
{
    if (view->alert_count == 0)
        line(page, "alerts: none would fire");
    for (uint32_t i = 0; i < view->alert_count && lines_left(page) > 4; i++)
        line(page, "! %s: %s", view->alerts[i].alert, view->alerts[i].what);
}

static const char *node_state(const struct top_node *node)
{
    if (!node->live)
        return "away";
    if (!node->answered)
        return "silent";
    if (strcmp(node->disk_state, "ok") != 0)
        return node->disk_state;
    return node->shards_quarantined > 0 ? "differs" : "ok";
}

static void put_node(struct page *page, const struct top_node_row *row)
{
    const struct top_node *node = row->node;
    char calls[CELL_BYTES], p50[CELL_BYTES], p99[CELL_BYTES], fsync[CELL_BYTES];
    char disk[CELL_BYTES] = "-", memory[CELL_BYTES] = "-", lag[CELL_BYTES] = "-";

    if (node->answered) {
        bytes_text(node->disk_free_bytes, disk);
        bytes_text(node->resident_bytes, memory);
        snprintf(lag, sizeof lag, "%llu", (unsigned long long)node->lag);
    }
    line(page, "%-16.16s %5u %5u %8s %8s %8s %8s %7s %8s %8s %s", node->name, node->owned,
         node->held, rate_text(row->calls, calls), ms_text(row->commit_p50, p50),
         ms_text(row->commit_p99, p99), ms_text(row->fsync, fsync), lag, disk, memory,
         node_state(node));
}

static void put_nodes(struct page *page, const struct top_view *view)
{
    line(page, "%s", "");
    line(page, "%-16s %5s %5s %8s %8s %8s %8s %7s %8s %8s %s", "NODE", "OWNED", "HELD", "CALLS/S",
         "COMMIT50", "COMMIT99", "FSYNC", "LAG", "DISKFREE", "MEMORY", "STATE");
    for (uint32_t i = 0; i < view->node_count; i++)
        put_node(page, &view->nodes[i]);
}

static void put_methods(struct page *page, const struct top_view *view)
{
    line(page, "%s", "");
    line(page, "%-36s %8s %8s %8s %10s %10s", "METHOD AT THE NODES", "CALLS/S", "P50", "P99",
         "REFUSED/S", "UNKNOWN/S");
    for (uint32_t i = 0; i < view->method_count; i++) {
        const struct top_method_row *row = &view->methods[i];
        char rate[CELL_BYTES], p50[CELL_BYTES], p99[CELL_BYTES];
        char refused[CELL_BYTES], unknown[CELL_BYTES];

        line(page, "%-36.36s %8s %8s %8s %10s %10s", row->name, rate_text(row->rate, rate),
             ms_text(row->p50, p50), ms_text(row->p99, p99), rate_text(row->refused, refused),
             rate_text(row->unknown, unknown));
    }
}

static void put_shards(struct page *page, const struct top_view *view)
{
    line(page, "%s", "");
    line(page, "%-7s %-16s %9s %9s", "SHARD", "OWNER", "WRITES/S", "READS/S");
    for (uint32_t i = 0; i < view->shard_count; i++) {
        const struct top_shard_row *row = &view->shards[i];
        char writes[CELL_BYTES], reads[CELL_BYTES];

        line(page, "%-7u %-16.16s %9s %9s", row->shard, row->owner_name,
             rate_text(row->writes, writes), rate_text(row->reads, reads));
    }
}

static void put_targets(struct page *page, const struct top_targets *targets)
{
    line(page, "%s", "");
    line(page, "%-40s %12s %10s", targets->of, "IN 24 HOURS", "GAINS/S");
    if (targets->why[0] != 0)
        line(page, "! an older list: %s", targets->why);
    else if (targets->after->stale)
        line(page, "! an older list: some shard does not answer");
    for (uint32_t i = 0; i < targets->row_count; i++) {
        const struct top_target_row *row = &targets->rows[i];
        char rate[CELL_BYTES];

        line(page, "%-40.40s %12llu %10s", row->target->id, (unsigned long long)row->target->count,
             rate_text(row->rate, rate));
    }
}

static void put_help(struct page *page)
{
    line(page, "%s", "");
    line(page, "q  quit     s  sort by name, rate or latency (now %s)     h  these lines, or not",
         top_sort_text(page->options->sort));
    line(page, "t  the targets that gain the most favourites, or not");
    line(page, "%s", "");
    line(page, "CALLS/S    answered by the node, those of other nodes among them");
    line(page, "COMMIT     from a write's way into the log until a majority has it");
    line(page, "FSYNC      mean time of one sync of the log");
    line(page, "LAG        entries that the replica farthest behind lacks, of shards owned here");
    line(page, "METHOD     all nodes together; a batch counts as its parts");
    line(page, "alerts     that would fire if this went on; see docs/runbooks");
    line(page, "requests   of the router that answered; others are not counted");
}

void top_page_print(const struct top_view *view, const struct top_page_options *options,
                    struct buf *out)
{
    struct page page = { .options = options, .out = out };

    put_head(&page, view);
    put_alerts(&page, view);
    if (options->targets != NULL && !options->help) {
        put_targets(&page, options->targets);
        return;
    }
    put_nodes(&page, view);
    if (options->help) {
        put_help(&page);
        return;
    }
    if (lines_left(&page) >= METHODS_MIN && view->method_count > 0)
        put_methods(&page, view);
    if (lines_left(&page) >= METHODS_MIN && view->shard_count > 0)
        put_shards(&page, view);
}
