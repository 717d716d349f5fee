#include "tests/sim/cores/node/bank.h"

#include <inttypes.h>
#include <string.h>

#include "idl/limit.h"
#include "node/core/codec/arena_proto.h"
#include "runtime/base/check.h"

const char *const bank_names[BANK_NAMES] = {
    "c00", "c01", "c02", "c03", "c04", "c05",  "c06",  "c07",  "c08",  "c09",
    "c10", "c11", "c12", "c13", "c14", "debt", "gems", "gold", "none", "nothing",
};
const char *const bank_players[BANK_PLAYERS] = { "ann", "bob" };

#define OPEN_MAX LIMIT_RESERVATIONS

/* ---- fields by name: the answers of all methods call the same thing alike ---- */

static const ProtobufCFieldDescriptor *field_of(const void *message, const char *name)
{
    return protobuf_c_message_descriptor_get_field_by_name(
        ((const ProtobufCMessage *)message)->descriptor, name);
}

bool bank_has_field(const void *message, const char *name)
{
    return field_of(message, name) != NULL;
}

void *bank_field(struct bank *b, const void *message, const char *name)
{
    const ProtobufCFieldDescriptor *field = field_of(message, name);

    PROMISE(b->sim, field != NULL, "a message has no %s", name);
    return (char *)(uintptr_t)message + field->offset;
}

static size_t count_of(struct bank *b, const void *message, const char *name)
{
    const ProtobufCFieldDescriptor *field = field_of(message, name);
    size_t count;

    PROMISE(b->sim, field != NULL, "a message has no %s", name);
    memcpy(&count, (const char *)message + field->quantifier_offset, sizeof count);
    return count;
}

static const char *text_field(struct bank *b, const void *message, const char *name)
{
    return bank_has_field(message, name) ? *(char **)bank_field(b, message, name) : "";
}

static uint64_t number_field(struct bank *b, const void *message, const char *name)
{
    return bank_has_field(message, name) ? *(uint64_t *)bank_field(b, message, name) : 0;
}

/* ---- causes ---- */

const char *bank_number(struct bank *b, int64_t number)
{
    return arena_printf(&b->sim->arena, "%" PRId64, number);
}

void bank_cause(struct bank *b, Holdfast__V1__ErrorCode code, const char *limit, const char *value)
{
    CHECK(b->cause_count < BANK_CAUSES);
    b->causes[b->cause_count++] = (struct bank_cause){ code, limit, value };
}

uint32_t bank_currency(const char *name)
{
    uint32_t i = 0;

    while (i < BANK_NAMES - 1 && strcmp(bank_names[i], name) != 0)
        i++;
    return i;
}

/* ---- one request ---- */

struct deed {
    struct bank *b;
    struct bank_op *op;
    struct bank_player *player;
    struct bank_entry entry; /* Being made. */
    uint64_t now_ms;
};

static struct bank_change *sorted_amounts(struct deed *d, size_t count,
                                          Holdfast__V1__CurrencyAmount *const *amounts)
{
    struct bank_change *list = arena_zalloc(&d->b->sim->arena, sizeof *list * (count + 1));

    for (size_t i = 0; i < count; i++) {
        struct bank_change one = { .currency = bank_currency(amounts[i]->currency),
                                   .amount = amounts[i]->amount };
        size_t at = i;
        for (; at > 0 && list[at - 1].currency > one.currency; at--)
            list[at] = list[at - 1];
        list[at] = one;
    }
    return list;
}

static void change(struct deed *d, struct bank_change *one, int sign)
{
    struct bank *b = d->b;
    uint32_t currency = one->currency;
    int64_t before = d->player->amounts[currency];

    one->amount *= sign;
    one->after = before + one->amount;
    if (one->amount > 0 && one->after > b->max[currency])
        bank_cause(b, CODE(CAPACITY_FULL), bank_number(b, b->max[currency]),
                   bank_number(b, one->amount));
    if (one->amount < 0 && one->after < b->min[currency])
        bank_cause(b, CODE(INSUFFICIENT_FUNDS), bank_number(b, b->min[currency]),
                   bank_number(b, one->amount));
    d->player->amounts[currency] = one->after;
    d->player->known[currency] = true;
    one->reserved_after = d->player->reserved[currency];
}

