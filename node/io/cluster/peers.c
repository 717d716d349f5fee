#include "node/io/cluster/peers.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "node/io/cluster/peer_choice.h"
#include "runtime/base/check.h"

/* What a MESSAGE frame is of, in its `method`. */
enum message_of { MESSAGE_OF_REPLICATION, MESSAGE_OF_DOCUMENTS };

struct peer {
    uint64_t replica;
    uint64_t life;                              /* Of the connection in use, as its HELLO said. */
    char name[sizeof((struct hello *)0)->name]; /* As registered in etcd. */
    char address[LINK_ADDRESS_SIZE];
    struct link *dialled;  /* Ours to close; NULL when the other side dials. */
    struct link_ref ref;   /* The connection in use; zeroed when there is none. */
    uint64_t closed_at_ms; /* Since when there is none. */
    bool met;              /* There was one. */
    bool takes_documents;  /* The program at its other end. */
};

struct peers {
    struct peers_options options;
    struct loop *loop;
    struct link_listener *listener;
    struct peer list[PEERS_MAX];
    uint32_t count;
    struct buf scratch;
};

static struct peer *find(struct peers *peers, uint64_t replica)
{
    for (uint32_t i = 0; i < peers->count; i++) {
        if (peers->list[i].replica == replica)
            return &peers->list[i];
    }
    return NULL;
}

/* The place of the one that has been without a connection for longest: of replicas that nodes of
 * before had, most likely. NULL: all are connected. */
static struct peer *make_room(struct peers *peers)
{
    struct peer *longest = NULL;

    for (uint32_t i = 0; i < peers->count; i++) {
        struct peer *peer = &peers->list[i];
        if (link_find(peers->options.hub, peer->ref) == NULL &&
            (longest == NULL || peer->closed_at_ms < longest->closed_at_ms))
            longest = peer;
    }
    if (longest == NULL)
        return NULL;
    if (longest->dialled != NULL)
        link_close(longest->dialled);
    log_event(peers->options.log, LOG_INFO, "peer.forgotten", LOG_N("replica", longest->replica),
              LOG_N("limit", PEERS_MAX));
    return longest;
}

static struct peer *find_or_add(struct peers *peers, uint64_t replica)
{
    struct peer *peer = find(peers, replica);

    if (peer != NULL)
        return peer;
    peer = peers->count < PEERS_MAX ? &peers->list[peers->count++] : make_room(peers);
    if (peer == NULL) {
        log_event(peers->options.log, LOG_ERROR, "peer.no_room", LOG_N("replica", replica),
                  LOG_N("limit", PEERS_MAX));
        return NULL;
    }
    *peer = (struct peer){ .replica = replica, .closed_at_ms = loop_now_ms(peers->loop) };
    return peer;
}

/* Its certificate proves the name; etcd says which replica has that name. So a node's certificate
 * speaks for that node's replica alone, and one that etcd does not know takes no place here. */
static enum link_refusal on_admit(void *user, struct link *link, const struct hello *hello)
{
    struct peers *peers = user;
    const struct peer *peer = find(peers, hello->replica_id);

    if (hello->replica_id == 0 || hello->replica_id == peers->options.self)
        return LINK_REFUSED_REPLICA;
    if (peer == NULL)
        return LINK_REFUSED_UNREGISTERED;
    if (strcmp(peer->name, hello->name) != 0)
        return LINK_REFUSED_REPLICA;
    if (link != peer->dialled && hello->replica_id < peers->options.self)
        return LINK_REFUSED_SIDE;
    struct link *older = link_find(peers->options.hub, peer->ref);
    const struct peer_held held = { .is_there = older != NULL,
                                    .life = peer->life,
                                    .idle_ms = older != NULL ? link_idle_ms(older) : 0 };
    enum peer_choice choice = peer_choose(&held, hello->life);
    if (choice == PEER_REFUSE)
        return LINK_REFUSED_SECOND;
    if (choice == PEER_REPLACE)
        link_close(older); /* Its `closed` lets go of it. */
    return LINK_ADMITTED;
}

static void on_ready(void *user, struct link *link, const struct hello *hello)
{
    struct peers *peers = user;
    struct peer *peer = find(peers, hello->replica_id);

    CHECK(peer != NULL && link_find(peers->options.hub, peer->ref) == NULL); /* on_admit. */
    peer->ref = link_ref(link);
    peer->life = hello->life;
    peer->met = true;
    peer->takes_documents = (hello->abilities & HELLO_TAKES_DOCUMENTS) != 0;
    link_set_data(link, (void *)(uintptr_t)hello->replica_id);
    log_event(peers->options.log, LOG_INFO, "peer.connected", LOG_N("replica", peer->replica),
              LOG_S("address", link_address(link)));
}

static void on_frame(void *user, struct link *link, const struct frame *frame)
{
    struct peers *peers = user;

    uint64_t from = (uint64_t)(uintptr_t)link_data(link);

    if (frame->kind == FRAME_MESSAGE && frame->method == MESSAGE_OF_REPLICATION)
        peers->options.message(peers->options.user, from, frame->body, frame->trace);
    else if (frame->kind == FRAME_MESSAGE && frame->method == MESSAGE_OF_DOCUMENTS &&
             peers->options.document != NULL)
        peers->options.document(peers->options.user, from, frame->body);
    else if (frame->kind != FRAME_MESSAGE)
        (void)calls_frame(peers->options.calls, link, frame);
}

