#include "node/core/entry/vector.h"

#include "runtime/base/check.h"

/* The last entry of the epoch at place `at`; place -1 stands for the folded ones. */
static uint64_t end_index(const struct vector *v, int64_t at)
{
    uint64_t index = v->folded_index;

    for (int64_t i = 0; i <= at; i++)
        index += v->items[i].counter;
    return index;
}

uint64_t vector_index(const struct vector *v)
{
    return end_index(v, (int64_t)v->count - 1);
}

static uint64_t epoch_at(const struct vector *v, int64_t at)
{
    return at < 0 ? v->folded_epoch : v->items[at].epoch;
}

/* Two logs that hold entries of one epoch hold the same START of it, hence the same base. Other
 * bases, or other owners, mean that the vectors do not come from one shard. */
static bool same_start(const struct vector *a, int64_t i, const struct vector *b, int64_t j)
{
    if (i < 0 || j < 0)
        return true;
    return a->items[i].owner == b->items[j].owner && end_index(a, i - 1) == end_index(b, j - 1);
}

uint64_t vector_common_index(const struct vector *a, const struct vector *b)
{
    int64_t i = (int64_t)a->count - 1;
    int64_t j = (int64_t)b->count - 1;

    while (i >= -1 && j >= -1) {
        uint64_t epoch_a = epoch_at(a, i);
        uint64_t epoch_b = epoch_at(b, j);

        if (epoch_a == 0 || epoch_b == 0)
            return 0;
        if (epoch_a == epoch_b && same_start(a, i, b, j)) {
            uint64_t end_a = end_index(a, i);
            uint64_t end_b = end_index(b, j);
            return end_a < end_b ? end_a : end_b;
        }
        if (epoch_a >= epoch_b)
            i--;
        if (epoch_b >= epoch_a)
            j--;
    }
    return 0;
}

enum vector_order vector_compare(const struct vector *a, const struct vector *b)
{
    uint64_t common = vector_common_index(a, b);
    uint64_t index_a = vector_index(a);
    uint64_t index_b = vector_index(b);

    if (common == index_a && common == index_b)
        return VECTOR_EQUAL;
    if (common == index_a)
        return VECTOR_BEFORE;
    return common == index_b ? VECTOR_AFTER : VECTOR_FORK;
}

static void fold_oldest(struct vector *v)
{
    v->folded_epoch = v->items[0].epoch;
    v->folded_index += v->items[0].counter;
    for (uint32_t i = 1; i < v->count; i++)
        v->items[i - 1] = v->items[i];
    v->count--;
}

void vector_append(struct vector *v, uint64_t epoch, uint64_t owner)
{
    struct vector_item *last = v->count > 0 ? &v->items[v->count - 1] : NULL;

    CHECK(epoch > 0);
    if (last != NULL && last->epoch == epoch) {
        CHECK(last->owner == owner);
        last->counter++;
        return;
    }
    CHECK(epoch > (last != NULL ? last->epoch : v->folded_epoch));
    if (v->count == VECTOR_EPOCHS_MAX)
        fold_oldest(v);
    v->items[v->count++] = (struct vector_item){ .epoch = epoch, .owner = owner, .counter = 1 };
}

void vector_truncate(struct vector *v, uint64_t index)
{
    uint64_t base = v->folded_index;
    uint32_t count = 0;

    CHECK(index >= v->folded_index);
    CHECK(index <= vector_index(v));
    for (; count < v->count && base < index; count++) {
        struct vector_item *item = &v->items[count];
        if (item->counter > index - base)
            item->counter = index - base;
        base += item->counter;
    }
    v->count = count;
}

void vector_encode(const struct vector *v, struct buf *out)
{
    buf_put_u64(out, v->folded_epoch);
    buf_put_u64(out, v->folded_index);
    buf_put_u8(out, (uint8_t)v->count);
    for (uint32_t i = 0; i < v->count; i++) {
        buf_put_u64(out, v->items[i].epoch);
        buf_put_u64(out, v->items[i].owner);
        buf_put_u64(out, v->items[i].counter);
    }
}

/* Sums must not wrap: peers compute indexes from what they are sent. */
#define COUNTER_MAX (UINT64_MAX / (VECTOR_EPOCHS_MAX + 2))

err vector_decode(struct reader *reader, struct vector *ret_vector)
{
    struct vector v = { 0 };

    v.folded_epoch = read_u64(reader);
    v.folded_index = read_u64(reader);
    v.count = read_u8(reader);
    uint64_t epoch_before = v.folded_epoch;

    if (reader->bad || v.count > VECTOR_EPOCHS_MAX || v.folded_index > COUNTER_MAX)
        return ERR_CORRUPT;
    if ((v.folded_epoch == 0) != (v.folded_index == 0))
        return ERR_CORRUPT;
    for (uint32_t i = 0; i < v.count; i++) {
        struct vector_item *item = &v.items[i];

        item->epoch = read_u64(reader);
        item->owner = read_u64(reader);
        item->counter = read_u64(reader);
        if (reader->bad || item->epoch <= epoch_before)
            return ERR_CORRUPT;
        if (item->counter == 0 || item->counter > COUNTER_MAX)
            return ERR_CORRUPT;
        epoch_before = item->epoch;
    }
    *ret_vector = v;
    return ERR_OK;
}