static void changes(struct deed *d, size_t count, Holdfast__V1__CurrencyAmount *const *amounts,
                    int sign)
{
    d->entry.changes = sorted_amounts(d, count, amounts);
    d->entry.change_count = (uint32_t)count;
    for (size_t i = 0; i < count; i++)
        change(d, &d->entry.changes[i], sign);
}

static void hold(struct deed *d, struct bank_held held)
{
    struct bank_player *player = d->player;
    const struct bank_item *items = d->b->items;
    uint32_t at = player->held_count;

    CHECK(at < BANK_HELD);
    for (; at > 0 && strcmp(items[player->held[at - 1].item].uid, items[held.item].uid) > 0; at--)
        player->held[at] = player->held[at - 1];
    player->held[at] = held;
    player->held_count++;
}

/* False: there is none of that UID. */
static bool let_go(struct deed *d, const char *uid, struct bank_held *ret_held)
{
    struct bank_player *player = d->player;

    for (uint32_t i = 0; i < player->held_count; i++) {
        if (strcmp(d->b->items[player->held[i].item].uid, uid) != 0)
            continue;
        *ret_held = player->held[i];
        ret_held->step++;
        player->held_count--;
        memmove(&player->held[i], &player->held[i + 1],
                sizeof *player->held * (player->held_count - i));
        return true;
    }
    bank_cause(d->b, CODE(ITEM_NOT_HELD), NULL, uid);
    return false;
}

static void take_items(struct deed *d, size_t count, char *const *uids)
{
    d->entry.items = arena_zalloc(&d->b->sim->arena, sizeof *d->entry.items * (count + 1));
    d->entry.item_count = (uint32_t)count;
    d->entry.taken = count > 0;
    for (size_t i = 0; i < count; i++)
        (void)let_go(d, uids[i], &d->entry.items[i]);
}

static void items_fit(struct deed *d, size_t count)
{
    struct bank *b = d->b;

    if (count > 0 && d->player->held_count + count > b->items_max)
        bank_cause(b, CODE(CAPACITY_FULL), bank_number(b, b->items_max),
                   bank_number(b, (int64_t)(d->player->held_count + count)));
}

/* Their UIDs are told by the answer. */
static void mint(struct deed *d, size_t count, Holdfast__V1__ItemSpec *const *specs)
{
    struct bank *b = d->b;

    items_fit(d, count);
    d->entry.items = arena_zalloc(&b->sim->arena, sizeof *d->entry.items * (count + 1));
    d->entry.item_count = (uint32_t)count;
    b->item_count_draft = b->item_count;
    for (size_t i = 0; i < count; i++) {
        bool plain = specs[i]->attributes[0] == 0 || strcmp(specs[i]->attributes, "[]") == 0;
        CHECK(b->item_count_draft < BANK_ITEMS);
        b->items[b->item_count_draft] =
            (struct bank_item){ .kind = specs[i]->kind,
                                .attributes = plain ? "{}" : specs[i]->attributes,
                                .minted_ms = d->now_ms };
        d->entry.items[i] = (struct bank_held){ b->item_count_draft++, 1 };
    }
}

static void append(struct deed *d)
{
    CHECK(d->player->entry_count < BANK_ENTRIES);
    d->player->entries[d->player->entry_count++] = d->entry;
    d->op->seq = d->player->entry_count;
}

/* ---- what is sent ---- */