static void on_closed(void *user, struct link *link, enum link_close_reason reason,
                      const char *text)
{
    struct peers *peers = user;
    struct peer *peer = find(peers, (uint64_t)(uintptr_t)link_data(link));

    (void)reason;
    calls_closed(peers->options.calls, link);
    if (peer == NULL || peer->ref.generation != link_ref(link).generation)
        return;
    peer->ref = (struct link_ref){ 0 };
    peer->closed_at_ms = loop_now_ms(peers->loop);
    log_event(peers->options.log, LOG_INFO, "peer.closed", LOG_N("replica", peer->replica),
              LOG_S("reason", text));
}

static struct link_handlers handlers_of(struct peers *peers)
{
    return (struct link_handlers){
        .admit = on_admit, .ready = on_ready, .frame = on_frame, .closed = on_closed, .user = peers
    };
}

err peers_new(const struct peers_options *options, struct peers **ret_peers)
{
    struct peers *peers = mem_zalloc(sizeof *peers);
    struct link_listen_options listen = { .transport = LINK_PEER,
                                          .address = options->listen,
                                          .roles = 1u << ROLE_NODE };

    peers->options = *options;
    peers->loop = options->loop;
    listen.handlers = handlers_of(peers);
    err e = link_listen(options->hub, &listen, &peers->listener);
    if (e != ERR_OK) {
        free(peers);
        return e;
    }
    *ret_peers = peers;
    return ERR_OK;
}

void peers_free(struct peers *peers)
{
    if (peers == NULL)
        return;
    link_listener_close(peers->listener);
    link_hub_close_links(peers->options.hub, peers);
    buf_deinit(&peers->scratch);
    free(peers);
}

uint16_t peers_port(const struct peers *peers)
{
    return link_listener_port(peers->listener);
}

void peers_set_address(struct peers *peers, uint64_t replica, const char *name, const char *address)
{
    struct peer *peer;
    struct link_dial_options dial = { .transport = LINK_PEER,
                                      .address = address,
                                      .expect = { ROLE_NODE, replica, name },
                                      .handlers = handlers_of(peers) };

    if (replica == peers->options.self || (peer = find_or_add(peers, replica)) == NULL)
        return;
    if (strcmp(peer->address, address) == 0 && strcmp(peer->name, name) == 0)
        return;
    snprintf(peer->address, sizeof peer->address, "%s", address);
    snprintf(peer->name, sizeof peer->name, "%s", name);
    if (peers->options.self < replica)
        return;
    if (peer->dialled != NULL)
        link_close(peer->dialled);
    peer->dialled = NULL;
    if (link_dial(peers->options.hub, &dial, &peer->dialled) != ERR_OK)
        log_event(peers->options.log, LOG_ERROR, "peer.bad_address", LOG_N("replica", replica),
                  LOG_S("address", address));
}

static void send_frame(struct peers *peers, struct link *link, const struct frame *frame)
{
    /* A full queue loses the message, as the network might: replication repeats it. */
    err e = link_send(link, frame);
    if (e == ERR_TOO_LARGE)
        log_event(peers->options.log, LOG_ERROR, "peer.message_too_large",
                  LOG_N("bytes", frame->body.size));
}

static void send_to(struct peers *peers, struct link *link, struct slice bytes,
                    const uint8_t *trace)
{
    struct frame frame = { .kind = FRAME_MESSAGE, .method = MESSAGE_OF_REPLICATION, .body = bytes };

    if (trace != NULL)
        memcpy(frame.trace, trace, sizeof frame.trace);
    send_frame(peers, link, &frame);
}

static struct link *link_to(struct peers *peers, uint64_t replica)
{
    struct peer *peer = find(peers, replica);
    return peer != NULL ? link_find(peers->options.hub, peer->ref) : NULL;
}

void peers_send(struct peers *peers, uint64_t replica, const struct rep_message *message,
                const uint8_t *trace)
{
    struct link *link = link_to(peers, replica);

    if (link == NULL)
        return;
    buf_clear(&peers->scratch);
    rep_message_encode(message, &peers->scratch);
    send_to(peers, link, buf_slice(&peers->scratch), trace);
}

void peers_send_encoded(struct peers *peers, uint64_t replica, struct slice bytes,
                        const uint8_t *trace)
{
    struct link *link = link_to(peers, replica);

    if (link != NULL)
        send_to(peers, link, bytes, trace);
}

void peers_send_document(struct peers *peers, uint64_t replica, struct slice bytes)
{
    const struct frame frame = { .kind = FRAME_MESSAGE,
                                 .method = MESSAGE_OF_DOCUMENTS,
                                 .body = bytes };
    const struct peer *peer = find(peers, replica);
    struct link *link = link_to(peers, replica);

    if (link != NULL && peer->takes_documents)
        send_frame(peers, link, &frame);
}

bool peers_may_take_documents(struct peers *peers, uint64_t replica)
{
    return peers_link(peers, replica) == NULL || find(peers, replica)->takes_documents;
}

struct link *peers_link(struct peers *peers, uint64_t replica)
{
    struct link *link = link_to(peers, replica);
    return link != NULL && link_is_ready(link) ? link : NULL;
}

bool peers_health(const struct peers *peers, uint64_t replica, uint64_t *ret_closed_ms,
                  uint64_t *ret_silent_ms)
{
    const struct peer *peer = NULL;

    for (uint32_t i = 0; i < peers->count; i++) {
        if (peers->list[i].replica == replica)
            peer = &peers->list[i];
    }
    if (peer == NULL)
        return false;
    struct link *link = link_find(peers->options.hub, peer->ref);
    uint64_t without_ms = loop_now_ms(peers->loop) - peer->closed_at_ms;
    *ret_closed_ms = link == NULL && peer->met ? without_ms : 0;
    *ret_silent_ms = link != NULL ? link_idle_ms(link) : 0;
    if (link == NULL && !peer->met)
        *ret_silent_ms = without_ms;
    return true;
}
