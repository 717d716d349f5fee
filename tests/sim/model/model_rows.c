/* What a shard stores of a player is what its log has made of it, by the model: after each entry,
 * by the rows of the oracle's own replica (which all others are held against). Part of the model.
 */
#include <inttypes.h>
#include <string.h>

#include "node/core/goods/mailbox.h"
#include "node/core/player/player.h"
#include "node/core/rows/rows.h"
#include "runtime/base/check.h"
#include "tests/sim/model/model.h"
#include "tests/sim/servers/request.h"

/* A player whose rows are looked at. */
struct seen {
    const struct change *c;
    uint32_t number;
    const struct player_model *model;
    char entity[32];
};

static void fail(const struct seen *s, const char *what, uint64_t stored, uint64_t wanted)
{
    sim_fail(s->c->sim, s->c->number,
             "entry %" PRIu64 ": stored of p%u: %s (%" PRIu64 ", should be %" PRIu64 ")",
             s->c->entry->index, s->number, what, stored, wanted);
}

static enum state_found find(const struct seen *s, const struct row_key *key, struct slice *ret_row)
{
    return state_find(applier_state(s->c->shard->applier), row_key_slice(key), ret_row);
}

/* ---- the player's row ---- */
static void check_balances(const struct seen *s, const struct player *player)
{
    int64_t stored[SIM_CURRENCIES] = { 0 }, reserved[SIM_CURRENCIES] = { 0 };

    for (uint32_t i = 0; i < player->balance_count; i++) {
        for (uint32_t j = 0; j < SIM_CURRENCIES; j++) {
            if (!slice_equal(player->balances[i].currency, slice_from_text(request_currency(j))))
                continue;
            stored[j] += player->balances[i].amount;
            reserved[j] += player->balances[i].reserved;
        }
    }
    for (uint32_t i = 0; i < SIM_CURRENCIES; i++) {
        if (stored[i] != s->model->now.balances[i])
            fail(s, "a balance", (uint64_t)stored[i], (uint64_t)s->model->now.balances[i]);
        if (reserved[i] != s->model->now.reserved[i])
            fail(s, "what is reserved", (uint64_t)reserved[i], (uint64_t)s->model->now.reserved[i]);
    }
}

static void check_section(const struct seen *s, uint32_t place, const struct section_info *stored)
{
    const struct section_model *section = &s->model->now.sections.each[place];
    char text[SIM_DOCUMENT_BYTES];
    struct row_key key;
    struct slice row;

    row_key_section(&key, slice_from_text(s->entity), slice_from_text(edit_section_name(place)));
    bool present = find(s, &key, &row) == STATE_PRESENT;
    if ((stored != NULL) != section->exists || present != section->exists) {
        fail(s, "whether there is a section", present, section->exists);
        return;
    }
    if (!section->exists)
        return;
    edit_print(&section->document, text);
    if (!slice_equal(row, slice_from_text(text)))
        fail(s, "a section's document", row.size, strlen(text));
    if (stored->version != section->version)
        fail(s, "a section's version", stored->version, section->version);
    if (stored->schema_version != section->schema)
        fail(s, "a section's schema version", stored->schema_version, section->schema);
    if (stored->last_write_ms != section->written_ms)
        fail(s, "when a section was written", stored->last_write_ms, section->written_ms);
    if (stored->size_bytes != strlen(text))
        fail(s, "a section's size", stored->size_bytes, strlen(text));
}

static void check_sections(const struct seen *s, struct player *player)
{
    if (player_sections(player, &s->c->sim->oracle->arena) != ERR_OK) {
        fail(s, "its index of sections cannot be read", 0, 0);
        return;
    }
    for (uint32_t i = 0; i < SIM_SECTIONS; i++)
        check_section(s, i, player_find_section(player, slice_from_text(edit_section_name(i))));
}

static void check_session(const struct seen *s, const struct session *session)
{
    const struct player_model *model = s->model;

    if (session->fence != model->fence)
        fail(s, "the fence", session->fence, model->fence);
    if (model_is_held(s->c, model)) {
        if (session->state == SESSION_FREE ||
            incarnation_compare(session->incarnation, model->incarnation) != 0)
            fail(s, "who holds it", session->incarnation.revision, model->incarnation.revision);
        if ((session->state == SESSION_GRANTED) != (model->granted_ms != 0) &&
            session->state == SESSION_GRANTED)
            fail(s, "its session counts as unused", session->state, SESSION_HELD);
    } else if (incarnation_is_none(model->incarnation) && session->state != SESSION_FREE) {
        fail(s, "a session that is over", session->state, SESSION_FREE);
    }
}

