#include <string.h>

#include "node/core/rows/state_row.h"
#include "runtime/base/check.h"
#include "runtime/base/hash.h"

/*
 * Treaps (Seidel, Aragon 1996) whose priorities are the rows' hashes: their shapes depend on the
 * keys alone. Depth is logarithmic with high probability; nothing recurses.
 *
 * Items, mail and reservations are ranged for one entity at a time, and every grant may add some:
 * those of a group of entities have a tree, so that a row finds its place among few others. In one
 * tree of all, that was a fifth of what a node did for grants of an item.
 *
 * A new row waits beside its tree until the order is asked for: to be put in and taken out again
 * without that was another tenth.
 */
static bool is_grouped(struct slice key)
{
    return table_of(key)->order == TABLE_ORDER_ENTITY;
}

/* By table and entity, which end with the first 0. */
static uint64_t group_of(struct slice key)
{
    const uint8_t *end = memchr(key.data, 0, key.size);

    if (end != NULL)
        key.size = (size_t)(end - key.data) + 1;
    return hash_u64(key) % ORDER_GROUPS;
}

static struct order_tree *order_tree_of(const struct state *state, struct slice key)
{
    struct state *mutable_state = (struct state *)(uintptr_t)state;

    uint8_t tree = table_of(key)->tree;

    if (is_grouped(key))
        return &mutable_state->grouped[group_of(key)];
    CHECK(tree > 0);
    return &mutable_state->order[tree - 1];
}

bool order_has(const struct state *state, struct slice key)
{
    switch ((enum table_order)table_of(key)->order) {
    case TABLE_ORDER_NONE:
        break;
    case TABLE_ORDER_ALWAYS:
    case TABLE_ORDER_ENTITY:
        return true;
    case TABLE_ORDER_ASKED:
        return order_tree_of(state, key)->asked;
    }
    return false;
}

/* Splits the tree at `root` into rows below `key` and rows above it. */
static void order_split(struct row *root, struct slice key, struct row **below, struct row **above)
{
    while (root != NULL) {
        if (slice_compare(row_slice(root), key) < 0) {
            *below = root;
            below = &root->right;
            root = root->right;
        } else {
            *above = root;
            above = &root->left;
            root = root->left;
        }
    }
    *below = NULL;
    *above = NULL;
}

static void tree_add(struct order_tree *tree, struct row *row)
{
    struct slice key = row_slice(row);
    struct row **link = &tree->root;

    while (*link != NULL && (*link)->hash >= row->hash) {
        int order = slice_compare(key, row_slice(*link));
        CHECK(order != 0);
        link = order < 0 ? &(*link)->left : &(*link)->right;
    }
    order_split(*link, key, &row->left, &row->right);
    *link = row;
    tree->shape++;
}

static void wait_remove(struct order_tree *tree, struct row *row)
{
    *(row->left != NULL ? &row->left->right : &tree->waiting) = row->right;
    if (row->right != NULL)
        row->right->left = row->left;
    row->left = NULL;
    row->right = NULL;
    row->waiting = false;
}

void order_add(struct state *state, struct row *row)
{
    struct order_tree *tree = order_tree_of(state, row_slice(row));

    if (is_grouped(row_slice(row))) {
        size_t group = (size_t)(tree - state->grouped);
        state->groups_used[group / 64] |= 1ull << group % 64;
    }
    row->right = tree->waiting;
    if (tree->waiting != NULL)
        tree->waiting->left = row;
    tree->waiting = row;
    row->waiting = true;
    row->ordered = true;
}

static void order_settle(struct order_tree *tree)
{
    struct row *row;

    while ((row = tree->waiting) != NULL) {
        wait_remove(tree, row);
        tree_add(tree, row);
    }
}

struct asked {
    struct state *state;
    uint8_t letter;
};

static void add_asked(void *context, struct row *row)
{
    const struct asked *asked = context;

    if (row->key[0] == asked->letter)
        order_add(asked->state, row);
}

void order_ask(struct state *state, struct slice prefix)
{
    struct asked asked = { state, prefix.data[0] };

    if (table_of(prefix)->order != TABLE_ORDER_ASKED || order_has(state, prefix))
        return;
    order_tree_of(state, prefix)->asked = true;
    row_table_visit(&state->table, add_asked, &asked);
}

