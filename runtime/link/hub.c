/* The links of one loop: the end of a round, the regular tick. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/check.h"
#include "runtime/link/link_private.h"

#define DRAIN_MS_MAX  1000u
#define RESERVED_PART 8u /* Of the links: for those dialled; of the rest: for known addresses. */
#define FREE_MS_MAX   10000u /* link_hub_free waits this long for the transports. */

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
        link->cause = TURNSTILE_TIMEOUT;
        if (!link->dialled && !link->heard && now_ms - link->phase_ms > LINK_FIRST_MS_MAX) {
            snprintf(text, sizeof text, "nothing came within %u ms", LINK_FIRST_MS_MAX);
            link_lose(link, LINK_CLOSED_ERROR, text);
        } else if (now_ms - link->phase_ms > LINK_CONNECT_MS_MAX) {
            snprintf(text, sizeof text, "no connection within %u ms", LINK_CONNECT_MS_MAX);
            link_lose(link, LINK_CLOSED_ERROR, text);
        } else {
            link->cause = TURNSTILE_BAD_START;
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
    refused_log_tick(&hub->refused, now_ms);
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
    else if (options->cluster != NULL && strlen(options->cluster) > IDENTITY_CLUSTER_SIZE_MAX)
        wrong = "cluster has over 63 bytes";
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

static void turnstile_start(struct link_hub *hub, const struct link_hub_options *options)
{
    uint32_t places = hub->link_count_max - hub->link_count_max / RESERVED_PART;

    hub->turnstile = turnstile_new(&(struct turnstile_limits){
        .places_max = places,
        .reserved = places / RESERVED_PART,
        .unproven_max = value_or(options->unproven_max, LINK_UNPROVEN_MAX),
        .unproven_address_max = value_or(options->unproven_address_max, LINK_UNPROVEN_ADDRESS_MAX),
        .handshakes_per_s = value_or(options->handshakes_per_s, LINK_HANDSHAKES_PER_S),
        .handshakes_address_per_s =
            value_or(options->handshakes_address_per_s, LINK_HANDSHAKES_ADDRESS_PER_S),
        .handshake_percent = value_or(options->handshake_percent, LINK_HANDSHAKE_PERCENT),
        .seed = loop_clock_ns(),
    });
    hub->refused = (struct refused_log){ .log = hub->log, .port = "links" };
    hub->handshakes = (struct handshakes){
        .loop = hub->loop, .turnstile = hub->turnstile, .begin = link_shake, .user = hub
    };
    handshakes_start(&hub->handshakes);
}

static void register_refusals(struct link_hub *hub, struct metrics *metrics)
{
    for (int i = LINK_ADMITTED + 1; metrics != NULL && i < LINK_REFUSALS; i++) {
        const struct metric_label labels[] = {
            { "reason", link_refusal_name((enum link_refusal)i) }, { NULL, NULL }
        };
        hub->refusals[i] = metrics_counter(
            metrics, &(struct metric_info){ .name = "holdfast_link_refused_total",
                                            .help = "HELLOs and frames of links that were refused, "
                                                    "by reason.",
                                            .labels = labels });
    }
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
    hub->self.abilities |= HELLO_TAKES_PARTS;
    if (hub->self.protocol_version == 0)
        hub->self.protocol_version = LINK_PROTOCOL_VERSION;
    snprintf(hub->cluster, sizeof hub->cluster, "%s",
             options->cluster != NULL ? options->cluster : "");
    hub->names = options->names;
    hub->admits = options->admits;
    register_refusals(hub, options->metrics);
    hub->body_size_max = value_or(options->body_size_max, FRAME_BODY_SIZE_MAX);
    hub->out_bytes_max = value_or(options->out_bytes_max, LINK_OUT_BYTES_MAX);
    hub->link_count_max = value_or(options->link_count_max, LINK_COUNT_MAX);
    hub->ping_period_ms = value_or(options->ping_period_ms, LINK_PING_PERIOD_MS);
    hub->silent_close_ms = value_or(options->silent_close_ms, LINK_SILENT_CLOSE_MS);
    hub->answers = options->answers;
    hub->context.look_max = WIRE_LOOK_MAX;
    hub->slots = mem_zalloc(hub->link_count_max * sizeof(struct link *));
    hub->context.loop = hub->loop;
    hub->context.read_buffer = mem_alloc(WIRE_READ_SIZE);
    turnstile_start(hub, options);
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
    handshakes_stop(&hub->handshakes);
    turnstile_free(hub->turnstile);
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
    link_check_own(hub);
}

struct link_stats link_hub_stats(const struct link_hub *hub)
{
    return hub->stats;
}

const struct turnstile_stats *link_hub_turnstile(const struct link_hub *hub)
{
    return turnstile_stats(hub->turnstile);
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

const struct hello *link_peer_hello(const struct link *link)
{
    return link->state == LINK_READY ? &link->peer : NULL;
}

const struct identity *link_identity(const struct link *link)
{
    return link->identity.role != 0 ? &link->identity : NULL;
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

struct link_mark link_mark_of(const struct link *link, size_t body_bytes)
{
    bool large = out_queue_lane(&link->out, FRAME_RESPONSE, body_bytes) == OUT_LARGE;

    return (struct link_mark){ link_ref(link), large ? link->large_sent : link->sent_position,
                               large };
}

bool link_has_left(struct link_hub *hub, const struct link_mark *mark)
{
    const struct link *link = link_find(hub, mark->link);

    return link == NULL ||
           (mark->large ? link->large_handed : link->handed_position) >= mark->position;
}

void link_set_data(struct link *link, void *data)
{
    link->data = data;
}

void *link_data(const struct link *link)
{
    return link->data;
}
