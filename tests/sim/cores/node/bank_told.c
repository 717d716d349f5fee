/* What reads tell of the bank's players: whole lists, by pages of any size, under any filter. */
#include <inttypes.h>
#include <string.h>

#include "node/core/codec/arena_proto.h"
#include "runtime/base/check.h"
#include "tests/sim/cores/node/bank.h"

#define PAGES_MAX 600u

struct teller {
    struct bank *b;
    struct rsim *sim;
    const struct bank_player *player;
    uint32_t place;
    char *name;
};

static void *read_page(struct teller *t, uint32_t method, const ProtobufCMessage *request)
{
    void *response = fixture_read(&t->b->f, method, request);

    PROMISE(t->sim, response != NULL, "a read is refused: %s", t->b->f.error->message);
    return response;
}

/* ---- balances ---- */

static void tell_balances(struct teller *t)
{
    Holdfast__V1__GetBalancesRequest request = HOLDFAST__V1__GET_BALANCES_REQUEST__INIT;
    const struct bank_player *player = t->player;
    size_t known = 0, set_aside = 0;

    request.player_id = t->name;
    const Holdfast__V1__GetBalancesResponse *told =
        read_page(t, METHOD_GET_BALANCES, &request.base);
    PROMISE(t->sim, told->version == player->version, "version %" PRIu64 ", not %" PRIu64,
            told->version, player->version);
    for (uint32_t i = 0; i < BANK_NAMES; i++) {
        if (!player->known[i])
            continue;
        PROMISE(t->sim,
                known < told->n_balances &&
                    strcmp(told->balances[known]->currency, bank_names[i]) == 0 &&
                    told->balances[known]->amount == player->amounts[i],
                "the balance of %s is not %" PRId64, bank_names[i], player->amounts[i]);
        known++;
        if (player->reserved[i] == 0)
            continue;
        PROMISE(t->sim,
                set_aside < told->n_reserved &&
                    strcmp(told->reserved[set_aside]->currency, bank_names[i]) == 0 &&
                    told->reserved[set_aside]->amount == player->reserved[i],
                "of %s not %" PRId64 " are reserved", bank_names[i], player->reserved[i]);
        set_aside++;
    }
    PROMISE(t->sim, known == told->n_balances && set_aside == told->n_reserved,
            "balances are told that there are not");
}

/* ---- items ---- */

static bool same_item(struct teller *t, const struct bank_held *held,
                      const Holdfast__V1__Item *told)
{
    const struct bank_item *item = &t->b->items[held->item];

    return strcmp(told->uid, item->uid) == 0 && strcmp(told->kind, item->kind) == 0 &&
           strcmp(told->attributes, item->attributes) == 0 && told->step == held->step &&
           (uint64_t)told->minted_at_ms == item->minted_ms;
}

static void tell_items(struct teller *t)
{
    Holdfast__V1__ListItemsRequest request = HOLDFAST__V1__LIST_ITEMS_REQUEST__INIT;
    const struct bank_player *player = t->player;
    bool of_kind = rsim_chance(t->sim, 40);
    uint32_t at = 0, pages = 0;

    request.player_id = t->name;
    request.page_size = (uint32_t)rsim_between(t->sim, 0, 6);
    if (of_kind)
        request.kind = text_lend(rsim_chance(t->sim, 50) ? "orb" : "sword");
    for (;;) {
        const Holdfast__V1__ListItemsResponse *told =
            read_page(t, METHOD_LIST_ITEMS, &request.base);
        PROMISE(t->sim, told->total == player->held_count, "%u items, not %u", told->total,
                player->held_count);
        PROMISE(t->sim, told->n_items <= (request.page_size > 0 ? request.page_size : 100),
                "a page of %zu items", told->n_items);
        for (size_t i = 0; i < told->n_items; i++, at++) {
            while (of_kind && at < player->held_count &&
                   strcmp(t->b->items[player->held[at].item].kind, request.kind) != 0)
                at++;
            PROMISE(t->sim,
                    at < player->held_count && same_item(t, &player->held[at], told->items[i]),
                    "item %u is another", at);
        }
        PROMISE(t->sim, ++pages < PAGES_MAX, "a list of items never ends");
        if (told->next_cursor[0] == 0)
            break;
        PROMISE(t->sim, told->n_items > 0 || of_kind, "an empty page goes on");
        request.cursor = told->next_cursor;
    }
    while (of_kind && at < player->held_count &&
           strcmp(t->b->items[player->held[at].item].kind, request.kind) != 0)
        at++;
    PROMISE(t->sim, at == player->held_count, "a list of items ends at %u of %u", at,
            player->held_count);
}

