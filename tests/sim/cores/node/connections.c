/*
 * Presence of players at two members (node/core/document): connections are set by servers or for a
 * time, cleared, swept and lost with their servers, at members that know of each other's writes and
 * that do not; each read, and each list of who is online, tells those that live, the latest first.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "idl/error_code.h"
#include "idl/method.h"
#include "node/core/codec/arena_proto.h"
#include "node/core/document/fixture.h"
#include "node/core/document/online.h"
#include "node/core/mergeable/disk.h"
#include "node/core/mergeable/rounds.h"
#include "runtime/base/check.h"
#include "tests/sim/cores/rsim.h"

#define MEMBERS    2u
#define PLAYERS    5u
#define NAMES      19u
#define MOST       16u /* Connections of a player. */
#define PARTS_MAX  400u
#define WRITES_MAX 60u
#define TURNS      110u

/* What became of a game server. */
enum life { LIVES, ENDED, UNTOLD, NEVER };
static const struct {
    const char *text;
    struct incarnation incarnation;
    enum life begins;
} servers[] = {
    { "1-10", { 1, 10 }, LIVES },    { "1-20", { 1, 20 }, LIVES },
    { "1-30", { 1, 30 }, LIVES },    { "1-40", { 1, 40 }, LIVES },
    { "1-45", { 1, 45 }, NEVER },    { "1-100", { 1, 100 }, NEVER },
    { "1-101", { 1, 101 }, UNTOLD }, { "1-900", { 1, 900 }, UNTOLD },
};
#define SERVERS ARRAY_SIZE(servers)

/* One connection as one write set it. */
struct part {
    uint32_t write, player, name, server; /* SERVERS: it lives for its time. */
    uint64_t at_ms, ends_ms;
    const char *status;
    uint64_t gone; /* Writes that took it away. */
};

struct plaza {
    struct rsim *sim;
    struct pair pair;
    struct online online[MEMBERS];
    enum life lives[SERVERS];
    uint32_t part_count, write_count, hidden; /* PLAYERS: no player is hidden. */
    struct part parts[PARTS_MAX];
    uint64_t known[MEMBERS];
    uint32_t few, names; /* Players who are set, by so many names. */
};

static char *player_at(struct plaza *p, uint32_t player)
{
    return arena_printf(&p->sim->arena, "ada%u", player);
}

static char *name_at(struct plaza *p, uint32_t name)
{
    return arena_printf(&p->sim->arena, "c%02u:._-Z", name);
}

/* ---- what is to be shown ---- */

static bool stands(const struct plaza *p, uint32_t member, const struct part *part)
{
    return (p->known[member] >> part->write & 1) != 0 && (part->gone & p->known[member]) == 0;
}

static bool is_dead(const struct plaza *p, const struct part *part)
{
    return part->server < SERVERS && p->lives[part->server] != LIVES &&
           p->lives[part->server] != UNTOLD;
}

static bool is_over(const struct plaza *p, const struct part *part)
{
    return part->ends_ms != 0 && part->ends_ms <= p->pair.now_ms;
}

/* Of each name the latest; NULL: none, or it is shown no more. How many. */
static uint32_t choose(const struct plaza *p, uint32_t member, uint32_t player,
                       const struct part *ret_shown[NAMES])
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < NAMES; i++)
        ret_shown[i] = NULL;
    for (uint32_t i = 0; i < p->part_count; i++) {
        const struct part *part = &p->parts[i], **at = &ret_shown[part->name];

        if (part->player == player && stands(p, member, part) &&
            (*at == NULL || (*at)->at_ms < part->at_ms))
            *at = part;
    }
    for (uint32_t i = 0; i < NAMES; i++) {
        const struct part *part = ret_shown[i];

        if (part != NULL && (is_dead(p, part) || is_over(p, part)))
            ret_shown[i] = NULL;
        count += ret_shown[i] != NULL;
    }
    return count;
}

