#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "idl/error_code.h"
#include "node/core/codec/arena_proto.h"
#include "runtime/base/check.h"
#include "tests/sim/cores/node/collections.h"

#define DURABILITY(name) HOLDFAST__V1__DOCUMENT_DURABILITY__DOCUMENT_DURABILITY_##name
#define KIND(name)       HOLDFAST__V1__PATCH_KIND__PATCH_KIND_##name

/* ---- what a caller may write ---- */

static const char *const texts[] = { "0", "7", "-3", "true", "\"s\"", "[1,2]", "{}" };

static bool is_inside(uint32_t leaf)
{
    return paper_leaves[leaf].outer[0] != 0;
}

/* `removes`: with null for what goes, of those that stand by themselves. */
static void draw_tree(struct hall *h, bool removes, struct paper_tree *tree)
{
    bool whole = rsim_chance(h->sim, 25);

    *tree = (struct paper_tree){ 0 };
    for (uint32_t i = 0; i < PAPER_LEAVES; i++) {
        bool apart = whole ? is_inside(i) : i == PAPER_WHOLE;

        if (apart || !rsim_chance(h->sim, 35))
            continue;
        /* In a patch an empty object says nothing. */
        tree->leaves[i] = texts[rsim_between(h->sim, 0, removes ? 5 : 6)];
        if (removes && !is_inside(i) && rsim_chance(h->sim, 35))
            tree->leaves[i] = "null";
    }
    if (tree->leaves[0] == NULL && rsim_chance(h->sim, 70))
        tree->leaves[0] = "7";
}

static uint32_t tree_size(const struct paper_tree *tree)
{
    uint32_t size = 0;

    for (uint32_t i = 0; i < PAPER_LEAVES; i++)
        size += tree->leaves[i] != NULL;
    return size;
}

static struct paper_tree *keep_tree(struct hall *h, const struct paper_tree *tree)
{
    struct paper_tree *kept = arena_alloc(&h->sim->arena, sizeof *kept);

    *kept = *tree;
    return kept;
}

/* RFC 7396, of objects whose leaves are these. */
static void tree_set(struct paper_tree *tree, uint32_t leaf, const char *text)
{
    bool goes = strcmp(text, "null") == 0;

    for (uint32_t i = 0; i < PAPER_LEAVES; i++) {
        if ((leaf == PAPER_WHOLE && is_inside(i)) || (i == PAPER_WHOLE && is_inside(leaf)))
            tree->leaves[i] = NULL;
    }
    tree->leaves[leaf] = goes ? NULL : text;
}

static void plan_add(struct paper_plan *plan, uint32_t place, const char *text)
{
    CHECK(plan->add_count < PAPER_ADDS_MAX);
    plan->adds[plan->add_count++] = (struct paper_part){ .place = place, .text = text };
}

/* Steps are carried out one after the other: what an earlier one gave at a place goes. */
static void plan_clear(struct paper_plan *plan, uint32_t place, bool gives)
{
    uint32_t kept = 0;

    for (uint32_t i = 0; i < plan->add_count; i++) {
        uint32_t other = plan->adds[i].place;
        bool goes = (place == PAPER_WHOLE && is_inside(other)) ||
                    (gives && other == PAPER_WHOLE && is_inside(place));

        if (goes)
            plan->places[plan->place_count++] = other;
        else
            plan->adds[kept++] = plan->adds[i];
    }
    plan->add_count = kept;
}

/* ---- Put ---- */

static void draw_names(struct hall *h, struct ask *ask)
{
    char *json = arena_printf(&h->sim->arena, "[ ");

    for (uint32_t i = PAPER_NAMES; i-- > 0;) {
        if (!rsim_chance(h->sim, 40))
            continue;
        json = arena_printf(&h->sim->arena, "%s%s\"%s\" ", json, ask->plan.add_count > 0 ? "," : "",
                            paper_names[i]);
        plan_add(&ask->plan, i, NULL);
    }
    ask->json = arena_printf(&h->sim->arena, "%s]", json);
}

