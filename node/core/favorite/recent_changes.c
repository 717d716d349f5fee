#include "node/core/favorite/recent_changes.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/base/check.h"

#define ROOM_FIRST 16u

_Static_assert(RECENT_CHANGES_MAX % ROOM_FIRST == 0, "the room doubles up to all of it");

void recent_changes_deinit(struct recent_changes *recent)
{
    free(recent->ring);
    *recent = (struct recent_changes){ 0 };
}

void recent_changes_forget(struct recent_changes *recent, struct source_dot dot)
{
    recent->from = dot;
    recent->count = 0;
}

static struct recent_change *change_at(const struct recent_changes *recent, uint32_t place)
{
    return &recent->ring[(recent->first + place) % recent->room];
}

/* What was first comes first again, so that there is room behind the last. */
static void grow(struct recent_changes *recent)
{
    uint32_t room = recent->room > 0 ? recent->room * 2 : ROOM_FIRST;
    struct recent_change *ring = mem_zalloc(room * sizeof *ring);

    for (uint32_t i = 0; i < recent->count; i++)
        ring[i] = *change_at(recent, i);
    free(recent->ring);
    recent->ring = ring;
    recent->room = room;
    recent->first = 0;
}

static bool is_noted(const struct recent_changes *recent, struct source_dot dot, uint32_t home)
{
    for (uint32_t i = recent->count; i > 0; i--) {
        const struct recent_change *change = change_at(recent, i - 1);
        if (source_dot_is_above(dot, change->dot))
            return false;
        if (change->home == home)
            return true;
    }
    return false;
}

void recent_changes_note(struct recent_changes *recent, struct source_dot dot, uint32_t home)
{
    if (is_noted(recent, dot, home))
        return;
    if (recent->count == recent->room && recent->room < RECENT_CHANGES_MAX)
        grow(recent);
    if (recent->count == recent->room) {
        recent->passed = change_at(recent, 0)->dot;
        recent->first = (recent->first + 1) % recent->room;
        recent->count--;
    }
    *change_at(recent, recent->count++) = (struct recent_change){ dot, home };
    CHECK(recent->count <= recent->room);
}

bool recent_changes_since(const struct recent_changes *recent, struct source_dot since,
                          uint32_t homes, uint8_t *bits)
{
    if (source_dot_is_above(recent->from, since))
        return false;
    if (source_dot_is_above(recent->passed, since)) {
        memset(bits, 0xff, (homes + 7) / 8);
        return true;
    }
    for (uint32_t i = recent->count; i > 0; i--) {
        const struct recent_change *change = change_at(recent, i - 1);
        if (!source_dot_is_above(change->dot, since))
            break;
        if (change->home < homes)
            bits[change->home / 8] |= (uint8_t)(1u << change->home % 8);
    }
    return true;
}