/* A write takes away what servers left that ended, where that was set last. */
static void drop_dead(struct plaza *p, uint32_t member, uint32_t player, uint32_t write)
{
    uint64_t before = p->known[member] & ~(1ull << write);

    for (uint32_t name = 0; name < NAMES; name++) {
        const struct part *last = NULL;

        for (uint32_t i = 0; i < p->part_count; i++) {
            const struct part *part = &p->parts[i];

            if (part->player == player && part->name == name && stands(p, member, part) &&
                (last == NULL || last->at_ms < part->at_ms))
                last = part;
        }
        for (uint32_t i = 0; last != NULL && is_dead(p, last) && i < p->part_count; i++) {
            struct part *part = &p->parts[i];

            if (part->player == player && part->name == name && (before >> part->write & 1) != 0)
                part->gone |= 1ull << write;
        }
    }
}

static uint32_t write_new(struct plaza *p, uint32_t member)
{
    p->known[member] |= 1ull << p->write_count;
    return p->write_count++;
}

/* ---- members and calls ---- */

static void exchange(struct plaza *p)
{
    fixture_exchange(p->pair.replicas, p->pair.now_ms);
    p->known[0] |= p->known[1];
    p->known[1] = p->known[0];
}

static err call(struct plaza *p, uint32_t member, uint32_t method, const ProtobufCMessage *request)
{
    const struct refusal *refusal = &p->pair.refusal;
    Holdfast__V1__ErrorDetail *detail = &p->sim->detail;
    err e = pair_call(&p->pair, (int)member, method, request);

    merge_durable(p->pair.replicas[member], p->pair.replicas[member]->log_end);
    holdfast__v1__error_detail__init(detail);
    detail->code = refusal->code;
    detail->message = text_lend(refusal->message != NULL ? refusal->message : "");
    detail->field = text_lend(refusal->field != NULL ? refusal->field : "");
    detail->limit = text_lend(refusal->limit != NULL ? refusal->limit : "");
    detail->value = text_lend(refusal->value != NULL ? refusal->value : "");
    PROMISE(p->sim, (e == ERR_OK) == (refusal->code == 0), "%d with the code %d", (int)e,
            (int)refusal->code);
    for (uint32_t i = 0; i < MEMBERS; i++)
        online_check(&p->online[i]);
    living_check(&p->pair.living);
    return e;
}

static void refused(struct plaza *p, err e, Holdfast__V1__ErrorCode code, const char *field)
{
    PROMISE(p->sim, e != ERR_OK, "what is to be refused with the code %d is carried out",
            (int)code);
    rsim_refused(p->sim, code, field);
    p->sim->counts.connections_refused++;
}

static char *op_id(struct plaza *p)
{
    return arena_printf(&p->sim->arena, "key:%" PRIu64, rsim_next(p->sim));
}

/* ---- reads ---- */

static void check_shown(struct plaza *p, const Holdfast__V1__Presence *told, uint32_t player,
                        const struct part *const shown[NAMES])
{
    PROMISE(p->sim, strcmp(told->player_id, player_at(p, player)) == 0, "another player is told");
    PROMISE(p->sim, told->last_set_at_ms == told->connections[0]->set_at_ms,
            "the last time is not the first connection's");
    for (size_t i = 0; i < told->n_connections; i++) {
        const Holdfast__V1__PresenceConnection *connection = told->connections[i];
        const struct part *part = NULL;

        for (uint32_t k = 0; k < NAMES && part == NULL; k++)
            part = strcmp(connection->connection, name_at(p, k)) == 0 ? shown[k] : NULL;
        PROMISE(p->sim, part != NULL, "%s is told, and is gone", connection->connection);
        PROMISE(p->sim, i == 0 || told->connections[i - 1]->set_at_ms > connection->set_at_ms,
                "an earlier connection stands before a later one");
        PROMISE(p->sim,
                (uint64_t)connection->set_at_ms == part->at_ms &&
                    (uint64_t)connection->expires_at_ms == part->ends_ms &&
                    strcmp(connection->status, part->status) == 0 &&
                    strcmp(connection->incarnation,
                           part->server < SERVERS ? servers[part->server].text : "") == 0,
                "%s is told otherwise than it was set", connection->connection);
    }
}

