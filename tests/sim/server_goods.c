/* Game servers move goods: transfers, mail, claims. */
#include <stdio.h>
#include <string.h>

#include "holdfast/v1/ledger.pb-c.h"
#include "holdfast/v1/mailbox.pb-c.h"
#include "idl/method.h"
#include "runtime/base/check.h"
#include "tests/sim/goods.h"

static uint32_t another_player(struct sim *sim, uint32_t player)
{
    uint32_t other = (uint32_t)sim_between(sim, 0, sim->player_count - 2);

    return other + (other >= player);
}

/* False: there is nothing to ask for. */
static bool choose_goods(struct sim *sim, struct sim_op *op)
{
    const char *uid = goods_pick_item(sim, op->player);
    const char *mail = goods_pick_mail(sim, op->player);

    op->to = another_player(sim, op->player);
    if (op->method == METHOD_MAILBOX_CLAIM && mail != NULL)
        snprintf(op->mail, sizeof op->mail, "%s", mail);
    if (op->method == METHOD_INVENTORY_TRANSFER && uid == NULL)
        op->method = METHOD_LEDGER_TRANSFER;
    if (uid != NULL && (op->method == METHOD_INVENTORY_TRANSFER ||
                        (op->method == METHOD_MAILBOX_SEND && op->amount % 3 > 0)))
        snprintf(op->uid, sizeof op->uid, "%s", uid);
    return op->method != METHOD_MAILBOX_CLAIM || mail != NULL;
}

void server_move_goods(struct sim *sim, uint32_t server, uint32_t player)
{
    static const uint32_t methods[] = {
        METHOD_LEDGER_TRANSFER, METHOD_INVENTORY_TRANSFER, METHOD_INVENTORY_TRANSFER,
        METHOD_MAILBOX_SEND,    METHOD_MAILBOX_SEND,       METHOD_MAILBOX_CLAIM,
        METHOD_MAILBOX_CLAIM,   METHOD_MAILBOX_CLAIM,      METHOD_RETURN_EXPIRED,
        METHOD_MAILBOX_LIST,
    };
    const struct held *held = &sim->servers[server].held[player];

    if (sim->player_count < 2)
        return;
    struct sim_op *op =
        op_new(sim, server, player, methods[sim_between(sim, 0, ARRAY_SIZE(methods) - 1)]);
    op->authority = held->held ? BY_SESSION : BY_UNHELD;
    if (op->method == METHOD_RETURN_EXPIRED ||
        (op->method == METHOD_MAILBOX_SEND && sim_chance(sim, 200)))
        op->authority = BY_SYSTEM;
    memcpy(op->token, held->token, sizeof op->token);
    if (!choose_goods(sim, op))
        op->method = METHOD_RETURN_EXPIRED;
    op_call(sim, op);
}

/* ---- requests ---- */
static char *text(const char *borrowed)
{
    return (char *)(uintptr_t)borrowed;
}

static void pack(const ProtobufCMessage *message, struct buf *out)
{
    size_t size = protobuf_c_message_get_packed_size(message);

    protobuf_c_message_pack(message, buf_reserve(out, size + 1));
    out->size += size;
}

static void send(const struct sim_op *op, const struct goods_parts *p, struct buf *out)
{
    Holdfast__V1__MailboxServiceSendRequest request =
        HOLDFAST__V1__MAILBOX_SERVICE_SEND_REQUEST__INIT;
    Holdfast__V1__CurrencyAmount *amounts[] = { p->amount };
    Holdfast__V1__ItemSpec item = HOLDFAST__V1__ITEM_SPEC__INIT;
    Holdfast__V1__ItemSpec *items[] = { &item };
    char *uids[] = { text(op->uid) };

    item.kind = text("hat");
    request.player_id = text(p->player);
    request.op_id = text(op->id);
    request.attempt = op->attempt;
    request.authority = p->authority;
    request.text = text("hello");
    request.currencies = amounts;
    request.n_currencies = op->amount % 3 != 1;
    if (op->authority == BY_SYSTEM) {
        request.mint = items;
        request.n_mint = op->amount % 2;
    } else {
        request.to_player_id = text(p->to);
        request.item_uids = uids;
        request.n_item_uids = op->uid[0] != '\0';
        if (op->amount % 4 < 2)
            request.expires_in_ms = 1000 + op->amount % 3000;
    }
    pack(&request.base, out);
}

static void transfer(const struct sim_op *op, const struct goods_parts *p, struct buf *out)
{
    char *uids[] = { text(op->uid) };
    Holdfast__V1__CurrencyAmount *amounts[] = { p->amount };

    if (op->method == METHOD_INVENTORY_TRANSFER) {
        Holdfast__V1__InventoryServiceTransferRequest request =
            HOLDFAST__V1__INVENTORY_SERVICE_TRANSFER_REQUEST__INIT;
        request.player_id = text(p->player);
        request.to_player_id = text(p->to);
        request.op_id = text(op->id);
        request.attempt = op->attempt;
        request.authority = p->authority;
        request.item_uids = uids;
        request.n_item_uids = 1;
        pack(&request.base, out);
        return;
    }
    Holdfast__V1__LedgerServiceTransferRequest request =
        HOLDFAST__V1__LEDGER_SERVICE_TRANSFER_REQUEST__INIT;
    request.player_id = text(p->player);
    request.to_player_id = text(p->to);
    request.op_id = text(op->id);
    request.attempt = op->attempt;
    request.authority = p->authority;
    request.currencies = amounts;
    request.n_currencies = 1;
    pack(&request.base, out);
}

static void claim(const struct sim_op *op, const struct goods_parts *p, struct buf *out)
{
    Holdfast__V1__MailboxServiceClaimRequest request =
        HOLDFAST__V1__MAILBOX_SERVICE_CLAIM_REQUEST__INIT;
    char *ids[] = { text(op->mail) };

    request.player_id = text(p->player);
    request.op_id = text(op->id);
    request.attempt = op->attempt;
    request.authority = p->authority;
    request.mail_ids = ids;
    request.n_mail_ids = 1;
    pack(&request.base, out);
}

static void return_expired(const struct sim_op *op, const struct goods_parts *p, struct buf *out)
{
    Holdfast__V1__ReturnExpiredRequest request = HOLDFAST__V1__RETURN_EXPIRED_REQUEST__INIT;

    request.player_id = text(p->player);
    request.op_id = text(op->id);
    request.attempt = op->attempt;
    request.authority = p->authority;
    pack(&request.base, out);
}

bool request_goods_encode(const struct sim_op *op, const struct goods_parts *p, struct buf *out)
{
    Holdfast__V1__MailboxServiceListRequest list = HOLDFAST__V1__MAILBOX_SERVICE_LIST_REQUEST__INIT;

    switch (op->method) {
    case METHOD_LEDGER_TRANSFER:
    case METHOD_INVENTORY_TRANSFER:
        transfer(op, p, out);
        return true;
    case METHOD_MAILBOX_SEND:
        send(op, p, out);
        return true;
    case METHOD_MAILBOX_CLAIM:
        claim(op, p, out);
        return true;
    case METHOD_RETURN_EXPIRED:
        return_expired(op, p, out);
        return true;
    case METHOD_MAILBOX_LIST:
        list.player_id = text(p->player);
        pack(&list.base, out);
        return true;
    default:
        return false;
    }
}