/* ---- reservations ---- */

static void tell_reservations(struct teller *t)
{
    Holdfast__V1__ListReservationsRequest request = HOLDFAST__V1__LIST_RESERVATIONS_REQUEST__INIT;
    const struct bank_player *player = t->player;
    uint32_t at = 0, pages = 0;

    request.player_id = t->name;
    request.page_size = (uint32_t)rsim_between(t->sim, 0, 4);
    for (;;) {
        const Holdfast__V1__ListReservationsResponse *told =
            read_page(t, METHOD_LIST_RESERVATIONS, &request.base);
        PROMISE(t->sim, told->n_reservations <= (request.page_size > 0 ? request.page_size : 64),
                "a page of %zu reservations", told->n_reservations);
        for (size_t i = 0; i < told->n_reservations; i++, at++) {
            const Holdfast__V1__Reservation *one = told->reservations[i];
            while (at < player->entry_count && player->entries[at].expires_ms == 0)
                at++;
            const struct bank_entry *entry = &player->entries[at];
            PROMISE(t->sim,
                    at < player->entry_count && one->reserve_seq == at + 1 &&
                        strcmp(one->reserve_op_id, entry->op_id) == 0 &&
                        strcmp(one->reason, entry->reason) == 0 &&
                        (uint64_t)one->expires_at_ms == entry->expires_ms &&
                        (uint64_t)one->reserved_at_ms == entry->at_ms &&
                        one->n_currencies == entry->change_count,
                    "another reservation is told as %" PRIu64, one->reserve_seq);
            for (uint32_t k = 0; k < entry->change_count; k++)
                PROMISE(t->sim,
                        strcmp(one->currencies[k]->currency,
                               bank_names[entry->changes[k].currency]) == 0 &&
                            one->currencies[k]->amount == entry->changes[k].reserved,
                        "a reservation holds something else");
        }
        PROMISE(t->sim, ++pages < PAGES_MAX, "a list of reservations never ends");
        if (told->next_cursor[0] == 0)
            break;
        PROMISE(t->sim, told->n_reservations > 0, "an empty page goes on");
        request.cursor = told->next_cursor;
    }
    while (at < player->entry_count && player->entries[at].expires_ms == 0)
        at++;
    PROMISE(t->sim, at == player->entry_count, "a reservation is not told");
}

/* ---- mail ---- */

static void same_mail(struct teller *t, const struct bank_mail *mail,
                      const Holdfast__V1__Mail *told)
{
    PROMISE(t->sim,
            strcmp(told->mail_id, mail->id) == 0 && strcmp(told->text, mail->text) == 0 &&
                strcmp(told->reason, mail->reason) == 0 && strcmp(told->op_id, mail->op_id) == 0 &&
                strcmp(told->from_player_id, bank_players[mail->from]) == 0,
            "another mail is told");
    PROMISE(t->sim,
            (uint64_t)told->sent_at_ms == mail->sent_ms &&
                (uint64_t)told->expires_at_ms == mail->expires_ms && !told->returned,
            "another time of mail is told");
    PROMISE(t->sim, told->n_currencies == mail->change_count && told->n_items == mail->item_count,
            "mail has %zu currencies and %zu items, not %u and %u", told->n_currencies,
            told->n_items, mail->change_count, mail->item_count);
    for (uint32_t i = 0; i < mail->change_count; i++)
        PROMISE(t->sim,
                strcmp(told->currencies[i]->currency, bank_names[mail->changes[i].currency]) == 0 &&
                    told->currencies[i]->amount == mail->changes[i].amount,
                "mail holds other currencies");
    for (uint32_t i = 0; i < mail->item_count; i++)
        PROMISE(t->sim, same_item(t, &mail->items[i], told->items[i]), "mail holds other items");
}

