/* The links of one loop: their slots, the end of a round, the regular tick. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/check.h"
#include "runtime/link/link_private.h"

#define DRAIN_MS_MAX 1000u
#define FREE_MS_MAX  10000u /* link_hub_free waits this long for the transports. */

void link_mark_dirty(struct link *link)
{
    struct link_hub *hub = link->hub;

    if (link->dirty)
        return;
    link->dirty = true;
    link->next_dirty = hub->dirty;
    hub->dirty = link;
    loop_hook_arm(&hub->round_end);
}

static void hold_over(void *user)
{
    struct link *link = user;

    link->urgent = true;
    link_mark_dirty(link);
}

struct link *link_new(struct link_hub *hub, const struct link_handlers *handlers,
                      const char *address)
{
    uint32_t slot = 0;

    if (hub->link_count == hub->link_count_max)
        return NULL;
    while (hub->slots[slot] != NULL)
        slot++;
    struct link *link = mem_zalloc(sizeof *link);
    link->hub = hub;
    link->handlers = *handlers;
    link->slot = slot;
    link->phase_ms = link->heard_ms = link->lost_ms = loop_now_ms(hub->loop);
    snprintf(link->address, sizeof link->address, "%s", address);
    loop_timer_init(&link->hold, hub->loop, hold_over, link);
    loop_timer_init(&link->redial, hub->loop, NULL, NULL);
    hub->slots[slot] = link;
    hub->link_count++;
    return link;
}

void link_bury(struct link *link)
{
    struct link_hub *hub = link->hub;

    CHECK(link->state == LINK_DOWN && link->wire == NULL);
    link->state = LINK_DEAD;
    loop_timer_stop(&link->redial);
    hub->slots[link->slot] = NULL;
    hub->link_count--;
    link->next_dead = hub->dead;
    hub->dead = link;
    loop_hook_arm(&hub->round_end);
}

static void end_round(void *user)
{
    struct link_hub *hub = user;

    while (hub->dirty != NULL) {
        struct link *link = hub->dirty;
        hub->dirty = link->next_dirty;
        link->dirty = false;
        link_flush(link);
    }
    while (hub->dead != NULL) {
        struct link *link = hub->dead;
        hub->dead = link->next_dead;
        free(link);
    }
}

/* When the process itself was stopped, or the machine asleep, no peer could be heard: shift
 * the clocks instead of blaming the peers. */
static void forgive_own_pause(struct link_hub *hub, uint64_t now_ms)
{
    uint64_t gap_ms = now_ms - hub->tick_ms;

    hub->tick_ms = now_ms;
    if (gap_ms <= 2u * hub->ping_period_ms)
        return;
    uint64_t lost_ms = gap_ms - hub->ping_period_ms;
    for (uint32_t i = 0; i < hub->link_count_max; i++) {
        struct link *link = hub->slots[i];
        if (link == NULL)
            continue;
        link->heard_ms = link->heard_ms + lost_ms < now_ms ? link->heard_ms + lost_ms : now_ms;
        link->phase_ms = link->phase_ms + lost_ms < now_ms ? link->phase_ms + lost_ms : now_ms;
    }
}

static void check_link(struct link *link, uint64_t now_ms)
{
    struct link_hub *hub = link->hub;
    char text[LINK_TEXT_SIZE];

    switch (link->state) {
    case LINK_DIALLING:
    case LINK_GREETING:
        if (now_ms - link->phase_ms > LINK_CONNECT_MS_MAX) {
            snprintf(text, sizeof text, "no connection within %u ms", LINK_CONNECT_MS_MAX);
            link_lose(link, LINK_CLOSED_ERROR, text);
        }
        break;
    case LINK_READY:
        if (now_ms - link->heard_ms > hub->silent_close_ms) {
            snprintf(text, sizeof text, "nothing heard for %u ms", hub->silent_close_ms);
            link_lose(link, LINK_CLOSED_ERROR, text);
        } else {
            link_send_ping(link);
        }
        break;
    case LINK_DRAINING:
        if (now_ms - link->phase_ms > DRAIN_MS_MAX)
            link_lose(link, LINK_CLOSED_LOCAL, "closed here");
        break;
    case LINK_DOWN:
    case LINK_DEAD:
        break;
    }
}

static void tick(void *user)
{
    struct link_hub *hub = user;
    uint64_t now_ms = loop_now_ms(hub->loop);

    forgive_own_pause(hub, now_ms);
    for (uint32_t i = 0; i < hub->link_count_max; i++)
        if (hub->slots[i] != NULL)
            check_link(hub->slots[i], now_ms);
}

static uint32_t value_or(uint32_t value, uint32_t fallback)
{
    return value != 0 ? value : fallback;
}

static err check_options(const struct link_hub_options *options)
{
    const char *wrong = NULL;

    if (options->self.cluster_id[0] == 0)
        wrong = "cluster_id is empty";
    else if (options->self.role == 0 || options->self.role >= ROLE_END)
        wrong = "role is unknown";
    else if ((options->tls_client == NULL) != (options->tls_server == NULL))
        wrong = "tls_client and tls_server go together";
    else if (options->tls_client != NULL && (tls_config_side(options->tls_client) != TLS_CLIENT ||
                                             tls_config_side(options->tls_server) != TLS_SERVER))
        wrong = "tls_client or tls_server is of the other side";
    if (wrong == NULL)
        return ERR_OK;
    log_event(options->log, LOG_ERROR, "link.bad_options", LOG_S("text", wrong));
    return ERR_INVALID;
}

