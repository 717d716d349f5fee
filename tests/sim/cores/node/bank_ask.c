/*
 * What two players own, asked for at random: many currencies and items at once, amounts and texts
 * at their limits, reservations and entries named in every way, ids at the ends of their window,
 * ids used twice, limits that bind; and each answer and each refusal held against bank.h.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "idl/limit.h"
#include "node/core/codec/arena_proto.h"
#include "runtime/base/check.h"
#include "tests/sim/cores/node/bank.h"

#define TURNS          100u
#define GIFTS          8u /* To begin with. */
#define DEBT           15u
#define GEMS           16u
#define GOLD           17u
#define WINDOW_MS      86400000ull
#define LARGE_PER_CENT 8u

static char *printed(struct bank *b, const char *stem, uint32_t number)
{
    return arena_printf(&b->sim->arena, "%s%" PRIu32, stem, number);
}

static char *repeated(struct bank *b, char letter, size_t size)
{
    char *text = arena_alloc(&b->sim->arena, size + 1);

    memset(text, letter, size);
    text[size] = 0;
    return text;
}

static bool chance(struct bank *b, uint32_t per_hundred)
{
    return rsim_chance(b->sim, per_hundred);
}

/* One thing of a request is wrong, or none is. */
static bool fault(struct bank *b)
{
    if (b->fault || rsim_between(b->sim, 0, 199) > 1)
        return false;
    b->fault = true;
    return true;
}

/* ---- parts of requests ---- */

static char *reason_of(struct bank *b)
{
    if (fault(b))
        return chance(b, 50) ? repeated(b, 'r', LIMIT_REASON_BYTES + 1) : text_lend("a\nb");
    if (chance(b, 20))
        return repeated(b, 'r', LIMIT_REASON_BYTES);
    return text_lend(chance(b, 50) ? "shop" : "");
}

static int64_t amount_of(struct bank *b, uint32_t player, uint32_t currency)
{
    int64_t stands = b->state.players[player].amounts[currency];
    int64_t room = b->max[currency] - stands, over = stands - b->min[currency];
    int64_t amount = (int64_t)rsim_between(b->sim, 1, b->op_count < GIFTS ? 90 : 9);

    if (fault(b)) {
        static const int64_t wrong[] = { 0, -1, LIMIT_AMOUNT + 1, INT64_MIN, INT64_MAX };
        return RSIM_PICK(b->sim, wrong);
    }
    if (chance(b, 7))
        amount = room + (int64_t)rsim_between(b->sim, 0, 2) - 1;
    else if (chance(b, 7))
        amount = over + (int64_t)rsim_between(b->sim, 0, 2) - 1;
    else if (chance(b, LARGE_PER_CENT))
        amount = (1ll << 46) + (int64_t)rsim_between(b->sim, 0, 2) - 1;
    return amount < 1 ? 1 : amount > LIMIT_AMOUNT ? LIMIT_AMOUNT : amount;
}

/* Of different currencies, in no order; 0: none is wanted. */
static Holdfast__V1__CurrencyAmount **amounts_of(struct bank *b, uint32_t player, size_t *count)
{
    static const uint32_t often[] = { DEBT, GEMS, GOLD, GOLD, GOLD, GOLD };
    Holdfast__V1__CurrencyAmount **list =
        arena_messages(&b->sim->arena, &holdfast__v1__currency_amount__descriptor, 20);
    bool used[BANK_NAMES] = { 0 };

    *count = chance(b, 60) ? 1 : rsim_between(b->sim, 2, 4);
    if (chance(b, 3))
        *count = LIMIT_CURRENCIES;
    if (fault(b))
        *count = LIMIT_CURRENCIES + 1;
    for (size_t i = 0; i < *count; i++) {
        uint32_t currency = RSIM_PICK(b->sim, often);
        while (used[currency])
            currency = (uint32_t)rsim_between(b->sim, 0, BANK_CURRENCIES - 1);
        used[currency] = true;
        list[i]->currency = text_lend(bank_names[currency]);
        list[i]->amount = amount_of(b, player, currency);
    }
    if (fault(b))
        list[0]->currency = text_lend(bank_names[BANK_CURRENCIES]);
    else if (*count > 1 && fault(b))
        list[*count - 1]->currency = list[0]->currency;
    return list;
}