static void send(struct deed *d, const char *to, const char *text, uint64_t expires_in_ms)
{
    struct bank_state *draft = &d->b->draft;
    struct bank_mail mail = {
        .from = d->op->player,
        .to = strcmp(to, bank_players[0]) == 0 ? 0 : 1,
        .change_count = d->entry.change_count,
        .item_count = d->entry.item_count,
        .changes =
            arena_zalloc(&d->b->sim->arena, sizeof *mail.changes * (d->entry.change_count + 1)),
        .items = d->entry.items,
        .text = text,
        .reason = d->entry.reason,
        .op_id = d->op->id,
        .sent_ms = d->now_ms,
        .expires_ms = expires_in_ms > 0 ? d->now_ms + expires_in_ms : 0,
    };
    uint32_t lying = 0;

    for (uint32_t i = 0; i < mail.change_count; i++) {
        const struct bank_change *one = &d->entry.changes[i];
        int64_t left = -(one->amount + one->reserved);
        if (left > 0) /* Of a reservation a part may have stayed. */
            mail.changes[i] = (struct bank_change){ .currency = one->currency, .amount = left };
    }
    uint32_t kept = 0;
    for (uint32_t i = 0; i < mail.change_count; i++) {
        if (mail.changes[i].amount > 0)
            mail.changes[kept++] = mail.changes[i];
    }
    mail.change_count = kept;
    for (uint32_t i = 0; i < draft->mail_count; i++)
        lying += !draft->mails[i].gone && draft->mails[i].to == mail.to;
    if (lying >= d->b->mailbox_max)
        bank_cause(d->b, CODE(CAPACITY_FULL), bank_number(d->b, d->b->mailbox_max), NULL);
    CHECK(draft->mail_count < BANK_MAILS);
    draft->mails[draft->mail_count++] = mail;
}

static void judge_send(struct deed *d)
{
    const ProtobufCMessage *request = d->op->request;
    size_t amounts =
        bank_has_field(request, "currencies") ? count_of(d->b, request, "currencies") : 0;
    size_t uids = bank_has_field(request, "item_uids") ? count_of(d->b, request, "item_uids") : 0;

    d->entry.kind = (int)BANK_KIND(TRANSFER);
    if (amounts > 0)
        changes(d, amounts,
                *(Holdfast__V1__CurrencyAmount ***)bank_field(d->b, request, "currencies"), -1);
    take_items(d, uids, uids > 0 ? *(char ***)bank_field(d->b, request, "item_uids") : NULL);
    d->entry.taken = true;
    d->entry.counterpart = text_field(d->b, request, "to_player_id");
    if (amounts + uids > 0)
        append(d);
    send(d, text_field(d->b, request, "to_player_id"), text_field(d->b, request, "text"),
         number_field(d->b, request, "expires_in_ms"));
}

static void judge_claim(struct deed *d)
{
    const Holdfast__V1__ClaimMailRequest *request =
        (const Holdfast__V1__ClaimMailRequest *)d->op->request;
    struct bank_state *draft = &d->b->draft;

    for (size_t k = 0; k < request->n_mail_ids; k++) {
        struct bank_mail *mail = NULL;
        for (uint32_t i = 0; i < draft->mail_count; i++) {
            if (draft->mails[i].to == d->op->player && !draft->mails[i].gone &&
                strcmp(draft->mails[i].id, request->mail_ids[k]) == 0)
                mail = &draft->mails[i];
        }
        if (mail == NULL) {
            bank_cause(d->b, CODE(NOT_FOUND), NULL, request->mail_ids[k]);
            continue;
        }
        mail->gone = true;
        if (mail->change_count + mail->item_count == 0)
            continue;
        d->entry.kind = (int)BANK_KIND(CLAIM);
        d->entry.reason = mail->reason;
        d->entry.counterpart = bank_players[mail->from];
        d->entry.mail_op_id = mail->op_id;
        d->entry.change_count = mail->change_count;
        d->entry.item_count = mail->item_count;
        d->entry.taken = false;
        d->entry.changes =
            arena_zalloc(&d->b->sim->arena, sizeof *d->entry.changes * (mail->change_count + 1));
        d->entry.items =
            arena_zalloc(&d->b->sim->arena, sizeof *d->entry.items * (mail->item_count + 1));
        items_fit(d, mail->item_count);
        for (uint32_t i = 0; i < mail->change_count; i++) {
            d->entry.changes[i] = mail->changes[i];
            change(d, &d->entry.changes[i], 1);
        }
        for (uint32_t i = 0; i < mail->item_count; i++) {
            d->entry.items[i] = (struct bank_held){ mail->items[i].item, mail->items[i].step + 1 };
            hold(d, d->entry.items[i]);
        }
        append(d);
    }
}