static void draw_put(struct hall *h, struct ask *ask)
{
    struct arena *arena = &h->sim->arena;
    struct paper_plan *plan = &ask->plan;
    struct paper_tree tree;

    ask->method = METHOD_PUT_DOCUMENT;
    plan->whole = ask->shelf->policy != MERGE_POLICY_VECTOR;
    draw_tree(h, false, &tree);
    switch (ask->shelf->policy) {
    case MERGE_POLICY_LWW:
        plan_add(plan, 0, paper_tree_print(h->sim, &tree, false));
        plan->adds[0].tree = keep_tree(h, &tree);
        ask->json = paper_tree_print(h->sim, &tree, true);
        return;
    case MERGE_POLICY_MERGE:
        for (uint32_t i = 0; i < PAPER_LEAVES; i++) {
            if (tree.leaves[i] != NULL)
                plan_add(plan, i, tree.leaves[i]);
        }
        ask->json = paper_tree_print(h->sim, &tree, true);
        return;
    case MERGE_POLICY_SET:
        draw_names(h, ask);
        return;
    case MERGE_POLICY_VECTOR:
        plan_add(plan, 0, arena_printf(arena, "{\"a\":%" PRIu64 ",\"b\":1}", h->ops));
        ask->json = arena_printf(arena, " {\"b\" : 1, \"a\": %" PRIu64 "}", h->ops);
        return;
    default:
        ask->json = "{\"a\":1}";
        ask->wrong = "json";
        return;
    }
}

/* ---- Update ---- */

static void draw_merge(struct hall *h, struct ask *ask)
{
    struct paper_tree tree;

    draw_tree(h, true, &tree);
    ask->json = paper_tree_print(h->sim, &tree, true);
    if (ask->shelf->policy == MERGE_POLICY_LWW) {
        ask->patch = keep_tree(h, &tree);
        return;
    }
    if (ask->shelf->policy != MERGE_POLICY_MERGE || tree_size(&tree) == 0) {
        ask->wrong = "merge";
        return;
    }
    for (uint32_t i = 0; i < PAPER_LEAVES; i++) {
        if (tree.leaves[i] == NULL)
            continue;
        if (strcmp(tree.leaves[i], "null") == 0)
            ask->plan.places[ask->plan.place_count++] = i;
        else
            plan_add(&ask->plan, i, tree.leaves[i]);
    }
}

static void add_step(struct ask *ask, Holdfast__V1__PatchKind kind, const char *path,
                     const char *json)
{
    ask->steps[ask->step_count++] = (struct step){ kind, path, json };
}

/* An object at "/o": what is there goes, and its leaves come. */
static void draw_object_step(struct ask *ask)
{
    add_step(ask, KIND(SET), "/o", "{\"y\":true,\"p\":{\"q\":5}}");
    ask->plan.places[ask->plan.place_count++] = PAPER_WHOLE;
    plan_add(&ask->plan, 3, "5");
    plan_add(&ask->plan, 5, "true");
}

static void draw_leaf_steps(struct hall *h, struct ask *ask)
{
    uint32_t used = 0, count = (uint32_t)rsim_between(h->sim, 1, STEPS_MAX);

    if (rsim_chance(h->sim, 15)) {
        draw_object_step(ask);
        return;
    }
    for (uint32_t i = 0; i < count; i++) {
        uint32_t leaf = (uint32_t)rsim_between(h->sim, 0, PAPER_LEAVES - 1);
        bool gives = rsim_chance(h->sim, 65);

        if ((used >> leaf & 1) != 0)
            ask->wrong = "patch"; /* Twice one path. */
        used |= 1u << leaf;
        plan_clear(&ask->plan, leaf, gives);
        if (gives) {
            plan_add(&ask->plan, leaf, RSIM_PICK(h->sim, texts));
            add_step(ask, KIND(SET), paper_leaves[leaf].path,
                     ask->plan.adds[ask->plan.add_count - 1].text);
        } else {
            ask->plan.places[ask->plan.place_count++] = leaf;
            add_step(ask, KIND(REMOVE), paper_leaves[leaf].path, "");
        }
    }
}

