/*
 * Rows of a player that cannot be read (docs/runbooks/HoldfastRowsUnreadable.md): CheckPlayer names
 * each of them and no other; RepairPlayer makes again what other rows tell, loses what is lost and
 * nothing besides, touches no row of anyone else, and a trial changes nothing.
 */
#include <stdlib.h>
#include <string.h>

#include "idl/error_code.h"
#include "idl/limit.h"
#include "node/core/codec/arena_proto.h"
#include "node/core/goods/ledger.h"
#include "node/core/rows/rows.h"
#include "node/rpc/fixture_shards.h"
#include "runtime/base/check.h"
#include "runtime/base/hex.h"
#include "tests/sim/cores/node/life.h"

#define SPOILT_MAX 12u
#define NONSENSE   SLICE_LITERAL("\xff\xfe")
#define OUTCOME(x) HOLDFAST__V1__REPAIR_OUTCOME__REPAIR_OUTCOME_##x

typedef Holdfast__V1__RepairPlayerRequest repair_request;
typedef Holdfast__V1__RepairPlayerResponse repair_response;

struct ward {
    struct rsim *sim;
    struct life life;
    const char *player;
    struct slice entity;
    struct life_rows before;
    struct player stood; /* As it was before. */
    struct slice spoilt[SPOILT_MAX];
    uint32_t count;
    bool has_player, has_ledger; /* Among the spoilt. */
    uint32_t items, sections, mails;
};

static void load_player(struct ward *w, const struct life_rows *rows, struct player *ret_player)
{
    struct row_key key;

    row_key_player(&key, w->entity);
    const struct slice *row = life_row(rows, row_key_slice(&key));
    PROMISE(w->sim, row != NULL, "the player has no row");
    PROMISE(w->sim,
            player_decode(*row, w->entity, &w->sim->arena, ret_player) == ERR_OK &&
                player_sections(ret_player, &w->sim->arena) == ERR_OK,
            "the player's own row cannot be read");
}

/* ---- spoiling ---- */

static bool is_own(const struct ward *w, struct slice key)
{
    return memmem(key.data, key.size, w->entity.data, w->entity.size) != NULL;
}

/* Whether an entry stands alone: no open reservation hangs on it, and no entry undid it or was
 * undone by it. */
static bool entry_is_plain(struct ward *w, struct slice value)
{
    Holdfast__V1__LedgerEntry *entry = NULL;

    if (ledger_row_decode(value, &w->sim->arena, &entry) != ERR_OK)
        return false;
    return entry->refers_to == 0 &&
           (int)entry->kind != HOLDFAST__V1__LEDGER_KIND__LEDGER_KIND_RESERVE;
}

static bool may_spoil(struct ward *w, uint32_t at)
{
    struct slice key = w->before.keys[at];

    if (!is_own(w, key) || w->count == SPOILT_MAX)
        return false;
    switch (key.data[0]) {
    case TABLE_ITEM:
    case TABLE_MAIL:
    case TABLE_MAILBOX:
    case TABLE_RESERVATION:
        return true;
    case TABLE_SECTION: /* Only the player's own row names it. */
        return !w->has_player;
    case TABLE_REVERSAL:
        return !w->has_ledger;
    case TABLE_TYPED: /* Of a grant, which its entry names. */
        return !w->has_ledger && memmem(key.data, key.size, "claim:g", 7) != NULL;
    default:
        return false;
    }
}

static void spoil(struct ward *w, struct slice key)
{
    life_spoil(&w->life, key, NONSENSE);
    w->spoilt[w->count++] = key;
    w->items += key.data[0] == TABLE_ITEM;
    w->sections += key.data[0] == TABLE_SECTION;
    w->mails += key.data[0] == TABLE_MAIL;
}

