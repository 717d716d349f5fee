#include "node/core/player/player.h"

#include <string.h>

#include "runtime/base/check.h"

#define PLAYER_VERSION 3u /* Version 1 had no sections_gone_version, 2 nothing set aside. */
/* Beside the version: a transaction holds the player, and its name follows. */
#define HELD_FLAG 0x80u

void player_init(struct player *player, struct slice entity)
{
    memset(player, 0, sizeof *player);
    player->entity = entity;
}

bool balance_is_sound(int64_t amount)
{
    return amount >= -BALANCE_ROW_MAX && amount <= BALANCE_ROW_MAX;
}

static void read_balances(struct reader *reader, struct arena *arena, struct player *player)
{
    uint32_t count = read_u8(reader);

    if (count > CURRENCIES_MAX) {
        reader->bad = true;
        return;
    }
    player->balance_count = count;
    if (count == 0)
        return;
    player->balances = arena_alloc(arena, sizeof *player->balances * count);
    for (uint32_t i = 0; i < count; i++) {
        player->balances[i].currency = read_raw(reader, read_u8(reader));
        reader->bad |= player->balances[i].currency.size == 0 ||
                       player->balances[i].currency.size > CURRENCY_NAME_BYTES_MAX;
        player->balances[i].amount = (int64_t)read_u64(reader);
        reader->bad |= !balance_is_sound(player->balances[i].amount);
        player->balances[i].reserved = 0;
        player->balances[i].sent = 0;
    }
}

static bool is_set_aside(const struct balance *balance)
{
    return balance->reserved != 0 || balance->sent != 0;
}

/* Few players have anything set aside, so only those balances are told, by their places. */
static void read_set_aside(struct reader *reader, struct player *player)
{
    uint32_t next = 0;

    player->reservation_count = read_u8(reader);
    uint32_t count = read_u8(reader);
    for (uint32_t i = 0; i < count; i++) {
        uint32_t place = read_u8(reader);
        if (reader->bad || place < next || place >= player->balance_count) {
            reader->bad = true;
            return;
        }
        player->balances[place].reserved = (int64_t)read_u64(reader);
        player->balances[place].sent = (int64_t)read_u64(reader);
        reader->bad |= !is_set_aside(&player->balances[place]);
        next = place + 1;
    }
}

static void put_set_aside(const struct player *player, struct buf *out)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < player->balance_count; i++)
        count += is_set_aside(&player->balances[i]);
    buf_put_u8(out, (uint8_t)player->reservation_count);
    buf_put_u8(out, (uint8_t)count);
    for (uint32_t i = 0; i < player->balance_count && count > 0; i++) {
        const struct balance *balance = &player->balances[i];
        if (!is_set_aside(balance))
            continue;
        buf_put_u8(out, (uint8_t)i);
        buf_put_u64(out, (uint64_t)balance->reserved);
        buf_put_u64(out, (uint64_t)balance->sent);
    }
}

err player_decode(struct slice row, struct slice entity, struct arena *arena,
                  struct player *ret_player)
{
    struct reader reader = reader_from(row);
    struct player player;

    player_init(&player, entity);
    uint8_t head = read_u8(&reader);
    uint8_t version = head & (uint8_t)~HELD_FLAG;
    if (version == 0 || version > PLAYER_VERSION)
        return ERR_CORRUPT;
    if ((head & HELD_FLAG) != 0) {
        player.txn.home = read_u16(&reader);
        player.txn.destination = read_u16(&reader);
        player.txn.seq = read_u64(&reader);
        if (player.txn.seq == 0)
            return ERR_CORRUPT;
    }
    player.version = read_u64(&reader);
    player.created_at_ms = read_u64(&reader);
    session_decode(&reader, &player.session);
    player.ledger_seq = read_u64(&reader);
    if (player.ledger_seq > 0) {
        struct slice hash = read_raw(&reader, LEDGER_HASH_BYTES);
        if (hash.size == LEDGER_HASH_BYTES)
            memcpy(player.ledger_hash, hash.data, LEDGER_HASH_BYTES);
    }
    player.item_count = read_u32(&reader);
    read_balances(&reader, arena, &player);
    if (version >= 2)
        player.sections_gone_version = read_u64(&reader);
    if (version >= 3)
        read_set_aside(&reader, &player);
    player.section_count = read_u8(&reader);
    player.section_bytes = read_raw(&reader, reader_left(&reader));
    if (reader_finish(&reader) != ERR_OK || player.section_count > SECTIONS_MAX ||
        player.reservation_count > RESERVATIONS_MAX)
        return ERR_CORRUPT;
    *ret_player = player;
    return ERR_OK;
}

static void put_sections(const struct player *player, struct buf *out)
{
    buf_put_u8(out, (uint8_t)player->section_count);
    if (!player->sections_loaded) {
        buf_append(out, player->section_bytes.data, player->section_bytes.size);
        return;
    }
    for (uint32_t i = 0; i < player->section_count; i++) {
        const struct section_info *section = &player->sections[i];
        buf_put_short(out, section->name);
        buf_put_u32(out, section->schema_version);
        buf_put_u32(out, section->size_bytes);
        buf_put_u64(out, section->version);
        buf_put_u64(out, section->last_write_ms);
    }
}