static Holdfast__V1__ItemSpec **specs_of(struct bank *b, size_t *count)
{
    static const char *const kinds[] = { "sword", "orb", "key", "shield" };
    static const char *const attributes[] = { "", "{}", "[]", "{\"level\":3}" };
    static const char *const wrong[] = { "[1]", "{", "3", "{\"a\":1,\"a\":2}" };

    *count = chance(b, 50) ? 0 : rsim_between(b->sim, 1, 4);
    if (chance(b, 3))
        *count = LIMIT_ITEMS;
    if (fault(b))
        *count = LIMIT_ITEMS + 1;
    Holdfast__V1__ItemSpec **list =
        arena_messages(&b->sim->arena, &holdfast__v1__item_spec__descriptor, *count + 1);
    for (size_t i = 0; i < *count; i++) {
        list[i]->kind = text_lend(RSIM_PICK(b->sim, kinds));
        list[i]->attributes = text_lend(RSIM_PICK(b->sim, attributes));
    }
    if (*count == 0)
        return list;
    if (chance(b, 20))
        list[0]->kind = repeated(b, 'k', LIMIT_ITEM_KIND_BYTES);
    if (fault(b))
        list[*count - 1]->kind = repeated(b, 'k', chance(b, 50) ? 0 : LIMIT_ITEM_KIND_BYTES + 1);
    else if (fault(b))
        list[*count - 1]->attributes = text_lend(RSIM_PICK(b->sim, wrong));
    return list;
}

/* Mostly of items that the player holds. */
static char **uids_of(struct bank *b, uint32_t player, size_t *count)
{
    const struct bank_player *owner = &b->state.players[player];
    char **list = arena_zalloc(&b->sim->arena, sizeof *list * (LIMIT_ITEMS + 2));
    uint32_t at =
        owner->held_count > 0 ? (uint32_t)rsim_between(b->sim, 0, owner->held_count - 1) : 0;

    *count = rsim_between(b->sim, 1, 3);
    if (chance(b, 10))
        *count = LIMIT_ITEMS;
    if (*count > owner->held_count)
        *count = owner->held_count;
    for (size_t i = 0; i < *count; i++)
        list[i] = b->items[owner->held[(at + i) % owner->held_count].item].uid;
    if (b->item_count > 0 && chance(b, 15)) { /* Whose it is, if anyone's. */
        char *other = b->items[rsim_between(b->sim, 0, b->item_count - 1)].uid;
        bool named = *count == LIMIT_ITEMS;
        for (size_t i = 0; i < *count; i++)
            named |= strcmp(list[i], other) == 0;
        if (!named)
            list[(*count)++] = other;
    }
    if (*count > 0 && fault(b)) {
        list[*count] = list[0];
        *count += *count <= LIMIT_ITEMS;
    } else if (fault(b)) {
        list[*count] = repeated(b, chance(b, 50) ? 'A' : 'a', chance(b, 50) ? 31 : 33);
        *count += 1;
    }
    return list;
}

static const struct bank_op *any_op(struct bank *b)
{
    /* Of the last ones rather. */
    uint64_t low = b->op_count > 12 && chance(b, 70) ? b->op_count - 12 : 0;

    return b->op_count > 0 ? &b->ops[rsim_between(b->sim, low, b->op_count - 1)] : NULL;
}

