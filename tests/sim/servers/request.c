/* Requests of game servers, as bytes. */
#include "tests/sim/servers/request.h"

#include <stdio.h>
#include <string.h>

#include "runtime/base/check.h"

#define LARGE_BITS       46u
#define FIRST_CURRENCIES 2u /* What most requests are about. */

static const char *const currency_names[SIM_CURRENCIES] = { "gold", "gems", "dust", "coal" };

const char *request_currency(uint32_t currency)
{
    CHECK(currency < SIM_CURRENCIES);
    return currency_names[currency];
}

char *request_text(const char *borrowed)
{
    return text_lend(borrowed);
}

/* Numbers have one digit: SIM_PLAYERS_MAX. */
void request_player_name(uint32_t player, char ret_name[16])
{
    CHECK(player < SIM_PLAYERS_MAX);
    memcpy(ret_name, (char[3]){ 'p', (char)('0' + player) }, 3);
}

void player_entity(uint32_t player, char ret_entity[32])
{
    memcpy(ret_entity, "player:", 7);
    request_player_name(player, ret_entity + 7);
}

void sim_op_id(struct sim *sim, char ret_id[48])
{
    uint64_t unix_ms = SIM_UNIX_MS + sim->now_ms + sim->clock_ms;
    uint8_t random[10] = { 0 };

    store_u64(random, sim_random_next(&sim->random));
    if (sim_chance(sim, 60)) {
        const char *kind = random[0] % 4 == 0 ? "claim" : "key";
        snprintf(ret_id, 48, "%s:%llx", kind, (unsigned long long)load_u64(random));
        return;
    }
    /* Some servers sat on their wishes for a while. */
    if (sim_chance(sim, 60))
        unix_ms -= sim_between(sim, 0, 1200000);
    else if (sim_chance(sim, 10))
        unix_ms += sim_between(sim, 0, 900000); /* And some have a wrong clock. */
    struct uuid uuid = uuid_v7_make(unix_ms, random);
    uuid_print(&uuid, ret_id);
}

void request_pack(const ProtobufCMessage *message, struct buf *out)
{
    size_t size = protobuf_c_message_get_packed_size(message);

    protobuf_c_message_pack(message, buf_reserve(out, size + 1));
    out->size += size;
}

static void print_authority(enum sim_authority kind, const char *token,
                            char ret_text[SIM_AUTHORITY_SIZE])
{
    if (kind == BY_SESSION)
        snprintf(ret_text, SIM_AUTHORITY_SIZE, "session:%s", token);
    else
        snprintf(ret_text, SIM_AUTHORITY_SIZE, "%s",
                 kind == BY_SYSTEM ? "system:payments" : "unheld");
}

/* Of four requests one has more than one currency. */
static void fill_amounts(const struct sim_op *op, struct request_parts *parts)
{
    uint32_t first = op->amount % FIRST_CURRENCIES;

    holdfast__v1__currency_amount__init(&parts->amount);
    parts->amount.currency = request_text(currency_names[first]);
    parts->amount.amount = 1 + op->amount / 2 % 50;
    parts->amounts[0] = &parts->amount;
    for (uint32_t i = 0; i + 1 < SIM_CURRENCIES; i++) {
        Holdfast__V1__CurrencyAmount *more = &parts->more[i];
        holdfast__v1__currency_amount__init(more);
        more->currency = request_text(currency_names[(first + i + 1) % SIM_CURRENCIES]);
        more->amount = 1 + (op->twist >> (4 + 4 * i)) % 8;
        parts->amounts[i + 1] = more;
    }
    parts->amount_count = op->twist % 4 > 0 ? 1 : 2 + op->twist / 4 % (SIM_CURRENCIES - 1);
}

void request_large(const struct sim_op *op, struct request_parts *parts)
{
    CHECK(parts->amounts[0] == &parts->amount);
    parts->amount.currency = request_text("coal");
    parts->amount.amount = ((int64_t)1 << LARGE_BITS) + op->amount - 5000;
}

static void fill_items(const struct sim_op *op, struct request_parts *parts)
{
    static const char *const kinds[] = { "shield", "boots" };

    holdfast__v1__item_spec__init(&parts->item);
    parts->item.kind = request_text("sword");
    parts->items[0] = &parts->item;
    parts->uids[0] = request_text(op->uid);
    parts->uid_count = op->uid[0] != '\0';
    for (uint32_t i = 0; i < 2; i++) {
        holdfast__v1__item_spec__init(&parts->more_items[i]);
        parts->more_items[i].kind = request_text(kinds[i]);
        parts->items[i + 1] = &parts->more_items[i];
        if (op->more_uids[i][0] != '\0')
            parts->uids[parts->uid_count++] = request_text(op->more_uids[i]);
    }
    parts->item_count = op->twist % 3 > 0 ? 1 : 2 + op->twist / 3 % 2;
}

#define KIND_64 "a-kind-of-item-whose-name-is-as-long-as-the-names-of-kinds-may-b"

