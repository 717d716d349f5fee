/* Requests of game servers, as bytes. */
#include <stdio.h>
#include <string.h>

#include "holdfast/internal/v1/node.pb-c.h"
#include "holdfast/v1/ledger.pb-c.h"
#include "holdfast/v1/session.pb-c.h"
#include "idl/method.h"
#include "runtime/base/check.h"
#include "tests/sim/goods.h"

static const char *const currency_names[SIM_CURRENCIES] = { "gold", "gems" };
static const char *const section_names[SIM_SECTIONS] = { "progress", "quests" };

static char *text(const char *borrowed)
{
    return (char *)(uintptr_t)borrowed;
}

/* Numbers have one digit: SIM_PLAYERS_MAX. */
static void player_name(uint32_t player, char ret_name[16])
{
    CHECK(player < SIM_PLAYERS_MAX);
    memcpy(ret_name, (char[3]){ 'p', (char)('0' + player) }, 3);
}

void player_entity(uint32_t player, char ret_entity[32])
{
    memcpy(ret_entity, "player:", 7);
    player_name(player, ret_entity + 7);
}

void sim_op_id(struct sim *sim, char ret_id[48])
{
    uint64_t unix_ms = SIM_UNIX_MS + sim->now_ms + sim->clock_ms;
    uint8_t random[10] = { 0 };

    store_u64(random, sim_random_next(&sim->random));
    if (sim_chance(sim, 60)) {
        snprintf(ret_id, 48, "claim:%llx", (unsigned long long)load_u64(random));
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

static void pack(const ProtobufCMessage *message, struct buf *out)
{
    size_t size = protobuf_c_message_get_packed_size(message);

    protobuf_c_message_pack(message, buf_reserve(out, size + 1));
    out->size += size;
}

/* The parts that several requests share; they point at each other. */
struct parts {
    char player[16];
    char json[48];
    Holdfast__V1__Authority authority;
    Holdfast__V1__SessionAuthority session;
    Holdfast__V1__SystemAuthority system;
    Holdfast__V1__UnheldAuthority unheld;
    Holdfast__V1__CurrencyAmount amount;
    Holdfast__V1__CurrencyAmount *amounts[1];
    Holdfast__V1__SectionEdit edit;
    Holdfast__V1__SectionEdit *edits[1];
    Holdfast__V1__ItemSpec item;
    Holdfast__V1__ItemSpec *items[1];
};

static void fill_authority(const struct sim_op *op, struct parts *p)
{
    holdfast__v1__authority__init(&p->authority);
    holdfast__v1__session_authority__init(&p->session);
    holdfast__v1__system_authority__init(&p->system);
    holdfast__v1__unheld_authority__init(&p->unheld);
    p->session.token = text(op->token);
    p->system.scope = text("payments");
    switch (op->authority) {
    case BY_SESSION:
        p->authority.kind_case = HOLDFAST__V1__AUTHORITY__KIND_SESSION;
        p->authority.session = &p->session;
        break;
    case BY_SYSTEM:
        p->authority.kind_case = HOLDFAST__V1__AUTHORITY__KIND_SYSTEM;
        p->authority.system = &p->system;
        break;
    case BY_UNHELD:
        p->authority.kind_case = HOLDFAST__V1__AUTHORITY__KIND_UNHELD;
        p->authority.unheld = &p->unheld;
        break;
    }
}

static void fill_parts(const struct sim_op *op, struct parts *p)
{
    player_name(op->player, p->player);
    snprintf(p->json, sizeof p->json, "{\"n\":%u}", op->amount);
    fill_authority(op, p);
    holdfast__v1__currency_amount__init(&p->amount);
    p->amount.currency = text(currency_names[op->amount % SIM_CURRENCIES]);
    p->amount.amount = 1 + op->amount / 2 % 50;
    p->amounts[0] = &p->amount;
    holdfast__v1__section_edit__init(&p->edit);
    p->edit.name = text(section_names[op->amount % SIM_SECTIONS]);
    p->edit.edit_case = HOLDFAST__V1__SECTION_EDIT__EDIT_REPLACE;
    p->edit.replace = p->json;
    p->edits[0] = &p->edit;
    holdfast__v1__item_spec__init(&p->item);
    p->item.kind = text("sword");
    p->items[0] = &p->item;
}

static void start_session(const struct sim_op *op, struct parts *p, struct buf *out)
{
    Holdfast__V1__StartSessionRequest request = HOLDFAST__V1__START_SESSION_REQUEST__INIT;

    request.player_id = p->player;
    request.op_id = text(op->id);
    request.attempt = op->attempt;
    request.incarnation = text(op->incarnation);
    request.mode = (Holdfast__V1__StartMode)op->mode;
    request.grace_ms = 300 + op->amount % 1500;
    pack(&request.base, out);
}

static void end_session(const struct sim_op *op, struct parts *p, struct buf *out)
{
    Holdfast__V1__EndSessionRequest request = HOLDFAST__V1__END_SESSION_REQUEST__INIT;

    request.player_id = p->player;
    request.op_id = text(op->id);
    request.attempt = op->attempt;
    request.authority = &p->authority;
    request.n_edits = op->amount % 4 < 2;
    request.edits = p->edits;
    pack(&request.base, out);
}

static void update_profile(const struct sim_op *op, struct parts *p, struct buf *out)
{
    Holdfast__V1__UpdateProfileRequest request = HOLDFAST__V1__UPDATE_PROFILE_REQUEST__INIT;

    request.player_id = p->player;
    request.op_id = text(op->id);
    request.attempt = op->attempt;
    request.authority = &p->authority;
    request.n_edits = 1;
    request.edits = p->edits;
    pack(&request.base, out);
}

static void grant(const struct sim_op *op, struct parts *p, struct buf *out)
{
    Holdfast__V1__GrantRequest request = HOLDFAST__V1__GRANT_REQUEST__INIT;

    request.player_id = p->player;
    request.op_id = text(op->id);
    request.attempt = op->attempt;
    request.authority = &p->authority;
    request.n_currencies = 1;
    request.currencies = p->amounts;
    pack(&request.base, out);
}

static void spend(const struct sim_op *op, struct parts *p, struct buf *out)
{
    Holdfast__V1__SpendRequest request = HOLDFAST__V1__SPEND_REQUEST__INIT;

    request.player_id = p->player;
    request.op_id = text(op->id);
    request.attempt = op->attempt;
    request.authority = &p->authority;
    request.n_currencies = 1;
    request.currencies = p->amounts;
    pack(&request.base, out);
}

static void mint(const struct sim_op *op, struct parts *p, struct buf *out)
{
    Holdfast__V1__MintRequest request = HOLDFAST__V1__MINT_REQUEST__INIT;

    request.player_id = p->player;
    request.op_id = text(op->id);
    request.attempt = op->attempt;
    request.authority = &p->authority;
    request.n_items = 1;
    request.items = p->items;
    pack(&request.base, out);
}

static void consume(const struct sim_op *op, struct parts *p, struct buf *out)
{
    Holdfast__V1__ConsumeRequest request = HOLDFAST__V1__CONSUME_REQUEST__INIT;
    char *uids[] = { text(op->uid) };

    request.player_id = p->player;
    request.op_id = text(op->id);
    request.attempt = op->attempt;
    request.authority = &p->authority;
    request.n_item_uids = 1;
    request.item_uids = uids;
    pack(&request.base, out);
}

static void reserve(const struct sim_op *op, struct parts *p, struct buf *out)
{
    Holdfast__V1__ReserveRequest request = HOLDFAST__V1__RESERVE_REQUEST__INIT;

    request.player_id = p->player;
    request.op_id = text(op->id);
    request.attempt = op->attempt;
    request.authority = &p->authority;
    request.n_currencies = 1;
    request.currencies = p->amounts;
    request.expires_in_ms = 1000 + op->amount % 4000;
    pack(&request.base, out);
}

static void close_reservation(const struct sim *sim, const struct sim_op *op, struct parts *p,
                              struct buf *out)
{
    Holdfast__V1__PostRequest post = HOLDFAST__V1__POST_REQUEST__INIT;
    Holdfast__V1__VoidRequest give_back = HOLDFAST__V1__VOID_REQUEST__INIT;
    char to[16];

    player_name(op->to, to);
    post.player_id = give_back.player_id = p->player;
    post.op_id = give_back.op_id = text(op->id);
    post.attempt = give_back.attempt = op->attempt;
    post.authority = give_back.authority = &p->authority;
    post.reserve_op_id = give_back.reserve_op_id = text(sim->ops[op->target].id);
    post.n_currencies = op->amount % 3 == 0;
    post.currencies = p->amounts;
    if (op->amount % 4 < 2)
        post.to_player_id = to;
    pack(op->method == METHOD_POST ? &post.base : &give_back.base, out);
}

static void reverse(const struct sim *sim, const struct sim_op *op, struct parts *p,
                    struct buf *out)
{
    Holdfast__V1__ReverseRequest request = HOLDFAST__V1__REVERSE_REQUEST__INIT;

    request.player_id = p->player;
    request.op_id = text(op->id);
    request.attempt = op->attempt;
    request.authority = &p->authority;
    request.target_op_id = text(sim->ops[op->target].id);
    request.reason = text("support");
    pack(&request.base, out);
}

static void resolve(const struct sim *sim, const struct sim_op *op, struct buf *out)
{
    const struct sim_op *target = &sim->ops[op->target];

    if (op->method == METHOD_RESOLVE_OPERATION) {
        Holdfast__V1__ResolveOperationRequest request =
            HOLDFAST__V1__RESOLVE_OPERATION_REQUEST__INIT;
        request.entity = text(target->entity);
        request.op_id = text(target->id);
        request.seal = op->seal;
        pack(&request.base, out);
        return;
    }
    Holdfast__V1__GetOperationRequest request = HOLDFAST__V1__GET_OPERATION_REQUEST__INIT;
    request.entity = text(op->of_receipt ? target->id : target->entity);
    request.op_id = text(target->id);
    pack(&request.base, out);
}

/* op->player is the shard here. */
static void renew(const struct sim *sim, const struct sim_op *op, struct buf *out)
{
    Holdfast__Internal__V1__RenewTokensRequest request =
        HOLDFAST__INTERNAL__V1__RENEW_TOKENS_REQUEST__INIT;
    Holdfast__Internal__V1__RenewToken tokens[SIM_PLAYERS_MAX];
    Holdfast__Internal__V1__RenewToken *pointers[SIM_PLAYERS_MAX];
    char names[SIM_PLAYERS_MAX][16];

    request.shard = op->player;
    request.incarnation = text(op->incarnation);
    request.tokens = pointers;
    for (uint32_t i = 0; i < sim->player_count; i++) {
        const struct held *held = &sim->servers[op->server].held[i];
        if (!held->held || sim->player_shard[i] != op->player)
            continue;
        size_t n = request.n_tokens++;
        holdfast__internal__v1__renew_token__init(&tokens[n]);
        player_name(i, names[n]);
        tokens[n].position = i;
        tokens[n].player_id = names[n];
        tokens[n].fence = held->fence;
        pointers[n] = &tokens[n];
    }
    pack(&request.base, out);
}

/* op->player is the shard here. */
static void item_history(const struct sim_op *op, struct buf *out)
{
    Holdfast__Internal__V1__ItemHistoryRequest request =
        HOLDFAST__INTERNAL__V1__ITEM_HISTORY_REQUEST__INIT;

    request.shard = op->player;
    request.item_uid = text(op->uid);
    request.after_step = op->target;
    request.limit = 1 + op->amount % 20;
    pack(&request.base, out);
}

static void read_player(const struct sim_op *op, struct parts *p, struct buf *out)
{
    if (op->method == METHOD_GET_BALANCES) {
        Holdfast__V1__GetBalancesRequest request = HOLDFAST__V1__GET_BALANCES_REQUEST__INIT;
        request.player_id = p->player;
        pack(&request.base, out);
        return;
    }
    Holdfast__V1__GetProfileRequest request = HOLDFAST__V1__GET_PROFILE_REQUEST__INIT;
    request.player_id = p->player;
    pack(&request.base, out);
}

static bool moves_goods(const struct sim_op *op, struct parts *p, struct buf *out)
{
    char to[16];

    player_name(op->to, to);
    if (request_txn_encode(op, &(struct goods_parts){ p->player, to, &p->authority, &p->amount },
                           out))
        return true;
    return request_goods_encode(
        op, &(struct goods_parts){ p->player, to, &p->authority, &p->amount }, out);
}

void request_encode(const struct sim *sim, const struct sim_op *op, struct buf *out)
{
    struct parts p;

    fill_parts(op, &p);
    switch (op->method) {
    case METHOD_START_SESSION:
        start_session(op, &p, out);
        break;
    case METHOD_END_SESSION:
        end_session(op, &p, out);
        break;
    case METHOD_UPDATE_PROFILE:
        update_profile(op, &p, out);
        break;
    case METHOD_GRANT:
        grant(op, &p, out);
        break;
    case METHOD_SPEND:
        spend(op, &p, out);
        break;
    case METHOD_MINT:
        mint(op, &p, out);
        break;
    case METHOD_CONSUME:
        consume(op, &p, out);
        break;
    case METHOD_RESERVE:
        reserve(op, &p, out);
        break;
    case METHOD_POST:
    case METHOD_VOID:
        close_reservation(sim, op, &p, out);
        break;
    case METHOD_REVERSE:
        reverse(sim, op, &p, out);
        break;
    case METHOD_RESOLVE_OPERATION:
    case METHOD_GET_OPERATION:
        resolve(sim, op, out);
        break;
    case METHOD_RENEW_TOKENS:
        renew(sim, op, out);
        break;
    case METHOD_ITEM_HISTORY:
        item_history(op, out);
        break;
    default:
        if (!moves_goods(op, &p, out))
            read_player(op, &p, out);
        break;
    }
}