err link_hub_new(const struct link_hub_options *options, struct link_hub **ret_hub)
{
    CHECK(options->loop != NULL && options->log != NULL);
    err e = check_options(options);
    if (e != ERR_OK)
        return e;
    struct link_hub *hub = mem_zalloc(sizeof *hub);
    hub->loop = options->loop;
    hub->log = options->log;
    hub->self = options->self;
    if (hub->self.protocol_version == 0)
        hub->self.protocol_version = LINK_PROTOCOL_VERSION;
    hub->body_size_max = value_or(options->body_size_max, FRAME_BODY_SIZE_MAX);
    hub->out_bytes_max = value_or(options->out_bytes_max, LINK_OUT_BYTES_MAX);
    hub->link_count_max = value_or(options->link_count_max, LINK_COUNT_MAX);
    hub->ping_period_ms = value_or(options->ping_period_ms, LINK_PING_PERIOD_MS);
    hub->silent_close_ms = value_or(options->silent_close_ms, LINK_SILENT_CLOSE_MS);
    hub->context.look_max = WIRE_LOOK_MAX;
    hub->slots = mem_zalloc(hub->link_count_max * sizeof(struct link *));
    hub->context.loop = hub->loop;
    hub->context.read_buffer = mem_alloc(WIRE_READ_SIZE);
    link_hub_set_tls(hub, options->tls_client, options->tls_server);
    loop_hook_init_late(&hub->round_end, hub->loop, end_round, hub);
    loop_timer_init(&hub->tick, hub->loop, tick, hub);
    hub->tick_ms = loop_now_ms(hub->loop);
    loop_timer_start_repeating(&hub->tick, hub->ping_period_ms);
    *ret_hub = hub;
    return ERR_OK;
}

void link_hub_close_links(struct link_hub *hub, const void *user)
{
    for (uint32_t i = 0; i < hub->link_count_max; i++) {
        if (hub->slots[i] != NULL && hub->slots[i]->handlers.user == user)
            link_close(hub->slots[i]);
    }
}

static bool is_quiet(void *user)
{
    struct link_hub *hub = user;

    return hub->link_count == 0 && hub->context.open == 0 && hub->dead == NULL;
}

void link_hub_free(struct link_hub *hub)
{
    if (hub == NULL)
        return;
    while (hub->listeners != NULL)
        link_listener_close(hub->listeners);
    for (uint32_t i = 0; i < hub->link_count_max; i++)
        if (hub->slots[i] != NULL)
            link_close(hub->slots[i]);
    CHECK(loop_run_until(hub->loop, is_quiet, hub, FREE_MS_MAX));
    loop_timer_stop(&hub->tick);
    loop_hook_disarm(&hub->round_end);
    if (hub->context.mailbox_started)
        mailbox_deinit(&hub->context.mailbox);
    tls_config_free(hub->tls_client);
    tls_config_free(hub->tls_server);
    free(hub->context.read_buffer);
    free(hub->slots);
    free(hub);
}

void link_hub_set_tls(struct link_hub *hub, struct tls_config *client, struct tls_config *server)
{
    struct tls_config *old_client = hub->tls_client, *old_server = hub->tls_server;

    CHECK((client == NULL) == (server == NULL));
    hub->tls_client = client != NULL ? tls_config_hold(client) : NULL;
    hub->tls_server = server != NULL ? tls_config_hold(server) : NULL;
    tls_config_free(old_client);
    tls_config_free(old_server);
}

struct link_stats link_hub_stats(const struct link_hub *hub)
{
    return hub->stats;
}

struct link *link_find(struct link_hub *hub, struct link_ref ref)
{
    if (ref.generation == 0 || ref.slot >= hub->link_count_max)
        return NULL;
    struct link *link = hub->slots[ref.slot];
    return link != NULL && link->generation == ref.generation ? link : NULL;
}

struct link_ref link_ref(const struct link *link)
{
    if (link->generation == 0)
        return (struct link_ref){ 0 };
    return (struct link_ref){ link->generation, link->slot };
}

bool link_is_ready(const struct link *link)
{
    return link->state == LINK_READY;
}

uint64_t link_idle_ms(const struct link *link)
{
    return loop_now_ms(link->hub->loop) - link->heard_ms;
}

uint64_t link_down_ms(const struct link *link)
{
    return link->state == LINK_READY ? 0 : loop_now_ms(link->hub->loop) - link->lost_ms;
}

const struct hello *link_peer_hello(const struct link *link)
{
    return link->state == LINK_READY ? &link->peer : NULL;
}

const char *link_address(const struct link *link)
{
    return link->address;
}

uint64_t link_sent_position(const struct link *link)
{
    return link->sent_position;
}

uint64_t link_handed_position(const struct link *link)
{
    return link->handed_position;
}

void link_set_data(struct link *link, void *data)
{
    link->data = data;
}

void *link_data(const struct link *link)
{
    return link->data;
}
