#include "node/core/mergeable/tally.h"

void merge_tally_encode(const struct merge_tally *tally, struct buf *out)
{
    buf_put_u64(out, (uint64_t)tally->delta);
    if (tally->rank == 0 && tally->spent.size == 0)
        return;
    buf_put_u8(out, tally->rank);
    buf_append(out, tally->spent.data, tally->spent.size);
}

uint64_t merge_tally_spent(const struct merge_tally *tally, size_t at)
{
    return load_u64(tally->spent.data + at * sizeof(uint64_t));
}

err merge_tally_decode(struct slice value, struct merge_tally *ret_tally)
{
    struct merge_tally tally = { 0 };

    if (value.size < 8 || value.size > 9 + MERGE_SPENT_MAX * 8)
        return ERR_CORRUPT;
    tally.delta = (int64_t)load_u64(value.data);
    if (value.size > 8) {
        tally.rank = value.data[8];
        tally.spent = (struct slice){ value.data + 9, value.size - 9 };
        /* It is folded, or has operations: else it were shorter. */
        if (tally.spent.size % 8 != 0 || tally.rank > MERGE_RANK_ERAS ||
            (tally.rank == 0) == (tally.spent.size == 0))
            return ERR_CORRUPT;
    }
    for (size_t i = 0; i < tally.spent.size / 8; i++)
        if (merge_tally_spent(&tally, i) == 0 ||
            (i > 0 && merge_tally_spent(&tally, i) <= merge_tally_spent(&tally, i - 1)))
            return ERR_CORRUPT;
    *ret_tally = tally;
    return ERR_OK;
}

bool merge_tally_exceeds(struct slice other, struct slice value)
{
    struct merge_tally one, two;

    return merge_tally_decode(other, &one) == ERR_OK && merge_tally_decode(value, &two) == ERR_OK &&
           one.rank > two.rank;
}