/* ---- reservations, and what is undone ---- */

static void judge_reserve(struct deed *d)
{
    const Holdfast__V1__ReserveCurrenciesRequest *request =
        (const Holdfast__V1__ReserveCurrenciesRequest *)d->op->request;

    if (d->player->open_count == OPEN_MAX)
        bank_cause(d->b, CODE(CAPACITY_FULL), bank_number(d->b, OPEN_MAX), NULL);
    changes(d, request->n_currencies, request->currencies, -1);
    for (uint32_t i = 0; i < d->entry.change_count; i++) {
        struct bank_change *one = &d->entry.changes[i];
        int64_t *reserved = &d->player->reserved[one->currency];
        if (*reserved > LIMIT_AMOUNT + one->amount)
            bank_cause(d->b, CODE(CAPACITY_FULL), bank_number(d->b, LIMIT_AMOUNT),
                       bank_number(d->b, -one->amount));
        *reserved -= one->amount;
        one->reserved = -one->amount;
        one->reserved_after = *reserved;
    }
    d->entry.kind = (int)BANK_KIND(RESERVE);
    d->entry.expires_ms = d->now_ms + request->expires_in_ms;
    d->player->open_count++;
    append(d);
}

/* The entry that is named; NULL: a cause says why not. */
static struct bank_entry *target(struct deed *d, const char *op_id, uint64_t given,
                                 uint64_t *ret_seq)
{
    struct bank *b = d->b;
    uint64_t seq = given;

    for (uint32_t i = 0; i < b->op_count && given == 0; i++) {
        const struct bank_op *op = &b->ops[i];
        if (op->done && op->player == d->op->player && strcmp(op->id, op_id) == 0)
            seq = op->seq;
    }
    if (seq == 0 || seq > d->player->entry_count) {
        bank_cause(b, CODE(NOT_FOUND), NULL, seq == 0 ? op_id : bank_number(b, (int64_t)seq));
        return NULL;
    }
    struct bank_entry *entry = &d->player->entries[seq - 1];
    if (strcmp(entry->op_id, op_id) != 0) {
        bank_cause(b, CODE(NOT_FOUND), NULL, entry->op_id);
        return NULL;
    }
    *ret_seq = seq;
    return entry;
}

static void close_entry(struct deed *d, struct bank_entry *reserved, uint64_t seq,
                        const int64_t *posted)
{
    d->entry.change_count = reserved->change_count;
    d->entry.changes =
        arena_zalloc(&d->b->sim->arena, sizeof *d->entry.changes * (reserved->change_count + 1));
    for (uint32_t i = 0; i < reserved->change_count; i++) {
        uint32_t currency = reserved->changes[i].currency;
        int64_t held = reserved->changes[i].reserved;
        struct bank_change *one = &d->entry.changes[i];

        *one = (struct bank_change){ .currency = currency,
                                     .amount = held - posted[i],
                                     .reserved = -held };
        one->after = d->player->amounts[currency] += one->amount;
        one->reserved_after = d->player->reserved[currency] -= held;
    }
    d->entry.refers_to = seq;
    d->player->open_count--;
    reserved->expires_ms = 0;
    append(d);
    reserved->undone_by = d->player->entry_count;
}

