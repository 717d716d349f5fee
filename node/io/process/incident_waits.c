#include "node/io/process/incident_waits.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "node/core/codec/proto_scan.h"
#include "runtime/base/check.h"
#include "runtime/loop/mailbox.h"

#define REQUEST_BYTES_MAX 64u /* Four numbers with their tags take 44. */
#define FIELD_WAIT_MS     4u

struct incident_wait {
    struct call_reply reply;
    uint64_t until_ms;
    uint8_t request[REQUEST_BYTES_MAX];
    size_t request_size;
};

struct incident_waits {
    struct incident_waits_options options;
    struct incident_wait list[INCIDENT_WAITS_MAX];
    uint32_t count;
    struct loop_timer timer; /* While some wait. */
    struct mailbox mailbox;
    struct mailbox_node news;
    atomic_bool queued; /* `news` is in the mailbox. */
    struct buf scratch;
};

static void end(struct incident_waits *waits, uint32_t place, bool known)
{
    struct call_reply reply = waits->list[place].reply;
    struct slice body = known ? buf_slice(&waits->scratch) : (struct slice){ 0 };

    waits->list[place] = waits->list[--waits->count];
    if (waits->count == 0)
        loop_timer_stop(&waits->timer);
    waits->options.answer(waits->options.user, &reply, known, body);
}

static bool list(struct incident_waits *waits, struct slice request)
{
    buf_clear(&waits->scratch);
    return waits->options.list(waits->options.user, request, &waits->scratch);
}

/* Answers whatever has waited long enough, or has something to tell. */
static void look(struct incident_waits *waits, bool news)
{
    uint64_t now_ms = loop_now_ms(waits->options.loop);

    for (uint32_t i = waits->count; i > 0; i--) {
        const struct incident_wait *wait = &waits->list[i - 1];
        bool due = now_ms >= wait->until_ms;
        if ((news || due) &&
            (list(waits, (struct slice){ wait->request, wait->request_size }) || due))
            end(waits, i - 1, true);
    }
}

static void on_tick(void *user)
{
    look(user, false);
}

static void on_news(void *user, struct mailbox_node *node)
{
    struct incident_waits *waits = user;

    (void)node;
    (void)atomic_exchange(&waits->queued, false);
    look(waits, true);
}

struct incident_waits *incident_waits_new(const struct incident_waits_options *options)
{
    struct incident_waits *waits = mem_zalloc(sizeof *waits);

    waits->options = *options;
    loop_timer_init(&waits->timer, options->loop, on_tick, waits);
    mailbox_init(&waits->mailbox, options->loop, on_news, waits);
    return waits;
}

void incident_waits_free(struct incident_waits *waits)
{
    if (waits == NULL)
        return;
    loop_timer_stop(&waits->timer);
    mailbox_deinit(&waits->mailbox);
    buf_deinit(&waits->scratch);
    free(waits);
}

void incident_waits_ask(struct incident_waits *waits, const struct call_reply *reply,
                        struct slice request)
{
    uint64_t wait_ms = 0;

    (void)proto_scan_varint(request, FIELD_WAIT_MS, &wait_ms);
    if (list(waits, request) || wait_ms == 0 || request.size > REQUEST_BYTES_MAX ||
        waits->count == INCIDENT_WAITS_MAX) {
        waits->options.answer(waits->options.user, reply, true, buf_slice(&waits->scratch));
        return;
    }
    if (wait_ms > INCIDENT_WAIT_MS_MAX)
        wait_ms = INCIDENT_WAIT_MS_MAX;
    struct incident_wait *wait = &waits->list[waits->count++];
    wait->reply = *reply;
    wait->until_ms = loop_now_ms(waits->options.loop) + wait_ms;
    memcpy(wait->request, request.data, request.size);
    wait->request_size = request.size;
    if (!loop_timer_is_running(&waits->timer))
        loop_timer_start_repeating(&waits->timer, INCIDENT_WAIT_TICK_MS);
}

void incident_waits_added(struct incident_waits *waits)
{
    if (!atomic_exchange(&waits->queued, true))
        mailbox_push(&waits->mailbox, &waits->news);
}

bool incident_waits_cancel(struct incident_waits *waits, const struct call_reply *reply)
{
    for (uint32_t i = 0; i < waits->count; i++) {
        if (waits->list[i].reply.request_id == reply->request_id &&
            waits->list[i].reply.link.generation == reply->link.generation) {
            end(waits, i, false);
            return true;
        }
    }
    return false;
}

void incident_waits_cancel_link(struct incident_waits *waits, uint64_t generation)
{
    for (uint32_t i = waits->count; i > 0; i--) {
        if (waits->list[i - 1].reply.link.generation == generation)
            end(waits, i - 1, false);
    }
}
