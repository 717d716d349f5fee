#include "tests/sim/cores/node/papers.h"

#include <inttypes.h>
#include <string.h>

#include "runtime/base/buf.h"
#include "runtime/base/check.h"

const struct paper_leaf paper_leaves[PAPER_LEAVES] = {
    { "/a", "", "\"a\":", "" },
    { "/b~1c", "", "\"b/c\":", "" },
    { "/n~0m", "", "\"n~m\":", "" },
    { "/o/p/q", "o", "\"p\":{\"q\":", "}" },
    { "/o/x", "o", "\"x\":", "" },
    { "/o/y", "o", "\"y\":", "" },
    [PAPER_WHOLE] = { "/o", "", "\"o\":", "" },
    { "/o-", "", "\"o-\":", "" },
};
const char *const paper_names[PAPER_NAMES] = { "a", "b-c", "m.k", "n n", "\xc3\xa9" };

char *paper_tree_print(struct rsim *sim, const struct paper_tree *tree, bool loose)
{
    const char *outer = "", *comma = "";
    struct buf out = { 0 };

    buf_printf(&out, "{");
    for (uint32_t i = 0; i < PAPER_LEAVES; i++) {
        const struct paper_leaf *leaf = &paper_leaves[i];

        if (tree->leaves[i] == NULL)
            continue;
        if (outer[0] != 0 && leaf->outer[0] == 0)
            buf_printf(&out, "}");
        buf_printf(&out, "%s%s", comma, loose ? "\n " : "");
        if (outer[0] == 0 && leaf->outer[0] != 0)
            buf_printf(&out, "\"%s\":{", leaf->outer);
        buf_printf(&out, "%s%s%s%s", leaf->open, loose ? "  " : "", tree->leaves[i], leaf->close);
        outer = leaf->outer;
        comma = ",";
    }
    buf_printf(&out, outer[0] != 0 ? "}}" : "}");
    char *text = arena_printf(&sim->arena, "%.*s", (int)out.size, (const char *)out.data);

    buf_deinit(&out);
    return text;
}

/* ---- what stands ---- */

static bool stands(const struct paper_part *part, uint64_t known)
{
    return (known >> part->write & 1) != 0 && (part->gone & known) == 0;
}

static uint64_t part_bytes(const struct paper *paper, const struct paper_part *part)
{
    uint64_t size = part->text != NULL ? strlen(part->text) : 0;

    if (paper->policy == MERGE_POLICY_MERGE)
        return size + strlen(paper_leaves[part->place].path) - 1;
    return paper->policy == MERGE_POLICY_SET ? strlen(paper_names[part->place]) : size;
}

uint32_t paper_count(const struct paper *paper, uint64_t known)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < paper->part_count; i++)
        count += stands(&paper->parts[i], known);
    return count;
}

uint64_t paper_bytes(const struct paper *paper, uint64_t known)
{
    uint64_t bytes = 0;

    for (uint32_t i = 0; i < paper->part_count; i++) {
        if (stands(&paper->parts[i], known))
            bytes += part_bytes(paper, &paper->parts[i]);
    }
    return bytes;
}

uint64_t paper_standing(const struct paper *paper, uint64_t known, uint64_t op)
{
    uint64_t attempts = 0;

    for (uint32_t i = 0; i < paper->part_count && op != 0; i++) {
        const struct paper_part *part = &paper->parts[i];

        if (stands(part, known) && paper->writes[part->write].op == op)
            attempts |= 1ull << part->write;
    }
    return attempts;
}

bool paper_knows(const struct paper *paper, uint64_t known, uint64_t op)
{
    bool knows = false;

    for (uint32_t i = 0; i < paper->write_count; i++)
        knows |= op != 0 && (known >> i & 1) != 0 && paper->writes[i].op == op;
    return knows;
}

bool paper_lags(const struct paper *paper, uint32_t member, uint64_t seen)
{
    bool lags = false;

    for (uint32_t i = 0; i < paper->part_count; i++)
        lags |=
            stands(&paper->parts[i], paper->known[member]) && (paper->parts[i].gone & seen) != 0;
    return lags;
}

/* ---- writes ---- */

static bool is_inside(uint32_t place, uint32_t above)
{
    return above == PAPER_WHOLE && paper_leaves[place].outer[0] != 0;
}

