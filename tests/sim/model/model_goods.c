/* Goods between players: where each item, each unit and each piece of mail is, and what is on its
 * way. Part of the model. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "holdfast/internal/v1/channel.pb-c.h"
#include "runtime/base/check.h"
#include "runtime/cluster/placement.h"
#include "tests/sim/model/model.h"

static struct goods_book *book_of(const struct change *c)
{
    return &c->sim->oracle->book;
}

static struct player_model *player_at(const struct change *c, uint32_t number)
{
    CHECK(number < c->sim->player_count);
    return &c->sim->oracle->players[number];
}

void goods_deinit(struct goods_book *book)
{
    free(book->items);
    free(book->mails);
    free(book->transfers);
    free(book->steps);
    free(book->txns);
    free(book->receipts);
}

#define GROW(list, count, capacity)                                                                \
    do {                                                                                           \
        if ((count) == (capacity)) {                                                               \
            (capacity) = (capacity)*2 + 64;                                                        \
            (list) = mem_realloc((list), sizeof *(list) * (capacity));                             \
        }                                                                                          \
    } while (false)

/* ---- items ---- */
uint32_t goods_item_find(const struct goods_book *book, const char *uid)
{
    for (uint32_t i = 0; i < book->item_count; i++) {
        if (strcmp(book->items[i].uid, uid) == 0)
            return i + 1;
    }
    return 0;
}

uint32_t goods_item_new(const struct change *c, const char *uid, enum item_place place,
                        uint32_t player)
{
    struct goods_book *book = book_of(c);

    CHECK(player < c->sim->player_count);
    if (goods_item_find(book, uid) != 0)
        model_fail(c, "an item's UID is given out twice", 0);
    GROW(book->items, book->item_count, book->item_capacity);
    struct item_model *item = &book->items[book->item_count++];
    *item = (struct item_model){ .place = place, .player = player };
    snprintf(item->uid, sizeof item->uid, "%s", uid);
    return book->item_count;
}

uint32_t goods_item_add(const struct change *c, const char *uid, enum item_place place,
                        uint32_t player)
{
    uint32_t item = goods_item_new(c, uid, place, player);

    trace_step(c, item, player, place == ITEM_HELD, c->op.id.text);
    return item;
}

void goods_item_made(const struct change *c, uint32_t item, const Holdfast__V1__ItemSpec *spec)
{
    struct item_model *made = &book_of(c)->items[item - 1];

    CHECK(item > 0 && item <= book_of(c)->item_count);
    snprintf(made->kind, sizeof made->kind, "%s", spec->kind);
    snprintf(made->attributes, sizeof made->attributes, "%s",
             spec->attributes[0] != '\0' ? spec->attributes : "{}");
    made->minted_ms = c->entry->owner_ms;
}

void goods_item_move(const struct change *c, uint32_t item, enum item_place place, uint32_t player)
{
    CHECK(item <= book_of(c)->item_count && player < c->sim->player_count);
    if (item == 0)
        return;
    book_of(c)->items[item - 1].place = place;
    book_of(c)->items[item - 1].player = player;
}

/* ---- goods leave a player, and come to one ---- */
bool goods_are_nothing(const struct goods *goods)
{
    bool nothing = goods->item_count == 0;

    for (uint32_t i = 0; i < SIM_CURRENCIES; i++)
        nothing &= goods->amounts[i] == 0;
    return nothing;
}

static void take(const struct change *c, uint32_t number, const struct goods *goods)
{
    struct player_model *player = player_at(c, number);

    for (uint32_t i = 0; i < SIM_CURRENCIES; i++) {
        CHECK(goods->amounts[i] >= 0);
        player->now.balances[i] -= goods->amounts[i];
        if (goods->amounts[i] > 0 && player->now.balances[i] < policy_least(c, i))
            model_fail(c, "sends what is not there", number);
    }
    for (uint32_t i = 0; i < goods->item_count; i++) {
        const struct item_model *item = &book_of(c)->items[goods->items[i] - 1];
        if (item->place != ITEM_HELD || item->player != number)
            model_fail(c, "sends an item that the player does not hold", number);
        player->now.items--;
        trace_step(c, goods->items[i], number, false, c->op.id.text);
    }
}

void goods_give(const struct change *c, uint32_t number, const struct goods *goods,
                struct slice op_id)
{
    struct player_model *player = player_at(c, number);

    for (uint32_t i = 0; i < SIM_CURRENCIES; i++)
        player->now.balances[i] += goods->amounts[i];
    for (uint32_t i = 0; i < goods->item_count; i++) {
        goods_item_move(c, goods->items[i], ITEM_HELD, number);
        trace_step(c, goods->items[i], number, true, op_id);
        player->now.items++;
    }
}

static void move_all(const struct change *c, const struct goods *goods, enum item_place place,
                     uint32_t player)
{
    for (uint32_t i = 0; i < goods->item_count; i++)
        goods_item_move(c, goods->items[i], place, player);
}

