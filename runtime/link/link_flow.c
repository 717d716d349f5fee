/* One connection: TLS, HELLO, frames in and out. Dialling is link_dial.c, the hub hub.c. */
#include <stdio.h>
#include <string.h>

#include "runtime/base/check.h"
#include "runtime/link/link_private.h"

#define WRITE_BYTES_MAX 1048576u /* Handed over in one go, so that the loop is not held up. */
#define TURN_BYTES_MAX  262144u  /* Of one lane, before the other is looked at. */
#define KEEP_BYTES_MAX  1048576u /* Larger buffers are given back once empty. */

void link_set_state(struct link *link, enum link_state state)
{
    link->state = state;
    link->phase_ms = loop_now_ms(link->hub->loop);
}

size_t link_queued_bytes(const struct link *link)
{
    return out_queue_bytes(&link->out);
}

static void drop_wire(struct link *link)
{
    if (link->wire != NULL)
        link->wire->ops->close(link->wire);
    link->wire = NULL;
    link->wire_count++;
    turnstile_leave(link->hub->turnstile, &link->place);
    link->awaiting = false;
    buf_deinit(&link->first);
    link->writing = false;
    tls_session_free(link->tls);
    link->tls = NULL;
    frame_decoder_deinit(&link->decoder);
    frame_decoder_deinit(&link->parts);
    link->parts_taken = 0;
    out_queue_clear(&link->out);
    buf_deinit(&link->part);
    buf_deinit(&link->plain);
    link->held = 0;
    link->outstanding = 0;
    link->urgent = false;
    link->full = false;
    link->paused = false;
    link->overflowed = false;
    link->parting = false;
    loop_timer_stop(&link->hold);
}

static void log_loss(const struct link *link, enum link_state state, enum link_close_reason reason,
                     const char *text)
{
    static const char *const reasons[] = { "local", "peer", "error", "refused" };
    bool worth = state == LINK_READY || (link->attempt & (link->attempt - 1)) == 0;
    const char *event = state == LINK_READY ? "link.closed" : "link.failed";
    uint64_t more = 0;

    if (reason == LINK_CLOSED_LOCAL || !worth)
        return;
    /* Strangers come as often as they like. Of a refused HELLO link.refused has told. */
    if (!link->dialled && state != LINK_READY &&
        (reason == LINK_CLOSED_REFUSED ||
         !log_gate_pass(&link->hub->failed_gates[reason], loop_now_ms(link->hub->loop), &more)))
        return;
    enum log_level level = reason == LINK_CLOSED_BY_PEER ? LOG_INFO : LOG_WARN;
    if (state == LINK_READY && link->peer.role == ROLE_CLIENT)
        level = LOG_DEBUG;
    log_event(link->hub->log, level, event, LOG_S("address", link->address),
              LOG_S("peer", link->peer.name), LOG_S("reason", reasons[reason]), LOG_S("text", text),
              LOG_N("attempt", link->attempt), LOG_N("more", more));
}

/* Anyone may connect, and again and again: not a line for each. */
static void count_stranger(struct link *link, const char *text)
{
    struct link_hub *hub = link->hub;
    struct address address;

    if (link->place.state != TURNSTILE_OUT)
        turnstile_count(hub->turnstile, link->cause);
    (void)address_parse(link->address, &address);
    refused_log_add(&hub->refused, link->cause, &address, text, loop_now_ms(hub->loop));
}

/* Up to a quarter later than the doubling says, so that links lost together do not come back
 * together. */
static void dial_later(struct link *link)
{
    uint64_t jitter_ms = loop_clock_ns() % (link->backoff_ms / 4 + 1);

    loop_timer_start(&link->redial, link->backoff_ms + jitter_ms);
    link->backoff_ms =
        2 * link->backoff_ms < LINK_BACKOFF_MS_MAX ? 2 * link->backoff_ms : LINK_BACKOFF_MS_MAX;
}

