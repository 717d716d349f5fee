#include "coordinator/core/server_keys.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/check.h"

#define MARKS_FIRST 8u /* Room for so many; then twice as many. */
#define KEYS_FIRST  16u

/* Where the key is, or belongs. */
static uint32_t place_of(const struct coord *coord, const char *id)
{
    uint32_t low = 0, high = coord->key_count;

    while (low < high) {
        uint32_t middle = low + (high - low) / 2;

        if (strcmp(coord->keys[middle]->id, id) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* One more can be had, in place of those that nothing needs if there are such. */
static void make_room(struct coord *coord)
{
    if (coord->key_count < coord->key_capacity)
        return;
    server_keys_forget(coord);
    if (coord->key_count > coord->key_capacity / 2 || coord->key_capacity == 0) {
        coord->key_capacity = coord->key_capacity == 0 ? KEYS_FIRST : coord->key_capacity * 2;
        coord->keys = mem_realloc(coord->keys, coord->key_capacity * sizeof(struct server_key *));
    }
}

static struct server_key *get_key(struct coord *coord, const char *id)
{
    uint32_t place = place_of(coord, id);

    if (place < coord->key_count && strcmp(coord->keys[place]->id, id) == 0)
        return coord->keys[place];
    make_room(coord);
    place = place_of(coord, id);
    memmove(&coord->keys[place + 1], &coord->keys[place],
            (coord->key_count - place) * sizeof(struct server_key *));
    coord->key_count++;
    coord->keys[place] = mem_zalloc(sizeof(struct server_key));
    (void)snprintf(coord->keys[place]->id, sizeof coord->keys[place]->id, "%s", id);
    return coord->keys[place];
}

void server_keys_put(struct coord *coord, struct server *server)
{
    struct server_key *key = get_key(coord, server->record.key);

    if (server->key == key)
        return;
    server_keys_drop(server);
    server->key = key;
    key->servers++;
}

void server_keys_drop(struct server *server)
{
    if (server->key == NULL)
        return;
    CHECK(server->key->servers > 0);
    server->key->servers--;
    server->key = NULL;
}

/* ---- marks, the oldest first ---- */

void server_keys_mark(struct coord *coord, struct server_key *key)
{
    if (key->mark_count == MARKS_MAX)
        memmove(key->marks_ms, key->marks_ms + 1, --key->mark_count * sizeof *key->marks_ms);
    if (key->mark_count == key->mark_capacity) {
        key->mark_capacity = key->mark_capacity == 0 ? MARKS_FIRST : key->mark_capacity * 2;
        key->marks_ms = mem_realloc(key->marks_ms, key->mark_capacity * sizeof *key->marks_ms);
    }
    key->marks_ms[key->mark_count++] = coord->now_ms;
}

static void forget_marks(const struct coord *coord, struct server_key *key)
{
    uint32_t old = 0;

    while (old < key->mark_count &&
           coord->now_ms - key->marks_ms[old] > coord->limits.server_window_ms)
        old++;
    if (old == 0)
        return;
    key->mark_count -= old;
    memmove(key->marks_ms, key->marks_ms + old, key->mark_count * sizeof *key->marks_ms);
}

static void free_key(struct server_key *key)
{
    CHECK(key->servers == 0);
    free(key->marks_ms);
    free(key);
}

void server_keys_forget(struct coord *coord)
{
    uint32_t kept = 0;

    for (uint32_t i = 0; i < coord->key_count; i++) {
        struct server_key *key = coord->keys[i];

        forget_marks(coord, key);
        if (key->servers > 0 || key->mark_count > 0)
            coord->keys[kept++] = key;
        else
            free_key(key);
    }
    coord->key_count = kept;
}

void server_keys_free(struct coord *coord)
{
    for (uint32_t i = 0; i < coord->key_count; i++)
        free_key(coord->keys[i]);
    free(coord->keys);
    coord->keys = NULL;
    coord->key_count = coord->key_capacity = 0;
}