bool goods_are_mailed(const struct goods_book *book, const struct goods *goods,
                      const Holdfast__V1__Mail *mail)
{
    int64_t told[SIM_CURRENCIES] = { 0 };
    bool same = mail->n_items == goods->item_count;

    for (size_t i = 0; i < mail->n_currencies; i++) {
        same &= mail->currencies[i]->amount > 0;
        told[model_currency(mail->currencies[i]->currency)] += mail->currencies[i]->amount;
    }
    for (uint32_t i = 0; i < SIM_CURRENCIES; i++)
        same &= told[i] == goods->amounts[i];
    for (uint32_t i = 0; same && i < goods->item_count; i++)
        same = strcmp(mail->items[i]->uid, book->items[goods->items[i] - 1].uid) == 0;
    return same;
}

/* ---- mail ---- */
struct mail_model *goods_mail_find(const struct goods_book *book, const char *id)
{
    for (uint32_t i = 0; i < book->mail_count; i++) {
        if (strcmp(book->mails[i].id, id) == 0)
            return &book->mails[i];
    }
    return NULL;
}

void goods_mail_arrives(const struct change *c, const char *id, const struct mail_model *mail)
{
    struct goods_book *book = book_of(c);
    struct player_model *player = player_at(c, mail->player);

    CHECK(mail->from < c->sim->player_count && !mail->gone);
    if (strlen(id) != GOODS_ID_SIZE - 1 || goods_mail_find(book, id) != NULL)
        model_fail(c, "mail under an id that is malformed, or was given out before", 0);
    GROW(book->mails, book->mail_count, book->mail_capacity);
    struct mail_model *added = &book->mails[book->mail_count++];
    *added = *mail;
    added->came_index = c->entry->index;
    snprintf(added->id, sizeof added->id, "%s", id);
    move_all(c, &mail->goods, ITEM_MAILED, mail->player);
    player->now.mails++;
    if (player != c->player)
        model_remember(player, c->entry->index);
}

bool goods_mailbox_is_full(const struct change *c, uint32_t number)
{
    const struct shard_oracle *shard = &c->sim->oracle->shards[c->sim->player_shard[number]];

    return player_at(c, number)->now.mails >= shard->policy.mailbox_max;
}

/* ---- transfers ---- */
struct transfer_model *goods_record_find(const struct goods_book *book, uint32_t source,
                                         uint32_t destination, uint64_t seq)
{
    CHECK(source < SIM_SHARDS_MAX);
    for (uint32_t i = book->transfer_count; i > 0; i--) {
        struct transfer_model *t = &book->transfers[i - 1];
        if (t->source == source && t->destination == destination && t->seq == seq)
            return t;
    }
    return NULL;
}

struct transfer_model *goods_record_open(const struct change *c,
                                         const struct transfer_model *transfer)
{
    struct goods_book *book = book_of(c);

    CHECK(transfer->to < c->sim->player_count && !transfer->settled);
    GROW(book->transfers, book->transfer_count, book->transfer_capacity);
    struct transfer_model *t = &book->transfers[book->transfer_count++];
    *t = *transfer;
    t->source = c->number;
    t->destination = t->receipt != 0 ? shard_of_entity(c->op.id.text, c->sim->shard_count)
                                     : c->sim->player_shard[t->to];
    t->epoch = c->entry->dot.epoch;
    t->seq = ++book->last_seq[t->source][t->destination];
    book->open++;
    return t;
}

void goods_transfer_open(const struct change *c, const struct transfer_model *transfer)
{
    const struct transfer_model *t = goods_record_open(c, transfer);

    move_all(c, &t->goods, ITEM_ON_ITS_WAY, t->to);
    c->sim->counts.transfers_opened++;
}

void goods_wish_currencies(const struct change *c, size_t count,
                           Holdfast__V1__CurrencyAmount *const *list, struct goods_wish *wish)
{
    CHECK(c->player != NULL);
    for (size_t i = 0; i < count; i++)
        wish->goods.amounts[model_currency(list[i]->currency)] += list[i]->amount;
}

void goods_wish_items(const struct change *c, size_t count, char *const *uids,
                      struct goods_wish *wish)
{
    CHECK(count <= SIM_GOODS_ITEMS && wish->goods.item_count == 0);
    for (size_t i = 0; i < count; i++) {
        uint32_t item = goods_item_find(book_of(c), uids[i]);
        if (item == 0) {
            model_fail(c, "sends an item that never was", i);
            return;
        }
        wish->goods.items[wish->goods.item_count++] = item;
    }
}

static struct goods_wish wish_of(const struct change *c)
{
    struct goods_wish wish = { .from = model_player_number(c) };

    CHECK(c->rule->sends != NULL);
    c->rule->sends(c, &wish);
    CHECK(wish.to < c->sim->player_count);
    return wish;
}

