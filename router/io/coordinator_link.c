#include "router/io/coordinator_link.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/check.h"

#define FOLLOW_PERIOD_MS 250u

struct coordinator_link {
    struct coordinator_link_options options;
    struct loop_timer timer;
    struct link *link; /* NULL: not dialled. */
    char address[LINK_ADDRESS_SIZE];
    char name[sizeof((struct coordinator_record *)0)->name];
};

static void on_ready(void *user, struct link *link, const struct hello *peer)
{
    (void)user;
    (void)link;
    (void)peer;
}

static void on_frame(void *user, struct link *link, const struct frame *frame)
{
    struct coordinator_link *coordinator = user;

    (void)calls_frame(coordinator->options.calls, link, frame);
}

static void on_closed(void *user, struct link *link, enum link_close_reason reason,
                      const char *text)
{
    struct coordinator_link *coordinator = user;

    (void)reason;
    (void)text;
    calls_closed(coordinator->options.calls, link);
}

static void drop(struct coordinator_link *coordinator)
{
    struct link *link = coordinator->link;

    coordinator->link = NULL;
    coordinator->address[0] = 0;
    if (link != NULL)
        link_close(link);
}

static void follow(void *user)
{
    struct coordinator_link *coordinator = user;
    const struct coordinator_record *elected = shard_map_find_coordinator(coordinator->options.map);

    if (elected == NULL || (strcmp(elected->address, coordinator->address) == 0 &&
                            strcmp(elected->name, coordinator->name) == 0))
        return;
    drop(coordinator);
    snprintf(coordinator->address, sizeof coordinator->address, "%s", elected->address);
    snprintf(coordinator->name, sizeof coordinator->name, "%s", elected->name);
    const struct link_dial_options dial = {
        .transport = LINK_NNG,
        .address = coordinator->address,
        .expect = { .role = ROLE_COORDINATOR, .name = coordinator->name },
        .handlers = { .ready = on_ready,
                      .frame = on_frame,
                      .closed = on_closed,
                      .user = coordinator },
    };
    if (link_dial(coordinator->options.hub, &dial, &coordinator->link) != ERR_OK) {
        coordinator->link = NULL;
        log_event(coordinator->options.log, LOG_ERROR, "coordinator.bad_address",
                  LOG_S("address", coordinator->address));
    }
}

struct coordinator_link *coordinator_link_new(const struct coordinator_link_options *options)
{
    struct coordinator_link *coordinator = mem_zalloc(sizeof *coordinator);

    coordinator->options = *options;
    loop_timer_init(&coordinator->timer, options->loop, follow, coordinator);
    loop_timer_start_repeating(&coordinator->timer, FOLLOW_PERIOD_MS);
    return coordinator;
}

void coordinator_link_free(struct coordinator_link *coordinator)
{
    if (coordinator == NULL)
        return;
    loop_timer_stop(&coordinator->timer);
    drop(coordinator);
    free(coordinator);
}

err coordinator_link_call(struct coordinator_link *coordinator, const struct call_request *request,
                          uint64_t *ret_call)
{
    struct link *link = coordinator->link;

    if (shard_map_find_coordinator(coordinator->options.map) == NULL || link == NULL ||
        !link_is_ready(link))
        return ERR_UNAVAILABLE;
    return call_start(coordinator->options.calls, link, request, ret_call);
}
