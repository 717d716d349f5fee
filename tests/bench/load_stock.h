/* load_stock: the items that a connection has to give away. Stores are asked for them before the
 * measured time, many at once, so that what is measured is the giving. */
#ifndef TESTS_BENCH_LOAD_STOCK_H
#define TESTS_BENCH_LOAD_STOCK_H

#include <stdbool.h>

#include "load_options.h"

#define LOAD_STOCK_MINT 64u /* Items made in one request; all stores take so many. */
#define LOAD_ITEM_SIZE  33

struct load_item {
    unsigned player; /* Who holds it: "t" and this. */
    char id[LOAD_ITEM_SIZE];
};

/* Of one connection. */
struct load_stock {
    struct load_item *items;
    unsigned count, capacity;
    unsigned minter; /* For whom the request on its way makes items. */
    bool minting;    /* ... and there is one. */
    bool full;       /* Until it is empty. */
};

/* Whether the next request is to make items, for some player that is then `minter`: until
 * --stock are there, and again when none is left. */
bool load_stock_mints(struct load_stock *stock, const struct load_options *options);
/* One of those made for `minter`. */
void load_stock_add(struct load_stock *stock, const char *id);
/* Any of the stock, which must not be empty. */
struct load_item load_stock_take(struct load_stock *stock);
/* Whether two players live on different shards of so many; 0: there is one. */
bool load_stock_apart(unsigned player, unsigned other, unsigned shards);
/* Somebody else than `player`, on another shard. */
unsigned load_stock_other(const struct load_options *options, unsigned player, unsigned shards);

#endif