static void tell_mail(struct teller *t)
{
    Holdfast__V1__ListMailRequest request = HOLDFAST__V1__LIST_MAIL_REQUEST__INIT;
    const struct bank_state *state = &t->b->state;
    uint32_t at = 0, pages = 0, lying = 0;

    for (uint32_t i = 0; i < state->mail_count; i++)
        lying += state->mails[i].to == t->place && !state->mails[i].gone;
    request.player_id = t->name;
    request.page_size = (uint32_t)rsim_between(t->sim, 0, 4);
    for (;;) {
        const Holdfast__V1__ListMailResponse *told = read_page(t, METHOD_LIST_MAIL, &request.base);
        PROMISE(t->sim, told->total == lying, "%u pieces of mail, not %u", told->total, lying);
        PROMISE(t->sim, told->n_mails <= (request.page_size > 0 ? request.page_size : 50),
                "a page of %zu pieces of mail", told->n_mails);
        for (size_t i = 0; i < told->n_mails; i++, at++) {
            while (at < state->mail_count &&
                   (state->mails[at].to != t->place || state->mails[at].gone))
                at++;
            PROMISE(t->sim, at < state->mail_count, "mail is told that there is not");
            same_mail(t, &state->mails[at], told->mails[i]);
        }
        PROMISE(t->sim, ++pages < PAGES_MAX, "a list of mail never ends");
        if (told->next_cursor[0] == 0)
            break;
        PROMISE(t->sim, told->n_mails > 0, "an empty page goes on");
        request.cursor = told->next_cursor;
    }
    for (; at < state->mail_count; at++)
        PROMISE(t->sim, state->mails[at].to != t->place || state->mails[at].gone,
                "mail is not told");
}

/* ---- entries ---- */

struct filter {
    Holdfast__V1__ListEntriesRequest request;
    Holdfast__V1__LedgerKind kinds[3];
};

static bool passes(struct teller *t, const struct filter *filter, const struct bank_entry *entry)
{
    const Holdfast__V1__ListEntriesRequest *request = &filter->request;
    bool kind = request->n_kinds == 0, currency = request->currency[0] == 0;
    bool item = request->item_uid[0] == 0;

    for (size_t i = 0; i < request->n_kinds; i++)
        kind |= (int)request->kinds[i] == entry->kind;
    for (uint32_t i = 0; i < entry->change_count; i++)
        currency |= strcmp(bank_names[entry->changes[i].currency], request->currency) == 0;
    for (uint32_t i = 0; i < entry->item_count; i++)
        item |= strcmp(t->b->items[entry->items[i].item].uid, request->item_uid) == 0;
    return kind && currency && item &&
           (request->op_id[0] == 0 || strcmp(request->op_id, entry->op_id) == 0) &&
           (int64_t)entry->at_ms >= request->from_ms &&
           (request->to_ms == 0 || (int64_t)entry->at_ms < request->to_ms);
}