/* An operation of that method, if there is one. */
static void target_of(struct bank *b, const struct bank_op *asking, uint32_t method, char **ret_id,
                      uint64_t *ret_seq)
{
    uint64_t at = b->op_count > 0 ? rsim_between(b->sim, 0, b->op_count - 1) : 0;
    const struct bank_op *op = any_op(b);

    for (uint32_t i = 0; i < b->op_count && chance(b, 99); i++) {
        const struct bank_op *next = &b->ops[(at + i) % b->op_count];
        if (next->method != method || next->player != asking->player || !next->done)
            continue;
        op = next;
        break;
    }
    if (op != NULL && op->old) /* Its outcome may be forgotten by now. */
        op = NULL;
    *ret_id = text_lend(op != NULL ? op->id : "claim:never");
    *ret_seq = op != NULL && chance(b, 40) ? op->seq : 0;
    if (chance(b, 8))
        *ret_seq = rsim_between(b->sim, 1, 12);
    if (chance(b, 4))
        *ret_id = text_lend("claim:never");
    if (fault(b))
        *ret_id = text_lend("never");
}

static uint64_t within(struct bank *b, uint64_t low, uint64_t high)
{
    if (fault(b))
        return chance(b, 50) ? low - 1 : high + 1;
    if (chance(b, 15))
        return chance(b, 50) ? low : high;
    return rsim_between(b->sim, low, low * 60);
}

/* ---- requests ---- */

static ProtobufCMessage *fresh(struct bank *b, uint32_t method)
{
    return arena_message(&b->sim->arena, method_find(method)->request);
}

static void to_other(struct bank *b, const struct bank_op *op, char **ret_to)
{
    *ret_to = text_lend(bank_players[1 - op->player]);
    if (fault(b))
        *ret_to = chance(b, 50) ? text_lend(bank_players[op->player])
                                : repeated(b, 'p', LIMIT_PLAYER_ID_BYTES + 1);
}

static void ask_grant(struct bank *b, struct bank_op *op)
{
    Holdfast__V1__GrantRequest *request = (Holdfast__V1__GrantRequest *)op->request;

    if (chance(b, 85))
        request->currencies = amounts_of(b, op->player, &request->n_currencies);
    request->items = specs_of(b, &request->n_items);
    if (request->n_currencies + request->n_items == 0)
        b->fault = true;
}

static void ask_spend(struct bank *b, struct bank_op *op)
{
    Holdfast__V1__SpendRequest *request = (Holdfast__V1__SpendRequest *)op->request;

    if (chance(b, 80))
        request->currencies = amounts_of(b, op->player, &request->n_currencies);
    if (chance(b, 40))
        request->item_uids = uids_of(b, op->player, &request->n_item_uids);
    if (request->n_currencies + request->n_item_uids == 0)
        b->fault = true;
}

static void ask_transfer(struct bank *b, struct bank_op *op)
{
    Holdfast__V1__TransferCurrenciesRequest *request =
        (Holdfast__V1__TransferCurrenciesRequest *)op->request;

    request->currencies = amounts_of(b, op->player, &request->n_currencies);
    to_other(b, op, &request->to_player_id);
    if (fault(b))
        request->n_currencies = 0;
}

static void ask_transfer_items(struct bank *b, struct bank_op *op)
{
    Holdfast__V1__TransferItemsRequest *request = (Holdfast__V1__TransferItemsRequest *)op->request;

    request->item_uids = uids_of(b, op->player, &request->n_item_uids);
    to_other(b, op, &request->to_player_id);
    if (request->n_item_uids == 0)
        b->fault = true;
}

static void ask_send(struct bank *b, struct bank_op *op)
{
    Holdfast__V1__SendMailRequest *request = (Holdfast__V1__SendMailRequest *)op->request;

    if (chance(b, 50))
        request->currencies = amounts_of(b, op->player, &request->n_currencies);
    if (chance(b, 50))
        request->item_uids = uids_of(b, op->player, &request->n_item_uids);
    if (chance(b, 50))
        request->text = repeated(b, 't', chance(b, 20) ? LIMIT_MAIL_TEXT_BYTES : 3);
    if (fault(b))
        request->text = repeated(b, 't', LIMIT_MAIL_TEXT_BYTES + 1);
    if (chance(b, 40))
        request->expires_in_ms = within(b, 1000, LIMIT_MAIL_EXPIRY_MS);
    to_other(b, op, &request->to_player_id);
    if (request->n_currencies + request->n_item_uids == 0 && request->text[0] == 0)
        b->fault = true;
}