static struct bank_entry *reservation(struct deed *d, const char *op_id, uint64_t given,
                                      uint64_t *ret_seq)
{
    struct bank *b = d->b;
    struct bank_entry *entry = target(d, op_id, given, ret_seq);

    if (entry == NULL)
        return NULL;
    if (entry->kind != (int)BANK_KIND(RESERVE)) {
        bank_cause(b, CODE(NOT_FOUND), NULL, op_id);
    } else if (entry->undone_by > 0) {
        bool expired = d->player->entries[entry->undone_by - 1].kind == (int)BANK_KIND(EXPIRY);
        bank_cause(b, expired ? CODE(RESERVATION_EXPIRED) : CODE(RESERVATION_CLOSED), NULL,
                   expired ? op_id : bank_number(b, (int64_t)entry->undone_by));
    } else if (entry->expires_ms <= d->now_ms) {
        bank_cause(b, CODE(RESERVATION_EXPIRED), NULL, op_id);
    } else {
        return entry;
    }
    return NULL;
}

static void judge_post(struct deed *d)
{
    const Holdfast__V1__PostReservationRequest *request =
        (const Holdfast__V1__PostReservationRequest *)d->op->request;
    int64_t posted[BANK_NAMES] = { 0 };
    uint64_t seq = 0;
    struct bank_entry *entry = reservation(d, request->reserve_op_id, request->reserve_seq, &seq);

    if (entry == NULL)
        return;
    for (uint32_t i = 0; i < entry->change_count && request->n_currencies == 0; i++)
        posted[i] = entry->changes[i].reserved;
    for (size_t i = 0; i < request->n_currencies; i++) {
        int64_t held = 0, wanted = request->currencies[i]->amount;
        for (uint32_t k = 0; k < entry->change_count; k++) {
            if (entry->changes[k].currency != bank_currency(request->currencies[i]->currency))
                continue;
            held = entry->changes[k].reserved;
            posted[k] = wanted;
        }
        if (wanted > held)
            bank_cause(d->b, CODE(INSUFFICIENT_FUNDS), bank_number(d->b, held),
                       bank_number(d->b, wanted));
    }
    bool sends = request->to_player_id[0] != 0;
    d->entry.kind = sends ? (int)BANK_KIND(TRANSFER) : (int)BANK_KIND(POST);
    d->entry.counterpart = sends ? request->to_player_id : NULL;
    close_entry(d, entry, seq, posted);
    if (sends)
        send(d, request->to_player_id, "", 0);
}

static void judge_void(struct deed *d)
{
    const Holdfast__V1__VoidReservationRequest *request =
        (const Holdfast__V1__VoidReservationRequest *)d->op->request;
    const int64_t nothing[BANK_NAMES] = { 0 };
    uint64_t seq = 0;
    struct bank_entry *entry = reservation(d, request->reserve_op_id, request->reserve_seq, &seq);

    d->entry.kind = (int)BANK_KIND(VOID);
    if (entry != NULL)
        close_entry(d, entry, seq, nothing);
}

static void reverse_goods(struct deed *d, const struct bank_entry *entry, bool gives)
{
    struct arena *arena = &d->b->sim->arena;

    d->entry.item_count = entry->item_count;
    d->entry.items = arena_zalloc(arena, sizeof *d->entry.items * (entry->item_count + 1));
    d->entry.changes = arena_zalloc(arena, sizeof *d->entry.changes * (entry->change_count + 1));
    d->entry.taken = !gives && entry->item_count > 0;
    if (gives)
        items_fit(d, entry->item_count);
    for (uint32_t i = 0; i < entry->item_count; i++) {
        if (gives) {
            d->entry.items[i] =
                (struct bank_held){ entry->items[i].item, entry->items[i].step + 1 };
            hold(d, d->entry.items[i]);
        } else {
            (void)let_go(d, d->b->items[entry->items[i].item].uid, &d->entry.items[i]);
        }
    }
    for (uint32_t i = 0; i < entry->change_count; i++) {
        const struct bank_change *was = &entry->changes[i];
        int64_t net = was->amount + was->reserved;
        if (net == 0)
            continue;
        struct bank_change *one = &d->entry.changes[d->entry.change_count++];
        *one = (struct bank_change){ .currency = was->currency, .amount = -net };
        change(d, one, 1);
    }
}