static void choose_filter(struct teller *t, struct filter *filter)
{
    static const Holdfast__V1__LedgerKind kinds[] = {
        BANK_KIND(GRANT),  BANK_KIND(SPEND),    BANK_KIND(TRANSFER),
        BANK_KIND(CLAIM),  BANK_KIND(POST),     BANK_KIND(RESERVE),
        BANK_KIND(EXPIRY), BANK_KIND(REVERSAL), BANK_KIND(VOID),
    };
    Holdfast__V1__ListEntriesRequest *request = &filter->request;
    const struct bank_player *player = t->player;

    *request = (Holdfast__V1__ListEntriesRequest)HOLDFAST__V1__LIST_ENTRIES_REQUEST__INIT;
    request->player_id = t->name;
    request->page_size = (uint32_t)rsim_between(t->sim, 0, 9);
    request->ascending = rsim_chance(t->sim, 50);
    if (player->entry_count == 0 || rsim_chance(t->sim, 30))
        return;
    const struct bank_entry *entry =
        &player->entries[rsim_between(t->sim, 0, player->entry_count - 1)];
    request->kinds = filter->kinds;
    for (uint32_t i = 0; i < 3 && rsim_chance(t->sim, 40); i++)
        filter->kinds[request->n_kinds++] = RSIM_PICK(t->sim, kinds);
    if (rsim_chance(t->sim, 25) && entry->change_count > 0)
        request->currency = text_lend(bank_names[entry->changes[0].currency]);
    if (rsim_chance(t->sim, 25) && entry->item_count > 0)
        request->item_uid = t->b->items[entry->items[0].item].uid;
    if (rsim_chance(t->sim, 20))
        request->op_id = text_lend(entry->op_id);
    if (rsim_chance(t->sim, 30))
        request->from_ms = (int64_t)rsim_about(t->sim, entry->at_ms);
    if (rsim_chance(t->sim, 30))
        request->to_ms =
            (int64_t)rsim_about(t->sim, player->entries[player->entry_count - 1].at_ms);
    if (request->to_ms > 0 && request->to_ms <= request->from_ms)
        request->to_ms = request->from_ms + 1;
}

static void same_changes(struct teller *t, const struct bank_entry *entry,
                         const Holdfast__V1__LedgerEntry *told)
{
    PROMISE(t->sim, told->n_changes == entry->change_count && told->n_items == entry->item_count,
            "entry %" PRIu64 " has %zu changes and %zu items, not %u and %u", told->seq,
            told->n_changes, told->n_items, entry->change_count, entry->item_count);
    for (uint32_t i = 0; i < entry->change_count; i++) {
        const struct bank_change *one = &entry->changes[i];
        const Holdfast__V1__LedgerChange *change = told->changes[i];
        PROMISE(t->sim,
                strcmp(change->currency, bank_names[one->currency]) == 0 &&
                    change->amount == one->amount && change->balance_after == one->after,
                "entry %" PRIu64 " changes %s by %" PRId64 " to %" PRId64 ", not by %" PRId64
                " to %" PRId64,
                told->seq, change->currency, change->amount, change->balance_after, one->amount,
                one->after);
        PROMISE(t->sim,
                change->reserved == one->reserved &&
                    (one->reserved == 0 || change->reserved_after == one->reserved_after),
                "entry %" PRIu64 " reserves something else", told->seq);
    }
    for (uint32_t i = 0; i < entry->item_count; i++)
        PROMISE(t->sim, strcmp(told->items[i]->uid, t->b->items[entry->items[i].item].uid) == 0,
                "entry %" PRIu64 " moves other items", told->seq);
}

static void same_other_side(struct teller *t, const struct bank_entry *entry,
                            const Holdfast__V1__LedgerEntry *told)
{
    const char *wanted = entry->counterpart != NULL ? entry->counterpart : "";
    const char *named = told->n_counterparts > 0 ? told->counterparts[0] : "";

    PROMISE(t->sim, told->n_counterparts <= 1 && strcmp(named, wanted) == 0,
            "entry %" PRIu64 " names %s as the other side, not %s", told->seq, named, wanted);
    PROMISE(t->sim,
            strcmp(told->mail_op_id, entry->mail_op_id != NULL ? entry->mail_op_id : "") == 0,
            "entry %" PRIu64 " names the mail's operation %s", told->seq, told->mail_op_id);
}