static void ask_claim(struct bank *b, struct bank_op *op)
{
    Holdfast__V1__ClaimMailRequest *request = (Holdfast__V1__ClaimMailRequest *)op->request;
    uint32_t most = chance(b, 10) ? LIMIT_MAILS_CLAIMED : (uint32_t)rsim_between(b->sim, 1, 4);

    request->mail_ids =
        arena_zalloc(&b->sim->arena, sizeof *request->mail_ids * (LIMIT_MAILS_CLAIMED + 2));
    if (fault(b))
        most = LIMIT_MAILS_CLAIMED + 1;
    for (uint32_t i = 0; i < b->state.mail_count && request->n_mail_ids < most; i++) {
        const struct bank_mail *mail = &b->state.mails[i];
        if (mail->to == op->player && (!mail->gone || chance(b, 5)) && chance(b, 80))
            request->mail_ids[request->n_mail_ids++] =
                arena_text(&b->sim->arena, slice_from_text(mail->id));
    }
    if (b->fault && most > LIMIT_MAILS_CLAIMED && request->n_mail_ids < most)
        request->mail_ids[request->n_mail_ids++] = text_lend("a");
    if (request->n_mail_ids > 0 && request->n_mail_ids < LIMIT_MAILS_CLAIMED && fault(b))
        request->mail_ids[request->n_mail_ids++] = request->mail_ids[0];
    if (request->n_mail_ids == 0)
        b->fault = true;
}

static void ask_reserve(struct bank *b, struct bank_op *op)
{
    Holdfast__V1__ReserveCurrenciesRequest *request =
        (Holdfast__V1__ReserveCurrenciesRequest *)op->request;

    request->currencies = amounts_of(b, op->player, &request->n_currencies);
    request->expires_in_ms = within(b, 1000, LIMIT_RESERVATION_MS);
    if (fault(b))
        request->n_currencies = 0;
}

/* A part of what the entry holds, all of it, or one more. */
static void ask_part(struct bank *b, struct bank_op *op, Holdfast__V1__PostReservationRequest *post)
{
    const struct bank_player *player = &b->state.players[op->player];

    for (uint32_t i = 0; i < player->entry_count; i++) {
        const struct bank_entry *entry = &player->entries[i];
        if (entry->kind != (int)BANK_KIND(RESERVE) ||
            strcmp(entry->op_id, post->reserve_op_id) != 0)
            continue;
        for (uint32_t k = 0; k < entry->change_count && post->n_currencies < 8; k++) {
            int64_t held = entry->changes[k].reserved;
            int64_t part = held + (int64_t)rsim_between(b->sim, 0, 5) - 4;
            Holdfast__V1__CurrencyAmount *one = post->currencies[post->n_currencies];
            if (part < 1 || part > LIMIT_AMOUNT || chance(b, 30))
                continue;
            one->currency = text_lend(bank_names[entry->changes[k].currency]);
            one->amount = part;
            post->n_currencies++;
        }
    }
}

static void ask_post(struct bank *b, struct bank_op *op)
{
    Holdfast__V1__PostReservationRequest *request =
        (Holdfast__V1__PostReservationRequest *)op->request;

    target_of(b, op, METHOD_RESERVE_CURRENCIES, &request->reserve_op_id, &request->reserve_seq);
    request->currencies =
        arena_messages(&b->sim->arena, &holdfast__v1__currency_amount__descriptor, 8);
    if (chance(b, 60))
        ask_part(b, op, request);
    if (chance(b, 30) && !b->fault)
        to_other(b, op, &request->to_player_id);
    if (request->n_currencies == 0 && chance(b, 5)) {
        request->n_currencies = 1;
        request->currencies[0]->currency = text_lend(bank_names[5]);
        request->currencies[0]->amount = 1;
    }
}

