/* top_page: a view as lines of text of a given width, or as JSON. Pure. */
#ifndef CLIENT_CLI_TOP_TOP_PAGE_H
#define CLIENT_CLI_TOP_TOP_PAGE_H

#include "client/cli/top/top_targets.h"
#include "client/cli/top/top_view.h"
#include "runtime/base/buf.h"

struct top_page_options {
    uint32_t width;  /* Longer lines are cut; 0: none is. */
    uint32_t height; /* Of all lines; what is least important is left out; 0: all. */
    enum top_sort sort;
    const struct top_targets *targets; /* Shown instead of nodes, methods and shards; NULL: not. */
    bool help;                         /* The keys instead of methods and shards. */
    const char *why; /* The last look failed, and this is an older one; NULL: it is fresh. */
};

/* Appends lines that end with "\n". ASCII only. */
void top_page_print(const struct top_view *view, const struct top_page_options *options,
                    struct buf *out);
/* The caller's to decref. Unknown numbers are null. `targets`: NULL: not asked for. */
json_t *top_page_json(const struct top_view *view, const struct top_targets *targets);

#endif
