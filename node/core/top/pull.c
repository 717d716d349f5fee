#include "node/core/top/pull.h"

#include <string.h>

#include "node/core/codec/arena_proto.h"
#include "node/core/favorite/recent_changes.h"
#include "node/core/handler/refusal.h"
#include "node/core/top/top_row.h"

#define NOTES_PAGE    256u
#define EMPTIED_HOMES 64u /* Of which one answer tells. */

_Static_assert(ENTRY_COUNTS_MAX < NOTES_PAGE &&
                   ENTRY_COUNTS_MAX * PULL_ITEM_BYTES_MAX <= PULL_PART_BYTES_MAX,
               "what an entry changes fits into one part");

/* One home's notes, then its items. */
struct page {
    struct read_context *context;
    struct changed_row *notes;
    uint32_t count;
    bool more;
};

static bool take_note(void *user, struct slice key, struct slice value)
{
    struct page *page = user;
    struct changed_row note;

    if (page->count == NOTES_PAGE) {
        page->more = true;
        return false;
    }
    if (changed_row_decode(key, value, &note) != ERR_OK)
        damage_note(page->context->damage, (struct slice){ 0 }, CHANGED_DAMAGE);
    /* Its key says all: left out, the change would stay behind what the home has logged. */
    if (changed_key_parse(key, &note) != ERR_OK)
        return true;
    note.target = arena_copy(page->context->arena, note.target);
    page->notes[page->count++] = note;
    return true;
}

static err read_notes(struct page *page, const struct pull_home *home)
{
    struct row_key prefix, after;

    row_key_changed_prefix(&prefix, home->home);
    changed_key_after(&after, home->home, home->after);
    const struct state_range range = {
        .prefix = row_key_slice(&prefix),
        .after = row_key_slice(&after),
        .limit = NOTES_PAGE + 1, /* One more, to know whether there is more. */
    };
    page->count = 0;
    page->more = false;
    return state_range_visit(page->context->state, &range, page->context->need, take_note, page);
}

static err item_of(struct page *page, const struct changed_row *note, struct buf *out)
{
    struct read_context *context = page->context;
    const struct favorite_key edge = { .collection = note->collection, .target = note->target };
    struct partial_row row;

    err e = partial_find(context->state, &edge, context->need, &row);
    if (e == ERR_CORRUPT) {
        damage_note(context->damage, (struct slice){ 0 }, PARTIAL_DAMAGE);
        return ERR_OK;
    }
    if (e != ERR_OK)
        return e;
    if (memcmp(&row.changed, &note->dot, sizeof note->dot) != 0)
        return ERR_OK; /* A repair left the note alone; another one tells it. */
    const struct pull_item item = {
        .dot = note->dot,
        .collection = note->collection,
        .target = note->target,
        .count = row.count,
        .hours = row.hours,
    };
    pull_item_encode(&item, out);
    return ERR_OK;
}

static bool same_dot(const struct page *page, uint32_t one, uint32_t other)
{
    return memcmp(&page->notes[one].dot, &page->notes[other].dot, sizeof page->notes->dot) == 0;
}

/* How many notes from the one at `first` on are of its entry. */
static uint32_t notes_of_entry(const struct page *page, uint32_t first)
{
    uint32_t end = first + 1;

    while (end < page->count && same_dot(page, first, end))
        end++;
    return end - first;
}

/* What an entry changed goes together: a home that has logged its dot asks for nothing of it again.
 * So a page ends between two entries; one that is one entry alone is told as it is. Every missing
 * row is noted before ERR_NEED. */
static err part_of(struct page *page, const struct pull_home *home, struct buf *items,
                   struct pull_part *ret_part)
{
    err result = read_notes(page, home);

    *ret_part = (struct pull_part){ .home = home->home, .more = page->more, .to = home->after };
    for (uint32_t i = 0, count; i < page->count && result != ERR_CORRUPT; i += count) {
        count = notes_of_entry(page, i);
        bool cut = page->more && i + count == page->count;
        if (i > 0 && (cut || items->size + count * PULL_ITEM_BYTES_MAX > PULL_PART_BYTES_MAX)) {
            ret_part->more = true;
            break;
        }
        for (uint32_t j = i; j < i + count; j++) {
            err e = item_of(page, &page->notes[j], items);
            if (e != ERR_OK)
                result = e;
        }
        ret_part->to = page->notes[i].dot;
    }
    ret_part->items = buf_slice(items);
    return result;
}

/* ---- all homes that ask ---- */
struct asking {
    struct page page;
    struct buf items;
    uint32_t looked; /* Homes whose notes were looked at. */
    struct emptied_home *emptied;
    uint32_t emptied_count;
    struct buf *out;
    size_t before; /* Of its bytes. */
};

static bool is_emptied(const struct asking *asking, const struct pull_home *home)
{
    for (uint32_t i = 0; i < asking->emptied_count; i++) {
        if (asking->emptied[i].home == home->home)
            return !source_dot_is_above(asking->emptied[i].first, home->after);
    }
    return false;
}

/* Of a home for which nothing has changed, no note is looked at; nor beyond PULL_LOOKS_MAX homes.
 */