void link_lose(struct link *link, enum link_close_reason reason, const char *text)
{
    enum link_state state = link->state;
    char why[LINK_TEXT_SIZE]; /* `text` may live in what is freed now. */

    CHECK(state != LINK_DOWN && state != LINK_DEAD);
    snprintf(why, sizeof why, "%s", text);
    if (state == LINK_READY) /* Known until now. */
        turnstile_prove(link->hub->turnstile, &link->place, loop_now_ms(link->hub->loop));
    bool stranger = !link->dialled && state == LINK_GREETING;
    if (stranger)
        count_stranger(link, why);
    drop_wire(link);
    /* One that is closed as soon as it is ready must not be dialled as if it were new. */
    if (state == LINK_READY && loop_now_ms(link->hub->loop) - link->phase_ms >= LINK_STEADY_MS) {
        link->backoff_ms = LINK_BACKOFF_MS_MIN;
        link->attempt = 1;
    }
    link_set_state(link, LINK_DOWN);
    if (state != LINK_READY && state != LINK_DRAINING)
        link->hub->stats.failures++;
    if (!stranger)
        log_loss(link, state, reason, why);
    if (state == LINK_READY)
        link->handlers.closed(link->handlers.user, link, reason, why);
    link->generation = 0;
    if (link->state != LINK_DOWN) /* The user closed it meanwhile. */
        return;
    if (link->dialled && state != LINK_DRAINING && reason != LINK_CLOSED_LOCAL)
        dial_later(link);
    else
        link_bury(link);
}

static void append(struct link *link, const struct frame *frame)
{
    enum out_lane lane = out_queue_lane(&link->out, frame->kind, frame->body.size);
    size_t size = out_queue_push(&link->out, frame);

    if (lane == OUT_CALLS)
        link->sent_position += size;
    else if (lane == OUT_LARGE)
        link->large_sent += size;
    link->hub->stats.frames_out++;
    if (frame->kind == FRAME_REQUEST && frame->priority == 0)
        link->held++;
    else
        link->urgent = true;
    if (frame->kind == FRAME_REQUEST)
        link->outstanding++;
    link_mark_dirty(link);
}

static void send_hello(struct link *link)
{
    struct buf body = { 0 };
    struct frame frame = { .kind = FRAME_HELLO };

    hello_encode(&body, &link->hub->self);
    frame.body = buf_slice(&body);
    append(link, &frame);
    buf_deinit(&body);
}

void link_send_ping(struct link *link)
{
    struct frame ping = { .kind = FRAME_PING };

    append(link, &ping);
}

void link_greet(struct link *link, struct wire *wire)
{
    struct tls_config *tls = link->dialled ? link->hub->tls_client : link->hub->tls_server;

    link->wire = wire;
    link_set_state(link, LINK_GREETING);
    frame_decoder_init(&link->decoder, link->hub->body_size_max);
    frame_decoder_init(&link->parts, link->hub->body_size_max);
    link->sent_position = 0;
    link->handed_position = 0;
    link->large_sent = 0;
    link->large_handed = 0;
    link->cause = TURNSTILE_BAD_START;
    link->awaiting = tls != NULL && !link->dialled;
    if (tls != NULL && link->dialled && tls_session_new(tls, &link->tls) != ERR_OK) {
        link_lose(link, LINK_CLOSED_ERROR, "no TLS session could be made");
        return;
    }
    send_hello(link);
    wire->ops->set_reading(wire, true);
}

/* ---- output ---- */

/* DESIGN section 9: hold requests until 16 wait, a response arrives, or none is outstanding. */
static bool must_hold(const struct link *link)
{
    return link->paced && link->state == LINK_READY && !link->urgent &&
           link->held < LINK_PACE_REQUESTS && link->outstanding > link->held;
}

/* Everything in `out` is about to leave. */
static void release_hold(struct link *link)
{
    link->held = 0;
    link->urgent = false;
    if (loop_timer_is_running(&link->hold))
        loop_timer_stop(&link->hold);
}

static err hand_bytes(struct link *link, struct slice bytes)
{
    if (link->tls != NULL)
        return tls_session_write(link->tls, bytes);
    buf_append(&link->plain, bytes.data, bytes.size);
    return ERR_OK;
}