static void judge_reverse(struct deed *d)
{
    const Holdfast__V1__ReverseEntryRequest *request =
        (const Holdfast__V1__ReverseEntryRequest *)d->op->request;
    struct bank *b = d->b;
    uint64_t seq = 0;
    struct bank_entry *entry = target(d, request->target_op_id, request->target_seq, &seq);

    if (entry == NULL)
        return;
    bool takes = entry->kind == (int)BANK_KIND(GRANT);
    bool gives = entry->kind == (int)BANK_KIND(SPEND) || entry->kind == (int)BANK_KIND(POST);
    if (!takes && !gives) {
        bank_cause(b, CODE(NOT_REVERSIBLE), "GRANT, SPEND or POST", NULL);
        return;
    }
    if (takes && strncmp(request->authority, "system:", 7) == 0 &&
        strncmp(entry->authority, "system:", 7) != 0)
        bank_cause(b, CODE(PERMISSION_DENIED), NULL, entry->authority);
    if (entry->undone_by > 0) {
        bank_cause(b, CODE(ALREADY_REVERSED), NULL, bank_number(b, (int64_t)entry->undone_by));
        return;
    }
    d->entry.kind = (int)BANK_KIND(REVERSAL);
    d->entry.refers_to = seq;
    reverse_goods(d, entry, gives);
    append(d);
    entry->undone_by = d->player->entry_count;
}

/* The open reservation that ends first; NULL: none ends until then. */
static struct bank_entry *first_end(struct bank *b, uint64_t end_ms, uint32_t *ret_player,
                                    uint64_t *ret_seq)
{
    struct bank_entry *first = NULL;

    for (uint32_t i = 0; i < BANK_PLAYERS; i++) {
        struct bank_player *player = &b->state.players[i];
        for (uint32_t k = 0; k < player->entry_count; k++) {
            struct bank_entry *entry = &player->entries[k];
            if (entry->expires_ms == 0 || entry->expires_ms > end_ms ||
                (first != NULL && first->expires_ms <= entry->expires_ms))
                continue;
            first = entry;
            *ret_player = i;
            *ret_seq = k + 1;
        }
    }
    return first;
}

uint32_t bank_expire(struct bank *b, uint64_t end_ms)
{
    const int64_t nothing[BANK_NAMES] = { 0 };
    struct bank_entry *reserved;
    uint32_t player = 0, count = 0;
    uint64_t seq = 0;

    while ((reserved = first_end(b, end_ms, &player, &seq)) != NULL) {
        uint64_t ends_ms = reserved->expires_ms;
        struct bank_op op = { .player = player };
        struct deed d = { .b = b, .op = &op, .player = &b->state.players[player] };

        d.entry = (struct bank_entry){ .kind = (int)BANK_KIND(EXPIRY),
                                       .op_id = reserved->op_id,
                                       .authority = "expiry",
                                       .reason = reserved->reason };
        d.entry.at_ms = ends_ms > b->f.now_ms ? ends_ms : b->f.now_ms;
        close_entry(&d, reserved, seq, nothing);
        d.player->version++;
        count++;
    }
    return count;
}

/* ---- all methods ---- */

static void judge_grant(struct deed *d)
{
    const Holdfast__V1__GrantRequest *request = (const Holdfast__V1__GrantRequest *)d->op->request;

    d->entry.kind = (int)BANK_KIND(GRANT);
    changes(d, request->n_currencies, request->currencies, 1);
    mint(d, request->n_items, request->items);
    append(d);
}

static void judge_spend(struct deed *d)
{
    const Holdfast__V1__SpendRequest *request = (const Holdfast__V1__SpendRequest *)d->op->request;

    d->entry.kind = (int)BANK_KIND(SPEND);
    take_items(d, request->n_item_uids, request->item_uids);
    changes(d, request->n_currencies, request->currencies, -1);
    append(d);
}

