#include "node/core/document/online.h"

#include <stdlib.h>
#include <string.h>

#include "node/core/codec/arena_proto.h"
#include "node/core/codec/proto_scan.h"
#include "node/core/codec/text_rule.h"
#include "runtime/base/check.h"

#define ENTITY_PREFIX     "player:"
#define FIELD_INCARNATION 3u /* Of PresenceConnection. */

struct online_player {
    struct merge_key *key; /* A reference. */
    uint64_t at;           /* Hybrid time of the latest connection. */
    uint64_t first;        /* The same when the player came online; 0: not known. */
    uint64_t expires_ms;   /* Of connections with a time, the last end. */
    uint32_t server_count;
    struct incarnation servers[]; /* By which the others live. */
};

/* ---- the order ---- */

/* Below 0: the slot comes before the place. */
static int compare(const struct online_slot *slot, const struct online_place *place)
{
    if (slot->at != place->at)
        return slot->at < place->at ? -1 : 1;
    return slice_compare(place->entity, merge_key_entity(slot->player->key));
}

static struct online_place place_of(const struct online_player *player)
{
    return (struct online_place){ player->at, merge_key_entity(player->key) };
}

/* The first slot that is not before the place; with `behind`, that is behind it. */
static uint32_t find(const struct online *online, const struct online_place *place, bool behind)
{
    uint32_t low = 0, high = online->count;

    while (low < high) {
        uint32_t middle = low + (high - low) / 2;

        if (compare(&online->slots[middle], place) < (behind ? 1 : 0))
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* "player:" is not in it. */
static struct slice player_id_of(const struct merge_key *key)
{
    struct slice entity = merge_key_entity(key);
    size_t prefix = sizeof ENTITY_PREFIX - 1;

    return (struct slice){ entity.data + prefix, entity.size - prefix };
}

/* Keys come from disks and from other members, too. */
static bool is_of_a_player(const struct merge_key *key)
{
    struct slice entity = merge_key_entity(key);
    size_t prefix = sizeof ENTITY_PREFIX - 1;

    return presence_is(key) && entity.size > prefix &&
           memcmp(entity.data, ENTITY_PREFIX, prefix) == 0 &&
           player_id_check(player_id_of(key)) == ERR_OK;
}

/* ---- changes ---- */

static void grow(struct online *online)
{
    if (online->count < online->capacity)
        return;
    online->capacity = online->capacity * 2 + 16;
    online->slots = mem_realloc(online->slots, online->capacity * sizeof *online->slots);
}

static void add(struct online *online, struct online_player *player)
{
    const struct online_place place = place_of(player);
    uint32_t at = online->count;

    grow(online);
    if (at > 0 && online->slots[at - 1].at >= player->at) /* Else it was set last, as most are. */
        at = find(online, &place, false);
    memmove(online->slots + at + 1, online->slots + at,
            (online->count - at) * sizeof *online->slots);
    online->slots[at] = (struct online_slot){ player->at, player };
    online->count++;
}

static void player_free(struct online_player *player)
{
    merge_key_unref(player->key);
    free(player);
}

static void drop(struct online *online, struct online_player *player)
{
    const struct online_place place = place_of(player);
    uint32_t at = find(online, &place, false);

    CHECK(at < online->count && online->slots[at].player == player);
    online->count--;
    memmove(online->slots + at, online->slots + at + 1,
            (online->count - at) * sizeof *online->slots);
    player_free(player);
}

/* By what the connection lives goes into the player; what cannot be read lives by nothing. */
static void add_life(struct online_player *player, const struct merge_cell *cell)
{
    struct incarnation server;
    struct slice text;

    if (player->at < cell->hlc)
        player->at = cell->hlc;
    if (proto_scan_bytes(merge_cell_value(cell), FIELD_INCARNATION, &text) && text.size > 0) {
        if (incarnation_parse(text, &server) == ERR_OK)
            player->servers[player->server_count++] = server;
    } else if (player->expires_ms < cell->expires_ms) {
        player->expires_ms = cell->expires_ms;
    }
}

/* The cell that is shown of those at one path, of which two sides of a cut may have set one each;
 * `*at` goes on to the last of them. */
static const struct merge_cell *shown_at(const struct merge_record *record, uint32_t *at)
{
    const struct merge_cell *shown = record->cells[*at];

    while (*at + 1 < record->count &&
           slice_equal(merge_cell_path(record->cells[*at + 1]), merge_cell_path(shown))) {
        ++*at;
        if (merge_cell_order(record->cells[*at], shown) > 0)
            shown = record->cells[*at];
    }
    return shown;
}

static struct online_player *player_new(struct merge_key *key, const struct merge_record *record)
{
    struct online_player *player =
        mem_zalloc(sizeof *player + record->count * sizeof *player->servers);

    player->key = merge_key_ref(key);
    for (uint32_t i = 0; i < record->count; i++)
        add_life(player, shown_at(record, &i));
    player->first = player->at;
    return player;
}

void online_deinit(struct online *online)
{
    for (uint32_t i = 0; i < online->count; i++)
        player_free(online->slots[i].player);
    free(online->slots);
    *online = (struct online){ 0 };
}

static void on_gone(void *user, struct merge_row *row)
{
    if (row->followed != NULL)
        drop(user, row->followed);
    row->followed = NULL;
}

static void on_changed(void *user, struct merge_row *row)
{
    const struct online_player *before = row->followed;

    if (before == NULL && !is_of_a_player(row->key))
        return;
    struct online_player *after = row->record.count > 0 ? player_new(row->key, &row->record) : NULL;

    if (before != NULL && after != NULL) {
        after->first = before->first;
        if (after->at < before->at) /* One of several connections went: no reader is passed by. */
            after->at = before->at;
    }
    on_gone(user, row);
    row->followed = after;
    if (after != NULL)
        add(user, after);
}

static int order(const void *a, const void *b)
{
    const struct online_slot *left = a, *right = b;
    const struct online_place place = place_of(right->player);

    return compare(left, &place);
}

/* Since when a player has been online is not on the disk. */
void online_begin(struct online *online, struct merge_store *store)
{
    CHECK(online->count == 0 && store->follower.changed == NULL);
    for (uint32_t i = 0; i < store->count; i++) {
        struct merge_row *row = &store->rows[i];

        if (!is_of_a_player(row->key) || row->record.count == 0)
            continue;
        struct online_player *player = player_new(row->key, &row->record);

        player->first = 0;
        row->followed = player;
        grow(online);
        online->slots[online->count++] = (struct online_slot){ player->at, player };
    }
    if (online->count > 0)
        qsort(online->slots, online->count, sizeof *online->slots, order);
    store->follower =
        (struct merge_follower){ .changed = on_changed, .gone = on_gone, .user = online };
}

/* ---- who is shown ---- */

static bool is_shown(const struct online_player *player, const struct online_filter *filter)
{
    bool lives = player->expires_ms > filter->now_ms;

    for (uint32_t i = 0; !lives && i < player->server_count; i++)
        lives = filter->living == NULL ||
                living_state_of(filter->living, player->servers[i], filter->now_ms) != LIVING_DEAD;
    return lives &&
           (filter->hides == NULL || !filter->hides(filter->user, merge_key_entity(player->key)));
}

uint64_t online_count(const struct online *online, const struct online_filter *filter)
{
    uint64_t count = 0;

    for (uint32_t i = 0; i < online->count; i++)
        count += is_shown(online->slots[i].player, filter);
    return count;
}

void online_check(const struct online *online)
{
    CHECK(online->count <= online->capacity);
    for (uint32_t i = 0; i < online->count; i++) {
        const struct online_place place = place_of(online->slots[i].player);

        CHECK(online->slots[i].at == online->slots[i].player->at);
        CHECK(i == 0 || compare(&online->slots[i - 1], &place) < 0);
    }
}

/* ---- pages ---- */

/* Places `next` at the first player behind the place, or at `end`. */
static void begin(const struct online_ask *ask, struct online_part *part)
{
    const struct online *online = part->online;

    part->end = ask->upwards ? online->count : 0;
    if (ask->upwards)
        part->next = find(online, &ask->behind, true);
    else
        part->next =
            ask->behind.entity.size == 0 ? online->count : find(online, &ask->behind, false);
}

/* NULL: it is through. Downwards `next` is one above. */
static const struct online_slot *head(const struct online_ask *ask, const struct online_part *part)
{
    if (part->next == part->end)
        return NULL;
    return &part->online->slots[ask->upwards ? part->next : part->next - 1];
}

/* Whether the head of `a` comes first; one that is through comes last. */
static bool goes_first(const struct online_ask *ask, const struct online_part *a,
                       const struct online_part *b)
{
    const struct online_slot *mine = head(ask, a), *other = head(ask, b);

    if (mine == NULL || other == NULL)
        return mine != NULL;
    const struct online_place place = place_of(other->player);

    return ask->upwards ? compare(mine, &place) < 0 : compare(mine, &place) > 0;
}

/* A heap of the parts by their heads: what stands at `at` sinks to its place. */
static void sink(const struct online_ask *ask, struct online_part *parts, uint32_t count,
                 uint32_t at)
{
    for (;;) {
        uint32_t best = at;

        for (uint32_t child = 2 * at + 1; child <= 2 * at + 2 && child < count; child++) {
            if (goes_first(ask, &parts[child], &parts[best]))
                best = child;
        }
        if (best == at)
            return;
        struct online_part part = parts[at];

        parts[at] = parts[best];
        parts[best] = part;
        at = best;
    }
}

/* NULL: none of the player's connections is shown. */
static Holdfast__V1__OnlinePlayer *player_of(const struct online_ask *ask,
                                             const struct online_part *part,
                                             const struct online_player *player)
{
    struct document_context context = { .arena = ask->arena,
                                        .living = ask->filter->living,
                                        .now_ms = ask->filter->now_ms };
    const struct merge_record *record = merge_store_find(&part->replica->store, player->key);
    Holdfast__V1__OnlinePlayer *told = arena_alloc(ask->arena, sizeof *told);
    struct presence_parts parts;

    holdfast__v1__online_player__init(told);
    CHECK(record != NULL); /* The follower was told of it. */
    presence_parts_of(&context, record, &parts);
    for (uint32_t i = 0; i < parts.count; i++) {
        const Holdfast__V1__PresenceConnection *connection = parts.list[i].connection;

        if (connection == NULL)
            continue;
        told->connections++;
        if (told->last_set_at_ms < connection->set_at_ms)
            told->last_set_at_ms = connection->set_at_ms;
    }
    told->player_id = arena_text(ask->arena, player_id_of(player->key));
    return told->connections > 0 ? told : NULL;
}

static void look(const struct online_ask *ask, const struct online_part *part,
                 const struct online_player *player,
                 Holdfast__Internal__V1__ListNodeOnlineResponse *response)
{
    if ((ask->upwards && player->at == player->first) || !is_shown(player, ask->filter))
        return;
    Holdfast__V1__OnlinePlayer *told = player_of(ask, part, player);

    if (told == NULL)
        return;
    Holdfast__Internal__V1__OnlineRow *row = arena_alloc(ask->arena, sizeof *row);

    holdfast__internal__v1__online_row__init(row);
    row->at = player->at;
    row->player = told;
    response->rows[response->n_rows++] = row;
}

void online_page(const struct online_ask *ask, struct online_part *parts, uint32_t count,
                 Holdfast__Internal__V1__ListNodeOnlineResponse *response)
{
    const struct online_player *player = NULL;

    for (uint32_t i = 0; i < count; i++)
        begin(ask, &parts[i]);
    for (uint32_t i = count; i > 0; i--)
        sink(ask, parts, count, i - 1);
    for (uint32_t looks = 0; looks < ONLINE_LOOKS_MAX && response->n_rows < ask->limit; looks++) {
        const struct online_slot *next = count > 0 ? head(ask, &parts[0]) : NULL;

        if (next == NULL)
            return;
        player = next->player;
        look(ask, &parts[0], player, response);
        if (ask->upwards)
            parts[0].next++;
        else
            parts[0].next--;
        sink(ask, parts, count, 0);
    }
    if (player == NULL)
        return;
    response->more = true;
    response->at = player->at;
    response->player_id = arena_text(ask->arena, player_id_of(player->key));
}