void player_encode(const struct player *player, struct buf *out)
{
    CHECK(player->balance_count <= CURRENCIES_MAX);
    CHECK(player->section_count <= SECTIONS_MAX);
    CHECK(player->reservation_count <= RESERVATIONS_MAX);
    buf_put_u8(out, PLAYER_VERSION | (player->txn.seq != 0 ? HELD_FLAG : 0));
    if (player->txn.seq != 0) {
        buf_put_u16(out, (uint16_t)player->txn.home);
        buf_put_u16(out, (uint16_t)player->txn.destination);
        buf_put_u64(out, player->txn.seq);
    }
    buf_put_u64(out, player->version);
    buf_put_u64(out, player->created_at_ms);
    session_encode(&player->session, out);
    buf_put_u64(out, player->ledger_seq);
    if (player->ledger_seq > 0)
        buf_append(out, player->ledger_hash, LEDGER_HASH_BYTES);
    buf_put_u32(out, player->item_count);
    buf_put_u8(out, (uint8_t)player->balance_count);
    for (uint32_t i = 0; i < player->balance_count; i++) {
        buf_put_short(out, player->balances[i].currency);
        buf_put_u64(out, (uint64_t)player->balances[i].amount);
    }
    buf_put_u64(out, player->sections_gone_version);
    put_set_aside(player, out);
    put_sections(player, out);
}

struct slice player_id(const struct player *player)
{
    const uint8_t *colon = memchr(player->entity.data, ':', player->entity.size);

    CHECK(colon != NULL);
    size_t kind = (size_t)(colon - player->entity.data) + 1;
    return (struct slice){ colon + 1, player->entity.size - kind };
}

struct balance *player_find_balance(const struct player *player, struct slice currency)
{
    for (uint32_t i = 0; i < player->balance_count; i++) {
        if (slice_equal(player->balances[i].currency, currency))
            return &player->balances[i];
    }
    return NULL;
}

struct balance *player_get_balance(struct player *player, struct arena *arena,
                                   struct slice currency)
{
    struct balance *found = player_find_balance(player, currency);

    if (found != NULL)
        return found;
    CHECK(player->balance_count < CURRENCIES_MAX);
    struct balance *grown = arena_alloc(arena, sizeof *grown * (player->balance_count + 1));
    uint32_t place = 0;
    while (place < player->balance_count &&
           slice_compare(player->balances[place].currency, currency) < 0) {
        grown[place] = player->balances[place];
        place++;
    }
    grown[place] = (struct balance){ .currency = currency };
    for (uint32_t i = place; i < player->balance_count; i++)
        grown[i + 1] = player->balances[i];
    player->balances = grown;
    player->balance_count++;
    return &grown[place];
}

err player_sections(struct player *player, struct arena *arena)
{
    struct reader reader = reader_from(player->section_bytes);

    if (player->sections_loaded)
        return ERR_OK;
    player->sections = arena_alloc(arena, sizeof *player->sections * SECTIONS_MAX);
    for (uint32_t i = 0; i < player->section_count; i++) {
        struct section_info *section = &player->sections[i];
        section->name = read_raw(&reader, read_u8(&reader));
        section->schema_version = read_u32(&reader);
        section->size_bytes = read_u32(&reader);
        section->version = read_u64(&reader);
        section->last_write_ms = read_u64(&reader);
    }
    if (reader_finish(&reader) != ERR_OK)
        return ERR_CORRUPT;
    player->sections_loaded = true;
    return ERR_OK;
}

struct section_info *player_find_section(const struct player *player, struct slice name)
{
    CHECK(player->sections_loaded);
    for (uint32_t i = 0; i < player->section_count; i++) {
        if (slice_equal(player->sections[i].name, name))
            return &player->sections[i];
    }
    return NULL;
}

struct section_info *player_add_section(struct player *player, struct slice name)
{
    CHECK(player->sections_loaded);
    CHECK(player->section_count < SECTIONS_MAX);
    uint32_t place = 0;
    while (place < player->section_count && slice_compare(player->sections[place].name, name) < 0)
        place++;
    struct section_info *section = &player->sections[place];
    memmove(section + 1, section, sizeof *section * (player->section_count - place));
    *section = (struct section_info){ .name = name, .version = player->sections_gone_version };
    player->section_count++;
    return section;
}

void player_remove_section(struct player *player, struct section_info *section)
{
    CHECK(player->sections_loaded);
    size_t place = (size_t)(section - player->sections);
    CHECK(place < player->section_count);
    if (section->version > player->sections_gone_version)
        player->sections_gone_version = section->version;
    player->section_count--;
    memmove(section, section + 1, sizeof *section * (player->section_count - place));
}

uint64_t player_sections_bytes(const struct player *player)
{
    uint64_t bytes = 0;

    CHECK(player->sections_loaded);
    for (uint32_t i = 0; i < player->section_count; i++)
        bytes += player->sections[i].size_bytes;
    return bytes;
}