static void spoil_some(struct ward *w)
{
    struct row_key key;

    if (rsim_chance(w->sim, 40)) {
        w->has_player = true;
        row_key_player(&key, w->entity);
        life_spoil(&w->life, row_key_slice(&key), NONSENSE);
    } else if (rsim_chance(w->sim, 40)) {
        uint64_t seq = rsim_between(w->sim, 1, w->stood.ledger_seq);
        row_key_ledger(&key, w->entity, seq);
        const struct slice *row = life_row(&w->before, row_key_slice(&key));
        if (row != NULL && entry_is_plain(w, *row)) {
            w->has_ledger = true;
            spoil(w, arena_copy(&w->sim->arena, row_key_slice(&key)));
        }
    }
    for (uint32_t i = 0; i < w->before.count; i++) {
        if (may_spoil(w, i) && rsim_chance(w->sim, 12))
            spoil(w, w->before.keys[i]);
    }
}

/* ---- checking ---- */

static char *hex(struct ward *w, struct slice key)
{
    char *text = arena_alloc(&w->sim->arena, 2 * key.size + 1);

    hex_print(key.data, key.size, text);
    return text;
}

static bool is_told(const struct fixture_unreadable *rows, const char *key)
{
    for (uint32_t i = 0; i < rows->count; i++) {
        if (strcmp(rows->keys[i], key) == 0)
            return true;
    }
    return false;
}

static void check_told(struct ward *w)
{
    struct fixture_unreadable rows;

    (void)fixture_check_player(&w->life.f, w->player, &rows);
    PROMISE(w->sim, rows.player == w->has_player, "the player's own row: told %d", rows.player);
    for (uint32_t i = 0; i < w->count; i++) {
        char *key = hex(w, w->spoilt[i]);
        PROMISE(w->sim, is_told(&rows, key), "row %s cannot be read, and is not told", key);
    }
    PROMISE(w->sim, rows.count == w->count, "%u rows are told, and %u cannot be read", rows.count,
            w->count);
    fixture_unreadable_free(&rows);
}

/* ---- repairing ---- */

static int outcome_of(struct slice key)
{
    switch (key.data[0]) {
    case TABLE_ITEM:
    case TABLE_MAIL:
    case TABLE_SECTION:
        return (int)OUTCOME(DROPPED);
    case TABLE_MAILBOX:
    case TABLE_REVERSAL:
        return (int)OUTCOME(MADE_AGAIN);
    default:
        return (int)OUTCOME(REPLACED);
    }
}

static repair_response *repair(struct ward *w, bool rebuild, bool dry_run)
{
    struct arena *arena = &w->sim->arena;
    repair_request *request = fixture_repair_request(&w->life.f, w->player);

    request->rows = arena_alloc(arena, sizeof(char *) * (w->count + 2));
    for (uint32_t i = 0; i < w->count; i++)
        request->rows[request->n_rows++] = hex(w, w->spoilt[w->count - 1 - i]);
    if (w->count > 0 && rsim_chance(w->sim, 20)) /* Named twice. */
        request->rows[request->n_rows++] = request->rows[0];
    request->rebuild = rebuild;
    request->dry_run = dry_run;
    request->n_sections = w->has_player ? w->stood.section_count : 0;
    request->sections =
        arena_messages(arena, &holdfast__v1__repair_section__descriptor, request->n_sections + 1);
    for (size_t i = 0; i < request->n_sections; i++) {
        request->sections[i]->name = arena_text(arena, w->stood.sections[i].name);
        request->sections[i]->schema_version = w->stood.sections[i].schema_version;
    }
    return fixture_mutate(&w->life.f, METHOD_REPAIR_PLAYER, &request->base);
}

static void check_amounts(struct ward *w, size_t count, Holdfast__V1__CurrencyAmount *const *told,
                          bool reserved)
{
    for (uint32_t i = 0; i < w->stood.balance_count; i++) {
        const struct balance *balance = &w->stood.balances[i];
        int64_t amount = reserved ? balance->reserved : balance->amount;
        const Holdfast__V1__CurrencyAmount *found = NULL;

        for (size_t k = 0; k < count; k++) {
            if (slice_equal(slice_from_text(told[k]->currency), balance->currency))
                found = told[k];
        }
        PROMISE(w->sim, found != NULL ? found->amount == amount : amount == 0,
                "%s of %.*s is told as %lld, and was %lld",
                reserved ? "what is set aside" : "the balance", (int)balance->currency.size,
                (const char *)balance->currency.data,
                found != NULL ? (long long)found->amount : 0ll, (long long)amount);
    }
}

