/* Links in the slots of their hub: made, listed to be flushed, buried. */
#include <stdio.h>
#include <stdlib.h>

#include "runtime/base/check.h"
#include "runtime/link/link_private.h"

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
    link->phase_ms = link->heard_ms = loop_now_ms(hub->loop);
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
