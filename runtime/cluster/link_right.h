/*
 * link_right: what a process may send to another over a link, by their roles (DESIGN section 11).
 * The one table of it; link_hub_options.admits of every process. Which role a process has, its
 * certificate says (runtime/identity). Pure.
 *
 *   to \ from     node                 router                        coordinator     client
 *   node          replication,         public methods that nodes     its calls       -
 *                 channel deliveries   answer; its own internal ones
 *   router        -                    -                             -               public methods
 *   coordinator   reports of owners    its status                    -               -
 *
 * A method that is not in the table is for no one: a new internal method gets its line here.
 */
#ifndef RUNTIME_CLUSTER_LINK_RIGHT_H
#define RUNTIME_CLUSTER_LINK_RIGHT_H

#include "runtime/link/link.h"

/* Whether a process of role `peer` may send a frame of that kind, with that method where it is a
 * REQUEST, to one of role `self`. HELLO, PING, PONG and RESPONSE are the link's own and admitted.
 */
bool link_right(uint8_t self, uint8_t peer, uint8_t kind, uint16_t method);

#endif
