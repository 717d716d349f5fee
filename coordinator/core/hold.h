/*
 * hold: whether game servers that are gone wait for others to come back, since too many vanished at
 * once. It decides, and begins and ends holds; expiry.c writes what follows from it.
 *
 * Many that vanish at once are likely our fault (routers down, etcd slow), and freeing all their
 * players would do harm. The servers of one API key are judged by themselves: too many of them gone
 * hold those of that key and no others, for a key may also let its servers lapse on purpose. The
 * servers of all keys are held when too many of all are gone whichever one key is left out: so no
 * key by itself can hold another's.
 *
 * gs/known says since when each server is held, so a new coordinator goes on with the hold instead
 * of beginning another. A held server is expired once server_hold_ms_max passed since then, or
 * enough others came back. It is never held twice: only its own return takes the mark away. Servers
 * that vanished before are not part of the hold; those that vanish while it lasts join it, and do
 * not prolong it, unless they are too many themselves. What is EXPIRING already, also on request of
 * the server itself, is not held.
 *
 * Clocks of coordinators differ. A beginning in the future is written again as now, so that a hold
 * only becomes shorter by it; one that looks long past still waits for server_wait_ms of the
 * coordinator that took over.
 */
#ifndef COORDINATOR_CORE_HOLD_H
#define COORDINATOR_CORE_HOLD_H

#include "coordinator/core/coord_state.h"

/* Looks at all servers: since when each is gone, and what is held from now on. */
void hold_run(struct coord *coord);
/* Whether the server, which is gone, is not to be expired yet. After hold_run. */
bool hold_keeps(const struct coord *coord, const struct server *server);
uint64_t hold_gone_for_ms(const struct coord *coord, const struct server *server);

/* Whether any server waits for others. */
bool hold_is_on(const struct coord *coord);
/* None does, as far as this coordinator decides. */
void hold_drop(struct coord *coord);

#endif