static void get_turn(struct plaza *p, uint32_t member, uint32_t player)
{
    Holdfast__V1__GetPresenceRequest request = HOLDFAST__V1__GET_PRESENCE_REQUEST__INIT;
    const struct part *shown[NAMES];
    uint32_t count = choose(p, member, player, shown);

    p->pair.erased = rsim_chance(p->sim, 4);
    count = p->pair.erased ? 0 : count;
    request.player_id = player_at(p, player);
    PROMISE(p->sim, call(p, member, METHOD_GET_PRESENCE, &request.base) == ERR_OK,
            "a read is refused");
    const Holdfast__V1__GetPresenceResponse *told = (void *)arena_unpack(
        &p->sim->arena, &holdfast__v1__get_presence_response__descriptor, p->pair.begun.answer);

    p->pair.erased = false;
    PROMISE(p->sim, told != NULL, "an answer that cannot be read");
    PROMISE(p->sim, (told->presence != NULL ? told->presence->n_connections : 0) == count,
            "%zu connections are told, not %u",
            told->presence != NULL ? told->presence->n_connections : 0, count);
    if (count > 0)
        check_shown(p, told->presence, player, shown);
    p->sim->counts.connections_read++;
}

static bool hides(void *user, struct slice entity)
{
    struct plaza *p = user;

    return p->hidden < PLAYERS &&
           slice_equal(entity, slice_from_text(arena_printf(&p->sim->arena, "player:%s",
                                                            player_at(p, p->hidden))));
}

static void check_row(struct plaza *p, uint32_t member, const Holdfast__V1__OnlinePlayer *row,
                      bool listed[PLAYERS])
{
    const struct part *shown[NAMES];
    uint32_t player = (uint32_t)strtoul(row->player_id + 3, NULL, 10);
    uint64_t last_ms = 0;

    PROMISE(p->sim, player < PLAYERS && player != p->hidden && !listed[player],
            "%s is listed twice, or hidden", row->player_id);
    listed[player] = true;
    uint32_t count = choose(p, member, player, shown);

    PROMISE(p->sim, count == row->connections, "%u connections are listed, not %u",
            row->connections, count);
    for (uint32_t i = 0; i < NAMES; i++) {
        if (shown[i] != NULL && last_ms < shown[i]->at_ms)
            last_ms = shown[i]->at_ms;
    }
    PROMISE(p->sim, row->last_set_at_ms == (int64_t)last_ms, "another time is listed");
}

/* Page by page, as a reader goes on behind the last one of each. */
static void list_turn(struct plaza *p, uint32_t member)
{
    const struct online_filter filter = {
        .living = &p->pair.living, .now_ms = p->pair.now_ms, .hides = hides, .user = p
    };
    struct online_part part = { .online = &p->online[member], .replica = p->pair.replicas[member] };
    bool listed[PLAYERS] = { false };
    Holdfast__Internal__V1__ListNodeOnlineResponse page;
    uint32_t limit = (uint32_t)rsim_between(p->sim, 1, 3);
    uint64_t count = 0, before = UINT64_MAX;
    struct online_ask ask = { .limit = limit, .filter = &filter, .arena = &p->sim->arena };

    p->hidden = (uint32_t)rsim_between(p->sim, 0, 2 * PLAYERS);
    do {
        holdfast__internal__v1__list_node_online_response__init(&page);
        page.rows = arena_alloc(&p->sim->arena, limit * sizeof *page.rows);
        online_page(&ask, &part, 1, &page);
        PROMISE(p->sim, page.n_rows <= limit, "a page is too long");
        for (size_t i = 0; i < page.n_rows; i++) {
            check_row(p, member, page.rows[i]->player, listed);
            PROMISE(p->sim, page.rows[i]->at <= before,
                    "an earlier player stands before a later one");
            before = page.rows[i]->at;
        }
        ask.behind.at = page.at;
        ask.behind.entity = slice_from_text(arena_printf(
            &p->sim->arena, "player:%s", page.player_id != NULL ? page.player_id : ""));
    } while (page.more);
    for (uint32_t i = 0; i < PLAYERS; i++) {
        const struct part *shown[NAMES];
        bool is_shown = i != p->hidden && choose(p, member, i, shown) > 0;

        PROMISE(p->sim, listed[i] == is_shown, "player %u is%s online", i, is_shown ? "" : " not");
        count += is_shown;
    }
    PROMISE(p->sim, online_count(&p->online[member], &filter) == count, "another count is told");
    p->sim->counts.connections_listed++;
}

