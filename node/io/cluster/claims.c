#include "node/io/cluster/claims.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "holdfast/internal/v1/node.pb-c.h"
#include "idl/method.h"
#include "runtime/base/check.h"

#define CHECK_PERIOD_MS    50u
#define REPORT_DEADLINE_MS 1000u
#define REPORT_AGAIN_MS    500u

struct claims {
    struct claims_options options;
    struct calls *calls;
    struct link *coordinator;
    char address[LINK_ADDRESS_SIZE];
    char name[sizeof((struct coordinator_record *)0)->name];
    struct loop_timer timer;
    struct told {
        uint64_t owner; /* 0: free. */
        uint64_t ms;
    } told[PEERS_MAX]; /* When each was reported last. */
    uint64_t full_told_ms, declined_told_ms, outgrown_told_ms, clock_told_ms;
    struct buf scratch;
};

static void on_ready(void *user, struct link *link, const struct hello *peer)
{
    (void)user;
    (void)link;
    (void)peer;
}

static void on_frame(void *user, struct link *link, const struct frame *frame)
{
    struct claims *claims = user;
    (void)calls_frame(claims->calls, link, frame);
}

static void on_closed(void *user, struct link *link, enum link_close_reason reason,
                      const char *text)
{
    struct claims *claims = user;
    (void)reason;
    (void)text;
    calls_closed(claims->calls, link);
}

/* Keeps a link to the elected coordinator. */
static void follow_coordinator(struct claims *claims)
{
    const struct coordinator_record *elected =
        shard_map_find_coordinator(registry_map(claims->options.registry));

    if (elected == NULL || (strcmp(elected->address, claims->address) == 0 &&
                            strcmp(elected->name, claims->name) == 0))
        return;
    if (claims->coordinator != NULL)
        link_close(claims->coordinator);
    claims->coordinator = NULL;
    snprintf(claims->address, sizeof claims->address, "%s", elected->address);
    snprintf(claims->name, sizeof claims->name, "%s", elected->name);
    struct link_dial_options dial = {
        .transport = LINK_NNG,
        .address = claims->address,
        .expect = { .role = ROLE_COORDINATOR, .name = claims->name },
        .handlers = { .ready = on_ready, .frame = on_frame, .closed = on_closed, .user = claims },
    };
    if (link_dial(claims->options.hub, &dial, &claims->coordinator) != ERR_OK)
        log_event(claims->options.log, LOG_ERROR, "coordinator.bad_address",
                  LOG_S("address", claims->address));
}

static void on_reported(void *user, err result, const struct frame *response)
{
    (void)user;
    (void)result;
    (void)response;
}

/* Which of the owner's shards. */
enum about { ABOUT_ALL, ABOUT_DECLINED, ABOUT_OUTGROWN, ABOUT_CLOCK };

struct complaint {
    uint64_t owner;
    const char *reason;
    uint64_t since_ms;
    uint64_t shard_silent_ms; /* Only about shards that heard nothing for so long; 0: about all. */
    enum about about;
};

struct report {
    const struct complaint *complaint;
    Holdfast__Internal__V1__ReportOwnerRequest message;
    Holdfast__Internal__V1__ShardPosition *positions;
    Holdfast__Internal__V1__ShardPosition **pointers;
    Holdfast__V1__Dot *dots;
};

static void report_add(void *user, const struct shard_view *view)
{
    struct report *report = user;

    if (view->owner != report->complaint->owner ||
        view->owner_silent_ms < report->complaint->shard_silent_ms ||
        (report->complaint->about == ABOUT_DECLINED && !view->declines) ||
        (report->complaint->about == ABOUT_OUTGROWN && !view->outgrown) ||
        (report->complaint->about == ABOUT_CLOCK && !view->clock_ahead))
        return;
    size_t n = report->message.n_shards++;
    holdfast__v1__dot__init(&report->dots[n]);
    report->dots[n].epoch = view->last_dot.epoch;
    report->dots[n].owner = view->last_dot.owner;
    report->dots[n].counter = view->last_dot.counter;
    holdfast__internal__v1__shard_position__init(&report->positions[n]);
    report->positions[n].shard = view->shard;
    report->positions[n].epoch = view->epoch;
    report->positions[n].last = &report->dots[n];
    report->pointers[n] = &report->positions[n];
}

