/* Requests of game servers, as bytes. */
#include "tests/sim/request.h"

#include <stdio.h>
#include <string.h>

#include "runtime/base/check.h"

static const char *const currency_names[SIM_CURRENCIES] = { "gold", "gems" };
static const char *const section_names[SIM_SECTIONS] = { "progress", "quests" };

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

void request_parts_fill(const struct sim_op *op, struct request_parts *ret_parts)
{
    request_player_name(op->player, ret_parts->player);
    request_player_name(op->to, ret_parts->to);
    snprintf(ret_parts->json, sizeof ret_parts->json, "{\"n\":%u}", op->amount);
    print_authority(op->authority, op->token, ret_parts->authority);
    holdfast__v1__currency_amount__init(&ret_parts->amount);
    ret_parts->amount.currency = request_text(currency_names[op->amount % SIM_CURRENCIES]);
    ret_parts->amount.amount = 1 + op->amount / 2 % 50;
    ret_parts->amounts[0] = &ret_parts->amount;
    holdfast__v1__section_edit__init(&ret_parts->edit);
    ret_parts->edit.name = request_text(section_names[op->amount % SIM_SECTIONS]);
    ret_parts->edit.edit_case = HOLDFAST__V1__SECTION_EDIT__EDIT_REPLACE;
    ret_parts->edit.replace = ret_parts->json;
    ret_parts->edits[0] = &ret_parts->edit;
    holdfast__v1__item_spec__init(&ret_parts->item);
    ret_parts->item.kind = request_text("sword");
    ret_parts->items[0] = &ret_parts->item;
    ret_parts->uids[0] = request_text(op->uid);
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
    t->amounts[0] = &t->amount;
    t->other_amounts[0] = &t->other_amount;
    t->uids[0] = request_text(op->uid);
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