/* ---- writes ---- */

struct setting {
    const char *connection, *status, *server;
    int64_t ttl_ms;
    const char *wrong; /* The field. */
    Holdfast__V1__ErrorCode code;
};

/* One of its fields past its limit, or at it. */
static void spoil(struct plaza *p, struct setting *setting)
{
    static const char *const bad_names[] = { "",      "a b", "\xc3\xa9", "a/b", "~",
                                             "a\x01", "@",   "[",        "`",   "{" };
    static const char *const bad_servers[] = { "x", "0-1", "1-0", "1", "01-1", "1-" };
    uint64_t size = rsim_about(p->sim, 64), bytes = rsim_about(p->sim, 1024);
    char *text = arena_zalloc(&p->sim->arena, 1100);

    setting->code = CODE(INVALID_ARGUMENT);
    switch (rsim_between(p->sim, 0, 6)) {
    case 0:
        setting->connection = RSIM_PICK(p->sim, bad_names);
        setting->wrong = "connection";
        return;
    case 1:
        memset(text, 'a', size);
        setting->connection = text;
        setting->wrong = size > 64 ? "connection" : "none";
        return;
    case 2:
        memset(text, '1', bytes);
        text[0] = text[bytes - 1] = '"';
        setting->status = text;
        setting->wrong = bytes > 1024 ? "status" : "none";
        return;
    case 3:
        setting->status = "{";
        setting->wrong = "status";
        return;
    case 4:
        setting->server = RSIM_PICK(p->sim, bad_servers);
        setting->ttl_ms = 0;
        setting->wrong = "incarnation";
        return;
    case 5:
        setting->server = servers[0].text;
        setting->ttl_ms = 1000;
        setting->wrong = "ttl_ms";
        return;
    default:
        setting->server = "";
        setting->ttl_ms = rsim_chance(p->sim, 50) ? (int64_t)rsim_about(p->sim, 1000)
                                                  : (int64_t)rsim_about(p->sim, 86400000);
        setting->wrong = setting->ttl_ms < 1000 || setting->ttl_ms > 86400000 ? "ttl_ms" : "none";
        return;
    }
}

static err send_set(struct plaza *p, uint32_t member, char *player, const struct setting *setting)
{
    Holdfast__V1__SetPresenceRequest request = HOLDFAST__V1__SET_PRESENCE_REQUEST__INIT;

    request.player_id = player;
    request.op_id = op_id(p);
    request.connection = text_lend(setting->connection);
    request.status = text_lend(setting->status);
    request.incarnation = text_lend(setting->server);
    request.ttl_ms = setting->ttl_ms;
    return call(p, member, METHOD_SET_PRESENCE, &request.base);
}

