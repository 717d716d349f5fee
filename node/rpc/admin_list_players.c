#include "holdfast/v1/admin.pb-c.h"
#include "idl/method.h"
#include "node/core/codec/arena_proto.h"
#include "node/core/codec/text_rule.h"
#include "node/core/handler/refusal.h"
#include "node/core/profile/profile.h"
#include "node/core/rows/rows.h"
#include "node/rpc/methods.h"
#include "runtime/base/check.h"

#define PAGE_SIZE_DEFAULT 500u
#define PAGE_SIZE_MAX     1000u
#define PLAYER_PREFIX     "player:"

struct page {
    struct arena *arena;
    struct damage *damage;
    Holdfast__V1__ListPlayersResponse *response;
    uint32_t size;
    bool more;
};

static bool take(void *user, struct slice key, struct slice value)
{
    struct page *page = user;

    if (page->response->n_players == page->size) {
        page->more = true;
        return false;
    }
    struct slice entity = arena_copy(page->arena, (struct slice){ key.data + 1, key.size - 1 });
    struct player player;
    Holdfast__V1__PlayerHead *head = (Holdfast__V1__PlayerHead *)arena_message(
        page->arena, &holdfast__v1__player_head__descriptor);

    /* One that cannot be read is listed by its id alone, so that pages go on. */
    if (player_decode(value, entity, page->arena, &player) != ERR_OK) {
        player_init(&player, entity);
        damage_note(page->damage, entity, PLAYER_DAMAGE);
    }
    head->player_id = arena_text(page->arena, player_id(&player));
    head->version = player.version;
    head->ledger_seq = player.ledger_seq;
    page->response->players[page->response->n_players++] = head;
    return true;
}

static err admin_list_players_read(struct read_context *context, const ProtobufCMessage *message,
                                   ProtobufCMessage *reply)
{
    const Holdfast__V1__ListPlayersRequest *request =
        (const Holdfast__V1__ListPlayersRequest *)message;
    Holdfast__V1__ListPlayersResponse *response = (Holdfast__V1__ListPlayersResponse *)reply;
    uint32_t size = request->page_size > 0 ? request->page_size : PAGE_SIZE_DEFAULT;
    struct page page = { context->arena, context->damage, response, size, false };
    struct row_key prefix;
    struct row_key after;

    if (request->page_size > PAGE_SIZE_MAX)
        return refuse_number(context->arena, context->refusal, "page_size", "1 to 1000, or 0",
                             request->page_size);
    row_key_player(&prefix, SLICE_LITERAL(PLAYER_PREFIX));
    after = prefix;
    if (request->cursor[0] != 0) {
        if (player_id_check(slice_from_text(request->cursor)) != ERR_OK)
            return refuse_invalid(context->arena, context->refusal, "cursor",
                                  "next_cursor of the page before", "");
        row_key_player(&after, entity_of_player(context->arena, request->cursor));
    }
    struct state_range range = { row_key_slice(&prefix), row_key_slice(&after),
                                 size + 1 }; /* One more, to know whether there is another page. */
    response->players = arena_alloc(context->arena, sizeof *response->players * size);
    err e = state_range_visit(context->state, &range, context->need, take, &page);
    if (e != ERR_OK)
        return e;
    if (page.more)
        response->next_cursor = response->players[size - 1]->player_id;
    response->as_of = as_of_text(context);
    return ERR_OK;
}

const struct handler admin_list_players_handler = {
    .method = METHOD_LIST_PLAYERS,
    .read = admin_list_players_read,
};