static void ask_void(struct bank *b, struct bank_op *op)
{
    Holdfast__V1__VoidReservationRequest *request =
        (Holdfast__V1__VoidReservationRequest *)op->request;

    target_of(b, op, METHOD_RESERVE_CURRENCIES, &request->reserve_op_id, &request->reserve_seq);
}

static void ask_reverse(struct bank *b, struct bank_op *op)
{
    static const uint32_t methods[] = { METHOD_GRANT, METHOD_SPEND, METHOD_POST_RESERVATION,
                                        METHOD_RESERVE_CURRENCIES };
    Holdfast__V1__ReverseEntryRequest *request = (Holdfast__V1__ReverseEntryRequest *)op->request;

    target_of(b, op, RSIM_PICK(b->sim, methods), &request->target_op_id, &request->target_seq);
}

struct asking {
    uint32_t method;
    void (*ask)(struct bank *b, struct bank_op *op);
    bool system; /* A back-end service may ask. */
};

static const struct asking askings[] = {
    { METHOD_GRANT, ask_grant, true },
    { METHOD_GRANT, ask_grant, true },
    { METHOD_GRANT, ask_grant, true },
    { METHOD_SPEND, ask_spend, false },
    { METHOD_SPEND, ask_spend, false },
    { METHOD_TRANSFER_CURRENCIES, ask_transfer, false },
    { METHOD_TRANSFER_ITEMS, ask_transfer_items, false },
    { METHOD_SEND_MAIL, ask_send, false },
    { METHOD_CLAIM_MAIL, ask_claim, false },
    { METHOD_CLAIM_MAIL, ask_claim, false },
    { METHOD_RESERVE_CURRENCIES, ask_reserve, false },
    { METHOD_RESERVE_CURRENCIES, ask_reserve, false },
    { METHOD_POST_RESERVATION, ask_post, true },
    { METHOD_POST_RESERVATION, ask_post, true },
    { METHOD_VOID_RESERVATION, ask_void, true },
    { METHOD_REVERSE_ENTRY, ask_reverse, true },
    { METHOD_REVERSE_ENTRY, ask_reverse, true },
};

/* ---- the envelope ---- */

/* The ends of what an id may be: too old to be new, and too far ahead. */
static char *id_of(struct bank *b, struct bank_op *op)
{
    uint64_t now_ms = b->f.now_ms;

    if (chance(b, 4)) {
        uint64_t at_ms = rsim_about(b->sim, now_ms - WINDOW_MS);
        op->old = true;
        if (at_ms + WINDOW_MS < now_ms)
            bank_cause(b, CODE(OPERATION_EXPIRED), NULL, NULL);
        return fixture_op_id_at(&b->f, at_ms);
    }
    if (chance(b, 4)) {
        uint64_t at_ms = rsim_about(b->sim, now_ms + LIMIT_OP_ID_AHEAD_MS);
        b->fault |= at_ms > now_ms + LIMIT_OP_ID_AHEAD_MS;
        return fixture_op_id_at(&b->f, at_ms);
    }
    return chance(b, 60) ? fixture_op_id(&b->f) : printed(b, "claim:", b->named++);
}

static void fill_envelope(struct bank *b, struct bank_op *op, bool system)
{
    const struct bank_player *player = &b->state.players[op->player];
    const ProtobufCFieldDescriptor *version =
        protobuf_c_message_descriptor_get_field_by_name(op->request->descriptor, "if_version");

    *(char **)bank_field(b, op->request, "player_id") = text_lend(bank_players[op->player]);
    *(char **)bank_field(b, op->request, "authority") =
        text_lend(system && chance(b, 50) ? "system:payments" : "unheld");
    if (bank_has_field(op->request, "reason"))
        *(char **)bank_field(b, op->request, "reason") = reason_of(b);
    if (op->method == METHOD_REVERSE_ENTRY &&
        (*(char **)bank_field(b, op->request, "reason"))[0] == 0)
        b->fault = true;
    if (!chance(b, 20))
        return;
    memcpy((char *)op->request + version->quantifier_offset, &version->id, sizeof version->id);
    uint64_t wanted = player->version + 1;
    if (chance(b, 25))
        wanted = player->version + rsim_between(b->sim, 0, 3);
    *(uint64_t *)bank_field(b, op->request, "if_version") = wanted > 1 ? wanted - 1 : 0;
}