/* Bytes of the stream of large answers, in a frame of their own. */
static err hand_part(struct link *link, struct slice bytes)
{
    buf_clear(&link->part);
    frame_encode(&link->part, &(struct frame){ .kind = FRAME_PART, .body = bytes });
    return hand_bytes(link, buf_slice(&link->part));
}

/* Moves what leaves next into the session, or without one into `plain`: up to WRITE_BYTES_MAX, what
 * the cluster says to itself first. */
static err hand_over(struct link *link)
{
    size_t total = 0;

    while (total < WRITE_BYTES_MAX) {
        enum out_lane lane;
        struct slice next = out_queue_next(&link->out, TURN_BYTES_MAX, &lane);
        if (next.size == 0)
            break;
        err e = lane == OUT_LARGE ? hand_part(link, next) : hand_bytes(link, next);
        if (e != ERR_OK)
            return e;
        out_queue_taken(&link->out, lane, next.size);
        if (lane == OUT_CALLS)
            link->handed_position += next.size;
        else if (lane == OUT_LARGE)
            link->large_handed += next.size;
        total += next.size;
    }
    return ERR_OK;
}

/* What to write next; NULL: nothing. */
static struct buf *gather(struct link *link)
{
    bool holding = link_queued_bytes(link) > 0 && must_hold(link);

    if (holding && !loop_timer_is_running(&link->hold))
        loop_timer_start(&link->hold, LINK_PACE_HOLD_MS_MAX);
    bool sending = link_queued_bytes(link) > 0 && !holding;
    if (sending)
        release_hold(link);
    if (link->tls == NULL) {
        if (sending)
            (void)!hand_over(link);
        return link->plain.size > 0 ? &link->plain : NULL;
    }
    /* A failed session shows, with its reason, when reading. */
    if (sending && tls_session_is_established(link->tls) && hand_over(link) != ERR_OK)
        return NULL;
    if (link->state == LINK_DRAINING && link_queued_bytes(link) == 0)
        tls_session_close(link->tls);
    struct buf *cipher = tls_session_output(link->tls);
    return cipher->size > 0 ? cipher : NULL;
}

static void write_all(struct link *link)
{
    while (!link->writing) {
        struct buf *bytes = gather(link);
        if (bytes == NULL)
            return;
        link->hub->stats.writes++;
        link->hub->stats.bytes_out += bytes->size;
        link->writing = !link->wire->ops->write(link->wire, bytes);
        if (!link->writing)
            out_queue_written(&link->out);
        if (bytes->capacity > KEEP_BYTES_MAX)
            buf_deinit(bytes);
    }
}

/* Lets our HELLO or a TLS alert out before the connection goes, for the peer's log. */
static void lose_after_write(struct link *link, enum link_close_reason reason, const char *text)
{
    CHECK(link->state == LINK_GREETING && !link->parting);
    snprintf(link->parting_text, sizeof link->parting_text, "%s", text);
    link->parting_reason = reason;
    link->parting = true;
    write_all(link);
    if (!link->writing)
        link_lose(link, reason, link->parting_text);
}

static bool lane_is_half_full(const struct link *link, enum out_lane lane)
{
    return out_queue_lane_bytes(&link->out, lane) >= link->hub->out_bytes_max / 2;
}

static void after_write(struct link *link)
{
    if (link->parting) {
        if (!link->writing)
            link_lose(link, link->parting_reason, link->parting_text);
        return;
    }
    if (link->state == LINK_DRAINING && !link->writing && link_queued_bytes(link) == 0) {
        link_lose(link, LINK_CLOSED_LOCAL, "closed here");
        return;
    }
    if (link->full && link->state == LINK_READY && !lane_is_half_full(link, OUT_SYSTEM) &&
        !lane_is_half_full(link, OUT_CALLS) && !lane_is_half_full(link, OUT_LARGE)) {
        link->full = false;
        if (link->handlers.writable != NULL)
            link->handlers.writable(link->handlers.user, link);
    }
}

static void deliver(struct link *link);