static void tree_remove(struct order_tree *tree, struct row *row)
{
    struct slice key = row_slice(row);
    struct row **link = &tree->root;

    while (*link != row) {
        CHECK(*link != NULL);
        link = slice_compare(key, row_slice(*link)) < 0 ? &(*link)->left : &(*link)->right;
    }
    struct row *left = row->left;
    struct row *right = row->right;
    while (left != NULL && right != NULL) {
        if (left->hash >= right->hash) {
            *link = left;
            link = &left->right;
            left = left->right;
        } else {
            *link = right;
            link = &right->left;
            right = right->left;
        }
    }
    *link = left != NULL ? left : right;
    row->left = NULL;
    row->right = NULL;
    tree->shape++;
}

void order_remove(struct state *state, struct row *row)
{
    struct order_tree *tree = order_tree_of(state, row_slice(row));

    if (row->waiting)
        wait_remove(tree, row);
    else
        tree_remove(tree, row);
    row->ordered = false;
}

static void check_waiting(const struct order_tree *tree, const struct row *row)
{
    CHECK(row->left != NULL ? row->left->right == row : tree->waiting == row);
    CHECK(IMPLIES(row->right != NULL, row->right->left == row && row->right->waiting));
}

void order_check_row(const struct state *state, const struct row *row)
{
    CHECK(row->ordered == order_has(state, row_slice(row)));
    CHECK(IMPLIES(row->waiting, row->ordered));
    if (!row->ordered)
        return;
    const struct order_tree *tree = order_tree_of(state, row_slice(row));
    if (row->waiting) {
        check_waiting(tree, row);
        return;
    }
    for (const struct row *at = tree->root; at != row;) {
        CHECK(at != NULL && at->hash >= row->hash);
        at = slice_compare(row_slice(row), row_slice(at)) < 0 ? at->left : at->right;
    }
}

uint32_t order_count_roots(const struct state *state)
{
    uint32_t roots = 0;

    for (uint32_t i = 0; i < TABLE_TREES; i++)
        roots += state->order[i].root != NULL;
    for (uint32_t i = 0; i < ORDER_GROUPS / 64; i++) {
        for (uint64_t left = state->groups_used[i]; left != 0; left &= left - 1)
            roots += state->grouped[i * 64 + (uint32_t)__builtin_ctzll(left)].root != NULL;
    }
    return roots;
}

/* Of a deep tree the rows that come last are forgotten, and found again from its root. */
static void walk_push(struct order_walk *walk, struct row *row)
{
    if (walk->count == ORDER_WALK_MAX) {
        memmove(walk->above, walk->above + 1, (ORDER_WALK_MAX - 1) * sizeof(struct row *));
        walk->whole = false;
        walk->count--;
    }
    walk->above[walk->count++] = row;
}

static void walk_down(struct order_walk *walk)
{
    order_settle(walk->tree);
    walk->shape = walk->tree->shape;
    walk->count = 0;
    walk->whole = true;
    for (struct row *at = walk->tree->root; at != NULL;) {
        if (slice_compare(row_slice(at), walk->after) > 0) {
            walk_push(walk, at);
            at = at->left;
        } else {
            at = at->right;
        }
    }
}

void order_walk_begin(const struct state *state, struct slice prefix, struct slice after,
                      struct order_walk *ret_walk)
{
    CHECK(!is_grouped(prefix) || memchr(prefix.data, 0, prefix.size) != NULL);
    ret_walk->tree = order_tree_of(state, prefix);
    ret_walk->prefix = prefix;
    ret_walk->after = slice_compare(after, prefix) > 0 ? after : prefix;
    walk_down(ret_walk);
}

struct row *order_walk_next(struct order_walk *walk)
{
    if (walk->shape != walk->tree->shape || walk->tree->waiting != NULL ||
        (walk->count == 0 && !walk->whole))
        walk_down(walk);
    if (walk->count == 0)
        return NULL;
    struct row *row = walk->above[--walk->count];
    for (struct row *at = row->right; at != NULL; at = at->left)
        walk_push(walk, at);
    walk->after = row_slice(row);
    return slice_begins_with(walk->after, walk->prefix) ? row : NULL;
}
