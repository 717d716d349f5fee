#include "load_stock.h"

#include <stdio.h>

#include "load_grant.h"
#include "runtime/base/check.h"
#include "runtime/cluster/placement.h"

bool load_stock_mints(struct load_stock *stock, const struct load_options *options)
{
    if (stock->count == 0)
        stock->full = false;
    if (stock->count >= options->stock && stock->count > 0)
        stock->full = true;
    stock->minting = !stock->full;
    if (stock->minting)
        stock->minter = load_player(options);
    return stock->minting;
}

void load_stock_add(struct load_stock *stock, const char *id)
{
    if (stock->count == stock->capacity) {
        stock->capacity = stock->capacity * 2 + LOAD_STOCK_MINT;
        stock->items = mem_realloc(stock->items, sizeof *stock->items * stock->capacity);
    }
    struct load_item *item = &stock->items[stock->count++];
    item->player = stock->minter;
    snprintf(item->id, sizeof item->id, "%s", id);
}

struct load_item load_stock_take(struct load_stock *stock)
{
    CHECK(stock->count > 0);
    unsigned place = (unsigned)(load_random() % stock->count);
    struct load_item item = stock->items[place];

    stock->items[place] = stock->items[--stock->count];
    return item;
}

static unsigned shard_of(unsigned player, unsigned shards)
{
    char entity[32];

    snprintf(entity, sizeof entity, "player:t%u", player);
    return shard_of_entity(slice_from_text(entity), shards);
}

bool load_stock_apart(unsigned player, unsigned other, unsigned shards)
{
    return player != other && (shards == 0 || shard_of(player, shards) != shard_of(other, shards));
}

unsigned load_stock_other(const struct load_options *options, unsigned player, unsigned shards)
{
    unsigned other;

    CHECK(options->players > 1);
    do {
        other = load_player(options);
    } while (!load_stock_apart(player, other, shards));
    return other;
}
