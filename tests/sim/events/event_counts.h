/* event_counts: what runs with readers of events count (event.h); part of SIM_REACH. */
#ifndef TESTS_SIM_EVENTS_EVENT_COUNTS_H
#define TESTS_SIM_EVENTS_EVENT_COUNTS_H

/* clang-format off */
#define EVENT_REACH(X)                                                                             \
    X(events_of_ledgers) X(events_of_edges) X(events_of_sessions) X(events_of_definitions)          \
    X(events_trimmed) X(events_told) X(events_pages) X(events_filtered) X(events_gaps) X(events_lost)     \
    X(consumers_read) X(consumers_committed) X(consumers_repeated) X(consumers_rewound)             \
    X(consumers_conflicts) X(consumers_held_back)                                                   \
    X(metadata_written) X(metadata_repeated) X(metadata_conflicts) X(metadata_removed) X(metadata_read)
/* clang-format on */

#endif