static void draw_name_steps(struct hall *h, struct ask *ask)
{
    bool counter = ask->shelf->policy == MERGE_POLICY_COUNTER;
    uint32_t at = (uint32_t)rsim_between(h->sim, 0, PAPER_NAMES - 1);
    uint32_t count = (uint32_t)rsim_between(h->sim, 1, STEPS_MAX);

    for (uint32_t i = 0; i < count; i++) {
        uint32_t name = (at + i) % PAPER_NAMES;
        int64_t delta = (int64_t)rsim_between(h->sim, 0, 8) - 4;
        const char *json = arena_printf(&h->sim->arena, "\"%s\"", paper_names[name]);

        if (counter) {
            plan_add(&ask->plan, name, NULL);
            ask->plan.adds[i].delta = delta;
            add_step(ask, KIND(INCREMENT), arena_printf(&h->sim->arena, "/%s", paper_names[name]),
                     arena_printf(&h->sim->arena, "%" PRId64, delta));
        } else if (rsim_chance(h->sim, 60)) {
            plan_add(&ask->plan, name, NULL);
            add_step(ask, KIND(ADD), "", json);
        } else {
            ask->plan.places[ask->plan.place_count++] = name;
            add_step(ask, KIND(DISCARD), "", json);
        }
    }
}

/* Of the whole: what it comes to is known once it is sent. */
static void draw_whole_steps(struct hall *h, struct ask *ask)
{
    uint32_t count = (uint32_t)rsim_between(h->sim, 1, STEPS_MAX);

    for (uint32_t i = 0; i < count; i++) {
        uint32_t leaf = (uint32_t)rsim_between(h->sim, 0, PAPER_LEAVES - 1);

        if (rsim_chance(h->sim, 35))
            add_step(ask, KIND(INCREMENT), paper_leaves[0].path, "2");
        else if (!is_inside(leaf) && rsim_chance(h->sim, 35))
            add_step(ask, KIND(REMOVE), paper_leaves[leaf].path, "");
        else
            add_step(ask, KIND(SET), paper_leaves[leaf].path, RSIM_PICK(h->sim, texts));
    }
}

static void draw_update(struct hall *h, struct ask *ask)
{
    ask->method = METHOD_UPDATE_DOCUMENT;
    ask->plan.updates = true;
    ask->plan.whole = ask->shelf->policy == MERGE_POLICY_LWW;
    if (rsim_chance(h->sim, ask->shelf->policy <= MERGE_POLICY_MERGE ? 50 : 5)) {
        draw_merge(h, ask);
    } else if (ask->shelf->policy == MERGE_POLICY_LWW) {
        draw_whole_steps(h, ask);
    } else if (ask->shelf->policy == MERGE_POLICY_MERGE) {
        draw_leaf_steps(h, ask);
    } else {
        ask->wrong = ask->shelf->policy == MERGE_POLICY_VECTOR ? "patch" : NULL;
        draw_name_steps(h, ask);
    }
}