/* They leave the player, unless they have left the player's reservation. */
static void leave(const struct change *c, const struct goods_wish *wish)
{
    if (wish->reserved)
        return;
    take(c, wish->from, &wish->goods);
    for (uint32_t i = 0; i < wish->goods.item_count; i++)
        trace_to(c, wish->goods.items[i], wish->to);
}

static const char *mail_id_of(const ProtobufCMessage *response)
{
    const ProtobufCFieldDescriptor *field =
        protobuf_c_message_descriptor_get_field_by_name(response->descriptor, "mail_id");

    CHECK(field != NULL);
    return *(char *const *)(const void *)((const uint8_t *)response + field->offset);
}

/* ---- mutations ---- */
void goods_sent(struct change *c, struct op_model *op, const ProtobufCMessage *response)
{
    struct goods_wish wish = wish_of(c);

    (void)op;
    if (c->sim->player_shard[wish.to] != c->number)
        model_fail(c, "is reported as done before anybody could decide on it", wish.to);
    if (goods_mailbox_is_full(c, wish.to))
        model_fail(c, "arrives in a full mailbox", wish.to);
    leave(c, &wish);
    goods_mail_arrives(c, mail_id_of(response),
                       &(struct mail_model){ .player = wish.to,
                                             .from = wish.from,
                                             .expires_ms = wish.expires_ms,
                                             .goods = wish.goods });
    c->sim->counts.transfers_local++;
}

void goods_opened(struct change *c, struct op_model *op)
{
    struct oracle *oracle = c->sim->oracle;
    struct goods_wish wish = wish_of(c);

    CHECK(op->state == OP_PENDING);
    if (c->sim->player_shard[wish.to] == c->number)
        model_fail(c, "is pending on one shard", wish.to);
    leave(c, &wish);
    goods_transfer_open(c, &(struct transfer_model){ .from = wish.from,
                                                     .to = wish.to,
                                                     .op = (uint32_t)(op - oracle->ops) + 1,
                                                     .goods = wish.goods,
                                                     .expires_ms = wish.expires_ms });
    const struct transfer_model *t = &oracle->book.transfers[oracle->book.transfer_count - 1];
    if (c->outcome->channel.opened_seq != t->seq ||
        c->outcome->channel.destination != t->destination)
        model_fail(c, "sequence numbers have a gap", c->outcome->channel.opened_seq);
}

void goods_sealed(struct change *c, const struct op_model *op)
{
    struct transfer_model *t = goods_record_find(
        book_of(c), c->number, c->outcome->channel.destination, c->outcome->channel.opened_seq);

    if (t == NULL || t->settled || t->op != (uint32_t)(op - c->sim->oracle->ops) + 1) {
        model_fail_op(c, op, "is sealed as pending, and is not on its way");
        return;
    }
    c->sim->counts.seals_too_late += t->decision == APPLIED;
    t->sealed = true;
}

/* ---- what game servers ask for ---- */
const char *goods_pick_item(struct sim *sim, uint32_t player)
{
    const struct goods_book *book = &sim->oracle->book;

    CHECK(player < sim->player_count);
    if (book->item_count == 0)
        return NULL;
    uint64_t from = sim_between(sim, 0, book->item_count - 1);
    if (sim_chance(sim, 100))
        return book->items[from].uid;
    for (uint32_t i = 0; i < book->item_count; i++) {
        const struct item_model *item = &book->items[(from + i) % book->item_count];
        if (item->place == ITEM_HELD && item->player == player)
            return item->uid;
    }
    return NULL;
}

void goods_pick_more(const struct sim *sim, struct sim_op *op)
{
    const struct goods_book *book = &sim->oracle->book;
    uint32_t wanted = op->twist >> 8 & 3, found = 0;

    if (op->uid[0] == '\0' || wanted == 3)
        return;
    for (uint32_t i = 0; i < book->item_count && found < wanted; i++) {
        const struct item_model *item = &book->items[i];
        /* Some ask for what another has, too: nothing of it is done. */
        bool held = item->place == ITEM_HELD && (item->player == op->player || op->twist % 32 == 0);
        if (held && strcmp(item->uid, op->uid) != 0)
            memcpy(op->more_uids[found++], item->uid, sizeof item->uid);
    }
}

const char *goods_pick_mail(struct sim *sim, uint32_t player)
{
    const struct goods_book *book = &sim->oracle->book;

    CHECK(player < sim->player_count);
    if (book->mail_count == 0)
        return NULL;
    uint64_t from = sim_between(sim, 0, book->mail_count - 1);
    if (sim_chance(sim, 50))
        return book->mails[from].id;
    for (uint32_t i = 0; i < book->mail_count; i++) {
        const struct mail_model *mail = &book->mails[(from + i) % book->mail_count];
        if (!mail->gone && mail->player == player)
            return mail->id;
    }
    return NULL;
}