static void spoil_goods(const struct sim_op *op, struct request_parts *parts)
{
    switch (op->twist / 37 % 9) {
    case 0:
        parts->amount.amount = 0;
        break;
    case 1:
        parts->amount.amount = (int64_t)1 << 53;
        break;
    case 2:
        parts->amount.currency = request_text("bogus");
        break;
    case 3:
        parts->more[0].currency = parts->amount.currency;
        break;
    case 4:
        if (parts->uid_count > 0 && parts->uid_count < ARRAY_SIZE(parts->uids))
            parts->uids[parts->uid_count++] = parts->uids[0];
        break;
    case 5:
        parts->item.kind = request_text("");
        break;
    case 6:
        parts->item.kind = request_text(KIND_64 "x");
        break;
    case 7:
        memcpy(parts->to, parts->player, sizeof parts->to);
        break;
    default: /* Just as much as may be. */
        parts->amount.amount = ((int64_t)1 << 53) - 1;
        parts->item.kind = request_text(KIND_64);
        break;
    }
}

void request_parts_fill(const struct sim_op *op, struct request_parts *ret_parts)
{
    request_player_name(op->player, ret_parts->player);
    request_player_name(op->to, ret_parts->to);
    snprintf(ret_parts->json, sizeof ret_parts->json, "{\"n\":%u}", op->amount);
    print_authority(op->authority, op->token, ret_parts->authority);
    fill_amounts(op, ret_parts);
    edit_parts_fill(op, &ret_parts->edits);
    fill_items(op, ret_parts);
    if (op->twist % 37 == 0)
        spoil_goods(op, ret_parts);
}

void request_say_why(const struct sim_op *op, ProtobufCMessage *message)
{
    static char why[] = "quest", longest[] = KIND_64, too_long[] = KIND_64 "x";
    const ProtobufCFieldDescriptor *field =
        protobuf_c_message_descriptor_get_field_by_name(message->descriptor, "reason");
    uint32_t die = (op->twist ^ op->twist >> 15) % 64;

    if (field == NULL || die > 16)
        return;
    *(char **)(void *)((uint8_t *)message + field->offset) = die == 0   ? too_long
                                                             : die == 1 ? longest
                                                                        : why;
}

uint32_t request_page(const struct sim_op *op, uint32_t mostly, uint32_t most)
{
    uint32_t die = (op->twist ^ op->twist >> 13) % 32;

    return die < 2 ? most + die : mostly;
}

Holdfast__V1__ReadOptions *request_read(const struct sim_op *op, struct request_parts *parts)
{
    holdfast__v1__read_options__init(&parts->read);
    if (op->amount % 4 == 0)
        parts->read.max_age_ms = op->amount * 6;
    else if (op->amount % 4 == 1)
        parts->read.max_age_ms = op->amount % 100;
    return parts->read.max_age_ms > 0 ? &parts->read : NULL;
}

/* ---- several players ---- */
static void fill_others(const struct sim_op *op, struct request_txn_parts *t)
{
    for (uint32_t i = 0; i < op->other_count; i++) {
        memcpy(t->names[i], (char[3]){ 'p', (char)('0' + op->others[i]) }, 3);
        print_authority(op->other_authority[i], op->other_tokens[i], t->authorities[i]);
        holdfast__v1__transaction_player__init(&t->players[i]);
        t->players[i].player_id = t->names[i];
        t->players[i].authority = t->authorities[i];
        t->others[i] = &t->players[i];
    }
}

static void fill_goods(const struct sim_op *op, const struct request_parts *p,
                       struct request_txn_parts *t)
{
    t->amount = p->amount;
    t->amount.amount = 1 + op->amount / 2 % 5;
    t->other_amount = t->amount;
    t->other_amount.currency =
        request_text(strcmp(p->amount.currency, "gold") == 0 ? "gems" : "gold");
    t->other_amount.amount = 1 + op->amount / 3 % 5;
    t->more = t->other_more = p->more[SIM_CURRENCIES - 2];
    t->more.currency = request_text("dust");
    t->other_more.currency = request_text("coal");
    t->more.amount = 1 + (op->twist >> 4) % 3;
    t->other_more.amount = 1 + (op->twist >> 6) % 3;
    t->amounts[0] = &t->amount;
    t->amounts[1] = &t->more;
    t->other_amounts[0] = &t->other_amount;
    t->other_amounts[1] = &t->other_more;
    t->amount_count = op->twist % 5 > 0 ? 1 : 2;
    memcpy(t->uids, p->uids, sizeof t->uids);
    t->uid_count = p->uid_count;
    t->other_uids[0] = request_text(op->other_uid);
}

void request_txn_parts_fill(const struct sim_op *op, const struct request_parts *parts,
                            struct request_txn_parts *ret_parts)
{
    CHECK(op->other_count <= 2);
    memset(ret_parts, 0, sizeof *ret_parts);
    fill_others(op, ret_parts);
    fill_goods(op, parts, ret_parts);
}
