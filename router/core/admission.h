/*
 * admission: refuses early what could not be done in time, by priority, so that purchases go
 * through while bulk saves wait (DESIGN sections 10 and 11). Counts calls in flight; pure. In
 * front of it stand the keys' and addresses' own limits (rate_limit.h).
 */
#ifndef ROUTER_CORE_ADMISSION_H
#define ROUTER_CORE_ADMISSION_H

#include "idl/method.h"

/* Also the priority of the frames to the nodes: greater is more urgent. */
enum admission_priority {
    ADMISSION_BULK,     /* Saves and the elements of batches. */
    ADMISSION_ORDINARY, /* Sessions, reads, grants and spends by game servers. */
    ADMISSION_URGENT,   /* Heartbeats, administration, back-end services: payments, moderation. */
    ADMISSION_PRIORITY_COUNT
};

#define ADMISSION_RETRY_AFTER_MS_MIN 50u
#define ADMISSION_RETRY_AFTER_MS_MAX 1000u

struct admission {
    uint32_t in_flight_max; /* For urgent calls; others have less, see limit_of. */
    uint32_t in_flight;
    uint64_t refused[ADMISSION_PRIORITY_COUNT];
    /* Of the last call refused, a sixteenth of the limit at most: the room that admission_is_full
     * waits for. */
    uint32_t refused_weight[ADMISSION_PRIORITY_COUNT];
};

/* in_flight_max from 1 (CHECK). */
void admission_init(struct admission *admission, uint32_t in_flight_max);
/* Takes `weight` calls in. False: too many are in flight, nothing was taken; *ret_retry_after_ms
 * rises with the load. A weight above the whole limit passes when nothing else is in flight. */
bool admission_enter(struct admission *admission, enum admission_priority priority, uint32_t weight,
                     uint32_t *ret_retry_after_ms);
/*
 * Asked before a request is read, since reading a batch of saves only to refuse it costs nearly as
 * much as forwarding it: true if a call as heavy as the last one refused would be refused again. It
 * then counts as refused; *ret_retry_after_ms as above. Overload keeps it true for most, and what
 * is let through is weighed by admission_enter.
 */
bool admission_is_full(struct admission *admission, enum admission_priority priority,
                       uint32_t *ret_retry_after_ms);
/* True: not even an urgent call has room. */
bool admission_takes_none(const struct admission *admission);
/* How many places `percent` of them are for calls of that priority; 1 at least. */
uint32_t admission_share(const struct admission *admission, enum admission_priority priority,
                         uint32_t percent);
void admission_leave(struct admission *admission, uint32_t weight);

/* The highest that a call of the method may have, whatever it says. */
enum admission_priority admission_priority_max(const struct method_info *method);
/* By method, and by the authority a mutation names. */
enum admission_priority admission_priority_of(const struct method_info *method,
                                              const ProtobufCMessage *message);

#endif