/* ---- what comes of it ---- */

/* A field that all answers begin with. */
static Holdfast__V1__WriteInfo **write_of(struct bank *b, void *response)
{
    return bank_field(b, response, "write");
}

static struct slice packed(struct bank *b, void *response)
{
    Holdfast__V1__WriteInfo **write = write_of(b, response), *kept = *write;

    *write = NULL;
    struct slice bytes = arena_pack(&b->sim->arena, response);
    *write = kept;
    return bytes;
}

static void check_cause(struct bank *b, const struct bank_op *op)
{
    const Holdfast__Internal__V1__Refusal *error = b->f.error;

    for (uint32_t i = 0; i < b->cause_count; i++) {
        const struct bank_cause *cause = &b->causes[i];
        if (cause->code == error->code &&
            (cause->limit == NULL || strcmp(cause->limit, error->limit) == 0) &&
            (cause->value == NULL || strcmp(cause->value, error->value) == 0))
            return;
    }
    rsim_broken(b->sim, "%s of %s is refused for no reason: %d, field %s, limit %s, value %s: %s",
                method_find(op->method)->name, bank_players[op->player], (int)error->code,
                error->field, error->limit, error->value, error->message);
}

static void check_funds(struct bank *b)
{
    const Holdfast__Internal__V1__Refusal *error = b->f.error;

    if (error->code != CODE(INSUFFICIENT_FUNDS))
        return;
    PROMISE(b->sim, error->funds != NULL, "the balance is not told");
    PROMISE(b->sim, error->funds->balance < error->funds->needed,
            "%" PRId64 " are there, and %" PRId64 " would do", error->funds->balance,
            error->funds->needed);
}

static void refused(struct bank *b, struct bank_op *op)
{
    if (b->fault) {
        PROMISE(b->sim, !b->f.recorded, "%s is wrong by itself and logged",
                method_find(op->method)->name);
        PROMISE(b->sim, b->f.error->code == CODE(INVALID_ARGUMENT), "%s: %d, %s",
                method_find(op->method)->name, (int)b->f.error->code, b->f.error->message);
        b->sim->counts.bank_faults++;
        return;
    }
    check_cause(b, op);
    check_funds(b);
    op->refused = b->f.error->code != CODE(OPERATION_EXPIRED);
    op->cause =
        (struct bank_cause){ b->f.error->code, NULL,
                             arena_text(&b->sim->arena, slice_from_text(b->f.error->value)) };
    b->sim->counts.bank_refusals++;
}

static void send(struct bank *b, struct bank_op *op)
{
    void *response = fixture_mutate(&b->f, op->method, op->request);

    if (b->fault || b->cause_count > 0) {
        PROMISE(b->sim, response == NULL, "%s of %s is done, and has to be refused: %d, %s",
                method_find(op->method)->name, bank_players[op->player],
                b->fault ? 3 : (int)b->causes[0].code,
                b->fault || b->causes[0].value == NULL ? "" : b->causes[0].value);
        refused(b, op);
        return;
    }
    PROMISE(b->sim, response != NULL, "%s of %s is refused: %s", method_find(op->method)->name,
            bank_players[op->player], b->f.error != NULL ? b->f.error->message : "");
    const Holdfast__V1__WriteInfo *write = *write_of(b, response);
    op->version = b->draft.players[op->player].version;
    PROMISE(b->sim, write->version == op->version && !write->duplicate,
            "version %" PRIu64 " is told, not %" PRIu64, write->version, op->version);
    bank_check_answer(b, op, response);
    op->answer = packed(b, response);
    op->done = true;
    op->refused = false;
    b->state = b->draft;
    b->sim->counts.bank_writes++;
}