/* What is at a limit is set for a player of its own, and gone again. */
static void bad_turn(struct plaza *p, uint32_t member)
{
    struct setting setting = { .connection = "a", .status = "", .server = "", .ttl_ms = 5000 };
    Holdfast__V1__ClearPresenceRequest clear = HOLDFAST__V1__CLEAR_PRESENCE_REQUEST__INIT;
    uint64_t size = rsim_about(p->sim, 100);
    char *player = arena_zalloc(&p->sim->arena, 110);

    spoil(p, &setting);
    err e = send_set(p, member, text_lend("other"), &setting);

    if (strcmp(setting.wrong, "none") != 0)
        refused(p, e, setting.code, setting.wrong);
    else
        PROMISE(p->sim, e == ERR_OK, "what holds each limit is refused: %s",
                p->sim->detail.message);
    clear.player_id = text_lend("other");
    clear.op_id = op_id(p);
    PROMISE(p->sim, call(p, member, METHOD_CLEAR_PRESENCE, &clear.base) == ERR_OK,
            "nothing can be cleared");
    clear.connection = text_lend("a b");
    refused(p, call(p, member, METHOD_CLEAR_PRESENCE, &clear.base), CODE(INVALID_ARGUMENT),
            "connection");
    memset(player, 'p', size);
    clear.connection = text_lend("a");
    clear.player_id = player;
    e = call(p, member, METHOD_CLEAR_PRESENCE, &clear.base);
    if (size > 100)
        refused(p, e, CODE(INVALID_ARGUMENT), "player_id");
    else
        PROMISE(p->sim, e == ERR_OK, "a player id of 100 bytes is refused");
}

static void set_turn(struct plaza *p, uint32_t member)
{
    static const char *const statuses[][2] = { { "", "" },
                                               { " {\"b\":1, \"a\":2}", "{\"a\":2,\"b\":1}" } };
    uint32_t player = (uint32_t)rsim_between(p->sim, 0, p->few - 1);
    uint32_t name = (uint32_t)rsim_between(p->sim, 0, p->names - 1),
             dressed = (uint32_t)rsim_between(p->sim, 0, 1);
    uint32_t server =
        rsim_chance(p->sim, 70) ? (uint32_t)rsim_between(p->sim, 0, SERVERS - 1) : SERVERS;
    const struct part *shown[NAMES];
    uint32_t count = choose(p, member, player, shown);

    if (p->write_count == WRITES_MAX)
        return;
    p->pair.now_ms += rsim_between(p->sim, 1, 9);
    count = choose(p, member, player, shown);
    struct part made = { .player = player,
                         .name = name,
                         .server = server,
                         .at_ms = p->pair.now_ms,
                         .status = statuses[dressed][1] };
    const struct setting setting = { .connection = name_at(p, name),
                                     .status = statuses[dressed][0],
                                     .server = server < SERVERS ? servers[server].text : "",
                                     .ttl_ms = server < SERVERS
                                                   ? 0
                                                   : (int64_t)rsim_between(p->sim, 1000, 3000) };

    made.ends_ms = setting.ttl_ms > 0 ? p->pair.now_ms + (uint64_t)setting.ttl_ms : 0;
    err e = send_set(p, member, player_at(p, player), &setting);

    if (is_dead(p, &made)) {
        refused(p, e, CODE(SERVER_EXPIRED), "incarnation");
        PROMISE(p->sim, strcmp(p->sim->detail.value, setting.server) == 0, "another is told");
        return;
    }
    if (count - (shown[name] != NULL) >= MOST) {
        refused(p, e, CODE(CAPACITY_FULL), NULL);
        PROMISE(p->sim,
                p->pair.refusal.capacity != NULL && p->pair.refusal.capacity->max == MOST &&
                    strcmp(p->pair.refusal.capacity->what, "connections") == 0,
                "another capacity is told");
        p->sim->counts.connections_full++;
        return;
    }
    PROMISE(p->sim, e == ERR_OK && p->pair.begun.ticket != 0, "a connection is refused: %s",
            p->sim->detail.message);
    made.write = write_new(p, member);
    drop_dead(p, member, player, made.write);
    for (uint32_t i = 0; i < p->part_count; i++) {
        struct part *part = &p->parts[i];

        if (part->player == player && stands(p, member, part) && part->name == name)
            part->gone |= 1ull << made.write;
    }
    CHECK(p->part_count < PARTS_MAX);
    p->parts[p->part_count++] = made;
}

