/* Links between processes, and pieces of what no frame holds. */
#include <stdlib.h>

#include "node/core/mergeable/pull.h"
#include "node/core/mergeable/rounds.h"
#include "runtime/base/check.h"
#include "tests/sim/mergeable/msim.h"

/* Of stories with large records: a request of a pull waits beside a part of any size. */
#define PIECE_BYTES       500u
#define WHOLE_BYTES_MAX   900u
#define MESSAGE_BYTES_MAX 100000u
#define ALL_BYTES_MAX     104000u

/* ---- frames ---- */

static void fly(struct msim *sim, const struct node *node, uint64_t to, struct slice bytes)
{
    if (sim->flight_count == FLIGHT_MAX)
        return;
    uint64_t delay_ms = msim_chance(sim, sim->healing ? 0 : sim->late_per_thousand)
                            ? msim_between(sim, 100, 20000)
                            : msim_between(sim, 1, 40);
    struct flight *flight = &sim->flights[sim->flight_count++];

    *flight = (struct flight){ .at_ms = sim->now_ms + delay_ms, .from = node->id, .to = to };
    buf_append(&flight->bytes, bytes.data, bytes.size);
}

static void launch(void *user, uint64_t to, struct slice bytes)
{
    const struct node *node = user;
    struct msim *sim = node->sim;
    const struct node *peer = msim_node(sim, to);
    bool cut = peer->side != node->side || (peer->deaf >> (node - sim->nodes) & 1) != 0;
    uint32_t lossy = sim->healing ? 0 : sim->lost_per_thousand;

    if (cut || msim_chance(sim, lossy))
        return;
    fly(sim, node, to, bytes);
    if (msim_chance(sim, lossy))
        fly(sim, node, to, bytes);
}

/* ---- pieces ---- */

void msim_pieces_init(struct node *node)
{
    bool large = node->sim->large;

    pieces_init(&node->pieces,
                &(struct pieces_options){ .boot = node->told_boot,
                                          .piece_bytes = PIECE_BYTES,
                                          .whole_bytes_max = large ? WHOLE_BYTES_MAX : UINT32_MAX,
                                          .message_bytes_max = MESSAGE_BYTES_MAX,
                                          .all_bytes_max = ALL_BYTES_MAX,
                                          .send = launch,
                                          .user = node });
}

void msim_send(struct node *node, uint64_t to, struct slice message)
{
    struct msim *sim = node->sim;

    if (sim->large && message.size > WHOLE_BYTES_MAX) {
        sim->in_pieces =
            mem_realloc(sim->in_pieces, (sim->in_pieces_count + 1) * sizeof *sim->in_pieces);
        sim->in_pieces[sim->in_pieces_count++] = hash_u128(message);
    }
    pieces_send(&node->pieces, to, message, sim->now_ms);
}

/* What was put together is what somebody sent. */
static void judge_joined(struct msim *sim, struct slice message)
{
    struct hash128 hash = hash_u128(message);
    bool sent = false;

    for (uint32_t i = 0; i < sim->in_pieces_count && !sent; i++)
        sent = hash128_equal(sim->in_pieces[i], hash);
    PROMISE(sim, sent, "a message of pieces is not what was sent");
    sim->counts->joined++;
}

/* ---- what comes ---- */

/* Its peers told it of a later process of its member. */
static void follow_boot(struct msim *sim, struct node *node)
{
    uint64_t boot = node->replica->options.boot;

    sim->counts->set_back += boot != node->told_boot;
    node->told_boot = boot;
    if (boot > node->told_boot_max)
        node->told_boot_max = boot;
}

static void receive(struct msim *sim, struct node *node, struct slice message)
{
    /* Behind the head of 49 bytes: boot, id, and whether it is a chunk of all records. */
    sim->counts->pulls_full += message.data[0] == MERGE_CHUNK && message.data[65] == 1;
    err e = merge_receive(node->replica, msim_wall(sim, node), message);

    PROMISE(sim, e != ERR_CORRUPT && e != ERR_FULL && e != ERR_INVALID,
            "a message of a peer is refused: %s", err_name(e));
    follow_boot(sim, node);
    msim_drain(sim, node);
}

static void serve_next(struct msim *sim, struct node *node)
{
    struct buf request;
    uint64_t from;

    while (pieces_request_next(&node->pieces, &from, &request)) {
        receive(sim, node, buf_slice(&request));
        buf_deinit(&request);
        sim->counts->requests_waited++;
    }
}

static void take_piece(struct msim *sim, struct node *node, uint64_t from, struct pieces_came *came)
{
    sim->counts->pieces++;
    if (came->moved)
        merge_pull_moves(node->replica, from, msim_wall(sim, node));
    if (came->whole.size > 0) {
        judge_joined(sim, buf_slice(&came->whole));
        receive(sim, node, buf_slice(&came->whole));
    }
    buf_deinit(&came->whole);
    serve_next(sim, node);
}

static void arrive(struct msim *sim, struct node *node, const struct flight *flight)
{
    struct slice message = buf_slice(&flight->bytes);
    struct pieces_came came;
    err e = pieces_take(&node->pieces, flight->from, message, sim->now_ms, &came);

    PROMISE(sim, e != ERR_CORRUPT, "a piece is refused");
    if (e == ERR_OK)
        take_piece(sim, node, flight->from, &came);
    else if (message.data[0] != MERGE_PULL ||
             pieces_admit(&node->pieces, flight->from, message, sim->now_ms))
        receive(sim, node, message);
}

void msim_deliver(struct msim *sim)
{
    for (uint32_t i = 0; i < sim->flight_count;) {
        struct flight flight = sim->flights[i];
        struct node *node = msim_node(sim, flight.to);

        if (flight.at_ms > sim->now_ms) {
            i++;
            continue;
        }
        sim->flights[i] = sim->flights[--sim->flight_count];
        if (node->replica != NULL)
            arrive(sim, node, &flight);
        buf_deinit(&flight.bytes);
    }
    for (uint32_t i = 0; i < NODES; i++) {
        struct node *node = &sim->nodes[i];

        if (node->replica == NULL)
            continue;
        pieces_tick(&node->pieces, sim->now_ms);
        serve_next(sim, node);
        merge_tick(node->replica, msim_wall(sim, node));
        msim_drain(sim, node);
    }
}

void msim_network_free(struct msim *sim)
{
    for (uint32_t i = 0; i < sim->flight_count; i++)
        buf_deinit(&sim->flights[i].bytes);
    free(sim->in_pieces);
}