static void ask(struct bank *b, const struct asking *asking)
{
    struct bank_op *op = &b->ops[b->op_count];

    *op = (struct bank_op){ .method = asking->method, .attempt = 1 };
    op->player = (uint32_t)rsim_between(b->sim, 0, BANK_PLAYERS - 1);
    op->request = fresh(b, op->method);
    b->fault = false;
    fill_envelope(b, op, asking->system);
    asking->ask(b, op);
    b->cause_count = 0;
    op->id = arena_text(&b->sim->arena, slice_from_text(id_of(b, op)));
    bool expired = b->cause_count > 0;
    *(char **)bank_field(b, op->request, "op_id") = text_lend(op->id);
    if (b->fault)
        b->draft = b->state;
    else
        bank_judge(b, op);
    if (expired && !b->fault) {
        b->cause_count = 0;
        bank_cause(b, CODE(OPERATION_EXPIRED), NULL, NULL);
    }
    send(b, op);
    b->op_count += !b->fault && !expired;
}

/* ---- the same id again ---- */

static void again_other(struct bank *b, struct bank_op *op)
{
    char **reason = bank_field(b, op->request, "reason");
    char *kept = *reason;
    Holdfast__V1__SpendRequest spend = HOLDFAST__V1__SPEND_REQUEST__INIT;
    void *response;

    if (chance(b, 50) || op->method == METHOD_SPEND) {
        *reason = text_lend("another one");
        response = fixture_mutate(&b->f, op->method, op->request);
        *reason = kept;
    } else { /* ... under another method. */
        spend.player_id = text_lend(bank_players[op->player]);
        spend.op_id = text_lend(op->id);
        spend.authority = text_lend("unheld");
        spend.currencies = amounts_of(b, op->player, &spend.n_currencies);
        spend.n_currencies = 1;
        spend.currencies[0]->currency = text_lend("gold");
        spend.currencies[0]->amount = 1;
        response = fixture_mutate(&b->f, METHOD_SPEND, &spend.base);
    }
    PROMISE(b->sim, response == NULL && b->f.error->code == CODE(OPERATION_ID_MISMATCH),
            "an id is taken for two requests");
    b->sim->counts.bank_mismatches++;
}

static void again_same(struct bank *b, struct bank_op *op)
{
    void *response = fixture_mutate(&b->f, op->method, op->request);

    if (op->refused) {
        PROMISE(b->sim, response == NULL && b->f.error->code == op->cause.code, "told otherwise");
        PROMISE(b->sim, strcmp(b->f.error->value, op->cause.value) == 0,
                "the same refusal tells %s, not %s", b->f.error->value, op->cause.value);
        return;
    }
    PROMISE(b->sim, response != NULL, "a repetition is refused: %s", b->f.error->message);
    const Holdfast__V1__WriteInfo *write = *write_of(b, response);
    PROMISE(b->sim, write->duplicate && write->version == op->version, "a repetition is no other");
    PROMISE(b->sim, slice_equal(packed(b, response), op->answer), "a repetition tells another");
    b->sim->counts.bank_repeated++;
}

static void again(struct bank *b)
{
    struct bank_op *op = b->op_count > 0 ? (struct bank_op *)(uintptr_t)any_op(b) : NULL;

    if (op == NULL || op->old)
        return;
    b->fault = false;
    if (chance(b, 25) && bank_has_field(op->request, "reason")) {
        again_other(b, op);
    } else if (op->refused && chance(b, 60)) { /* A higher attempt is evaluated again. */
        *(uint32_t *)bank_field(b, op->request, "attempt") = ++op->attempt;
        bank_judge(b, op);
        send(b, op);
    } else {
        again_same(b, op);
    }
}

