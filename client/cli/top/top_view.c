#include "client/cli/top/top_view.h"

#include <stdlib.h>
#include <string.h>

#define FIRST_MS 0.064 /* Where the first bucket ends. */
#define UNKNOWN  (-1.0)

const char *top_sort_text(enum top_sort sort)
{
    static const char *const texts[TOP_SORT_COUNT] = { "name", "rate", "latency" };

    return texts[sort];
}

static uint64_t grown(uint64_t before, uint64_t after)
{
    return after > before ? after - before : 0;
}

/* How much came since, and in which buckets. */
static void latency_since(const struct top_latency *before, const struct top_latency *after,
                          struct top_latency *ret_since)
{
    for (uint32_t i = 0; i < TOP_BUCKETS; i++)
        ret_since->buckets[i] = grown(before != NULL ? before->buckets[i] : 0, after->buckets[i]);
}

/* In ms; UNKNOWN of none. Within a bucket they are taken to lie evenly. */
static double percentile(const struct top_latency *latency, double share)
{
    uint64_t total = 0, below = 0;
    double low = 0, high = FIRST_MS;

    for (uint32_t i = 0; i < TOP_BUCKETS; i++)
        total += latency->buckets[i];
    if (total == 0)
        return UNKNOWN;
    for (uint32_t i = 0; i < TOP_BUCKETS; i++) {
        double here = (double)latency->buckets[i];
        if (here > 0 && (double)below + here >= share * (double)total)
            return low + (high - low) * (share * (double)total - (double)below) / here;
        below += latency->buckets[i];
        low = high;
        high *= 2;
    }
    return low;
}

/* The same process before, or NULL: it was restarted, or did not answer. */
static const struct top_node *same_node(const struct top_facts *before, const struct top_node *node)
{
    const struct top_node *then = top_facts_find(before, node->replica_id);

    return then != NULL && then->answered && node->answered && then->life == node->life &&
                   node->at_us > then->at_us
               ? then
               : NULL;
}

static double seconds_between(const struct top_node *then, const struct top_node *now)
{
    return (double)(now->at_us - then->at_us) / 1e6;
}

static uint64_t answers_of(const struct top_method *method)
{
    return method->ok + method->refused + method->unknown;
}

static uint64_t calls_of(const struct top_node *node)
{
    uint64_t calls = 0;

    for (uint32_t i = 0; i < node->method_count; i++)
        calls += answers_of(&node->methods[i]);
    return calls;
}

static void add_node(struct top_view *view, const struct top_facts *before,
                     const struct top_node *node)
{
    const struct top_node *then = same_node(before, node);
    struct top_node_row *row = &view->nodes[view->node_count++];
    struct top_latency commits;

    *row = (struct top_node_row){ node, UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN };
    view->sessions += node->sessions;
    view->transfers_open += node->transfers_open;
    view->players_quarantined += node->players_quarantined;
    if (node->transfers_oldest_ms > view->transfers_oldest_ms)
        view->transfers_oldest_ms = node->transfers_oldest_ms;
    if (then == NULL)
        return;
    row->calls = (double)grown(calls_of(then), calls_of(node)) / seconds_between(then, node);
    latency_since(&then->commits, &node->commits, &commits);
    row->commit_p50 = percentile(&commits, 0.5);
    row->commit_p99 = percentile(&commits, 0.99);
    if (node->syncs > then->syncs)
        row->fsync =
            (double)grown(then->sync_us, node->sync_us) / 1e3 / (double)(node->syncs - then->syncs);
}

/* ---- methods: of all nodes together ---- */

struct method_sum {
    const char *name;
    double rate, refused, unknown;
    struct top_latency latency;
};

static const struct top_method *method_find_named(const struct top_node *node, const char *name)
{
    for (uint32_t i = 0; i < node->method_count; i++) {
        if (strcmp(node->methods[i].name, name) == 0)
            return &node->methods[i];
    }
    return NULL;
}

/* NULL: there are too many. */
static struct method_sum *sum_of(struct method_sum *sums, uint32_t *count, const char *name)
{
    for (uint32_t i = 0; i < *count; i++) {
        if (strcmp(sums[i].name, name) == 0)
            return &sums[i];
    }
    if (*count == TOP_METHODS_MAX)
        return NULL;
    sums[*count] = (struct method_sum){ .name = name };
    return &sums[(*count)++];
}

static void sum_method(struct method_sum *sum, const struct top_method *then,
                       const struct top_method *now, double seconds)
{
    static const struct top_method none;
    struct top_latency since;

    if (then == NULL)
        then = &none;
    sum->rate += (double)grown(answers_of(then), answers_of(now)) / seconds;
    sum->refused += (double)grown(then->refused, now->refused) / seconds;
    sum->unknown += (double)grown(then->unknown, now->unknown) / seconds;
    latency_since(&then->latency, &now->latency, &since);
    for (uint32_t i = 0; i < TOP_BUCKETS; i++)
        sum->latency.buckets[i] += since.buckets[i];
}

static uint32_t sum_methods(const struct top_facts *before, const struct top_facts *after,
                            struct method_sum *sums)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < after->node_count; i++) {
        const struct top_node *now = &after->nodes[i];
        const struct top_node *then = same_node(before, now);
        for (uint32_t k = 0; then != NULL && k < now->method_count; k++) {
            struct method_sum *sum = sum_of(sums, &count, now->methods[k].name);
            if (sum != NULL)
                sum_method(sum, method_find_named(then, now->methods[k].name), &now->methods[k],
                           seconds_between(then, now));
        }
    }
    return count;
}