static void judge_version(struct deed *d)
{
    const ProtobufCMessage *request = d->op->request;
    const ProtobufCFieldDescriptor *field = field_of(request, "if_version");
    uint32_t has;

    memcpy(&has, (const char *)request + field->quantifier_offset, sizeof has);
    uint64_t wanted = number_field(d->b, request, "if_version");
    if (has == field->id && wanted != d->player->version)
        bank_cause(d->b, CODE(VERSION_CONFLICT), bank_number(d->b, (int64_t)wanted),
                   bank_number(d->b, (int64_t)d->player->version));
}

void bank_judge(struct bank *b, struct bank_op *op)
{
    struct deed d = { .b = b, .op = op, .now_ms = b->f.now_ms };

    b->cause_count = 0;
    b->draft = b->state;
    b->item_count_draft = b->item_count;
    d.player = &b->draft.players[op->player];
    d.entry = (struct bank_entry){
        .op_id = op->id,
        .authority = text_field(b, op->request, "authority"),
        .reason = text_field(b, op->request, "reason"),
        .at_ms = d.now_ms,
    };
    op->seq = 0;
    judge_version(&d);
    switch (op->method) {
    case METHOD_GRANT:
        judge_grant(&d);
        break;
    case METHOD_SPEND:
        judge_spend(&d);
        break;
    case METHOD_TRANSFER_CURRENCIES:
    case METHOD_TRANSFER_ITEMS:
    case METHOD_SEND_MAIL:
        judge_send(&d);
        break;
    case METHOD_CLAIM_MAIL:
        judge_claim(&d);
        break;
    case METHOD_RESERVE_CURRENCIES:
        judge_reserve(&d);
        break;
    case METHOD_POST_RESERVATION:
        judge_post(&d);
        break;
    case METHOD_VOID_RESERVATION:
        judge_void(&d);
        break;
    default:
        CHECK(op->method == METHOD_REVERSE_ENTRY);
        judge_reverse(&d);
    }
    d.player->version++;
}

/* ---- answers ---- */

static void check_amounts(struct bank *b, const struct bank_player *player, const void *response,
                          bool reserved)
{
    const char *name = reserved ? "reserved" : "balances";
    size_t count = count_of(b, response, name);
    Holdfast__V1__CurrencyAmount **list =
        *(Holdfast__V1__CurrencyAmount ***)bank_field(b, response, name);

    for (size_t i = 0; i < count; i++) {
        uint32_t currency = bank_currency(list[i]->currency);
        PROMISE(b->sim,
                list[i]->amount == (reserved ? player->reserved : player->amounts)[currency],
                "%s of %s are told as %" PRId64, name, list[i]->currency, list[i]->amount);
        for (size_t j = 0; j < i; j++)
            PROMISE(b->sim, strcmp(list[j]->currency, list[i]->currency) != 0, "%s name %s twice",
                    name, list[i]->currency);
        PROMISE(b->sim, !reserved || list[i]->amount != 0, "what is 0 is told as reserved");
    }
}

/* Each currency that changed is among the balances, and no other. */
static void check_balances(struct bank *b, const struct bank_op *op, const void *response)
{
    const struct bank_player *player = &b->draft.players[op->player];
    const struct bank_player *before = &b->state.players[op->player];
    bool changed[BANK_NAMES] = { 0 };
    size_t wanted = 0, set_aside = 0;

    for (uint32_t i = before->entry_count; i < player->entry_count; i++) {
        for (uint32_t k = 0; k < player->entries[i].change_count; k++)
            changed[player->entries[i].changes[k].currency] = true;
    }
    for (uint32_t i = 0; i < BANK_NAMES; i++) {
        wanted += changed[i];
        set_aside += changed[i] && player->reserved[i] != 0;
    }
    PROMISE(b->sim, count_of(b, response, "balances") == wanted, "%zu balances are told, not %zu",
            count_of(b, response, "balances"), wanted);
    PROMISE(b->sim, count_of(b, response, "reserved") == set_aside, "%zu are told as reserved",
            count_of(b, response, "reserved"));
    check_amounts(b, player, response, false);
    check_amounts(b, player, response, true);
}

