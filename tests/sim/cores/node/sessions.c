/*
 * Who holds a player (session.proto, docs/sessions.md): servers that take, wait, steal, hold, end,
 * die and are forgotten; grants that are never used, and steals whose grace ends, at the
 * millisecond; and what each server is told by answers, GetSession, GetOperation and renewals.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "idl/error_code.h"
#include "idl/limit.h"
#include "node/core/codec/arena_proto.h"
#include "node/rpc/fixture.h"
#include "runtime/base/check.h"
#include "tests/sim/cores/rsim.h"

#define PLAYERS   2u
#define SERVERS   5u
#define NONE      SERVERS
#define STARTS    128u
#define TURNS     90u
#define GRACE_MS  5000u
#define UNUSED_MS 15000u
#define MODE(x)   HOLDFAST__V1__START_MODE__START_MODE_##x

static const char *const players[PLAYERS] = { "ann", "bob" };
static const char *const servers[SERVERS] = { "1-100", "1-200", "1-300", "2-50", "2-51" };

enum held { FREE, GRANTED, HELD };

struct begun {
    uint32_t player, server;
    char *op_id;
    Holdfast__V1__StartMode mode;
    uint32_t grace_ms;
    Holdfast__V1__OperationState state;
};

struct seat {
    enum held held;
    uint32_t server;
    uint64_t fence, acquired_ms, version;
    char *token;
    uint32_t claimant, claim; /* NONE: no claim; else the place of its start. */
    uint64_t deadline_ms;
};

struct hall {
    struct rsim *sim;
    struct fixture f;
    struct seat seats[PLAYERS];
    bool expired[SERVERS];
    struct begun starts[STARTS];
    uint32_t start_count;
};

static bool chance(struct hall *h, uint32_t per_hundred)
{
    return rsim_chance(h->sim, per_hundred);
}

static bool is_live(const struct hall *h, const struct seat *seat)
{
    return seat->held != FREE && !h->expired[seat->server];
}

/* ---- the rules ---- */

static void seat_grant(struct hall *h, struct seat *seat, uint32_t server)
{
    seat->held = GRANTED;
    seat->server = server;
    seat->fence++;
    seat->acquired_ms = h->f.now_ms;
    seat->token = arena_printf(&h->sim->arena, "%s-%" PRIu64, servers[server], seat->fence);
}

static void claim_end(struct hall *h, struct seat *seat, Holdfast__V1__OperationState state)
{
    h->starts[seat->claim].state = state;
    seat->claimant = NONE;
}

/* The claimant gets the player, if it still lives. */
static bool claim_take(struct hall *h, struct seat *seat)
{
    uint32_t server = seat->claimant;

    if (h->expired[server]) {
        claim_end(h, seat, OPERATION(REFUSED));
        return false;
    }
    claim_end(h, seat, OPERATION(COMMITTED));
    seat_grant(h, seat, server);
    return true;
}

static bool seat_leave(struct hall *h, struct seat *seat)
{
    if (seat->claimant != NONE && claim_take(h, seat))
        return true;
    seat->held = FREE;
    return false;
}

/* When time has something to do; UINT64_MAX: never. */
static uint64_t seat_due_ms(const struct seat *seat)
{
    uint64_t due_ms = UINT64_MAX;

    if (seat->held == GRANTED)
        due_ms = seat->acquired_ms + UNUSED_MS;
    if (seat->claimant != NONE && seat->deadline_ms < due_ms)
        due_ms = seat->deadline_ms;
    return due_ms;
}

static void seat_due(struct hall *h, struct seat *seat)
{
    uint64_t now_ms = h->f.now_ms;

    if (seat->claimant != NONE && seat->deadline_ms <= now_ms && claim_take(h, seat)) {
        seat->version++;
        return;
    }
    if (seat->held == GRANTED && seat->acquired_ms + UNUSED_MS <= now_ms)
        seat->version += seat_leave(h, seat);
}

/* ---- starts ---- */