static void same_entry(struct teller *t, uint32_t at, const Holdfast__V1__LedgerEntry *told)
{
    const struct bank_entry *entry = &t->player->entries[at];

    PROMISE(t->sim, told->seq == at + 1, "entry %" PRIu64 " is told, not %u", told->seq, at + 1);
    PROMISE(t->sim,
            (int)told->kind == entry->kind && (uint64_t)told->at_ms == entry->at_ms &&
                strcmp(told->op_id, entry->op_id) == 0 &&
                strcmp(told->reason, entry->reason) == 0 &&
                strcmp(told->authority, entry->authority) == 0,
            "entry %" PRIu64 " is another: kind %d at %" PRId64 " by %s, %s", told->seq,
            (int)told->kind, told->at_ms, told->authority, told->op_id);
    PROMISE(t->sim,
            told->refers_to == entry->refers_to &&
                (told->items_taken != 0) == (entry->taken && entry->item_count > 0),
            "entry %" PRIu64 " refers to %" PRIu64, told->seq, told->refers_to);
    same_other_side(t, entry, told);
    same_changes(t, entry, told);
}

/* The next one that passes, from `at` on in the order of the request; entry_count: none. */
static uint32_t next_entry(struct teller *t, const struct filter *filter, uint32_t at)
{
    uint32_t count = t->player->entry_count;

    while (at < count && !passes(t, filter, &t->player->entries[at]))
        at = filter->request.ascending ? at + 1 : at > 0 ? at - 1 : count;
    return at;
}

static void tell_entries(struct teller *t)
{
    struct filter filter;
    uint32_t pages = 0, count = t->player->entry_count;

    choose_filter(t, &filter);
    bool up = filter.request.ascending != 0;
    uint32_t at = up || count == 0 ? 0 : count - 1;

    for (;;) {
        const Holdfast__V1__ListEntriesResponse *told =
            read_page(t, METHOD_LIST_ENTRIES, &filter.request.base);
        PROMISE(t->sim, told->head_seq == count, "the ledger ends at %" PRIu64 ", not %u",
                told->head_seq, count);
        PROMISE(t->sim,
                told->n_entries <= (filter.request.page_size > 0 ? filter.request.page_size : 50),
                "a page of %zu entries", told->n_entries);
        for (size_t i = 0; i < told->n_entries; i++) {
            at = next_entry(t, &filter, at);
            PROMISE(t->sim, at < count, "an entry is told that does not pass");
            same_entry(t, at, told->entries[i]);
            at = up ? at + 1 : at > 0 ? at - 1 : count;
        }
        PROMISE(t->sim, ++pages < PAGES_MAX, "a list of entries never ends");
        if (told->next_cursor[0] == 0)
            break;
        filter.request.cursor = told->next_cursor;
    }
    PROMISE(t->sim, next_entry(t, &filter, at) >= count, "an entry is not told");
}

/* ---- refused reads ---- */

static void refuse_page(struct teller *t)
{
    Holdfast__V1__ListItemsRequest items = HOLDFAST__V1__LIST_ITEMS_REQUEST__INIT;
    Holdfast__V1__ListEntriesRequest entries = HOLDFAST__V1__LIST_ENTRIES_REQUEST__INIT;
    Holdfast__V1__ListMailRequest mail = HOLDFAST__V1__LIST_MAIL_REQUEST__INIT;
    Holdfast__V1__ListReservationsRequest held = HOLDFAST__V1__LIST_RESERVATIONS_REQUEST__INIT;
    const struct {
        uint32_t method, most;
        ProtobufCMessage *request;
        uint32_t *size;
        char **cursor;
    } lists[] = {
        { METHOD_LIST_ITEMS, 500, &items.base, &items.page_size, &items.cursor },
        { METHOD_LIST_ENTRIES, 200, &entries.base, &entries.page_size, &entries.cursor },
        { METHOD_LIST_MAIL, 100, &mail.base, &mail.page_size, &mail.cursor },
        { METHOD_LIST_RESERVATIONS, 64, &held.base, &held.page_size, &held.cursor },
    };
    uint32_t which = (uint32_t)rsim_between(t->sim, 0, 3);

    items.player_id = entries.player_id = mail.player_id = held.player_id = t->name;
    *lists[which].size = lists[which].most;
    (void)read_page(t, lists[which].method, lists[which].request);
    if (rsim_chance(t->sim, 50))
        *lists[which].size = lists[which].most + 1;
    else
        *lists[which].cursor = text_lend("no cursor");
    PROMISE(t->sim,
            fixture_read(&t->b->f, lists[which].method, lists[which].request) == NULL &&
                t->b->f.error->code == CODE(INVALID_ARGUMENT),
            "a page that may not be asked for is told");
}