static void check_items(struct bank *b, const struct bank_entry *entry, const void *response)
{
    size_t count = count_of(b, response, "items");
    Holdfast__V1__Item **items = *(Holdfast__V1__Item ***)bank_field(b, response, "items");

    PROMISE(b->sim, count == entry->item_count, "%zu items are told", count);
    for (size_t i = 0; i < count; i++) {
        const struct bank_item *item = &b->items[entry->items[i].item];
        PROMISE(b->sim,
                strcmp(items[i]->uid, item->uid) == 0 && strcmp(items[i]->kind, item->kind) == 0 &&
                    strcmp(items[i]->attributes, item->attributes) == 0 &&
                    items[i]->step == entry->items[i].step &&
                    (uint64_t)items[i]->minted_at_ms == item->minted_ms,
                "another item is told");
    }
}

static void take_uids(struct bank *b, const struct bank_entry *entry, const void *response,
                      struct bank_player *player)
{
    const Holdfast__V1__GrantResponse *granted = response;
    struct deed d = { .b = b, .player = player };

    PROMISE(b->sim, granted->n_item_uids == entry->item_count, "%zu items are made",
            granted->n_item_uids);
    for (size_t i = 0; i < granted->n_item_uids; i++) {
        struct bank_item *item = &b->items[entry->items[i].item];
        PROMISE(b->sim, strlen(granted->item_uids[i]) == 32, "a UID of %zu characters",
                strlen(granted->item_uids[i]));
        for (uint32_t k = 0; k < b->item_count + i; k++)
            PROMISE(b->sim, strcmp(b->items[k].uid, granted->item_uids[i]) != 0,
                    "a UID is given twice");
        memcpy(item->uid, granted->item_uids[i], sizeof item->uid);
        hold(&d, entry->items[i]);
    }
    b->item_count = b->item_count_draft;
}

static void check_mail_id(struct bank *b, const void *response)
{
    struct bank_state *draft = &b->draft;
    const char *id = text_field(b, response, "mail_id");

    if (draft->mail_count == b->state.mail_count) {
        PROMISE(b->sim, id[0] == 0, "mail is told that was not sent");
        return;
    }
    struct bank_mail *mail = &draft->mails[draft->mail_count - 1];
    PROMISE(b->sim, strlen(id) == 32, "a mail id of %zu characters", strlen(id));
    PROMISE(b->sim,
            draft->mail_count == 1 || strcmp(draft->mails[draft->mail_count - 2].id, id) < 0,
            "mail ids do not sort by arrival");
    memcpy(mail->id, id, sizeof mail->id);
}

void bank_check_answer(struct bank *b, const struct bank_op *op, const void *response)
{
    struct bank_player *player = &b->draft.players[op->player];
    static const struct bank_entry none;
    const struct bank_entry *entry = op->seq > 0 ? &player->entries[op->seq - 1] : &none;

    PROMISE(b->sim, number_field(b, response, "ledger_seq") == op->seq,
            "entry %" PRIu64 " is told, not %" PRIu64, number_field(b, response, "ledger_seq"),
            op->seq);
    if (bank_has_field(response, "balances"))
        check_balances(b, op, response);
    if (op->method == METHOD_GRANT)
        take_uids(b, entry, response, player);
    else if (bank_has_field(response, "items") && op->method != METHOD_CLAIM_MAIL)
        check_items(b, entry, response);
    if (bank_has_field(response, "mail_id"))
        check_mail_id(b, response);
    if (bank_has_field(response, "reserve_seq"))
        PROMISE(b->sim, number_field(b, response, "reserve_seq") == entry->refers_to,
                "another reservation is told");
    if (bank_has_field(response, "reversed_seq"))
        PROMISE(b->sim, number_field(b, response, "reversed_seq") == entry->refers_to,
                "another entry is told to be reversed");
    if (op->method == METHOD_RESERVE_CURRENCIES)
        PROMISE(b->sim, number_field(b, response, "expires_at_ms") == entry->expires_ms,
                "another end of the reservation is told");
}