void link_flush(struct link *link)
{
    if (link->wire == NULL || link->state == LINK_DIALLING || link->awaiting)
        return;
    if (link->overflowed) {
        link_lose(link, LINK_CLOSED_ERROR, "the peer does not read our responses");
        return;
    }
    uint64_t wire_count = link->wire_count;
    deliver(link);
    if (link->wire_count != wire_count)
        return;
    write_all(link);
    after_write(link);
}

static void wire_written(void *user)
{
    struct link *link = user;

    link->writing = false;
    out_queue_written(&link->out);
    link_flush(link);
}

static bool has_room(const struct link *link, size_t body_bytes, size_t bound)
{
    size_t queued =
        out_queue_lane_bytes(&link->out, out_queue_lane(&link->out, FRAME_RESPONSE, body_bytes));

    return queued == 0 || queued + FRAME_HEADER_SIZE + body_bytes <= bound;
}

bool link_has_room(const struct link *link, size_t body_bytes)
{
    return has_room(link, body_bytes, link->hub->out_bytes_max);
}

bool link_has_reserve(const struct link *link, size_t body_bytes)
{
    return has_room(link, body_bytes, link->hub->out_bytes_max + link->hub->out_bytes_max / 2);
}

err link_send(struct link *link, const struct frame *frame)
{
    size_t waiting =
        out_queue_lane_bytes(&link->out, out_queue_lane(&link->out, frame->kind, frame->body.size));
    size_t queued = waiting + FRAME_HEADER_SIZE + frame->body.size;
    size_t bound = link->hub->out_bytes_max;

    if (link->state != LINK_READY)
        return ERR_UNAVAILABLE;
    if (frame->body.size > link->hub->body_size_max)
        return ERR_TOO_LARGE;
    CHECK(frame->kind >= FRAME_REQUEST && frame->kind <= FRAME_MESSAGE);
    /* An empty queue takes any frame, or a bound below the body limit would stop it for good. */
    if (queued > bound && waiting > 0) {
        link->full = true;
        if (frame->kind != FRAME_RESPONSE)
            return ERR_FULL;
        if (queued > 2 * bound) {
            link->overflowed = true;
            link_mark_dirty(link);
            return ERR_FULL;
        }
    }
    append(link, frame);
    return ERR_OK;
}

/* ---- input ---- */

static void refuse(struct link *link, const struct link_verdict *verdict)
{
    char text[LINK_TEXT_SIZE];

    link_note_refusal(link, verdict);
    snprintf(text, sizeof text, "HELLO refused: %s is '%.64s' there and '%.64s' here",
             link_refusal_field(verdict->refusal), verdict->theirs, verdict->ours);
    lose_after_write(link, LINK_CLOSED_REFUSED, text);
}

static void become_ready(struct link *link)
{
    struct link_hub *hub = link->hub;
    bool worth = (link->attempt & (link->attempt - 1)) == 0;

    link_set_state(link, LINK_READY);
    if ((link->peer.abilities & HELLO_TAKES_PARTS) != 0)
        out_queue_use_parts(&link->out);
    if (!link->dialled) {
        turnstile_prove(hub->turnstile, &link->place, loop_now_ms(hub->loop));
        link->wire->ops->settle(link->wire);
    }
    link->generation = ++hub->generation;
    hub->stats.connects++;
    if (worth)
        log_event(hub->log, link->peer.role == ROLE_CLIENT ? LOG_DEBUG : LOG_INFO, "link.ready",
                  LOG_S("address", link->address), LOG_S("peer", link->peer.name),
                  LOG_S("role", identity_role_name(link->peer.role)),
                  LOG_N("replica_id", link->peer.replica_id));
    link->handlers.ready(link->handlers.user, link, &link->peer);
}

static void take_hello(struct link *link, const struct frame *frame)
{
    struct link_verdict verdict;

    if (frame->kind != FRAME_HELLO) {
        link_lose(link, LINK_CLOSED_ERROR, "the first frame is not HELLO");
        return;
    }
    if (hello_decode(frame->body, &link->peer) != ERR_OK) {
        link_lose(link, LINK_CLOSED_ERROR, "HELLO is malformed");
        return;
    }
    link_judge_hello(link, &verdict);
    if (verdict.refusal != LINK_ADMITTED)
        refuse(link, &verdict);
    else
        become_ready(link);
}

