#include "router/core/incident_cursor.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "router/core/refusal.h"
#include "runtime/base/check.h"
#include "runtime/cluster/incarnation.h"

#define PLACE_BYTES_MAX 64u /* Three numbers of 20 digits, and what separates them. */

static bool number_take(struct slice *text, char end, uint64_t *ret_number)
{
    size_t size = 0;

    while (size < text->size && text->data[size] != (uint8_t)end)
        size++;
    if (decimal_parse((struct slice){ text->data, size }, ret_number) != ERR_OK)
        return false;
    size += size < text->size;
    *text = (struct slice){ text->data + size, text->size - size };
    return true;
}

static bool places_parse(struct slice text, struct incident_cursor *cursor)
{
    while (text.size > 0) {
        struct incident_place place;
        if (cursor->count == CLUSTER_NODES_MAX || !number_take(&text, '.', &place.replica_id) ||
            !number_take(&text, '.', &place.life) || !number_take(&text, ',', &place.after) ||
            incident_cursor_find(cursor, place.replica_id) != NULL)
            return false;
        cursor->places[cursor->count++] = place;
    }
    return true;
}

err incident_cursor_parse(struct slice text, struct arena *arena,
                          struct incident_cursor *ret_cursor, Holdfast__V1__ErrorDetail *ret_detail)
{
    ret_cursor->count = 0;
    if (places_parse(text, ret_cursor))
        return ERR_OK;
    ret_cursor->count = 0;
    refusal_make_field(arena, ret_detail,
                       &(struct refusal_field){ "cursor", "next_cursor of the page before", text },
                       "not a cursor of this list");
    return ERR_INVALID;
}

char *incident_cursor_print(const struct incident_cursor *cursor, struct arena *arena)
{
    size_t size = (size_t)PLACE_BYTES_MAX * cursor->count + 1;
    char *text = arena_alloc(arena, size);
    size_t used = 0;

    text[0] = 0;
    for (uint32_t i = 0; i < cursor->count; i++) {
        const struct incident_place *place = &cursor->places[i];
        int more = snprintf(text + used, size - used, "%s%" PRIu64 ".%" PRIu64 ".%" PRIu64,
                            i > 0 ? "," : "", place->replica_id, place->life, place->after);
        CHECK(more > 0 && (size_t)more < size - used);
        used += (size_t)more;
    }
    return text;
}

static struct incident_place *place_find(const struct incident_cursor *cursor, uint64_t replica_id)
{
    for (uint32_t i = 0; i < cursor->count; i++) {
        if (cursor->places[i].replica_id == replica_id)
            return (struct incident_place *)(uintptr_t)&cursor->places[i];
    }
    return NULL;
}

const struct incident_place *incident_cursor_find(const struct incident_cursor *cursor,
                                                  uint64_t replica_id)
{
    return place_find(cursor, replica_id);
}

bool incident_cursor_advance(struct incident_cursor *cursor, const struct incident_place *place)
{
    struct incident_place *known = place_find(cursor, place->replica_id);
    bool forgotten = known != NULL && known->life != place->life;

    if (known == NULL) {
        if (cursor->count == CLUSTER_NODES_MAX) {
            cursor->count--;
            memmove(cursor->places, cursor->places + 1, cursor->count * sizeof *cursor->places);
        }
        known = &cursor->places[cursor->count++];
    }
    *known = *place;
    return forgotten;
}