static void draw(struct hall *h, struct shelf *shelf, struct ask *ask)
{
    static const Holdfast__V1__DocumentDurability durabilities[] = {
        DURABILITY(UNSPECIFIED), DURABILITY(UNSPECIFIED), DURABILITY(MEMORY), DURABILITY(ONE),
        DURABILITY(MAJORITY)
    };
    uint64_t dice = rsim_between(h->sim, 0, 99);

    *ask = (struct ask){ .shelf = shelf, .paper = &RSIM_PICK(h->sim, shelf->papers) };
    ask->number = shelf->number;
    ask->op_id = hall_op_id(h, h->pair.now_ms);
    ask->plan.op = h->ops;
    ask->durability = RSIM_PICK(h->sim, durabilities);
    hall_draw_context(h, shelf, ask->paper, &ask->context);
    if (shelf->policy != MERGE_POLICY_COUNTER && rsim_chance(h->sim, 15))
        ask->ttl_ms = (int64_t)rsim_between(h->sim, 1000, 3000);
    if (dice < 12) {
        ask->method = METHOD_DELETE_DOCUMENT;
        ask->ttl_ms = 0;
        ask->plan.op = 0;
        ask->plan.whole = true;
    } else if (dice < (shelf->policy == MERGE_POLICY_COUNTER ? 15 : 60)) {
        draw_put(h, ask);
    } else {
        draw_update(h, ask);
    }
}

/* ---- what comes of it ---- */

static bool is_integer(const char *text)
{
    return text[0] == '-' || (text[0] >= '0' && text[0] <= '9');
}

/* False: refused. */
static bool whole_step(struct hall *h, struct paper_tree *tree, const struct step *step)
{
    uint32_t leaf = 0;

    while (strcmp(paper_leaves[leaf].path, step->path) != 0)
        leaf++;
    if (step->kind == KIND(INCREMENT)) {
        const char *old = tree->leaves[0] != NULL ? tree->leaves[0] : "0";

        tree->leaves[0] = arena_printf(&h->sim->arena, "%lld",
                                       strtoll(old, NULL, 10) + strtoll(step->json, NULL, 10));
        return is_integer(old);
    }
    const char *outer = tree->leaves[PAPER_WHOLE];

    /* A value that is no object has no members; nor is it made one. */
    if (is_inside(leaf) && outer != NULL && strcmp(outer, "{}") != 0)
        return false;
    tree_set(tree, leaf, step->kind == KIND(REMOVE) ? "null" : step->json);
    return true;
}

/* What an update of a `last_write` makes of what the member shows. */
static bool make_whole(struct hall *h, uint32_t member, struct ask *ask)
{
    struct paper_shown shown;
    struct paper_tree tree = { 0 };

    paper_show(h->sim, ask->paper, ask->paper->known[member], h->pair.now_ms, &shown);
    if (shown.tree != NULL)
        tree = *shown.tree;
    for (uint32_t i = 0; i < PAPER_LEAVES && ask->patch != NULL; i++) {
        if (ask->patch->leaves[i] != NULL)
            tree_set(&tree, i, ask->patch->leaves[i]);
    }
    for (uint32_t i = 0; i < ask->step_count; i++) {
        if (!whole_step(h, &tree, &ask->steps[i]))
            return false;
    }
    ask->plan.add_count = 0;
    plan_add(&ask->plan, 0, paper_tree_print(h->sim, &tree, false));
    ask->plan.adds[0].tree = keep_tree(h, &tree);
    return true;
}

static Holdfast__V1__DocumentDurability durability_of(const struct ask *ask)
{
    Holdfast__V1__DocumentDurability least =
        ask->shelf->durability != 0 ? ask->shelf->durability : DURABILITY(ONE);

    return ask->durability != 0 ? ask->durability : least;
}

/* All for which it may be refused, of which it is told one. */
struct faults {
    uint32_t count;
    struct {
        Holdfast__V1__ErrorCode code;
        const char *field; /* NULL: any. */
        const char *what;  /* Of CAPACITY_FULL. */
    } list[8];
};

static void fault(struct faults *faults, Holdfast__V1__ErrorCode code, const char *field,
                  const char *what)
{
    faults->list[faults->count].code = code;
    faults->list[faults->count].field = field;
    faults->list[faults->count++].what = what;
}