/* True: the frame was dealt with, since a process of the peer's role may not send it. */
static bool forbid(struct link *link, const struct frame *frame)
{
    const struct link_hub *hub = link->hub;
    bool asked =
        frame->kind == FRAME_REQUEST || frame->kind == FRAME_CANCEL || frame->kind == FRAME_MESSAGE;
    struct link_verdict verdict = { .refusal = LINK_REFUSED_METHOD };

    if (!asked || hub->admits == NULL ||
        hub->admits(hub->self.role, link->peer.role, frame->kind, frame->method))
        return false;
    snprintf(verdict.ours, sizeof verdict.ours, "%s", identity_role_name(hub->self.role));
    snprintf(verdict.theirs, sizeof verdict.theirs, "%s: kind %u, method %u",
             identity_role_name(link->peer.role), frame->kind, frame->method);
    link_note_refusal(link, &verdict);
    if (frame->kind == FRAME_REQUEST) {
        struct frame answer = { .kind = FRAME_RESPONSE,
                                .method = frame->method,
                                .request_id = frame->request_id,
                                .status = FRAME_STATUS_FORBIDDEN };
        memcpy(answer.trace, frame->trace, FRAME_TRACE_SIZE);
        (void)!link_send(link, &answer); /* Full: the link is about to end. */
    } else {
        link_lose(link, LINK_CLOSED_ERROR, "a process of that role may not send such a frame");
    }
    return true;
}

static void take_response(struct link *link)
{
    if (link->outstanding > link->held)
        link->outstanding--;
    if (link->held > 0) {
        link->urgent = true;
        link_mark_dirty(link);
    }
}

/* New credit for the peer, once half of what it sends at once was taken, with all that came of it:
 * it makes the other half meanwhile. */
static void give_credit(struct link *link)
{
    if (link->parts_taken < OUT_WINDOW_BYTES / 2)
        return;
    append(link, &(struct frame){ .kind = FRAME_CREDIT, .request_id = link->parts_taken });
    link->parts_taken = 0;
}

/* The next bytes of the peer's large answers. */
static void take_part(struct link *link, struct slice bytes)
{
    uint64_t wire_count = link->wire_count;
    struct frame frame;
    err e = ERR_OK;

    link->parts_taken += bytes.size;
    if (link->parts_taken > OUT_CREDIT_BYTES) {
        link_lose(link, LINK_CLOSED_ERROR, "more parts than there is credit for");
        return;
    }
    memcpy(frame_decoder_reserve(&link->parts, bytes.size), bytes.data, bytes.size);
    frame_decoder_commit(&link->parts, bytes.size);
    while (e == ERR_OK) {
        e = frame_decoder_next(&link->parts, &frame);
        if (e == ERR_OK && frame.kind != FRAME_RESPONSE) {
            link_lose(link, LINK_CLOSED_ERROR, "a part of what is no response");
        } else if (e == ERR_OK) {
            link->hub->stats.frames_in++;
            take_response(link);
            link->handlers.frame(link->handlers.user, link, &frame);
        } else if (e != ERR_NEED) {
            link_lose(link, LINK_CLOSED_ERROR, link->parts.error);
        }
        if (link->wire_count != wire_count || link->state != LINK_READY)
            return;
    }
    give_credit(link);
}

static void take_credit(struct link *link, uint64_t bytes)
{
    if (!out_queue_credit(&link->out, bytes))
        link_lose(link, LINK_CLOSED_ERROR, "more credit than there were parts");
    else if (link_queued_bytes(link) > 0)
        link_mark_dirty(link);
}