static void report_fill(const struct claims *claims, struct report *report)
{
    uint32_t count = shard_views_count(claims->options.views);

    report->positions = mem_zalloc(sizeof *report->positions * count);
    report->pointers = mem_zalloc(sizeof *report->pointers * count);
    report->dots = mem_zalloc(sizeof *report->dots * count);
    shard_views_visit(claims->options.views, report_add, report);
    report->message.shards = report->pointers;
}

/* Its place, or else that of the owner reported longest ago. */
static struct told *told_of(struct claims *claims, uint64_t owner)
{
    struct told *oldest = &claims->told[0];

    for (uint32_t i = 0; i < PEERS_MAX; i++) {
        if (claims->told[i].owner == owner)
            return &claims->told[i];
        if (claims->told[i].ms < oldest->ms)
            oldest = &claims->told[i];
    }
    return oldest;
}

static void note_told(struct claims *claims, const struct complaint *complaint)
{
    uint64_t now_ms = loop_now_ms(claims->options.loop);

    if (complaint->about == ABOUT_DECLINED)
        claims->declined_told_ms = now_ms + REPORT_AGAIN_MS;
    else if (complaint->about == ABOUT_OUTGROWN)
        claims->outgrown_told_ms = now_ms + REPORT_AGAIN_MS;
    else if (complaint->about == ABOUT_CLOCK)
        claims->clock_told_ms = now_ms + REPORT_AGAIN_MS;
    else if (complaint->owner == claims->options.self)
        claims->full_told_ms = now_ms + REPORT_AGAIN_MS;
    else
        *told_of(claims, complaint->owner) = (struct told){ complaint->owner, now_ms };
}

static void send_report(struct claims *claims, const struct complaint *complaint)
{
    struct report report = { .complaint = complaint,
                             .message = HOLDFAST__INTERNAL__V1__REPORT_OWNER_REQUEST__INIT };
    struct call_request request = {
        .method = METHOD_REPORT_OWNER,
        .priority = 1,
        .deadline_ms = REPORT_DEADLINE_MS,
        .done = on_reported,
        .user = claims,
    };

    report_fill(claims, &report);
    report.message.reporter = claims->options.self;
    report.message.owner = complaint->owner;
    report.message.reason = text_lend(complaint->reason);
    report.message.since_ms =
        complaint->since_ms < UINT32_MAX ? (uint32_t)complaint->since_ms : UINT32_MAX;
    if (report.message.n_shards > 0 || complaint->owner == claims->options.self) {
        size_t size =
            holdfast__internal__v1__report_owner_request__get_packed_size(&report.message);
        buf_clear(&claims->scratch);
        holdfast__internal__v1__report_owner_request__pack(&report.message,
                                                           buf_reserve(&claims->scratch, size));
        claims->scratch.size = size;
        request.body = buf_slice(&claims->scratch);
        /* Not sent: the next look, 50 ms later, tries again. */
        if (call_start(claims->calls, claims->coordinator, &request, NULL) == ERR_OK) {
            note_told(claims, complaint);
            log_event(claims->options.log, LOG_WARN, "owner.reported",
                      LOG_N("owner", complaint->owner), LOG_S("reason", complaint->reason),
                      LOG_N("since_ms", complaint->since_ms),
                      LOG_N("shards", report.message.n_shards));
        }
    }
    free(report.positions);
    free(report.pointers);
    free(report.dots);
}

/* `stuck_ms`: the longest that it said nothing about one of its shards. Its link may be well, but
 * its replica there damaged, or stuck. */
static void look_at(struct claims *claims, uint64_t replica, uint64_t stuck_ms)
{
    uint64_t closed_ms, silent_ms;

    if (replica == claims->options.self ||
        !peers_health(claims->options.peers, replica, &closed_ms, &silent_ms))
        return;
    if (told_of(claims, replica)->owner == replica &&
        loop_now_ms(claims->options.loop) < told_of(claims, replica)->ms + REPORT_AGAIN_MS)
        return;
    if (closed_ms >= claims->options.closed_ms)
        send_report(claims, &(struct complaint){ replica, "closed", closed_ms, 0, ABOUT_ALL });
    else if (silent_ms >= claims->options.silent_ms)
        send_report(claims, &(struct complaint){ replica, "silent", silent_ms, 0, ABOUT_ALL });
    else if (stuck_ms >= claims->options.silent_ms)
        send_report(claims, &(struct complaint){ replica, "stuck", stuck_ms,
                                                 claims->options.silent_ms, ABOUT_ALL });
}