static void ask_operation(struct bank *b)
{
    const struct bank_op *op = any_op(b);

    if (op == NULL || op->old)
        return;
    const Holdfast__Internal__V1__OperationRecord *record =
        fixture_operation(&b->f, bank_players[op->player], op->id);
    PROMISE(b->sim,
            record->state == (op->done      ? OPERATION(COMMITTED)
                              : op->refused ? OPERATION(REFUSED)
                                            : OPERATION(UNKNOWN)),
            "the operation %s is told as %d", op->id, (int)record->state);
}

/* ---- the world ---- */

static void set_policy(struct bank *b)
{
    static const uint32_t items[] = { 5, 100, 400, 400 }, mails[] = { 1, 3, 20, 20 };
    static const int64_t gems[] = { 60, 0, 1000, 1000 };
    Holdfast__Internal__V1__ApplyPolicyRequest request =
        HOLDFAST__INTERNAL__V1__APPLY_POLICY_REQUEST__INIT;
    Holdfast__V1__Policy policy = HOLDFAST__V1__POLICY__INIT;

    policy.version = ++b->policy_version;
    policy.items_max = b->items_max = RSIM_PICK(b->sim, items);
    policy.mailbox_max = b->mailbox_max = RSIM_PICK(b->sim, mails);
    policy.n_currencies = BANK_CURRENCIES;
    policy.currencies =
        arena_messages(&b->sim->arena, &holdfast__v1__currency_policy__descriptor, BANK_CURRENCIES);
    for (uint32_t i = 0; i < BANK_CURRENCIES; i++) {
        policy.currencies[i]->name = text_lend(bank_names[i]);
        policy.currencies[i]->min_balance = b->min[i] = i == DEBT ? -50 : 0;
        policy.currencies[i]->max_balance = i == GEMS ? RSIM_PICK(b->sim, gems) : 0;
        b->max[i] = policy.currencies[i]->max_balance > 0 ? policy.currencies[i]->max_balance
                                                          : LIMIT_AMOUNT;
    }
    request.policy = &policy;
    PROMISE(b->sim, fixture_mutate(&b->f, METHOD_APPLY_POLICY, &request.base) != NULL,
            "a policy is refused");
}

static void pass(struct bank *b, uint64_t ms)
{
    uint32_t wanted = bank_expire(b, b->f.now_ms + ms);
    uint32_t count = fixture_pass(&b->f, ms);

    PROMISE(b->sim, count >= wanted, "%u reservations end, and %u entries say so", wanted, count);
    b->sim->counts.bank_expiries += wanted;
}

static void turn(struct bank *b)
{
    b->f.now_ms += rsim_between(b->sim, 0, 40);
    if (chance(b, 12))
        again(b);
    else
        ask(b, &RSIM_PICK(b->sim, askings));
    if (chance(b, 6))
        pass(b, rsim_between(b->sim, 0, 3000));
    if (chance(b, 2))
        b->f.now_ms += 60000; /* What is due has to wait. */
    if (chance(b, 4))
        set_policy(b);
    if (chance(b, 4))
        fixture_checkpoint(&b->f);
    if (chance(b, 6))
        fixture_evict(&b->f, chance(b, 50) ? 0 : 2000);
    if (chance(b, 3))
        fixture_restart(&b->f);
    if (chance(b, 15))
        ask_operation(b);
    if (chance(b, 12))
        bank_read(b);
}

void room_bank(struct rsim *sim)
{
    struct bank *b = mem_zalloc(sizeof *b);

    b->sim = sim;
    fixture_init_shard(&b->f, 0, 1);
    b->policy_version = 1; /* The fixture's. */
    set_policy(b);
    for (uint32_t i = 0; i < GIFTS; i++)
        ask(b, &askings[0]);
    for (uint32_t i = 0; i < TURNS; i++)
        turn(b);
    bank_read(b);
    fixture_restart(&b->f);
    bank_read(b);
    fixture_deinit(&b->f);
    free(b);
}