static void take_frame(struct link *link, const struct frame *frame)
{
    struct frame pong = { .kind = FRAME_PONG };

    link->hub->stats.frames_in++;
    if (link->state == LINK_GREETING) {
        take_hello(link, frame);
        return;
    }
    if (link->state == LINK_DRAINING && frame->kind == FRAME_CREDIT)
        take_credit(link, frame->request_id);
    if (link->state != LINK_READY)
        return;
    switch (frame->kind) {
    case FRAME_HELLO:
        link_lose(link, LINK_CLOSED_ERROR, "a second HELLO");
        break;
    case FRAME_PING: /* One answer waits at most: a peer that does not read cannot have more. */
        if (out_queue_lane_bytes(&link->out, OUT_SYSTEM) == 0)
            append(link, &pong);
        break;
    case FRAME_PONG:
        break;
    case FRAME_PART:
        take_part(link, frame->body);
        break;
    case FRAME_CREDIT:
        take_credit(link, frame->request_id);
        break;
    case FRAME_RESPONSE:
        take_response(link);
        /* fall through */
    default:
        if (!forbid(link, frame))
            link->handlers.frame(link->handlers.user, link, frame);
    }
}

/* Handshakes that others begin are charged to their share of the loop's time. */
static err read_tls(struct link *link, uint8_t *ret_bytes, size_t *ret_size)
{
    struct turnstile *turnstile = link->hub->turnstile;
    bool shaking = !link->dialled && !tls_session_is_established(link->tls);
    uint64_t begun_us = shaking ? loop_clock_ns() / 1000 : 0;
    err e = tls_session_read(link->tls, ret_bytes, WIRE_READ_SIZE / 4, ret_size);

    if (!shaking)
        return e;
    uint64_t now_us = loop_clock_ns() / 1000;
    turnstile_spend(turnstile, now_us - begun_us, now_us);
    if (tls_session_is_established(link->tls))
        turnstile_completed(turnstile, false);
    return e;
}

/* Plaintext out of the session into the decoder. ERR_NEED: all there is was taken. */
static err decrypt(struct link *link)
{
    size_t size = 0;

    if (link->tls == NULL)
        return ERR_NEED;
    bool was_established = tls_session_is_established(link->tls);
    uint8_t *at = frame_decoder_reserve(&link->decoder, WIRE_READ_SIZE / 4);
    err e = read_tls(link, at, &size);
    frame_decoder_commit(&link->decoder, size);
    /* A flight or an alert to send, or HELLO may leave now; while a write is on its way its end
     * flushes, and to try before would go on for ever. */
    if (!link->writing && (tls_session_output(link->tls)->size > 0 ||
                           (!was_established && tls_session_is_established(link->tls))))
        link_mark_dirty(link);
    return e;
}

static void end_of_tls(struct link *link, err e)
{
    if (e == ERR_CLOSED)
        link_lose(link, LINK_CLOSED_BY_PEER, "closed by the peer");
    else if (link->state == LINK_GREETING)
        lose_after_write(link, LINK_CLOSED_ERROR, tls_session_error(link->tls));
    else
        link_lose(link, LINK_CLOSED_ERROR, tls_session_error(link->tls));
}

/* Frames as long as there are any, no receiver paused, and the connection is still this one. */
static void deliver(struct link *link)
{
    uint64_t wire_count = link->wire_count;
    struct frame frame;

    while (!link->parting && (!link->paused || link->state != LINK_READY)) {
        err e = frame_decoder_next(&link->decoder, &frame);
        if (e == ERR_OK) {
            take_frame(link, &frame);
        } else if (e != ERR_NEED) {
            link_lose(link, LINK_CLOSED_ERROR, link->decoder.error);
        } else {
            e = decrypt(link);
            if (e == ERR_NEED)
                return;
            if (e != ERR_OK)
                end_of_tls(link, e);
        }
        if (link->wire_count != wire_count)
            return;
    }
}

void link_put_out(struct turnstile_place *place, enum turnstile_cause cause)
{
    struct link *link = CONTAINER_OF(place, struct link, place);

    CHECK(link->state == LINK_GREETING && place->state == TURNSTILE_OUT);
    link->cause = cause;
    link_lose(link, LINK_CLOSED_ERROR, "it had not said HELLO when others came");
}