static err part_for(struct asking *asking, const struct pull_home *home, struct pull_part *ret_part)
{
    struct read_context *context = asking->page.context;
    struct source_dot newest;

    *ret_part = (struct pull_part){ .home = home->home, .to = home->after };
    err e = newest_find(context->state, home->home, context->need, &newest);
    if (e == ERR_CORRUPT)
        damage_note(context->damage, (struct slice){ 0 }, CHANGED_DAMAGE);
    else if (e != ERR_OK || !source_dot_is_above(newest, home->after))
        return e;
    if (asking->looked == PULL_LOOKS_MAX) {
        ret_part->more = true;
        return ERR_OK;
    }
    asking->looked++;
    return part_of(&asking->page, home, &asking->items, ret_part);
}

static bool bit_of(const uint8_t *bits, uint32_t place)
{
    return (bits[place / 8] >> place % 8 & 1) != 0;
}

static bool has_room(const struct asking *asking)
{
    return asking->out->size - asking->before <= PULL_BYTES_MAX - PULL_PART_BYTES_MAX;
}

/* Those that say how far they are. They are no more among the others. */
static err tell_listed(struct asking *asking, struct reader *reader, uint8_t *others)
{
    struct pull_home home;
    struct pull_part part;
    err result = ERR_OK;

    while (has_room(asking) && pull_home_next(reader, &home)) {
        reader->bad |= home.home >= asking->page.context->shard_count;
        if (reader->bad)
            return ERR_OK;
        others[home.home / 8] &= (uint8_t) ~(1u << home.home % 8);
        buf_clear(&asking->items);
        err e = part_for(asking, &home, &part);
        if (e != ERR_OK)
            result = e;
        part.emptied = is_emptied(asking, &home);
        pull_part_encode(&part, asking->out);
    }
    while (pull_home_next(reader, &home)) { /* They say themselves that they were not told. */
        if (home.home < asking->page.context->shard_count)
            others[home.home / 8] &= (uint8_t) ~(1u << home.home % 8);
    }
    return result;
}

/* One that has logged all up to `since`. Where there is no room it is told that there is more: what
 * is left out has nothing. */
static err tell_other(struct asking *asking, uint32_t number, bool changed, struct source_dot since)
{
    const struct pull_home home = { number, since };
    struct pull_part part = { .home = number, .to = since, .more = changed };
    err e = ERR_OK;

    buf_clear(&asking->items);
    if (changed && has_room(asking))
        e = part_for(asking, &home, &part);
    part.emptied = is_emptied(asking, &home);
    if (part.more || part.emptied || source_dot_is_above(part.to, since))
        pull_part_encode(&part, asking->out);
    return e;
}

static err tell_others(struct asking *asking, const uint8_t *others, const uint8_t *changed,
                       struct source_dot since)
{
    const uint32_t homes = asking->page.context->shard_count;
    err result = ERR_OK;

    for (uint32_t i = 0; i < homes; i++) {
        if (others[i / 8] == 0)
            i |= 7; /* None of these eight. */
        else if (bit_of(others, i)) {
            err e = tell_other(asking, i, bit_of(changed, i), since);
            if (e != ERR_OK)
                result = e;
        }
    }
    return result;
}

/* Homes that are wanted: those that are asked for in any case, and with emptied targets or changes.
 */
static bool others_of(const struct asking *asking, const struct pull_asked *asked, uint8_t *others,
                      uint8_t *changed)
{
    const struct read_context *context = asking->page.context;
    const struct source_dot as_of = { context->as_of.epoch, context->as_of.counter };
    const size_t size = (context->shard_count + 7) / 8;

    if (asked->since.epoch == 0 || asked->wanted.size != size ||
        source_dot_is_above(asked->since, as_of) ||
        !recent_changes_since(context->recent, asked->since, context->shard_count, changed))
        return false;
    memcpy(others, changed, size);
    for (uint32_t i = 0; i < asking->emptied_count; i++) {
        uint32_t home = asking->emptied[i].home;
        if (home < context->shard_count) /* Rows may be damaged. */
            others[home / 8] |= (uint8_t)(1u << home % 8);
    }
    for (size_t i = 0; i < size; i++)
        others[i] &= asked->wanted.data[i];
    return true;
}

err pull_read(struct read_context *context, const struct pull_asked *asked, struct buf *out,
              bool *ret_follows)
{
    struct asking asking = { .page.context = context, .out = out, .before = out->size };
    struct reader reader = reader_from(asked->homes);
    const size_t bits = (context->shard_count + 7) / 8;
    uint8_t *others = arena_zalloc(context->arena, bits);
    uint8_t *changed = arena_zalloc(context->arena, bits);

    asking.page.notes = arena_alloc(context->arena, NOTES_PAGE * sizeof *asking.page.notes);
    asking.emptied = arena_alloc(context->arena, EMPTIED_HOMES * sizeof *asking.emptied);
    err result = partials_emptied(context, asking.emptied, EMPTIED_HOMES, &asking.emptied_count);
    bool follows = others_of(&asking, asked, others, changed);
    err listed = tell_listed(&asking, &reader, others);
    err unlisted = follows ? tell_others(&asking, others, changed, asked->since) : ERR_OK;
    buf_deinit(&asking.items);
    *ret_follows = follows || asked->since.epoch == 0;
    if (reader.bad)
        return refuse_invalid(context->arena, context->refusal, "homes",
                              "homes as GetPulled tells them", "");
    result = listed != ERR_OK ? listed : unlisted != ERR_OK ? unlisted : result;
    if (result != ERR_OK)
        out->size = asking.before;
    return result;
}
