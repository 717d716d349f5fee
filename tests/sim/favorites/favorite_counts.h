/* favorite_counts: what runs with favourites count (favorite.h); part of SIM_REACH. */
#ifndef TESTS_SIM_FAVORITES_FAVORITE_COUNTS_H
#define TESTS_SIM_FAVORITES_FAVORITE_COUNTS_H

/* clang-format off */
#define FAVORITE_REACH(X)                                                                          \
    X(favorites_made) X(favorites_kept) X(favorites_gone) X(favorites_never) X(favorites_late)      \
    X(favorites_full) X(favorites_unknown) X(favorites_again) X(favorites_lists)                    \
    X(favorites_pages) X(favorites_ties) X(favorites_statuses) X(favorites_partials)                \
    X(favorites_by_target) X(pulls_logged) X(pulls_known) X(pulls_late) X(pulls_lowered)             \
    X(pulls_forgotten) X(tops) X(tops_of_hours) X(rates_refused) X(shares_full) X(rates_of_several) X(rates_over)   \
    X(reviews_flagged) X(reviews_young) X(reviews_fast) X(reviews_again) X(reviews_accepted)         \
    X(reviews_rejected) X(reviews_by_hand) X(reviews_gone) X(reviews_untrue) X(reviews_lists)        \
    X(counters_added) X(counters_full) X(counters_unknown) X(counters_lists) X(counters_pages)       \
    X(counters_values) X(counters_partials) X(counters_tops) X(rebuild_steps) X(rebuilds_done)      \
    X(rebuilds_under_way)                                                                    \
    X(erasures_begun) X(erasures_undone) X(erasures_withdrawn) X(erasures_restored)                  \
    X(erasures_purged) X(erasures_over) X(erasures_in_parts) X(erasures_refused) X(erasures_exported)
/* clang-format on */

#endif