struct wanted {
    bool done, pending, stolen;
    Holdfast__V1__ErrorCode code;
    const char *holder; /* Of SESSION_LOCKED. */
};

static struct wanted locked(const char *holder)
{
    return (struct wanted){ .code = CODE(SESSION_LOCKED), .holder = holder };
}

static struct wanted judge_steal(struct hall *h, struct seat *seat, uint32_t place)
{
    const struct begun *start = &h->starts[place];
    uint64_t deadline_ms = h->f.now_ms + (start->grace_ms > 0 ? start->grace_ms : GRACE_MS);

    if (seat->claimant != NONE) {
        deadline_ms = seat->deadline_ms;
        claim_end(h, seat, OPERATION(REFUSED));
    }
    if (deadline_ms <= h->f.now_ms) {
        seat_grant(h, seat, start->server);
        return (struct wanted){ .done = true, .stolen = true };
    }
    seat->claimant = start->server;
    seat->claim = place;
    seat->deadline_ms = deadline_ms;
    return (struct wanted){ .pending = true };
}

static struct wanted judge_start(struct hall *h, uint32_t place)
{
    const struct begun *start = &h->starts[place];
    struct seat *seat = &h->seats[start->player];
    bool live = is_live(h, seat);

    if (h->expired[start->server])
        return (struct wanted){ .code = CODE(SERVER_EXPIRED) };
    if (live && seat->server != start->server) {
        if (start->mode == MODE(STEAL))
            return judge_steal(h, seat, place);
        return locked(servers[seat->server]);
    }
    if (seat->claimant != NONE && !live) {
        bool rival = !h->expired[seat->claimant] && seat->claimant != start->server;
        if (rival && start->mode != MODE(STEAL))
            return locked(servers[seat->claimant]);
        claim_end(h, seat, OPERATION(REFUSED));
    }
    seat_grant(h, seat, start->server);
    return (struct wanted){ .done = true };
}

static void check_done(struct hall *h, const struct begun *start, const struct wanted *wanted,
                       const Holdfast__V1__StartSessionResponse *told)
{
    const struct seat *seat = &h->seats[start->player];

    PROMISE(h->sim, told->fence == seat->fence, "fence %" PRIu64 ", not %" PRIu64, told->fence,
            seat->fence);
    PROMISE(h->sim, (told->stolen != 0) == wanted->stolen, "stolen is told as %d", told->stolen);
    PROMISE(h->sim, told->write->version == seat->version, "version %" PRIu64 ", not %" PRIu64,
            told->write->version, seat->version);
    PROMISE(h->sim,
            told->profile != NULL && told->profile->version == seat->version &&
                strcmp(told->profile->player_id, players[start->player]) == 0,
            "the profile of another state");
}

/* `told` NULL: refused or pending. */
static void check_start(struct hall *h, uint32_t place, const struct wanted *wanted,
                        const Holdfast__V1__StartSessionResponse *told)
{
    struct begun *start = &h->starts[place];
    struct seat *seat = &h->seats[start->player];
    const Holdfast__Internal__V1__Refusal *error = h->f.error;

    if (wanted->done) {
        PROMISE(h->sim, told != NULL, "%s may have %s: %s", servers[start->server],
                players[start->player], error != NULL ? error->message : "it waits");
        seat->version++;
        seat->token = arena_text(&h->sim->arena, slice_from_text(told->token));
        start->state = OPERATION(COMMITTED);
        check_done(h, start, wanted, told);
        h->sim->counts.sessions_started++;
        return;
    }
    PROMISE(h->sim, told == NULL, "%s gets %s", servers[start->server], players[start->player]);
    if (wanted->pending) {
        PROMISE(h->sim, h->f.outcome.kind == OUTCOME_PENDING, "a steal waits for its grace");
        start->state = OPERATION(PENDING);
        h->sim->counts.sessions_asked_for++;
        return;
    }
    PROMISE(h->sim, error != NULL && error->code == wanted->code, "refused with %d, not %d",
            error != NULL ? (int)error->code : 0, (int)wanted->code);
    if (wanted->holder != NULL)
        PROMISE(h->sim, strcmp(error->holder, wanted->holder) == 0 && error->retry_after_ms > 0,
                "%s is told to hold the player, not %s", error->holder, wanted->holder);
    bool waits = wanted->holder != NULL && start->mode == MODE(WAIT);
    PROMISE(h->sim, h->f.outcome.waits == waits, "it waits, or does not");
    start->state = waits ? OPERATION(UNKNOWN) : OPERATION(REFUSED);
    h->sim->counts.sessions_refused++;
}

