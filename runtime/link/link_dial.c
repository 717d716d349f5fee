/* Dialling, again and again, and accepting. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/check.h"
#include "runtime/link/link_private.h"

bool link_transport_find(const char *name, enum link_transport *ret_transport)
{
    bool nng = strcmp(name, "nng") == 0;

    if (!nng && strcmp(name, "peer") != 0)
        return false;
    *ret_transport = nng ? LINK_NNG : LINK_PEER;
    return true;
}

static void dial_now(void *user)
{
    struct link *link = user;
    struct link_hub *hub = link->hub;
    bool nng = link->transport == LINK_NNG;
    char text[WIRE_TEXT_SIZE] = "";
    struct wire_dial dial = { .address = link->target,
                              .attempt = link->attempt,
                              .busy = link->busy,
                              .events = &link_wire_events,
                              .user = link };

    CHECK(link->state == LINK_DOWN);
    link->attempt++;
    link_set_state(link, LINK_DIALLING);
    err e = nng ? wire_nng_dial(&hub->context, &dial, &link->wire, text)
                : wire_uv_dial(&hub->context, &dial, &link->wire, text);
    if (e != ERR_OK)
        link_lose(link, LINK_CLOSED_ERROR, text);
}

static bool are_complete(const struct link_handlers *handlers)
{
    return handlers->ready != NULL && handlers->frame != NULL && handlers->closed != NULL;
}

err link_dial(struct link_hub *hub, const struct link_dial_options *options, struct link **ret_link)
{
    struct wire_address target;

    CHECK(are_complete(&options->handlers));
    if (wire_address_parse(options->address, &target) != ERR_OK || target.port == 0)
        return ERR_INVALID;
    struct link *link = link_new(hub, &options->handlers, options->address);
    if (link == NULL)
        return ERR_FULL;
    link->dialled = true;
    link->paced = options->paced;
    link->transport = options->transport;
    link->busy = options->busy;
    link->target = target;
    link->expected.role = options->expect.role;
    link->expected.replica_id = options->expect.replica_id;
    snprintf(link->expected.name, sizeof link->expected.name, "%s",
             options->expect.name != NULL ? options->expect.name : "");
    link->backoff_ms = LINK_BACKOFF_MS_MIN;
    loop_timer_init(&link->redial, hub->loop, dial_now, link);
    loop_timer_start(&link->redial, 0);
    *ret_link = link;
    return ERR_OK;
}

bool link_enter(struct link *link)
{
    struct link_hub *hub = link->hub;
    struct turnstile_visit visit = { .now_ms = loop_now_ms(hub->loop) };
    struct turnstile_place *victim;
    enum turnstile_cause cause;

    (void)address_parse(link->address, &visit.address);
    if (!turnstile_enter(hub->turnstile, &link->place, &visit, &victim, &cause))
        return false;
    if (victim != NULL)
        link_put_out(victim, cause);
    return true;
}

/* `link` may be NULL. */
static void refuse(struct link_hub *hub, struct link *link, const char *from)
{
    struct address address;

    (void)address_parse(from, &address);
    if (link != NULL)
        link_bury(link);
    else
        turnstile_count(hub->turnstile, TURNSTILE_FULL);
    refused_log_add(&hub->refused, TURNSTILE_FULL, &address, "links_max is reached",
                    loop_now_ms(hub->loop));
}

static void accepted(void *user, struct wire *wire, const char *from)
{
    struct link_listener *listener = user;
    struct link *link = link_new(listener->hub, &listener->handlers, from);

    if (link == NULL || !link_enter(link)) {
        refuse(listener->hub, link, from);
        wire->ops->close(wire);
        return;
    }
    link->transport = listener->transport;
    link->roles = listener->roles;
    link->out.budget = listener->hub->answers;
    link->attempt = 1;
    wire->events = &link_wire_events;
    wire->user = link;
    link_greet(link, wire);
}

err link_listen(struct link_hub *hub, const struct link_listen_options *options,
                struct link_listener **ret_listener)
{
    struct link_listener *listener = mem_zalloc(sizeof *listener);
    bool nng = options->transport == LINK_NNG;
    char text[WIRE_TEXT_SIZE] = "not host:port";
    struct wire_listen listen = { .busy = options->busy, .accepted = accepted, .user = listener };

    CHECK(are_complete(&options->handlers));
    listener->hub = hub;
    listener->transport = options->transport;
    listener->roles = options->roles;
    listener->handlers = options->handlers;
    err e = wire_address_parse(options->address, &listen.address);
    if (e == ERR_OK)
        e = nng ? wire_nng_listen(&hub->context, &listen, &listener->wire, text)
                : wire_uv_listen(&hub->context, &listen, &listener->wire, text);
    if (e != ERR_OK) {
        log_event(hub->log, LOG_ERROR, "link.listen_failed", LOG_S("address", options->address),
                  LOG_S("text", text));
        free(listener);
        return e;
    }
    listener->next = hub->listeners;
    hub->listeners = listener;
    *ret_listener = listener;
    return ERR_OK;
}

uint16_t link_listener_port(const struct link_listener *listener)
{
    return listener->wire->port;
}

void link_listener_close(struct link_listener *listener)
{
    struct link_listener **at = &listener->hub->listeners;

    while (*at != NULL && *at != listener)
        at = &(*at)->next;
    CHECK(*at == listener);
    *at = listener->next;
    listener->wire->close(listener->wire);
    free(listener);
}
