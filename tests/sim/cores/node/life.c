#include "tests/sim/cores/node/life.h"

#include <string.h>

#include "holdfast/v1/inventory.pb-c.h"
#include "holdfast/v1/mailbox.pb-c.h"
#include "node/core/codec/arena_proto.h"
#include "node/core/rows/rows.h"
#include "runtime/base/check.h"

#define UNHELD "unheld"

const char *const life_players[LIFE_PLAYERS] = { "ann", "bob", "carl" };
const char *const life_sections[LIFE_SECTIONS] = { "progression", "settings", "quests" };

void life_init(struct life *life, struct rsim *sim)
{
    memset(life, 0, sizeof *life);
    life->sim = sim;
    fixture_init(&life->f);
}

void life_deinit(struct life *life)
{
    fixture_deinit(&life->f);
}

char *life_op_id(struct life *life, const char *stem)
{
    return arena_printf(&life->sim->arena, "claim:%s%u", stem, ++life->ops);
}

struct slice life_entity(struct life *life, const char *player)
{
    return slice_from_text(arena_printf(&life->sim->arena, "player:%s", player));
}

/* ---- requests ---- */

struct turn {
    struct life *life;
    struct fixture *f;
    struct rsim *sim;
    uint32_t place;
    char *player, *other;
};

static Holdfast__V1__CurrencyAmount **amounts(struct turn *t, size_t *ret_count)
{
    Holdfast__V1__CurrencyAmount **list =
        arena_messages(&t->sim->arena, &holdfast__v1__currency_amount__descriptor, 2);

    *ret_count = rsim_between(t->sim, 1, 2);
    list[0]->currency = text_lend(*ret_count == 2 || rsim_chance(t->sim, 50) ? "gems" : "gold");
    list[1]->currency = text_lend("gold");
    list[0]->amount = (int64_t)rsim_between(t->sim, 1, 9);
    list[1]->amount = (int64_t)rsim_between(t->sim, 1, 9);
    return list;
}

static void grant(struct turn *t)
{
    Holdfast__V1__GrantRequest request = HOLDFAST__V1__GRANT_REQUEST__INIT;

    request.player_id = t->player;
    request.op_id = life_op_id(t->life, "g");
    request.authority = fixture_authority(t->f, "system:payments");
    request.currencies = amounts(t, &request.n_currencies);
    request.n_items = rsim_between(t->sim, 0, 2);
    request.items =
        arena_messages(&t->sim->arena, &holdfast__v1__item_spec__descriptor, request.n_items + 1);
    for (size_t i = 0; i < request.n_items; i++)
        request.items[i]->kind = text_lend(rsim_chance(t->sim, 50) ? "sword" : "orb");
    (void)fixture_mutate(t->f, METHOD_GRANT, &request.base);
}

static void spend(struct turn *t)
{
    Holdfast__V1__SpendRequest request = HOLDFAST__V1__SPEND_REQUEST__INIT;

    request.player_id = t->player;
    request.op_id = life_op_id(t->life, "s");
    request.authority = fixture_authority(t->f, UNHELD);
    request.currencies = amounts(t, &request.n_currencies);
    (void)fixture_mutate(t->f, METHOD_SPEND, &request.base);
}

static void reserve(struct turn *t)
{
    Holdfast__V1__ReserveCurrenciesRequest request = HOLDFAST__V1__RESERVE_CURRENCIES_REQUEST__INIT;
    uint32_t *count = &t->life->reservation_count[t->place];

    if (*count == LIFE_RESERVATIONS)
        return;
    request.player_id = t->player;
    request.op_id = life_op_id(t->life, "r");
    request.authority = fixture_authority(t->f, UNHELD);
    request.currencies = amounts(t, &request.n_currencies);
    request.expires_in_ms = 600000;
    if (fixture_mutate(t->f, METHOD_RESERVE_CURRENCIES, &request.base) != NULL)
        t->life->reservations[t->place][(*count)++] = request.op_id;
}

static void close_reservation(struct turn *t)
{
    Holdfast__V1__PostReservationRequest posted = HOLDFAST__V1__POST_RESERVATION_REQUEST__INIT;
    Holdfast__V1__VoidReservationRequest voided = HOLDFAST__V1__VOID_RESERVATION_REQUEST__INIT;
    uint32_t *count = &t->life->reservation_count[t->place];

    if (*count == 0)
        return;
    posted.player_id = voided.player_id = t->player;
    posted.reserve_op_id = voided.reserve_op_id = t->life->reservations[t->place][--*count];
    posted.op_id = voided.op_id = life_op_id(t->life, "c");
    posted.authority = voided.authority = fixture_authority(t->f, UNHELD);
    if (rsim_chance(t->sim, 50))
        (void)fixture_mutate(t->f, METHOD_POST_RESERVATION, &posted.base);
    else
        (void)fixture_mutate(t->f, METHOD_VOID_RESERVATION, &voided.base);
}