static bool takes(const struct paper *paper, uint32_t member, const struct paper_plan *plan,
                  const struct paper_part *part)
{
    bool here = stands(part, paper->known[member]), seen = (plan->seen >> part->write & 1) != 0;
    bool tree = paper->policy == MERGE_POLICY_MERGE;

    if (paper->policy == MERGE_POLICY_VECTOR && (plan->has_context || !plan->whole))
        return seen || (here && (plan->own >> part->write & 1) != 0);
    if (plan->whole)
        return here || (seen && paper->policy != MERGE_POLICY_COUNTER);
    if (!here || paper->policy == MERGE_POLICY_COUNTER)
        return false;
    for (uint32_t i = 0; i < plan->place_count; i++) {
        if (part->place == plan->places[i] || (tree && is_inside(part->place, plan->places[i])))
            return true;
    }
    for (uint32_t i = 0; i < plan->add_count; i++) {
        uint32_t place = plan->adds[i].place;

        if (part->place == place ||
            (tree && (is_inside(part->place, place) || is_inside(place, part->place))))
            return true;
    }
    return false;
}

struct paper_left paper_left(const struct paper *paper, uint32_t member,
                             const struct paper_plan *plan)
{
    struct paper_left left = { .count = plan->add_count };

    for (uint32_t i = 0; i < plan->add_count; i++)
        left.own_bytes += part_bytes(paper, &plan->adds[i]);
    left.bytes = left.own_bytes;
    for (uint32_t i = 0; i < paper->part_count; i++) {
        const struct paper_part *part = &paper->parts[i];

        if (!stands(part, paper->known[member]) || takes(paper, member, plan, part))
            continue;
        left.count++;
        left.bytes += part_bytes(paper, part);
    }
    return left;
}

bool paper_has_room(const struct paper *paper)
{
    return paper->write_count < PAPER_WRITES_MAX &&
           paper->part_count + PAPER_ADDS_MAX <= PAPER_PARTS_MAX;
}

uint32_t paper_write(struct paper *paper, uint32_t member, const struct paper_plan *plan)
{
    uint32_t write = paper->write_count++;
    bool counted =
        paper->policy == MERGE_POLICY_COUNTER && paper_knows(paper, paper->known[member], plan->op);

    CHECK(write < PAPER_WRITES_MAX);
    if (plan->add_count == 0 && !plan->has_context && paper_count(paper, paper->known[member]) == 0)
        paper->idle |= 1ull << write;
    for (uint32_t i = 0; i < paper->part_count; i++) {
        if (takes(paper, member, plan, &paper->parts[i]))
            paper->parts[i].gone |= 1ull << write;
    }
    paper->writes[write].op = plan->op;
    paper->writes[write].at_ms = plan->at_ms;
    paper->known[member] |= 1ull << write;
    for (uint32_t i = 0; i < plan->add_count && !counted; i++) {
        struct paper_part part = plan->adds[i];

        CHECK(paper->part_count < PAPER_PARTS_MAX);
        part.write = write;
        part.gone = 0;
        paper->parts[paper->part_count++] = part;
    }
    return write;
}

/* ---- what is shown ---- */

static uint64_t at_of(const struct paper *paper, const struct paper_part *part)
{
    return paper->writes[part->write].at_ms;
}

/* Of each place the latest. */
static void choose(const struct paper *paper, uint64_t known,
                   const struct paper_part *ret_latest[PAPER_LEAVES])
{
    for (uint32_t i = 0; i < PAPER_LEAVES; i++)
        ret_latest[i] = NULL;
    for (uint32_t i = 0; i < paper->part_count; i++) {
        const struct paper_part *part = &paper->parts[i], **at = &ret_latest[part->place];

        if (stands(part, known) && (*at == NULL || at_of(paper, *at) < at_of(paper, part)))
            *at = part;
    }
}

/* A value and what is inside of it: the later one is shown. */
static void hide(const struct paper *paper, const struct paper_part *latest[PAPER_LEAVES])
{
    const struct paper_part *whole = latest[PAPER_WHOLE];

    for (uint32_t i = 0; i < PAPER_LEAVES && whole != NULL; i++) {
        if (latest[i] == NULL || !is_inside(i, PAPER_WHOLE))
            continue;
        if (at_of(paper, latest[i]) < at_of(paper, whole))
            latest[i] = NULL;
        else
            latest[PAPER_WHOLE] = NULL;
    }
}

static bool is_over(const struct paper_part *part, uint64_t now_ms)
{
    return part->ends_ms != 0 && part->ends_ms <= now_ms;
}