static const Holdfast__V1__StartSessionResponse *send_start(struct hall *h, uint32_t place)
{
    Holdfast__V1__StartSessionRequest request = HOLDFAST__V1__START_SESSION_REQUEST__INIT;
    const struct begun *start = &h->starts[place];

    request.player_id = text_lend(players[start->player]);
    request.op_id = start->op_id;
    request.incarnation = text_lend(servers[start->server]);
    request.mode = start->mode;
    request.grace_ms = start->grace_ms;
    return fixture_mutate(&h->f, METHOD_START_SESSION, &request.base);
}

static void start_new(struct hall *h)
{
    static const Holdfast__V1__StartMode modes[] = { MODE(UNSPECIFIED), MODE(WAIT),  MODE(FAIL),
                                                     MODE(STEAL),       MODE(STEAL), MODE(STEAL) };
    static const uint32_t graces[] = { 0, 1, 1000, 20000, LIMIT_SESSION_GRACE_MS };

    if (h->start_count == STARTS)
        return;
    h->starts[h->start_count] = (struct begun){
        .player = (uint32_t)rsim_between(h->sim, 0, PLAYERS - 1),
        .server = (uint32_t)rsim_between(h->sim, 0, SERVERS - 1),
        .op_id = arena_text(&h->sim->arena, slice_from_text(fixture_op_id(&h->f))),
        .mode = RSIM_PICK(h->sim, modes),
        .grace_ms = RSIM_PICK(h->sim, graces),
    };
    struct wanted wanted = judge_start(h, h->start_count);
    check_start(h, h->start_count, &wanted, send_start(h, h->start_count));
    h->start_count++;
}

static void start_wrong(struct hall *h)
{
    Holdfast__V1__StartSessionRequest request = HOLDFAST__V1__START_SESSION_REQUEST__INIT;
    static char *const words[] = { (char *)(uintptr_t) "money" };
    const char *field = "grace_ms";

    request.player_id = text_lend(players[0]);
    request.op_id = fixture_op_id(&h->f);
    request.incarnation = text_lend(servers[0]);
    switch (rsim_between(h->sim, 0, 3)) {
    case 0:
        request.grace_ms = LIMIT_SESSION_GRACE_MS + 1;
        break;
    case 1:
        request.incarnation = text_lend("1-");
        field = "incarnation";
        break;
    case 2:
        request.mode = (Holdfast__V1__StartMode)((int)MODE(STEAL) + 1);
        field = "mode";
        break;
    default:
        request.include = (char **)(uintptr_t)words;
        request.n_include = 1;
        field = "include[0]";
    }
    const void *told = fixture_mutate(&h->f, METHOD_START_SESSION, &request.base);
    PROMISE(h->sim,
            told == NULL && !h->f.recorded && h->f.error->code == CODE(INVALID_ARGUMENT) &&
                strcmp(h->f.error->field, field) == 0,
            "a wrong %s is taken", field);
}