static void check_response(struct ward *w, const repair_response *told, bool dry_run)
{
    const Holdfast__V1__RepairedRow *row;

    PROMISE(w->sim, told->dry_run == dry_run, "a trial is told otherwise");
    PROMISE(w->sim, told->n_rows == w->count, "%zu rows of %u are told", told->n_rows, w->count);
    for (uint32_t i = 0; i < w->count; i++) {
        row = NULL;
        for (size_t k = 0; k < told->n_rows; k++) {
            if (strcmp(told->rows[k]->key, hex(w, w->spoilt[i])) == 0)
                row = told->rows[k];
        }
        PROMISE(w->sim, row != NULL, "a row is not told");
        PROMISE(w->sim, (int)row->outcome == outcome_of(w->spoilt[i]), "a row of table %c is %d",
                w->spoilt[i].data[0], (int)row->outcome);
        PROMISE(w->sim,
                strcmp(row->bytes, "fffe") == 0 && row->size_bytes == 2 &&
                    (uint8_t)row->table[0] == w->spoilt[i].data[0] && row->table[1] == 0,
                "what stood in a row is told otherwise");
    }
    PROMISE(w->sim, told->item_count == w->stood.item_count - w->items, "%u items of %u",
            told->item_count, w->stood.item_count - w->items);
    PROMISE(w->sim, told->ledger_seq == w->stood.ledger_seq, "another end of the ledger");
    PROMISE(w->sim, told->reservation_count == w->stood.reservation_count, "%u reservations of %u",
            told->reservation_count, w->stood.reservation_count);
    PROMISE(w->sim, told->n_sections == w->stood.section_count - w->sections, "%zu sections",
            told->n_sections);
    PROMISE(w->sim, !told->transaction_finished, "there was no transaction");
    check_amounts(w, told->n_balances, told->balances, false);
    check_amounts(w, told->n_reserved, told->reserved, true);
}

/* ---- what stands afterwards ---- */

static bool is_spoilt(const struct ward *w, struct slice key)
{
    for (uint32_t i = 0; i < w->count; i++) {
        if (slice_equal(w->spoilt[i], key))
            return true;
    }
    return false;
}

static bool follows(const struct ward *w, uint8_t table)
{
    switch (table) { /* Of this player's, what a repair changes besides. */
    case TABLE_PLAYER:
    case TABLE_TIMER:
    case TABLE_OPERATION:
        return true;
    case TABLE_MAILBOX:
        return w->mails > 0;
    default:
        return false;
    }
}

/* `trial`: nothing was done. */
static void check_rows(struct ward *w, bool trial)
{
    struct life_rows now;

    life_rows_get(&w->life, &now);
    for (uint32_t i = 0; i < w->before.count; i++) {
        struct slice key = w->before.keys[i];
        const struct slice *row = life_row(&now, key);
        bool own = is_own(w, key);
        int outcome = outcome_of(key);

        if (own && is_spoilt(w, key) && trial) {
            PROMISE(w->sim, row != NULL && slice_equal(*row, NONSENSE), "a trial changes a row");
        } else if (own && is_spoilt(w, key)) {
            PROMISE(w->sim, (row == NULL) == (outcome == (int)OUTCOME(DROPPED)),
                    "a row of table %c is there, or not", key.data[0]);
            PROMISE(w->sim,
                    outcome != (int)OUTCOME(MADE_AGAIN) || w->mails > 0 ||
                        slice_equal(*row, w->before.values[i]),
                    "a row of table %c is made otherwise than it was", key.data[0]);
        } else if (!own || !follows(w, key.data[0])) {
            PROMISE(w->sim, row != NULL && slice_equal(*row, w->before.values[i]),
                    "a row of table %c changes", key.data[0]);
        }
    }
}