static void clear_turn(struct plaza *p, uint32_t member)
{
    Holdfast__V1__ClearPresenceRequest request = HOLDFAST__V1__CLEAR_PRESENCE_REQUEST__INIT;
    uint32_t player = (uint32_t)rsim_between(p->sim, 0, PLAYERS - 1);
    uint32_t name = (uint32_t)rsim_between(p->sim, 0, p->names - 1);
    bool all = rsim_chance(p->sim, 15);

    if (p->write_count == WRITES_MAX)
        return;
    p->pair.now_ms++;
    request.player_id = player_at(p, player);
    request.op_id = op_id(p);
    request.connection = text_lend(all ? "" : name_at(p, name));
    PROMISE(p->sim, call(p, member, METHOD_CLEAR_PRESENCE, &request.base) == ERR_OK,
            "a clear is refused");
    uint32_t write = write_new(p, member);

    for (uint32_t i = 0; i < p->part_count; i++) {
        struct part *part = &p->parts[i];

        if (part->player == player && stands(p, member, part) && (all || part->name == name))
            part->gone |= 1ull << write;
    }
}

/* A server ends: told as expiring, or as gone. It is shown nowhere from then on. */
static void end_turn(struct plaza *p)
{
    uint32_t server = (uint32_t)rsim_between(p->sim, 0, 3);

    if (p->lives[server] == LIVES && rsim_chance(p->sim, 50))
        living_put(&p->pair.living, servers[server].incarnation, true);
    else
        living_remove(&p->pair.living, servers[server].incarnation);
    p->lives[server] = ENDED;
    p->sim->counts.connections_ended++;
}

/* What is shown stays. */
static void sweep_turn(struct plaza *p, uint32_t member)
{
    struct document_context context = pair_context(&p->pair, (int)member);
    struct merge_key *after = NULL, *key = NULL;

    if (p->write_count == WRITES_MAX)
        return;
    p->pair.now_ms++;
    uint32_t write = write_new(p, member);

    for (uint32_t i = 0; i < PLAYERS; i++)
        drop_dead(p, member, i, write);
    while (presence_sweep(&context, after, &key) == ERR_OK) {
        if (after != NULL)
            merge_key_unref(after);
        after = key;
        p->sim->counts.connections_swept++;
    }
    if (after != NULL)
        merge_key_unref(after);
    for (uint32_t i = 0; i < PLAYERS; i++)
        get_turn(p, member, i);
}

static void turn(struct plaza *p)
{
    uint32_t member = (uint32_t)rsim_between(p->sim, 0, MEMBERS - 1);
    uint64_t dice = rsim_between(p->sim, 0, 99);

    if (dice < 45)
        set_turn(p, member);
    else if (dice < 55)
        clear_turn(p, member);
    else if (dice < 70)
        get_turn(p, member, (uint32_t)rsim_between(p->sim, 0, PLAYERS - 1));
    else if (dice < 80)
        list_turn(p, member);
    else if (dice < 88)
        exchange(p);
    else if (dice < 92)
        p->pair.now_ms += rsim_between(p->sim, 1, 1500);
    else if (dice < 95)
        bad_turn(p, member);
    else if (dice < 97)
        end_turn(p);
    else
        sweep_turn(p, member);
}

void room_connections(struct rsim *sim)
{
    struct plaza *p = arena_zalloc(&sim->arena, sizeof *p);

    p->sim = sim;
    p->few = rsim_chance(sim, 50) ? 1 : PLAYERS; /* Many connections of one, or a few of many. */
    p->names = p->few == 1 ? NAMES : 2;
    pair_init(&p->pair);
    for (uint32_t i = 0; i < SERVERS; i++) {
        p->lives[i] = servers[i].begins;
        if (servers[i].begins == LIVES)
            living_put(&p->pair.living, servers[i].incarnation, false);
    }
    for (uint32_t i = 0; i < MEMBERS; i++)
        online_begin(&p->online[i], &p->pair.replicas[i]->store);
    for (uint32_t i = 0; i < TURNS; i++)
        turn(p);
    exchange(p);
    for (uint32_t i = 0; i < MEMBERS; i++) {
        list_turn(p, i);
        for (uint32_t k = 0; k < PLAYERS; k++)
            get_turn(p, i, k);
    }
    pair_deinit(&p->pair);
    for (uint32_t i = 0; i < MEMBERS; i++)
        online_deinit(&p->online[i]);
}
