#include "runtime/base/nearest.h"

#include <stdio.h>
#include <string.h>

#include "runtime/base/check.h"
#include "runtime/base/utf8.h"

static uint8_t folded(uint8_t c)
{
    if (c == '-')
        return '_';
    return c >= 'A' && c <= 'Z' ? (uint8_t)(c - 'A' + 'a') : c;
}

void nearest_init(struct nearest *nearest, struct slice given)
{
    *nearest = (struct nearest){ 0 };
    if (given.size > NEAREST_BYTES_MAX)
        return;
    nearest->size = given.size;
    for (size_t i = 0; i < given.size; i++)
        nearest->places[folded(given.data[i])] |= UINT64_C(1) << i;
}

/* Hyyro's names: VP and VN are the rises and falls down a column of the table of distances, HP and
 * HN those along a row, D0 the places where the diagonal does not rise. */
uint32_t nearest_distance(const struct nearest *nearest, struct slice name)
{
    uint64_t vp = UINT64_MAX, vn = 0, d0 = 0, matches_before = 0;
    uint32_t distance = (uint32_t)nearest->size;

    if (nearest->size == 0 || name.size == 0 || name.size > NEAREST_BYTES_MAX)
        return UINT32_MAX;
    uint64_t last = UINT64_C(1) << (nearest->size - 1);
    for (size_t i = 0; i < name.size; i++) {
        uint64_t matches = nearest->places[folded(name.data[i])];
        uint64_t swapped = ((~d0 & matches) << 1) & matches_before;

        d0 = (((matches & vp) + vp) ^ vp) | matches | vn | swapped;
        uint64_t hp = vn | ~(d0 | vp);
        uint64_t hn = d0 & vp;
        distance += (hp & last) != 0;
        distance -= (hn & last) != 0;
        hp = hp << 1 | 1;
        hn <<= 1;
        vp = hn | ~(d0 | hp);
        vn = hp & d0;
        matches_before = matches;
    }
    CHECK(distance <= NEAREST_BYTES_MAX);
    return distance;
}

static size_t distance_of_sizes(size_t a, size_t b)
{
    return a > b ? a - b : b - a;
}

/* Whether so far apart is near, of names so long. */
static bool is_near(size_t distance, size_t given, size_t other)
{
    size_t limit = given / 3 > 2 ? given / 3 : 2;
    size_t longer = given > other ? given : other;

    return distance <= limit && distance <= longer / 2;
}

bool nearest_is_near(const struct nearest *nearest, struct slice name)
{
    /* Names are at least as far apart as their sizes are. */
    return is_near(distance_of_sizes(nearest->size, name.size), nearest->size, name.size) &&
           is_near(nearest_distance(nearest, name), nearest->size, name.size);
}

void nearest_offer(struct nearest *nearest, struct slice name)
{
    if (!nearest_is_near(nearest, name))
        return;
    uint32_t distance = nearest_distance(nearest, name);
    if (nearest->name.size > 0 && distance >= nearest->distance)
        return;
    nearest->name = name;
    nearest->distance = distance;
}

void nearest_offer_text(struct nearest *nearest, const char *name)
{
    nearest_offer(nearest, slice_from_text(name));
}

/* How many bytes stand before what may be a secret; all of them where nothing looks like one. */
static size_t size_before_secret(struct slice given)
{
    static const char *const marks[] = { "=", "://", "hf_" };
    size_t size = given.size;

    for (size_t i = 0; i < ARRAY_SIZE(marks); i++) {
        size_t mark = strlen(marks[i]);
        const uint8_t *at = size > 0 ? memmem(given.data, size, marks[i], mark) : NULL;
        if (at != NULL)
            size = (size_t)(at - given.data) + mark;
    }
    CHECK(size <= given.size);
    return size;
}

const char *nearest_show(struct slice given, char ret_text[NEAREST_SHOWN_BYTES])
{
    size_t size = size_before_secret(given);
    bool whole = size == given.size;

    utf8_snippet(ret_text, whole ? NEAREST_SHOWN_BYTES : NEAREST_SHOWN_BYTES - 3,
                 (struct slice){ given.data, size });
    size_t used = strlen(ret_text);
    if (!whole && (used < 3 || strcmp(ret_text + used - 3, "...") != 0))
        memcpy(ret_text + used, "...", 4);
    return ret_text;
}

const char *nearest_hint(struct slice meant, char ret_text[NEAREST_HINT_BYTES])
{
    ret_text[0] = 0;
    if (meant.size > 0)
        snprintf(ret_text, NEAREST_HINT_BYTES, "; did you mean %.*s?", (int)meant.size,
                 (const char *)meant.data);
    return ret_text;
}