static void add_methods(struct top_view *view, const struct top_facts *before)
{
    struct method_sum *sums = calloc(TOP_METHODS_MAX, sizeof *sums);
    uint32_t count = sums != NULL ? sum_methods(before, view->facts, sums) : 0;

    for (uint32_t i = 0; i < count; i++) {
        if (sums[i].rate <= 0)
            continue;
        view->methods[view->method_count++] =
            (struct top_method_row){ .name = sums[i].name,
                                     .rate = sums[i].rate,
                                     .p50 = percentile(&sums[i].latency, 0.5),
                                     .p99 = percentile(&sums[i].latency, 0.99),
                                     .refused = sums[i].refused,
                                     .unknown = sums[i].unknown };
    }
    free(sums);
}

/* ---- shards ---- */

static int by_heat(const void *a, const void *b)
{
    const struct top_shard_row *left = a, *right = b;
    double one = left->writes + left->reads, other = right->writes + right->reads;

    if (one != other)
        return one > other ? -1 : 1;
    return left->shard < right->shard ? -1 : left->shard > right->shard;
}

/* Into the rows, which are in order; the last one falls out. */
static void insert_hot(struct top_view *view, const struct top_shard_row *row)
{
    uint32_t at = view->shard_count;

    while (at > 0 && by_heat(row, &view->shards[at - 1]) < 0)
        at--;
    if (at == TOP_HOT_MAX)
        return;
    if (view->shard_count < TOP_HOT_MAX)
        view->shard_count++;
    for (uint32_t i = view->shard_count - 1; i > at; i--)
        view->shards[i] = view->shards[i - 1];
    view->shards[at] = *row;
}

static void add_shards(struct top_view *view, const struct top_facts *before)
{
    for (uint32_t i = 0; i < TOP_SHARDS_MAX; i++) {
        const struct top_shard *now = &view->facts->shards[i], *then = &before->shards[i];
        const struct top_node *owner =
            now->owner != 0 ? top_facts_find(view->facts, now->owner) : NULL;
        const struct top_node *was = owner != NULL ? same_node(before, owner) : NULL;

        if (was == NULL || then->owner != now->owner)
            continue;
        double seconds = seconds_between(was, owner);
        struct top_shard_row row = {
            .shard = i,
            .owner = now->owner,
            .owner_name = owner->name,
            .writes = (double)grown(then->proposed, now->proposed) / seconds,
            .reads = (double)grown(then->reads, now->reads) / seconds,
        };
        if (row.writes + row.reads > 0)
            insert_hot(view, &row);
    }
}

/* ---- order ---- */

static int falling(double left, double right)
{
    return left == right ? 0 : left > right ? -1 : 1;
}

static int nodes_by_rate(const void *a, const void *b)
{
    const struct top_node_row *left = a, *right = b;
    int order = falling(left->calls, right->calls);
    return order != 0 ? order : strcmp(left->node->name, right->node->name);
}

static int nodes_by_latency(const void *a, const void *b)
{
    const struct top_node_row *left = a, *right = b;
    int order = falling(left->commit_p99, right->commit_p99);
    return order != 0 ? order : strcmp(left->node->name, right->node->name);
}

static int methods_by_name(const void *a, const void *b)
{
    const struct top_method_row *left = a, *right = b;
    return strcmp(left->name, right->name);
}

static int methods_by_rate(const void *a, const void *b)
{
    const struct top_method_row *left = a, *right = b;
    int order = falling(left->rate, right->rate);
    return order != 0 ? order : methods_by_name(a, b);
}

static int methods_by_latency(const void *a, const void *b)
{
    const struct top_method_row *left = a, *right = b;
    int order = falling(left->p99, right->p99);
    return order != 0 ? order : methods_by_name(a, b);
}

static void put_in_order(struct top_view *view, enum top_sort sort)
{
    typedef int compare(const void *, const void *);
    static compare *const of_methods[TOP_SORT_COUNT] = { methods_by_name, methods_by_rate,
                                                         methods_by_latency };

    /* Nodes are in the order of their names already. */
    if (sort != TOP_BY_NAME)
        qsort(view->nodes, view->node_count, sizeof view->nodes[0],
              sort == TOP_BY_RATE ? nodes_by_rate : nodes_by_latency);
    qsort(view->methods, view->method_count, sizeof view->methods[0], of_methods[sort]);
}

static void take_router(struct top_view *view, const struct top_router *then,
                        const struct top_router *now)
{
    struct top_latency since;

    view->requests = view->failed = view->p50 = view->p99 = UNKNOWN;
    if (then->life != now->life || now->at_us <= then->at_us)
        return;
    double seconds = (double)(now->at_us - then->at_us) / 1e6;
    view->requests = (double)grown(then->answered, now->answered) / seconds;
    view->failed = (double)grown(then->failed, now->failed) / seconds;
    latency_since(&then->latency, &now->latency, &since);
    view->p50 = percentile(&since, 0.5);
    view->p99 = percentile(&since, 0.99);
}

void top_view_make(const struct top_facts *before, const struct top_facts *after,
                   enum top_sort sort, struct top_view *ret_view)
{
    memset(ret_view, 0, sizeof *ret_view);
    ret_view->facts = after;
    take_router(ret_view, &before->router, &after->router);
    for (uint32_t i = 0; i < after->node_count; i++)
        add_node(ret_view, before, &after->nodes[i]);
    add_methods(ret_view, before);
    add_shards(ret_view, before);
    put_in_order(ret_view, sort);
}
