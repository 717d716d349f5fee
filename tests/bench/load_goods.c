#include "load_goods.h"

#include <string.h>

#include "load_grant.h"
#include "runtime/base/check.h"
#include "runtime/cluster/cluster_record.h"

#define SHARDS CLUSTER_SHARDS_DEFAULT
#define UNHELD "\"unheld\""

static void put_head(struct buf *out, unsigned player)
{
    char op_id[UUID_TEXT_SIZE];

    load_op_id(op_id);
    buf_printf(out, "{\"playerId\":\"t%u\",\"opId\":\"%s\",\"authority\":" UNHELD ",", player,
               op_id);
}

/* Of a swap: an item goes. */
static void put_side(struct buf *out, const struct load_item *side)
{
    buf_printf(out,
               "{\"playerId\":\"t%u\",\"authority\":" UNHELD ",\"gives\":{\"itemUids\":[\"%s\"]}}",
               side->player, side->id);
}

static const char *put_mint(unsigned player, unsigned count, struct buf *out)
{
    put_head(out, player);
    for (unsigned i = 0; i < count; i++)
        buf_printf(out, "%s{\"kind\":\"sword_of_dawn\"}", i == 0 ? "\"items\":[" : ",");
    buf_printf(out, "]}");
    return "LedgerService/Grant";
}

/* Hands on every UID of a Grant's answer; how many. */
static unsigned take_uids(struct load_stock *stock, const char *body)
{
    static const char before[] = "\"itemUids\":[";
    const char *at = strstr(body, before);
    char id[LOAD_ITEM_SIZE];
    unsigned count = 0;

    if (at == NULL)
        return 0;
    for (at += sizeof before - 1; *at == '"' || *at == ','; at++) {
        if (*at == ',')
            continue;
        CHECK(strlen(++at) > sizeof id);
        memcpy(id, at, sizeof id - 1);
        id[sizeof id - 1] = 0;
        load_stock_add(stock, id);
        at += sizeof id - 1; /* On the quote behind it. */
        count++;
    }
    return count;
}

const char *load_transfer_put(const struct load_options *options, struct load_goods *goods,
                              struct buf *out)
{
    if (load_stock_mints(&goods->stock, options))
        return put_mint(goods->stock.minter, LOAD_STOCK_MINT, out);
    struct load_item item = load_stock_take(&goods->stock);
    put_head(out, item.player);
    buf_printf(out, "\"toPlayerId\":\"t%u\",\"itemUids\":[\"%s\"],\"reason\":\"bench\"}",
               load_stock_other(options, item.player, SHARDS), item.id);
    return "InventoryService/TransferItems";
}

unsigned load_transfer_done(struct load_goods *goods, const char *body)
{
    return goods->stock.minting ? take_uids(&goods->stock, body) : 0;
}

/* A player trades in one pair alone: who is held until the other side has heard cannot trade on. */
static bool trades(const struct load_goods *goods, unsigned player)
{
    for (unsigned i = 0; i < goods->sides; i++) {
        if (goods->pairs[i / 2].sides[i % 2].player == player)
            return true;
    }
    return false;
}

const char *load_swap_put(const struct load_options *options, struct load_goods *goods,
                          unsigned index, struct buf *out)
{
    unsigned connections = options->connections;

    if (goods->sides < 2 * LOAD_PAIRS) {
        struct load_pair *pair = &goods->pairs[goods->sides / 2];
        unsigned slots = options->players / connections;
        CHECK(slots > 3 * LOAD_PAIRS); /* --players is too small for so many connections. */
        pair->sides[0].player = index + goods->sides / 2 * connections;
        if (goods->sides % 2 == 1) { /* From the other half: no other's, and elsewhere. */
            do {
                unsigned slot = LOAD_PAIRS + (unsigned)(load_random() % (slots - LOAD_PAIRS));
                pair->sides[1].player = index + slot * connections;
            } while (trades(goods, pair->sides[1].player) ||
                     !load_stock_apart(pair->sides[0].player, pair->sides[1].player, SHARDS));
        }
        goods->stock.minter = pair->sides[goods->sides % 2].player;
        goods->stock.minting = true;
        return put_mint(goods->stock.minter, 1, out);
    }
    goods->stock.minting = false;
    goods->pair = (goods->pair + 1) % LOAD_PAIRS;
    const struct load_item *sides = goods->pairs[goods->pair].sides;
    char op_id[UUID_TEXT_SIZE];

    load_op_id(op_id);
    buf_printf(out, "{\"opId\":\"%s\",\"a\":", op_id);
    put_side(out, &sides[0]);
    buf_printf(out, ",\"b\":");
    put_side(out, &sides[1]);
    buf_printf(out, ",\"reason\":\"bench\"}");
    return "TransactionService/Swap";
}

unsigned load_swap_done(struct load_goods *goods, const char *body)
{
    if (!goods->stock.minting) {
        struct load_item *sides = goods->pairs[goods->pair].sides;
        char id[LOAD_ITEM_SIZE];
        memcpy(id, sides[0].id, sizeof id);
        memcpy(sides[0].id, sides[1].id, sizeof id);
        memcpy(sides[1].id, id, sizeof id);
        return 0;
    }
    unsigned count = take_uids(&goods->stock, body);
    goods->pairs[goods->sides / 2].sides[goods->sides % 2] = load_stock_take(&goods->stock);
    goods->sides++;
    return count;
}