static void tell_times(const struct paper *paper, const struct paper_part *part,
                       struct paper_shown *shown)
{
    if (shown->at_ms < at_of(paper, part))
        shown->at_ms = at_of(paper, part);
    if (part->ends_ms != 0 && (shown->ends_ms == 0 || part->ends_ms < shown->ends_ms))
        shown->ends_ms = part->ends_ms;
}

/* By places: last_write, merge, set. */
static void show_places(struct rsim *sim, const struct paper *paper, uint64_t known,
                        uint64_t now_ms, struct paper_shown *shown)
{
    const struct paper_part *latest[PAPER_LEAVES];
    struct paper_tree tree = { 0 };
    struct buf list = { 0 };

    choose(paper, known, latest);
    if (paper->policy == MERGE_POLICY_MERGE)
        hide(paper, latest);
    for (uint32_t i = 0; i < PAPER_LEAVES; i++) {
        if (latest[i] == NULL || is_over(latest[i], now_ms))
            continue;
        tell_times(paper, latest[i], shown);
        tree.leaves[i] = latest[i]->text;
        if (paper->policy == MERGE_POLICY_SET)
            buf_printf(&list, "%s\"%s\"", list.size > 0 ? "," : "[", paper_names[i]);
        shown->json = latest[i]->text;
        shown->tree = latest[i]->tree;
    }
    if (paper->policy == MERGE_POLICY_SET && list.size > 0)
        shown->json = arena_printf(&sim->arena, "%.*s]", (int)list.size, (const char *)list.data);
    else if (paper->policy == MERGE_POLICY_MERGE && shown->json != NULL)
        shown->json = paper_tree_print(sim, &tree, false);
    buf_deinit(&list);
}

/* An operation counts once, and no more once something that knew of it was deleted. */
static bool counts(const struct paper *paper, uint64_t known, uint32_t at)
{
    const struct paper_part *part = &paper->parts[at];
    uint64_t op = paper->writes[part->write].op;

    if (!stands(part, known))
        return false;
    for (uint32_t i = 0; i < paper->part_count; i++) {
        const struct paper_part *other = &paper->parts[i];

        if (other->place != part->place || paper->writes[other->write].op != op ||
            (known >> other->write & 1) == 0)
            continue;
        if ((other->gone & known) != 0 || i < at)
            return false;
    }
    return true;
}

static void show_counter(struct rsim *sim, const struct paper *paper, uint64_t known,
                         struct paper_shown *shown)
{
    struct buf out = { 0 };

    for (uint32_t name = 0; name < PAPER_NAMES; name++) {
        int64_t sum = 0;

        for (uint32_t i = 0; i < paper->part_count; i++) {
            if (paper->parts[i].place == name && counts(paper, known, i))
                sum += paper->parts[i].delta;
        }
        if (sum != 0)
            buf_printf(&out, "%s\"%s\":%" PRId64, out.size > 0 ? "," : "{", paper_names[name], sum);
    }
    if (out.size > 0)
        shown->json = arena_printf(&sim->arena, "%.*s}", (int)out.size, (const char *)out.data);
    buf_deinit(&out);
}

/* Several attempts of one operation are one, the latest. */
static bool is_repeated(const struct paper *paper, uint64_t known, uint32_t at)
{
    uint64_t op = paper->writes[paper->parts[at].write].op;
    bool repeated = false;

    for (uint32_t i = at + 1; i < paper->part_count; i++)
        repeated |=
            stands(&paper->parts[i], known) && paper->writes[paper->parts[i].write].op == op;
    return repeated;
}

/* The latest first, as their members wrote them one after the other. */
static void show_siblings(const struct paper *paper, uint64_t known, uint64_t now_ms,
                          struct paper_shown *shown)
{
    for (uint32_t i = paper->part_count; i-- > 0;) {
        const struct paper_part *part = &paper->parts[i];

        if (!stands(part, known) || is_repeated(paper, known, i) || is_over(part, now_ms))
            continue;
        shown->siblings[shown->sibling_count++] = part;
        tell_times(paper, part, shown);
    }
    if (shown->sibling_count > 0)
        shown->json = shown->siblings[0]->text;
}

void paper_show(struct rsim *sim, const struct paper *paper, uint64_t known, uint64_t now_ms,
                struct paper_shown *ret_shown)
{
    *ret_shown = (struct paper_shown){ 0 };
    if (paper->policy == MERGE_POLICY_VECTOR)
        show_siblings(paper, known, now_ms, ret_shown);
    else if (paper->policy == MERGE_POLICY_COUNTER)
        show_counter(sim, paper, known, ret_shown);
    else
        show_places(sim, paper, known, now_ms, ret_shown);
}
