#include "runtime/etcd/etcd_lease.h"

#include <stdlib.h>

#include "runtime/base/check.h"
#include "runtime/etcd/etcd_client.h"

enum { TTL_MS_MIN = 1000, TTL_MS_MAX = 600000, RETRY_MS = 200 };

struct etcd_lease {
    struct etcd *etcd;
    struct etcd_lease_options options;
    enum etcd_lease_state state;
    int64_t id;
    int64_t ttl_s;
    uint64_t sent_ms;        /* When the pending request went out. */
    uint64_t valid_until_ms; /* sent_ms of the last one answered, plus the TTL. */
    struct etcd_call *call;
    struct etcd_timer next;   /* The next request is due. */
    struct etcd_timer expiry; /* No answer for a whole TTL. */
};

static void lease_send(struct etcd_lease *lease);

static void next_due(struct etcd_timer *timer)
{
    lease_send(CONTAINER_OF(timer, struct etcd_lease, next));
}

/* The last thing a caller does with the lease: the callback may free it. */
static void enter(struct etcd_lease *lease, enum etcd_lease_state state)
{
    static const char *const words[] = { "granting", "held", "uncertain", "lost" };

    CHECK(lease->state != state);
    CHECK(lease->state != ETCD_LEASE_LOST);
    lease->state = state;
    log_event(lease->etcd->log, state == ETCD_LEASE_HELD ? LOG_INFO : LOG_WARN, "etcd.lease",
              LOG_S("state", words[state]), LOG_N("lease_id", lease->id));
    lease->options.changed(lease->options.context, lease, state);
}

static void expiry_due(struct etcd_timer *timer)
{
    struct etcd_lease *lease = CONTAINER_OF(timer, struct etcd_lease, expiry);

    if (lease->state == ETCD_LEASE_HELD)
        enter(lease, ETCD_LEASE_UNCERTAIN);
}

static void lease_answered(void *context, err e, const struct etcd_lease_result *result)
{
    struct etcd_lease *lease = context;
    struct etcd_timers *timers = &lease->etcd->timers;
    uint64_t now_ms = etcd_now_ms();

    lease->call = NULL;
    if (e == ERR_NOT_FOUND && lease->id != 0) {
        etcd_timer_stop(timers, &lease->expiry);
        enter(lease, ETCD_LEASE_LOST);
        return;
    }
    if (e != ERR_OK) {
        etcd_timer_start(timers, &lease->next, RETRY_MS);
        return;
    }
    if (lease->id == 0) {
        lease->id = result->lease_id;
        lease->ttl_s = result->ttl_s;
    }
    /* Counted from the sending: etcd may have renewed it as early as then. */
    uint64_t ttl_ms = (uint64_t)result->ttl_s * 1000;
    lease->valid_until_ms = lease->sent_ms + ttl_ms;
    uint64_t next_ms = lease->sent_ms + ttl_ms / 3;
    etcd_timer_start(timers, &lease->next, next_ms > now_ms ? next_ms - now_ms : 0);
    uint64_t left_ms = lease->valid_until_ms > now_ms ? lease->valid_until_ms - now_ms : 0;
    etcd_timer_start(timers, &lease->expiry, left_ms);
    if (lease->state != ETCD_LEASE_HELD && left_ms > 0)
        enter(lease, ETCD_LEASE_HELD);
}

static void lease_send(struct etcd_lease *lease)
{
    uint64_t timeout_ms = lease->options.ttl_ms / 3;
    err e;

    lease->sent_ms = etcd_now_ms();
    if (lease->id == 0)
        e = etcd_lease_grant(lease->etcd, 0, (int64_t)((lease->options.ttl_ms + 999) / 1000),
                             lease_answered, &(struct etcd_wait){ 0, lease, &lease->call });
    else
        e = etcd_lease_keep_alive(lease->etcd, lease->id, lease_answered,
                                  &(struct etcd_wait){ timeout_ms, lease, &lease->call });
    if (e != ERR_OK)
        etcd_timer_start(&lease->etcd->timers, &lease->next, RETRY_MS);
}

err etcd_lease_start(struct etcd *etcd, const struct etcd_lease_options *options,
                     struct etcd_lease **ret_lease)
{
    if (options->ttl_ms < TTL_MS_MIN || options->ttl_ms > TTL_MS_MAX)
        return ERR_INVALID;
    struct etcd_lease *lease = mem_zalloc(sizeof *lease);
    lease->etcd = etcd;
    lease->options = *options;
    lease->next.fire = next_due;
    lease->expiry.fire = expiry_due;
    etcd->users++;
    lease_send(lease);
    *ret_lease = lease;
    return ERR_OK;
}

static void revoked(void *context, err e, const struct etcd_lease_result *result)
{
    (void)context;
    (void)e; /* If it did not work, the TTL ends the lease. */
    (void)result;
}

void etcd_lease_stop(struct etcd_lease *lease, bool revoke)
{
    struct etcd *etcd = lease->etcd;

    if (lease->call != NULL)
        etcd_call_cancel(lease->call);
    etcd_timer_stop(&etcd->timers, &lease->next);
    etcd_timer_stop(&etcd->timers, &lease->expiry);
    if (revoke && lease->id != 0 && lease->state != ETCD_LEASE_LOST)
        (void)!etcd_lease_revoke(etcd, lease->id, 0, revoked, NULL);
    etcd->users--;
    free(lease);
}

int64_t etcd_lease_id(const struct etcd_lease *lease)
{
    return lease->id;
}

bool etcd_lease_held(const struct etcd_lease *lease)
{
    return lease->state == ETCD_LEASE_HELD && etcd_now_ms() < lease->valid_until_ms;
}