static void find_full(uint32_t member, const struct ask *ask, struct faults *faults)
{
    const struct paper *paper = ask->paper;
    struct paper_left left = paper_left(paper, member, &ask->plan);
    uint32_t limit = ask->shelf->bytes_max, size = ask->plan.add_count;
    bool vector = paper->policy == MERGE_POLICY_VECTOR;
    bool whole = ask->plan.whole || vector;
    uint64_t bytes = vector ? left.own_bytes : left.bytes;
    bool shrinks = ask->plan.updates && bytes < paper_bytes(paper, paper->known[member]);

    if (size == 0 || paper->policy == MERGE_POLICY_COUNTER)
        return;
    if (limit > 0 && bytes > limit && !shrinks)
        fault(faults, whole ? CODE(INVALID_ARGUMENT) : CODE(CAPACITY_FULL), whole ? "json" : NULL,
              "bytes");
    if (vector && left.count > MERGE_SIBLINGS_MAX)
        fault(faults, CODE(CAPACITY_FULL), NULL, "siblings");
}

static void find_faults(struct hall *h, uint32_t member, struct ask *ask, bool again,
                        struct faults *faults)
{
    Holdfast__V1__DocumentDurability least = ask->shelf->durability;

    *faults = (struct faults){ 0 };
    if (ask->shelf->deleted) {
        fault(faults, CODE(NOT_FOUND), "collection", NULL);
        return;
    }
    if (h->pair.erased)
        fault(faults, CODE(QUARANTINED), "entity", NULL);
    if (ask->durability != 0 && ask->durability < (least != 0 ? least : DURABILITY(ONE)))
        fault(faults, CODE(INVALID_ARGUMENT), "durability", NULL);
    if (!context_holds(&ask->context, ask->shelf, ask->paper))
        fault(faults, CODE(INVALID_ARGUMENT), "context", NULL);
    if (durability_of(ask) == DURABILITY(MAJORITY) && !hall_is_near(h, member))
        fault(faults, CODE(UNAVAILABLE), NULL, NULL);
    if (ask->wrong != NULL)
        fault(faults, CODE(INVALID_ARGUMENT), ask->wrong, NULL);
    if (again)
        return;
    if (ask->method == METHOD_UPDATE_DOCUMENT && ask->plan.whole && !make_whole(h, member, ask))
        fault(faults, CODE(INVALID_ARGUMENT), "patch", NULL);
    find_full(member, ask, faults);
}

static void check_refused(struct hall *h, err e, const struct faults *faults)
{
    const Holdfast__V1__ErrorDetail *told = &h->sim->detail;

    for (uint32_t i = 0; i < faults->count; i++) {
        const char *field = faults->list[i].field;

        if (e == ERR_OK || faults->list[i].code != told->code ||
            (field != NULL && strcmp(field, told->field) != 0))
            continue;
        if (told->code == CODE(CAPACITY_FULL))
            PROMISE(h->sim,
                    h->pair.refusal.capacity != NULL &&
                        strcmp(h->pair.refusal.capacity->what, faults->list[i].what) == 0,
                    "another capacity is told");
        h->sim->counts.collections_refused++;
        return;
    }
    hall_refused(h, e, faults->list[0].code, faults->list[0].field);
}

/* ---- sent ---- */

/* How many disks have it, and when the caller is told. */
static void check_done(struct hall *h, uint32_t member, const struct ask *ask)
{
    Holdfast__V1__DocumentDurability durability = durability_of(ask);
    uint64_t ticket = h->pair.begun.ticket;
    const char *context = h->pair.begun.context;
    uint32_t wanted = durability == DURABILITY(MAJORITY) ? 2
                      : durability == DURABILITY(ONE)    ? 1
                                                         : 0;
    struct buf answer = { 0 };

    PROMISE(h->sim, ticket != 0 && context != NULL, "a write waits for nothing");
    if (wanted == 2) {
        PROMISE(h->sim, hall_done(h, member, ticket) == NULL,
                "a majority is told before the other member has it");
        hall_exchange(h);
    }
    const struct merge_done *done = hall_done(h, member, ticket);

    PROMISE(h->sim, done != NULL && done->result == ERR_OK, "a write is not answered");
    PROMISE(h->sim, done->replicas == wanted, "%u disks have it, not %u", done->replicas, wanted);
    document_written(context, done->replicas, &answer);
    const Holdfast__V1__PutDocumentResponse *told = (void *)arena_unpack(
        &h->sim->arena, &holdfast__v1__put_document_response__descriptor, buf_slice(&answer));

    PROMISE(h->sim,
            told != NULL && told->written != NULL && told->written->replicas == wanted &&
                strcmp(told->written->context, context) == 0,
            "a write is answered otherwise");
    buf_deinit(&answer);
}