/* Told for as long as it lasts, shards or not: a node that is short gets none, either. */
static void look_at_space(struct claims *claims)
{
    uint64_t now_ms = loop_now_ms(claims->options.loop);

    if (space_state(claims->options.space) == SPACE_OK || now_ms < claims->full_told_ms)
        return;
    send_report(claims, &(struct complaint){ claims->options.self, "full", 0, 0, ABOUT_ALL });
}

/* Before it is registered the coordinator does not know yet that this is another life. */
static void look_at_declined(struct claims *claims)
{
    if (registry_is_registered(claims->options.registry) &&
        loop_now_ms(claims->options.loop) >= claims->declined_told_ms)
        send_report(claims,
                    &(struct complaint){ claims->options.self, "declined", 0, 0, ABOUT_DECLINED });
}

static void look_at_outgrown(struct claims *claims)
{
    if (loop_now_ms(claims->options.loop) >= claims->outgrown_told_ms)
        send_report(claims,
                    &(struct complaint){ claims->options.self, "outgrown", 0, 0, ABOUT_OUTGROWN });
}

static void look_at_clock(struct claims *claims)
{
    if (loop_now_ms(claims->options.loop) >= claims->clock_told_ms)
        send_report(claims,
                    &(struct complaint){ claims->options.self, "clock", 0, 0, ABOUT_CLOCK });
}

struct owners {
    uint64_t ids[PEERS_MAX];
    uint64_t stuck_ms[PEERS_MAX];
    uint32_t count;
    bool declined, outgrown, clock_ahead; /* Some shard, by ourselves. */
};

static void owner_add(void *user, const struct shard_view *view)
{
    struct owners *owners = user;
    uint32_t i = 0;

    owners->declined |= view->declines;
    owners->outgrown |= view->outgrown;
    owners->clock_ahead |= view->clock_ahead;
    while (i < owners->count && owners->ids[i] != view->owner)
        i++;
    if (view->owner == 0 || i == PEERS_MAX)
        return;
    if (i == owners->count) {
        owners->ids[owners->count++] = view->owner;
        owners->stuck_ms[i] = 0;
    }
    if (view->owner_silent_ms > owners->stuck_ms[i])
        owners->stuck_ms[i] = view->owner_silent_ms;
}

static void on_timer(void *user)
{
    struct claims *claims = user;
    struct owners owners = { .count = 0 };

    follow_coordinator(claims);
    if (claims->coordinator == NULL || !link_is_ready(claims->coordinator))
        return;
    look_at_space(claims);
    shard_views_visit(claims->options.views, owner_add, &owners);
    if (owners.declined)
        look_at_declined(claims);
    if (owners.outgrown)
        look_at_outgrown(claims);
    if (owners.clock_ahead)
        look_at_clock(claims);
    for (uint32_t i = 0; i < owners.count; i++)
        look_at(claims, owners.ids[i], owners.stuck_ms[i]);
}

struct claims *claims_new(const struct claims_options *options)
{
    struct claims *claims = mem_zalloc(sizeof *claims);
    struct calls_options calls = { .hub = options->hub, .loop = options->loop };

    claims->options = *options;
    CHECK(calls_new(&calls, &claims->calls) == ERR_OK);
    loop_timer_init(&claims->timer, options->loop, on_timer, claims);
    loop_timer_start_repeating(&claims->timer, CHECK_PERIOD_MS);
    return claims;
}

void claims_free(struct claims *claims)
{
    if (claims == NULL)
        return;
    loop_timer_stop(&claims->timer);
    if (claims->coordinator != NULL)
        link_close(claims->coordinator);
    calls_free(claims->calls);
    buf_deinit(&claims->scratch);
    free(claims);
}
