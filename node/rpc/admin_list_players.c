#include <string.h>

#include "holdfast/v1/admin.pb-c.h"
#include "idl/method.h"
#include "node/core/codec/arena_proto.h"
#include "node/core/codec/text_rule.h"
#include "node/core/goods/mailbox.h"
#include "node/core/handler/refusal.h"
#include "node/core/profile/profile.h"
#include "node/core/rows/rows.h"
#include "node/rpc/methods.h"
#include "runtime/base/check.h"

#define PAGE_SIZE_DEFAULT 500u
#define PAGE_SIZE_MAX     1000u
#define PLAYER_PREFIX     "player:"

typedef Holdfast__V1__PlayerHead player_head;
typedef Holdfast__V1__ListPlayersResponse list_response;

/* Heads in the order of their ids, out of one table. */
struct heads {
    struct arena *arena;
    struct damage *damage;
    player_head **heads;
    size_t count, max;
};

static player_head *add_head(struct heads *heads, struct slice entity)
{
    player_head *head =
        (player_head *)arena_message(heads->arena, &holdfast__v1__player_head__descriptor);
    struct player player;

    player_init(&player, entity);
    head->player_id = arena_text(heads->arena, player_id(&player));
    heads->heads[heads->count++] = head;
    return head;
}

static bool take_player(void *user, struct slice key, struct slice value)
{
    struct heads *heads = user;
    struct slice entity = arena_copy(heads->arena, (struct slice){ key.data + 1, key.size - 1 });
    player_head *head = add_head(heads, entity);
    struct player player;

    /* One that cannot be read is listed by its id alone, so that pages go on. */
    if (player_decode(value, entity, heads->arena, &player) == ERR_OK) {
        head->version = player.version;
        head->ledger_seq = player.ledger_seq;
    } else {
        damage_note(heads->damage, entity, PLAYER_DAMAGE);
    }
    return heads->count < heads->max;
}

/* Mail comes to players who never wrote anything, and have no row of their own. */
static bool take_mailbox(void *user, struct slice key, struct slice value)
{
    struct heads *heads = user;
    struct slice entity = arena_copy(heads->arena, (struct slice){ key.data + 1, key.size - 1 });
    player_head *head = add_head(heads, entity);

    if (mailbox_row_decode(value, &head->mail_count) != ERR_OK)
        damage_note(heads->damage, entity, MAILBOX_DAMAGE);
    return heads->count < heads->max;
}

/* From behind the cursor on. */
static err heads_read(struct read_context *context, const char *cursor, struct heads *heads,
                      void (*key_of)(struct row_key *key, struct slice entity),
                      bool (*take)(void *user, struct slice key, struct slice value))
{
    struct row_key prefix, after;

    heads->arena = context->arena;
    heads->damage = context->damage;
    heads->heads = arena_alloc(context->arena, sizeof *heads->heads * heads->max);
    key_of(&prefix, SLICE_LITERAL(PLAYER_PREFIX));
    after = prefix;
    if (cursor[0] != 0)
        key_of(&after, entity_of_player(context->arena, cursor));
    struct state_range range = { row_key_slice(&prefix), row_key_slice(&after),
                                 (uint32_t)heads->max };
    return state_range_visit(context->state, &range, context->need, take, heads);
}

/* The first `size` of both, each player once. Returns whether there are more. */
static bool merge(const struct heads *players, const struct heads *mailboxes, uint32_t size,
                  list_response *response)
{
    size_t at = 0, mail_at = 0;

    while (at < players->count || mail_at < mailboxes->count) {
        player_head *player = at < players->count ? players->heads[at] : NULL;
        player_head *mailbox = mail_at < mailboxes->count ? mailboxes->heads[mail_at] : NULL;
        int order = player == NULL    ? 1
                    : mailbox == NULL ? -1
                                      : strcmp(player->player_id, mailbox->player_id);
        if (response->n_players == size)
            return true;
        if (order == 0)
            player->mail_count = mailbox->mail_count;
        response->players[response->n_players++] = order <= 0 ? player : mailbox;
        at += order <= 0;
        mail_at += order >= 0;
    }
    return false;
}

static err admin_list_players_read(struct read_context *context, const ProtobufCMessage *message,
                                   ProtobufCMessage *reply)
{
    const Holdfast__V1__ListPlayersRequest *request =
        (const Holdfast__V1__ListPlayersRequest *)message;
    list_response *response = (list_response *)reply;
    uint32_t size = request->page_size > 0 ? request->page_size : PAGE_SIZE_DEFAULT;
    /* One more, to know whether there is another page. */
    struct heads players = { .max = size + 1 }, mailboxes = { .max = size + 1 };

    if (request->page_size > PAGE_SIZE_MAX)
        return refuse_number(context->arena, context->refusal, "page_size", "1 to 1000, or 0",
                             request->page_size);
    if (request->cursor[0] != 0 && player_id_check(slice_from_text(request->cursor)) != ERR_OK)
        return refuse_invalid(context->arena, context->refusal, "cursor",
                              "next_cursor of the page before", "");
    response->players = arena_alloc(context->arena, sizeof *response->players * size);
    err e = heads_read(context, request->cursor, &players, row_key_player, take_player);
    err mail = heads_read(context, request->cursor, &mailboxes, row_key_mailbox, take_mailbox);
    if (e != ERR_OK || mail != ERR_OK)
        return e != ERR_OK ? e : mail;
    if (merge(&players, &mailboxes, size, response))
        response->next_cursor = response->players[size - 1]->player_id;
    response->as_of = as_of_text(context);
    return ERR_OK;
}

const struct handler admin_list_players_handler = {
    .method = METHOD_LIST_PLAYERS,
    .read = admin_list_players_read,
};