static void edit(struct turn *t)
{
    Holdfast__V1__UpdateProfileRequest request = HOLDFAST__V1__UPDATE_PROFILE_REQUEST__INIT;
    Holdfast__V1__SectionEdit one = HOLDFAST__V1__SECTION_EDIT__INIT;
    Holdfast__V1__SectionEdit *edits[] = { &one };

    one.name = text_lend(RSIM_PICK(t->sim, life_sections));
    one.schema_version = 2;
    one.edit_case = HOLDFAST__V1__SECTION_EDIT__EDIT_MERGE;
    one.merge = arena_printf(&t->sim->arena, "{\"xp\":%u}", (unsigned)rsim_between(t->sim, 0, 99));
    request.player_id = t->player;
    request.op_id = fixture_op_id(t->f);
    request.authority = fixture_authority(t->f, UNHELD);
    request.edits = edits;
    request.n_edits = 1;
    (void)fixture_mutate(t->f, METHOD_UPDATE_PROFILE, &request.base);
}

static void transfer(struct turn *t)
{
    Holdfast__V1__TransferCurrenciesRequest request =
        HOLDFAST__V1__TRANSFER_CURRENCIES_REQUEST__INIT;

    request.player_id = t->player;
    request.to_player_id = t->other;
    request.op_id = life_op_id(t->life, "t");
    request.authority = fixture_authority(t->f, UNHELD);
    request.currencies = amounts(t, &request.n_currencies);
    (void)fixture_mutate(t->f, METHOD_TRANSFER_CURRENCIES, &request.base);
}

static void give_item(struct turn *t)
{
    Holdfast__V1__TransferItemsRequest request = HOLDFAST__V1__TRANSFER_ITEMS_REQUEST__INIT;
    Holdfast__V1__ListItemsResponse *items = fixture_items(t->f, t->player);

    if (items->n_items == 0)
        return;
    char *uid = arena_text(&t->sim->arena, slice_from_text(items->items[0]->uid));
    request.player_id = t->player;
    request.to_player_id = t->other;
    request.op_id = life_op_id(t->life, "i");
    request.authority = fixture_authority(t->f, UNHELD);
    request.item_uids = &uid;
    request.n_item_uids = 1;
    (void)fixture_mutate(t->f, METHOD_TRANSFER_ITEMS, &request.base);
}

static void claim(struct turn *t)
{
    Holdfast__V1__ListMailRequest list = HOLDFAST__V1__LIST_MAIL_REQUEST__INIT;
    Holdfast__V1__ClaimMailRequest request = HOLDFAST__V1__CLAIM_MAIL_REQUEST__INIT;

    list.player_id = request.player_id = t->player;
    const Holdfast__V1__ListMailResponse *mails = fixture_read(t->f, METHOD_LIST_MAIL, &list.base);
    if (mails == NULL || mails->n_mails == 0)
        return;
    char *id = arena_text(&t->sim->arena, slice_from_text(mails->mails[0]->mail_id));
    request.op_id = life_op_id(t->life, "m");
    request.authority = fixture_authority(t->f, UNHELD);
    request.mail_ids = &id;
    request.n_mail_ids = 1;
    (void)fixture_mutate(t->f, METHOD_CLAIM_MAIL, &request.base);
}

void life_turn(struct life *life)
{
    static void (*const turns[])(struct turn *) = { grant, grant, spend,    reserve,
                                                    edit,  claim, transfer, close_reservation,
                                                    edit,  grant, transfer, give_item };
    struct turn t = { .life = life, .f = &life->f, .sim = life->sim };

    t.place = (uint32_t)rsim_between(life->sim, 0, LIFE_PLAYERS - 1);
    t.player = text_lend(life_players[t.place]);
    t.other = text_lend(
        life_players[(t.place + rsim_between(life->sim, 1, LIFE_PLAYERS - 1)) % LIFE_PLAYERS]);
    life->f.now_ms += rsim_between(life->sim, 1, 50);
    RSIM_PICK(life->sim, turns)(&t);
    if (rsim_chance(life->sim, 5))
        fixture_checkpoint(&life->f);
    if (rsim_chance(life->sim, 5))
        fixture_evict(&life->f, 0);
}

/* ---- rows ---- */

void life_rows_get(struct life *life, struct life_rows *ret_rows)
{
    struct arena *arena = &life->sim->arena;
    struct fixture *f = &life->f;

    fixture_checkpoint(f);
    ret_rows->count = f->row_count;
    ret_rows->keys = arena_alloc(arena, sizeof(struct slice) * (f->row_count + 1));
    ret_rows->values = arena_alloc(arena, sizeof(struct slice) * (f->row_count + 1));
    for (uint32_t i = 0; i < f->row_count; i++) {
        ret_rows->keys[i] = arena_copy(arena, buf_slice(&f->rows[i].key));
        ret_rows->values[i] = arena_copy(arena, buf_slice(&f->rows[i].value));
    }
}

const struct slice *life_row(const struct life_rows *rows, struct slice key)
{
    for (uint32_t i = 0; i < rows->count; i++) {
        if (slice_equal(rows->keys[i], key))
            return &rows->values[i];
    }
    return NULL;
}

void life_spoil(struct life *life, struct slice key, struct slice value)
{
    struct state *state = applier_state(life->f.applier);

    for (uint32_t i = 0; i < life->f.row_count; i++) {
        struct slice row = buf_slice(&life->f.rows[i].value);
        if (slice_equal(buf_slice(&life->f.rows[i].key), key))
            CHECK(state_load(state, state_load_generation(state), key, &row));
    }
    state_begin(state);
    state_put(state, key, value);
    state_commit(state);
}