/* What a filter of entries may say, and what is just too much. */
static void refuse_filter(struct teller *t)
{
    static const Holdfast__V1__LedgerKind unknown[] = { (Holdfast__V1__LedgerKind)0,
                                                        (Holdfast__V1__LedgerKind)15,
                                                        (Holdfast__V1__LedgerKind)-1,
                                                        (Holdfast__V1__LedgerKind)32 };
    Holdfast__V1__ListEntriesRequest request = HOLDFAST__V1__LIST_ENTRIES_REQUEST__INIT;
    Holdfast__V1__LedgerKind kinds[17];
    char name[34] = { 0 };
    const char *field = "currency";

    request.player_id = t->name;
    request.kinds = kinds;
    for (uint32_t i = 0; i < ARRAY_SIZE(kinds); i++)
        kinds[i] = BANK_KIND(GRANT);
    request.n_kinds = ARRAY_SIZE(kinds) - 1;
    memset(name, 'x', sizeof name - 2);
    request.currency = name;
    (void)read_page(t, METHOD_LIST_ENTRIES, &request.base);
    request.n_kinds = 1;
    switch (rsim_between(t->sim, 0, 6)) {
    case 0:
        name[sizeof name - 2] = 'x';
        break;
    case 1:
        request.n_kinds = ARRAY_SIZE(kinds);
        field = "kinds";
        break;
    case 2:
        kinds[0] = RSIM_PICK(t->sim, unknown);
        field = "kinds[0]";
        break;
    case 3:
        request.item_uid = text_lend("00");
        field = "item_uid";
        break;
    case 4:
        request.op_id = text_lend("never");
        field = "op_id";
        break;
    case 5:
        request.from_ms = -1;
        field = "from_ms";
        break;
    default:
        request.from_ms = 5;
        request.to_ms = rsim_chance(t->sim, 50) ? 5 : -1;
        field = "to_ms";
    }
    PROMISE(t->sim,
            fixture_read(&t->b->f, METHOD_LIST_ENTRIES, &request.base) == NULL &&
                t->b->f.error->code == CODE(INVALID_ARGUMENT) &&
                strcmp(t->b->f.error->field, field) == 0,
            "a filter with a wrong %s is taken", field);
}

void bank_read(struct bank *b)
{
    static void (*const tells[])(struct teller *) = { tell_balances,     tell_items,   tell_entries,
                                                      tell_reservations, tell_mail,    tell_entries,
                                                      tell_entries,      tell_balances };

    for (uint32_t i = 0; i < BANK_PLAYERS; i++) {
        struct teller t = { .b = b, .sim = b->sim, .place = i };
        struct fixture_sums sums;

        t.player = &b->state.players[i];
        t.name = text_lend(bank_players[i]);
        for (uint32_t k = 0; k < ARRAY_SIZE(tells); k++)
            tells[k](&t);
        if (rsim_chance(b->sim, 10))
            refuse_page(&t);
        if (rsim_chance(b->sim, 10))
            refuse_filter(&t);
        if (rsim_chance(b->sim, 20))
            fixture_audit(&b->f, bank_players[i], "gold", &sums); /* The chain of hashes. */
    }
    b->sim->counts.bank_reads++;
}