/* The same call again: its outcome stands, unless its holder is gone meanwhile. */
static void start_again(struct hall *h)
{
    if (h->start_count == 0)
        return;
    uint32_t place = (uint32_t)rsim_between(h->sim, 0, h->start_count - 1);
    struct begun *start = &h->starts[place];
    struct seat *seat = &h->seats[start->player];

    if (start->state == OPERATION(UNKNOWN)) { /* It is as if it had never been. */
        struct wanted wanted = judge_start(h, place);
        check_start(h, place, &wanted, send_start(h, place));
        return;
    }
    if (start->state == OPERATION(PENDING) && !is_live(h, seat) && !h->expired[seat->claimant]) {
        bool own = seat->claim == place;
        PROMISE(h->sim, own, "another claim is pending");
        claim_end(h, seat, OPERATION(COMMITTED));
        seat_grant(h, seat, start->server);
        const struct wanted wanted = { .done = true };
        check_start(h, place, &wanted, send_start(h, place));
        return;
    }
    const void *told = send_start(h, place);
    PROMISE(h->sim, (told != NULL) == (start->state == OPERATION(COMMITTED)),
            "the same start is answered otherwise");
    PROMISE(h->sim, h->f.outcome.duplicate, "a repetition is no other call");
    PROMISE(h->sim, (h->f.outcome.kind == OUTCOME_PENDING) == (start->state == OPERATION(PENDING)),
            "a repetition is pending, or not");
}

/* ---- what holders do ---- */

static char *any_token(struct hall *h, uint32_t player, bool *ret_current)
{
    const struct seat *seat = &h->seats[player];
    uint32_t server = seat->held != FREE ? seat->server : 0;
    uint64_t fence = seat->fence;

    if (seat->token == NULL || chance(h, 15))
        server = (uint32_t)rsim_between(h->sim, 0, SERVERS - 1);
    if (chance(h, 10))
        fence += rsim_between(h->sim, 0, 2) - 1;
    if (fence == 0 || fence == UINT64_MAX) /* Fences count from 1. */
        fence = 1;
    *ret_current = is_live(h, seat) && seat->server == server && seat->fence == fence;
    if (seat->token != NULL && *ret_current)
        return seat->token;
    /* As StartSession would have made it. */
    char *text = arena_alloc(&h->sim->arena, TOKEN_TEXT_SIZE);
    struct incarnation incarnation;
    CHECK(incarnation_parse(slice_from_text(servers[server]), &incarnation) == ERR_OK);
    token_print(incarnation, fence, text);
    return text;
}

static void check_lost(struct hall *h, const void *told)
{
    PROMISE(h->sim, told == NULL && h->f.error->code == CODE(SESSION_LOST),
            "a session that is over may write");
    PROMISE(h->sim, h->f.outcome.stale_write, "a fenced writer is not counted");
}

static void write_under(struct hall *h)
{
    uint32_t player = (uint32_t)rsim_between(h->sim, 0, PLAYERS - 1);
    struct seat *seat = &h->seats[player];
    bool current = false;
    char *token = any_token(h, player, &current);
    const Holdfast__V1__GrantResponse *told = fixture_grant(&h->f, players[player], token, 1);

    if (!current) {
        check_lost(h, told);
        return;
    }
    PROMISE(h->sim, told != NULL, "a holder may not write: %s", h->f.error->message);
    seat->version++;
    PROMISE(h->sim, told->write->version == seat->version, "another version");
    seat->held = HELD;
}

static void write_unheld(struct hall *h)
{
    uint32_t player = (uint32_t)rsim_between(h->sim, 0, PLAYERS - 1);
    struct seat *seat = &h->seats[player];
    const void *told = fixture_grant(&h->f, players[player], "unheld", 1);

    if (is_live(h, seat)) {
        PROMISE(h->sim,
                told == NULL && h->f.error->code == CODE(SESSION_LOCKED) &&
                    strcmp(h->f.error->holder, servers[seat->server]) == 0,
                "a player is held, and who says otherwise writes");
        return;
    }
    PROMISE(h->sim, told != NULL, "a player that no server holds is refused");
    seat->version++;
}

