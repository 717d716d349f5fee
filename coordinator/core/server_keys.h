/*
 * server_keys: the game servers of each API key, as one: what vanishes is judged for each key by
 * itself (hold.h). A key is known here while a record of a server names it, or a server of it was
 * marked not long ago. For the files of this folder alone.
 */
#ifndef COORDINATOR_CORE_SERVER_KEYS_H
#define COORDINATOR_CORE_SERVER_KEYS_H

#include "coordinator/core/coord_state.h"

/* The server belongs to the key that its record names, and to no other. */
void server_keys_put(struct coord *coord, struct server *server);
/* It belongs to none, as before it had a record. */
void server_keys_drop(struct server *server);

/* One of its servers is marked as expiring now. */
void server_keys_mark(struct coord *coord, struct server_key *key);
/* Forgets marks older than server_window_ms, and keys that have neither a server nor a mark. */
void server_keys_forget(struct coord *coord);

/* No server belongs to any of them. */
void server_keys_free(struct coord *coord);

#endif