static void check_player(const struct seen *s)
{
    const struct moment *now = &s->model->now;
    struct row_key key;
    struct slice row;
    struct player player;

    row_key_player(&key, slice_from_text(s->entity));
    player_init(&player, slice_from_text(s->entity));
    if (find(s, &key, &row) == STATE_PRESENT &&
        player_decode(row, slice_from_text(s->entity), &s->c->sim->oracle->arena, &player) !=
            ERR_OK) {
        fail(s, "its row cannot be read", 0, 0);
        return;
    }
    if (player.version != now->version)
        fail(s, "the version", player.version, now->version);
    if (player.item_count != now->items)
        fail(s, "the count of items", player.item_count, now->items);
    if (player.reservation_count != now->reservations)
        fail(s, "the count of reservations", player.reservation_count, now->reservations);
    if ((player.txn.seq != 0) != (s->model->txn != 0))
        fail(s, "whether a transaction holds it", player.txn.seq, s->model->txn);
    check_balances(s, &player);
    check_sections(s, &player);
    check_session(s, &player.session);
    entries_check(s->c, s->number, player.ledger_seq, player.ledger_hash);
}

static void check_mailbox(const struct seen *s)
{
    struct row_key key;
    struct slice row;
    uint32_t count = 0;

    row_key_mailbox(&key, slice_from_text(s->entity));
    if (find(s, &key, &row) == STATE_PRESENT && mailbox_row_decode(row, &count) != ERR_OK)
        fail(s, "its mailbox cannot be read", 0, 0);
    if (count != s->model->now.mails)
        fail(s, "the count of mail", count, s->model->now.mails);
}

/* ---- items that moved in this entry ---- */
/* How many entries its ledger has, by its row: one entry of the log settles many things. */
static uint64_t entries_by_row(const struct seen *s)
{
    struct row_key key;
    struct slice row;
    struct player player;

    row_key_player(&key, slice_from_text(s->entity));
    player_init(&player, slice_from_text(s->entity));
    if (find(s, &key, &row) != STATE_PRESENT ||
        player_decode(row, slice_from_text(s->entity), &s->c->sim->oracle->arena, &player) !=
            ERR_OK)
        return 0;
    return player.ledger_seq;
}

/* The row of a step says whose it is, and whether that player holds the item since. */
static void check_step(const struct seen *s, const struct step_model *step,
                       const uint8_t uid[ITEM_UID_BYTES])
{
    struct history_row stored;
    struct row_key key;
    struct slice row;
    char to[32] = "";

    if (step->to > 0)
        player_entity(step->to - 1, to);
    row_key_history(&key, uid, step->number);
    if (find(s, &key, &row) != STATE_PRESENT ||
        history_row_decode(row_key_slice(&key), row, &stored) != ERR_OK)
        fail(s, "a step of an item is not there", 0, step->number);
    else if (stored.held != step->held)
        fail(s, "whether an item is held since a step", stored.held, step->held);
    else if (!slice_equal(stored.entity, slice_from_text(s->entity)) ||
             !slice_equal(stored.next, slice_from_text(to)))
        fail(s, "whose a step of an item is, or to whom it went", step->number, step->to);
    else if (stored.ledger_seq == 0 || stored.ledger_seq > entries_by_row(s))
        fail(s, "the entry of a step", stored.ledger_seq, entries_by_row(s));
}