static void check_player(struct ward *w, bool rebuilt)
{
    struct life_rows now;
    struct player player;

    life_rows_get(&w->life, &now);
    load_player(w, &now, &player);
    PROMISE(w->sim, player.created_at_ms == w->stood.created_at_ms, "made at another time");
    PROMISE(w->sim, player.version > w->stood.version, "the version does not rise");
    PROMISE(w->sim, player.section_count == w->stood.section_count - w->sections, "sections");
    for (uint32_t i = 0; i < player.section_count; i++) {
        const struct section_info *one = &player.sections[i];
        const struct section_info *was = player_find_section(&w->stood, one->name);
        PROMISE(w->sim,
                was != NULL && was->schema_version == one->schema_version &&
                    was->size_bytes == one->size_bytes,
                "another section");
        PROMISE(w->sim, w->has_player ? one->version > was->version : one->version == was->version,
                "the version of a section");
    }
    PROMISE(w->sim,
            w->has_ledger ||
                memcmp(player.ledger_hash, w->stood.ledger_hash, LEDGER_HASH_BYTES) == 0,
            "the chain has another end");
    PROMISE(w->sim, player.session.fence >= w->stood.session.fence, "a fence goes back");
    if (!rebuilt) {
        PROMISE(w->sim, player.session.state == w->stood.session.state, "a session ends");
        return;
    }
    PROMISE(w->sim, player.session.state == SESSION_FREE, "a session goes on");
    PROMISE(w->sim,
            !w->has_player || player.session.fence > w->stood.session.fence ||
                w->stood.session.fence == 0,
            "a fence comes again");
}

static void check_lost_outcomes(struct ward *w)
{
    for (uint32_t i = 0; i < w->count; i++) {
        struct slice key = w->spoilt[i];
        if (key.data[0] != TABLE_TYPED)
            continue;
        size_t head = 1 + w->entity.size + 1;
        char *id = arena_text(&w->sim->arena, (struct slice){ key.data + head, key.size - head });
        PROMISE(w->sim, fixture_operation(&w->life.f, w->player, id)->state == OPERATION(EXPIRED),
                "a lost outcome is told as another");
    }
}

static void works_again(struct ward *w)
{
    struct fixture *f = &w->life.f;
    struct fixture_sums sums;
    struct fixture_unreadable rows;

    PROMISE(w->sim, fixture_check_player(f, w->player, &rows) == 0, "a row cannot be read yet");
    fixture_release(f, w->player);
    PROMISE(w->sim, fixture_grant(f, w->player, "system:payments", 1) != NULL,
            "a grant is refused");
    if (!w->has_ledger && w->items == 0)
        fixture_audit(f, w->player, "gold", &sums);
    (void)applier_take_damage(f->applier); /* Of before. */
    (void)fixture_pass(f, 700000);
    PROMISE(w->sim, applier_take_damage(f->applier) == NULL, "damage is found again");
    PROMISE(w->sim, !fixture_is_quarantined(f, w->player), "the player is held again");
    if (!w->has_ledger && w->items == 0) {
        fixture_audit(f, w->player, "gold", &sums);
        PROMISE(w->sim, sums.reserved == 0, "a reservation never ends");
    }
}

/* ---- what is refused ---- */

static void refused(struct ward *w, const repair_response *response, Holdfast__V1__ErrorCode code)
{
    const struct fixture *f = &w->life.f;

    PROMISE(w->sim, response == NULL && f->error != NULL, "a repair is done that should not be");
    PROMISE(w->sim, f->error->code == code, "refused with %d, not %d: %s", (int)f->error->code,
            (int)code, f->error->message);
}

/* A row that can be read, one of another player, one that there is not, and one that is no row. */
static void refusals(struct ward *w)
{
    static const char *const others[] = { "zz", "6", "6C00", "", "70" };
    repair_request *request = fixture_repair_request(&w->life.f, w->player);
    char *row = text_lend(RSIM_PICK(w->sim, others));
    uint32_t at = (uint32_t)rsim_between(w->sim, 0, w->before.count - 1);

    if (rsim_chance(w->sim, 70) && !is_spoilt(w, w->before.keys[at]))
        row = hex(w, w->before.keys[at]);
    request->rows = &row;
    request->n_rows = 1;
    refused(w, fixture_mutate(&w->life.f, METHOD_REPAIR_PLAYER, &request->base),
            CODE(INVALID_ARGUMENT));
    PROMISE(w->sim, strncmp(w->life.f.error->field, "rows", 4) == 0, "about %s",
            w->life.f.error->field);
    w->sim->counts.repairs_refused++;
}