/* A session costs 40 KiB and a handshake some milliseconds: neither is begun for less than a whole
 * record, nor before its turn. */
static void await_record(struct link *link, struct slice bytes)
{
    struct turnstile_place *dropped;

    buf_append(&link->first, bytes.data, bytes.size);
    enum tls_start start = tls_start_of(buf_slice(&link->first));
    if (start == TLS_START_BAD)
        link_lose(link, LINK_CLOSED_ERROR, "the first bytes are no TLS handshake");
    if (start != TLS_START_WHOLE || link->place.waiting)
        return;
    turnstile_wait(link->hub->turnstile, &link->place, &dropped);
    handshakes_arm(&link->hub->handshakes);
    if (dropped != NULL)
        link_put_out(dropped, TURNSTILE_HANDSHAKES);
}

void link_shake(void *user, struct turnstile_place *place)
{
    struct link_hub *hub = user;
    struct link *link = CONTAINER_OF(place, struct link, place);

    CHECK(link->awaiting && link->state == LINK_GREETING);
    link->awaiting = false;
    turnstile_touch(hub->turnstile, place);
    if (tls_session_new(hub->tls_server, &link->tls) != ERR_OK ||
        tls_session_feed(link->tls, buf_slice(&link->first)) != ERR_OK) {
        link_lose(link, LINK_CLOSED_ERROR, "no TLS session could be made");
        return;
    }
    buf_deinit(&link->first);
    link_mark_dirty(link); /* Reads what was fed, and writes. */
}

static void wire_received(void *user, struct slice bytes)
{
    struct link *link = user;

    link->heard_ms = loop_now_ms(link->hub->loop);
    link->heard = true;
    link->hub->stats.bytes_in += bytes.size;
    if (link->parting)
        return;
    if (link->awaiting) {
        await_record(link, bytes);
    } else if (link->tls != NULL) {
        if (tls_session_feed(link->tls, bytes) != ERR_OK) {
            link_lose(link, LINK_CLOSED_ERROR, "too much unread input");
            return;
        }
        deliver(link);
    } else {
        memcpy(frame_decoder_reserve(&link->decoder, bytes.size), bytes.data, bytes.size);
        frame_decoder_commit(&link->decoder, bytes.size);
        deliver(link);
    }
}

static void wire_ended(void *user, bool orderly, const char *text)
{
    struct link *link = user;

    if (link->parting)
        link_lose(link, link->parting_reason, link->parting_text);
    else if (orderly && link->state == LINK_GREETING)
        link_lose(link, LINK_CLOSED_ERROR, "the peer closed before HELLO");
    else
        link_lose(link, orderly ? LINK_CLOSED_BY_PEER : LINK_CLOSED_ERROR, text);
}

static void wire_connected(void *user)
{
    struct link *link = user;

    link_greet(link, link->wire);
}

const struct wire_events link_wire_events = { wire_connected, wire_received, wire_written,
                                              wire_ended };

void link_pause(struct link *link)
{
    if (link->state != LINK_READY || link->paused)
        return;
    link->paused = true;
    link->wire->ops->set_reading(link->wire, false);
}

void link_resume(struct link *link)
{
    if (!link->paused)
        return;
    link->paused = false;
    link->wire->ops->set_reading(link->wire, true);
    link_mark_dirty(link);
}

void link_close(struct link *link)
{
    bool was_ready = link->state == LINK_READY;

    CHECK(link->state != LINK_DEAD);
    if (link->state == LINK_DRAINING) /* From its own `closed`. */
        return;
    loop_timer_stop(&link->redial);
    link->dialled = false;
    if (!was_ready) {
        drop_wire(link);
        link->generation = 0;
        link_set_state(link, LINK_DOWN);
        link_bury(link);
        return;
    }
    link_set_state(link, LINK_DRAINING);
    link->handed_position = link->sent_position; /* It may all still leave: outcome unknown. */
    link->handlers.closed(link->handlers.user, link, LINK_CLOSED_LOCAL, "closed here");
    link->generation = 0;
    link_mark_dirty(link);
}
