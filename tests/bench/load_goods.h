/* load_goods: goods between players: one item into a mailbox of another shard, or two players of
 * different shards who exchange an item each. */
#ifndef TESTS_BENCH_LOAD_GOODS_H
#define TESTS_BENCH_LOAD_GOODS_H

#include "load_run.h"
#include "load_stock.h"
#include "runtime/base/buf.h"

/* So many pairs take turns on a connection, so that none trades while it is held. */
#define LOAD_PAIRS 16u

struct load_pair {
    struct load_item sides[2];
};

/* Of one connection. */
struct load_goods {
    struct load_stock stock;
    struct load_pair pairs[LOAD_PAIRS];
    unsigned pair;  /* Of the next request, or of the one on its way. */
    unsigned sides; /* That have their item, over all pairs. */
};

/* Appends the next request's body; its method. A request that makes items is not measured. */
const char *load_transfer_put(const struct load_options *options, struct load_goods *goods,
                              struct buf *out);
/* `index`: of the connection; its pairs are its own. */
const char *load_swap_put(const struct load_options *options, struct load_goods *goods,
                          unsigned index, struct buf *out);
/* Takes what the request has changed; how many items it made. */
unsigned load_transfer_done(struct load_goods *goods, const char *body);
unsigned load_swap_done(struct load_goods *goods, const char *body);

#endif