static void end(struct hall *h)
{
    uint32_t player = (uint32_t)rsim_between(h->sim, 0, PLAYERS - 1);
    struct seat *seat = &h->seats[player];
    bool current = false;
    char *token = any_token(h, player, &current);
    uint32_t claim = seat->claim;
    bool claimed = seat->claimant != NONE;
    const Holdfast__V1__EndSessionResponse *told = fixture_end(&h->f, players[player], token);

    if (!current) {
        check_lost(h, told);
        return;
    }
    PROMISE(h->sim, told != NULL, "a holder may not leave: %s", h->f.error->message);
    seat->version++;
    bool taken = seat_leave(h, seat);
    PROMISE(h->sim, h->f.outcome.session_freed == !taken, "who waits is not woken");
    PROMISE(h->sim,
            claimed ? slice_equal(h->f.outcome.decided_op_id,
                                  slice_from_text(h->starts[claim].op_id)) &&
                          h->f.outcome.decided_refused == !taken
                    : h->f.outcome.decided_op_id.size == 0,
            "who asked for the player is told something else");
    h->sim->counts.sessions_ended++;
}

static void seal(struct hall *h)
{
    if (h->start_count == 0)
        return;
    uint32_t place = (uint32_t)rsim_between(h->sim, 0, h->start_count - 1);
    struct begun *start = &h->starts[place];
    struct seat *seat = &h->seats[start->player];

    if (start->state == OPERATION(UNKNOWN) || start->state == OPERATION(PENDING)) {
        if (start->state == OPERATION(PENDING)) {
            PROMISE(h->sim, seat->claimant != NONE && seat->claim == place, "no claim is pending");
            seat->claimant = NONE;
        }
        start->state = OPERATION(ABORTED);
    }
    PROMISE(h->sim,
            fixture_seal(&h->f, players[start->player], start->op_id)->state == start->state,
            "a seal tells something else");
}

/* ---- servers ---- */

static void expire(struct hall *h)
{
    uint32_t server = (uint32_t)rsim_between(h->sim, 0, SERVERS - 1);
    bool below = chance(h, 20);
    uint32_t lowest = 0;

    while (lowest < server && h->expired[lowest])
        lowest++;
    fixture_expire(&h->f, servers[server], below ? servers[lowest] : "");
    h->expired[server] = true;
}

/* ---- time ---- */

static void tell_session(struct hall *h, uint32_t player)
{
    static const char *const states[] = { "free", "granted", "held" };
    const struct seat *seat = &h->seats[player];
    bool live = is_live(h, seat);
    const Holdfast__V1__GetSessionResponse *told = fixture_session(&h->f, players[player]);
    const char *claimant =
        seat->claimant != NONE && !h->expired[seat->claimant] ? servers[seat->claimant] : "";

    PROMISE(h->sim, strcmp(told->state, states[live ? seat->held : FREE]) == 0,
            "%s is told as %s, not %s", players[player], told->state,
            states[live ? seat->held : FREE]);
    PROMISE(h->sim, told->fence == seat->fence && told->shard == h->f.shard, "another fence");
    PROMISE(h->sim,
            strcmp(told->incarnation, live ? servers[seat->server] : "") == 0 &&
                (uint64_t)told->acquired_at_ms == (live ? seat->acquired_ms : 0),
            "another holder: %s", told->incarnation);
    PROMISE(h->sim, strcmp(told->claimant, claimant) == 0, "%s asks, not %s", told->claimant,
            claimant);
}

static void pass(struct hall *h, uint64_t ms)
{
    uint64_t end_ms = h->f.now_ms + ms;

    for (;;) {
        uint32_t first = 0;
        for (uint32_t i = 1; i < PLAYERS; i++) {
            if (seat_due_ms(&h->seats[i]) < seat_due_ms(&h->seats[first]))
                first = i;
        }
        uint64_t due_ms = seat_due_ms(&h->seats[first]);
        if (due_ms > end_ms)
            break;
        /* One millisecond before it is due, nothing has happened. */
        if (due_ms > h->f.now_ms + 1) {
            (void)fixture_pass(&h->f, due_ms - h->f.now_ms - 1);
            tell_session(h, first);
        }
        if (due_ms > h->f.now_ms)
            h->f.now_ms = due_ms;
        for (uint32_t i = 0; i < PLAYERS; i++) {
            if (seat_due_ms(&h->seats[i]) <= h->f.now_ms)
                seat_due(h, &h->seats[i]);
        }
        (void)fixture_pass(&h->f, 0);
        h->sim->counts.sessions_due++;
    }
    if (end_ms > h->f.now_ms)
        (void)fixture_pass(&h->f, end_ms - h->f.now_ms);
}