/* Balances that are stated: of the policy, and within its bounds. */
static void refuse_balance(struct ward *w)
{
    static const struct {
        const char *currency;
        int64_t amount;
        const char *field;
    } wrong[] = {
        { "gold", -1, "balances[\"gold\"].amount" },
        { "debt", -51, "balances[\"debt\"].amount" },
        { "gold", LIMIT_AMOUNT + 1, "balances[\"gold\"].amount" },
        { "silver", 1, "balances[\"silver\"].currency" },
    };
    uint64_t at = rsim_between(w->sim, 0, ARRAY_SIZE(wrong) - 1);
    repair_request *request = fixture_repair_request(&w->life.f, w->player);
    Holdfast__V1__CurrencyAmount amount = HOLDFAST__V1__CURRENCY_AMOUNT__INIT;
    Holdfast__V1__CurrencyAmount *amounts[] = { &amount };

    amount.currency = text_lend(wrong[at].currency);
    amount.amount = wrong[at].amount;
    request->rebuild = true;
    request->balances = amounts;
    request->n_balances = 1;
    refused(w, fixture_mutate(&w->life.f, METHOD_REPAIR_PLAYER, &request->base),
            CODE(INVALID_ARGUMENT));
    PROMISE(w->sim, strcmp(w->life.f.error->field, wrong[at].field) == 0, "about %s",
            w->life.f.error->field);
}

void room_repair(struct rsim *sim)
{
    struct ward *w = arena_zalloc(&sim->arena, sizeof *w);
    uint32_t turns = (uint32_t)rsim_between(sim, 15, 60);

    w->sim = sim;
    w->player = RSIM_PICK(sim, life_players);
    life_init(&w->life, sim);
    w->entity = life_entity(&w->life, w->player);
    PROMISE(sim, fixture_grant(&w->life.f, w->player, "system:payments", 50) != NULL, "no grant");
    for (uint32_t i = 0; i < turns; i++)
        life_turn(&w->life);
    if (rsim_chance(sim, 40))
        (void)fixture_start(&w->life.f, w->player, SERVER_A,
                            HOLDFAST__V1__START_MODE__START_MODE_FAIL, fixture_op_id(&w->life.f));
    life_rows_get(&w->life, &w->before);
    load_player(w, &w->before, &w->stood);
    spoil_some(w);
    bool rebuild = w->has_player || w->count == 0 || rsim_chance(sim, 30);

    if (!fixture_is_quarantined(&w->life.f, w->player)) {
        refused(w, repair(w, rebuild, false), CODE(NOT_FOUND));
        fixture_contain(&w->life.f, w->player);
    }
    if (rsim_chance(sim, 50))
        fixture_restart(&w->life.f);
    if (rsim_chance(sim, 50)) {
        fixture_checkpoint(&w->life.f);
        fixture_evict(&w->life.f, 0);
    }
    check_told(w);
    refusals(w);
    refuse_balance(w);
    w->life.f.now_ms += rsim_between(sim, 1000, 5000);
    if (rsim_chance(sim, 50)) {
        repair_response *told = repair(w, rebuild, true);
        PROMISE(sim, told != NULL, "a trial is refused: %s", w->life.f.error->message);
        check_response(w, told, true);
        check_rows(w, true);
    }
    repair_response *told = repair(w, rebuild, false);
    PROMISE(sim, told != NULL, "a repair is refused: %s (%s)", w->life.f.error->message,
            w->life.f.error->value);
    check_response(w, told, false);
    check_rows(w, false);
    check_player(w, rebuild);
    check_lost_outcomes(w);
    works_again(w);
    sim->counts.players_rebuilt += w->has_player;
    sim->counts.rows_repaired += w->count;
    sim->counts.entries_lost += w->has_ledger;
    life_deinit(&w->life);
}