static void end_parts(struct hall *h, struct ask *ask)
{
    uint64_t ttl_ms = ask->ttl_ms != 0 ? (uint64_t)ask->ttl_ms : ask->shelf->ttl_ms;

    for (uint32_t i = 0; i < ask->plan.add_count; i++)
        ask->plan.adds[i].ends_ms = ttl_ms > 0 ? h->pair.now_ms + ttl_ms : 0;
}

static void send(struct hall *h, uint32_t member, struct ask *ask)
{
    struct paper *paper = ask->paper;
    struct faults faults;

    if (paper->policy == MERGE_POLICY_VECTOR &&
        paper_lags(paper, member, ask->context.seen | ask->context.own))
        hall_exchange(h);
    h->pair.now_ms += rsim_between(h->sim, 1, 20);
    ask->plan.at_ms = h->pair.now_ms;
    ask->plan.has_context = ask->context.text != NULL;
    ask->plan.seen = ask->context.seen;
    ask->plan.own = ask->context.own;
    uint64_t known = paper->known[member];
    uint64_t standing =
        paper->policy != MERGE_POLICY_COUNTER ? paper_standing(paper, known, ask->plan.op) : 0;
    bool again = standing != 0;

    find_faults(h, member, ask, again, &faults);
    end_parts(h, ask);
    err e = hall_send(h, member, ask);

    if (faults.count > 0) {
        check_refused(h, e, &faults);
        return;
    }
    PROMISE(h->sim, e == ERR_OK, "a write of %s is refused: %d %s %s", ask->shelf->name,
            (int)h->sim->detail.code, h->sim->detail.message, h->sim->detail.limit);
    const struct paper_plan nothing = { .op = ask->plan.op, .at_ms = ask->plan.at_ms };
    uint32_t write = paper_write(paper, member, again ? &nothing : &ask->plan);

    h->sim->counts.collections_repeated += again;
    h->sim->counts.collections_replaced += ask->plan.has_context;
    if (!again)
        standing = 1ull << write;
    if ((standing & (standing - 1)) == 0) /* Else it has seen one of the attempts. */
        hall_keep_context(h,
                          &(struct context){ ask->shelf, ask->number, paper, h->pair.begun.context,
                                             ask->plan.seen, (ask->plan.own & ~known) | standing });
    check_done(h, member, ask);
    if (h->ask_count < ASKS_MAX)
        h->asks[h->ask_count++] = *ask;
    else
        RSIM_PICK(h->sim, h->asks) = *ask;
}

void hall_write(struct hall *h, uint32_t member, struct shelf *shelf)
{
    struct ask *ask = arena_alloc(&h->sim->arena, sizeof *ask);

    if (h->ask_count > 0 && rsim_chance(h->sim, 25))
        *ask = h->asks[rsim_between(h->sim, 0, h->ask_count - 1)];
    else
        draw(h, shelf, ask);
    /* One of a collection that was made again is another one. */
    if (ask->number != ask->shelf->number || !paper_has_room(ask->paper))
        return;
    send(h, member, ask);
    hall_get(h, (uint32_t)rsim_between(h->sim, 0, 1), ask->shelf, ask->paper);
}