/* ---- what is told ---- */

static void tell_start(struct hall *h)
{
    if (h->start_count == 0)
        return;
    const struct begun *start = &h->starts[rsim_between(h->sim, 0, h->start_count - 1)];
    const Holdfast__Internal__V1__OperationRecord *record =
        fixture_operation(&h->f, players[start->player], start->op_id);

    PROMISE(h->sim, record->state == start->state, "a start is told as %d, not %d",
            (int)record->state, (int)start->state);
}

static void renew(struct hall *h)
{
    Holdfast__Internal__V1__RenewTokensRequest request =
        HOLDFAST__INTERNAL__V1__RENEW_TOKENS_REQUEST__INIT;
    uint32_t server = (uint32_t)rsim_between(h->sim, 0, SERVERS - 1);
    uint64_t now_ms = h->f.now_ms;
    size_t lost = 0, asked = 0;

    request.incarnation = text_lend(servers[server]);
    request.n_tokens = PLAYERS;
    request.tokens =
        arena_messages(&h->sim->arena, &holdfast__internal__v1__renew_token__descriptor, PLAYERS);
    for (uint32_t i = 0; i < PLAYERS; i++) {
        request.tokens[i]->player_id = text_lend(players[i]);
        request.tokens[i]->position = i + 7;
        request.tokens[i]->fence = h->seats[i].fence + chance(h, 10);
    }
    const Holdfast__Internal__V1__RenewTokensResponse *told =
        fixture_read(&h->f, METHOD_RENEW_TOKENS, &request.base);
    PROMISE(h->sim, told != NULL, "a renewal is refused");
    for (uint32_t i = 0; i < PLAYERS; i++) {
        const struct seat *seat = &h->seats[i];
        bool current =
            is_live(h, seat) && seat->server == server && seat->fence == request.tokens[i]->fence;
        uint64_t left = seat->deadline_ms > now_ms ? seat->deadline_ms - now_ms : 0;
        if (!current) {
            PROMISE(h->sim, lost < told->n_lost && told->lost[lost] == i + 7, "a loss is not told");
            lost++;
        } else if (seat->claimant != NONE) {
            PROMISE(h->sim,
                    asked < told->n_release_requested &&
                        told->release_requested[asked]->position == i + 7 &&
                        told->release_requested[asked]->remaining_ms == left,
                    "who asks for the player is not told");
            asked++;
        }
    }
    PROMISE(h->sim, lost == told->n_lost && asked == told->n_release_requested,
            "more is told to a server than there is");
}

/* ---- turns ---- */

static void turn(struct hall *h)
{
    static void (*const deeds[])(struct hall *) = { start_new, start_new,   start_new,
                                                    start_new, start_again, write_under,
                                                    end,       write_under, write_unheld,
                                                    seal,      renew };

    if (chance(h, 3))
        expire(h);
    else if (chance(h, 3))
        start_wrong(h);
    else
        RSIM_PICK(h->sim, deeds)(h);
    if (chance(h, 60))
        pass(h, chance(h, 25) ? rsim_between(h->sim, 0, 20000) : rsim_between(h->sim, 0, 900));
    if (chance(h, 5))
        fixture_checkpoint(&h->f);
    if (chance(h, 5))
        fixture_evict(&h->f, 0);
    if (chance(h, 4))
        fixture_restart(&h->f);
    tell_session(h, (uint32_t)rsim_between(h->sim, 0, PLAYERS - 1));
    tell_start(h);
}

void room_sessions(struct rsim *sim)
{
    struct hall *h = mem_zalloc(sizeof *h);

    h->sim = sim;
    fixture_init(&h->f);
    for (uint32_t i = 0; i < PLAYERS; i++)
        h->seats[i].claimant = NONE;
    for (uint32_t i = 0; i < TURNS; i++)
        turn(h);
    fixture_deinit(&h->f);
    free(h);
}