static void check_item(const struct change *c, const struct step_model *step)
{
    struct item_model *item = &c->sim->oracle->book.items[step->item - 1];
    struct seen s = { .c = c,
                      .number = step->player,
                      .model = &c->sim->oracle->players[step->player] };
    uint8_t uid[ITEM_UID_BYTES];
    struct item_row stored;
    struct row_key key;
    struct slice row;

    player_entity(step->player, s.entity);
    CHECK(item_uid_parse(slice_from_text(item->uid), uid) == ERR_OK);
    row_key_item(&key, slice_from_text(s.entity), uid);
    bool present = find(&s, &key, &row) == STATE_PRESENT;
    check_step(&s, step, uid);
    if (step->number < item->steps)
        return; /* It moved on in the same entry. */
    if (present != step->held) {
        fail(&s, "whether it holds an item", present, step->held);
        return;
    }
    if (!present)
        return;
    if (item_row_decode(row_key_slice(&key), row, &stored) != ERR_OK) {
        fail(&s, "an item cannot be read", 0, 0);
        return;
    }
    if (stored.step != step->number)
        fail(&s, "the steps of an item", stored.step, step->number);
    if (!item_is_like(item, stored.kind, stored.attributes, stored.minted_at_ms))
        fail(&s, "an item's kind, attributes or age", stored.minted_at_ms, item->minted_ms);
}

bool item_is_like(struct item_model *item, struct slice kind, struct slice attributes,
                  uint64_t minted_ms)
{
    if (item->kind[0] == '\0') { /* It is seen first. */
        CHECK(kind.size < sizeof item->kind && attributes.size < sizeof item->attributes);
        memcpy(item->kind, kind.data, kind.size);
        memcpy(item->attributes, attributes.data, attributes.size);
    }
    if (item->minted_ms == 0)
        item->minted_ms = minted_ms;
    return slice_equal(slice_from_text(item->kind), kind) &&
           slice_equal(slice_from_text(item->attributes), attributes) &&
           item->minted_ms == minted_ms;
}

/* ---- mail that came in this entry ---- */
static void check_mail(const struct change *c, const struct mail_model *mail)
{
    struct seen s = { .c = c,
                      .number = mail->player,
                      .model = &c->sim->oracle->players[mail->player] };
    uint8_t id[ITEM_UID_BYTES];
    struct row_key key;
    struct slice row;

    player_entity(mail->player, s.entity);
    if (item_uid_parse(slice_from_text(mail->id), id) != ERR_OK)
        return;
    row_key_mail(&key, slice_from_text(s.entity), id);
    if (mail->gone)
        return;
    const Holdfast__V1__Mail *stored = NULL;
    if (find(&s, &key, &row) == STATE_PRESENT)
        stored = (const void *)protobuf_c_message_unpack(&holdfast__v1__mail__descriptor, NULL,
                                                         row.size, row.data);
    if (stored == NULL) {
        fail(&s, "a piece of mail is not there", 0, 1);
        return;
    }
    if (!goods_are_mailed(&c->sim->oracle->book, &mail->goods, stored))
        fail(&s, "a piece of mail brings other goods", stored->n_items, mail->goods.item_count);
    bool of_game = mail->from == mail->player;
    if (of_game ? stored->from_player_id[0] != '\0'
                : model_player_of_id(stored->from_player_id) != mail->from)
        fail(&s, "a piece of mail is from another", 0, mail->from);
    if (strcmp(stored->mail_id, mail->id) != 0)
        fail(&s, "a piece of mail has another id", 0, 0);
    holdfast__v1__mail__free_unpacked((Holdfast__V1__Mail *)(uintptr_t)stored, NULL);
}

static void check_moved(const struct change *c)
{
    const struct goods_book *book = &c->sim->oracle->book;
    uint64_t index = c->entry->index;

    for (uint32_t i = book->step_count; i > 0; i--) {
        const struct step_model *step = &book->steps[i - 1];
        if (step->shard != c->number || step->index != index)
            break;
        check_item(c, step);
    }
    for (uint32_t i = book->mail_count; i > 0; i--) {
        const struct mail_model *mail = &book->mails[i - 1];
        if (c->sim->player_shard[mail->player] != c->number || mail->came_index != index)
            break;
        check_mail(c, mail);
    }
}

/* ---- all that the entry touched, and one more ---- */
void rows_check(const struct change *c)
{
    struct sim *sim = c->sim;

    if (sim->failure[0] != '\0')
        return;
    policy_check_stored(c);
    check_moved(c);
    for (uint32_t i = 0; i < sim->player_count; i++) {
        struct seen s = { .c = c, .number = i, .model = &sim->oracle->players[i] };
        if (sim->player_shard[i] != c->number ||
            (s.model->now.index != c->entry->index && c->entry->index % sim->player_count != i))
            continue;
        player_entity(i, s.entity);
        check_player(&s);
        check_mailbox(&s);
    }
}
