#include "runtime/loop/loop.h"

#include <signal.h>
#include <stdlib.h>
#include <time.h>

#include "runtime/base/check.h"
#include "runtime/loop/loop_private.h"
#include "runtime/loop/mailbox.h"

/* A hook may arm hooks; after so many in one round the loop polls without waiting, so that input
 * is not starved. */
#define HOOKS_PER_ROUND_MAX 65536u

static void take_hook_out(struct loop_hook *hook)
{
    struct loop *loop = hook->loop;

    if (hook->previous != NULL)
        hook->previous->next = hook->next;
    else
        loop->hooks_first = hook->next;
    if (hook->next != NULL)
        hook->next->previous = hook->previous;
    else
        loop->hooks_last = hook->previous;
    hook->armed = false;
}

static void run_hooks(uv_prepare_t *prepare)
{
    struct loop *loop = CONTAINER_OF(prepare, struct loop, prepare);

    for (uint32_t i = 0; i < HOOKS_PER_ROUND_MAX && loop->hooks_first != NULL; i++) {
        struct loop_hook *hook = loop->hooks_first;
        take_hook_out(hook);
        hook->fn(hook->user);
    }
    /* Nothing to wait for: let the poll return at once. */
    if (loop->hooks_first != NULL || (loop->until != NULL && loop->until(loop->until_user)))
        uv_async_send(&loop->wake);
}

static void woken(uv_async_t *wake)
{
    struct loop *loop = CONTAINER_OF(wake, struct loop, wake);

    for (struct mailbox *mailbox = loop->mailboxes; mailbox != NULL;
         mailbox = mailbox->next_in_loop)
        mailbox_drain(mailbox);
    if (atomic_exchange(&loop->stop_asked, false))
        uv_stop(&loop->uv);
}

err loop_new(struct loop **ret_loop)
{
    struct loop *loop = mem_zalloc(sizeof *loop);

    if (uv_loop_init(&loop->uv) != 0) {
        free(loop);
        return ERR_IO;
    }
    if (uv_async_init(&loop->uv, &loop->wake, woken) != 0) {
        CHECK(uv_loop_close(&loop->uv) == 0);
        free(loop);
        return ERR_IO;
    }
    CHECK(uv_prepare_init(&loop->uv, &loop->prepare) == 0);
    CHECK(uv_prepare_start(&loop->prepare, run_hooks) == 0);
    CHECK(uv_timer_init(&loop->uv, &loop->alarm) == 0);
    loop->alarm_ms = UINT64_MAX;
    (void)signal(SIGPIPE, SIG_IGN);
    atomic_init(&loop->stop_asked, false);
    *ret_loop = loop;
    return ERR_OK;
}

void loop_free(struct loop *loop)
{
    if (loop == NULL)
        return;
    CHECK(loop->mailboxes == NULL);
    CHECK(loop->heap_count == 0);
    uv_close((uv_handle_t *)&loop->wake, NULL);
    uv_close((uv_handle_t *)&loop->prepare, NULL);
    uv_close((uv_handle_t *)&loop->alarm, NULL);
    for (size_t i = 0; loop->signals_started && i < ARRAY_SIZE(loop->signals); i++)
        uv_close((uv_handle_t *)&loop->signals[i], NULL);
    uv_run(&loop->uv, UV_RUN_DEFAULT);
    CHECK(uv_loop_close(&loop->uv) == 0);
    free(loop->heap);
    free(loop);
}

void loop_run(struct loop *loop)
{
    uv_run(&loop->uv, UV_RUN_DEFAULT);
}

void loop_stop(struct loop *loop)
{
    atomic_store(&loop->stop_asked, true);
    uv_async_send(&loop->wake);
}

struct limit {
    struct loop_timer timer;
    struct loop *loop;
    bool over;
};

/* Timers run before the poll too, which would then wait with nothing left to wake it. */
static void limit_over(void *user)
{
    struct limit *limit = user;

    limit->over = true;
    uv_async_send(&limit->loop->wake);
}

bool loop_run_until(struct loop *loop, bool (*done)(void *user), void *user, uint64_t timeout_ms)
{
    struct limit limit = { .loop = loop };

    /* The timer itself says that time is up: a clock read beside it could say so a moment later,
     * and the loop would then wait with nothing left to wake it. */
    loop_timer_init(&limit.timer, loop, limit_over, &limit);
    uv_update_time(&loop->uv);
    loop_timer_start(&limit.timer, timeout_ms);
    loop->until = done;
    loop->until_user = user;
    while (!done(user) && !limit.over)
        uv_run(&loop->uv, UV_RUN_ONCE);
    loop->until = NULL;
    loop_timer_stop(&limit.timer);
    return done(user);
}

uint64_t loop_now_ms(const struct loop *loop)
{
    return uv_now(&loop->uv);
}

uint64_t loop_wall_ms(void)
{
    struct timespec now;

    CHECK(clock_gettime(CLOCK_REALTIME, &now) == 0);
    return (uint64_t)now.tv_sec * 1000u + (uint64_t)now.tv_nsec / 1000000u;
}

uint64_t loop_clock_ns(void)
{
    return uv_hrtime();
}

uint64_t loop_thread_ns(void)
{
    struct timespec now;

    CHECK(clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now) == 0);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

struct uv_loop_s *loop_uv(struct loop *loop)
{
    return &loop->uv;
}

void loop_hook_init(struct loop_hook *hook, struct loop *loop, void (*fn)(void *user), void *user)
{
    *hook = (struct loop_hook){ .fn = fn, .user = user, .loop = loop };
}

void loop_hook_init_late(struct loop_hook *hook, struct loop *loop, void (*fn)(void *user),
                         void *user)
{
    *hook = (struct loop_hook){ .fn = fn, .user = user, .loop = loop, .late = true };
}

void loop_hook_arm(struct loop_hook *hook)
{
    struct loop *loop = hook->loop;
    struct loop_hook *after = loop->hooks_last;

    if (hook->armed)
        return;
    while (!hook->late && after != NULL && after->late)
        after = after->previous;
    hook->armed = true;
    hook->previous = after;
    hook->next = after != NULL ? after->next : loop->hooks_first;
    *(hook->previous != NULL ? &hook->previous->next : &loop->hooks_first) = hook;
    *(hook->next != NULL ? &hook->next->previous : &loop->hooks_last) = hook;
}

void loop_hook_disarm(struct loop_hook *hook)
{
    if (hook->armed)
        take_hook_out(hook);
}

static void signalled(uv_signal_t *handle, int signum)
{
    struct loop *loop = handle->data;

    loop->signal_fn(loop->signal_user, signum);
}

err loop_signals_start(struct loop *loop, void (*fn)(void *user, int signum), void *user)
{
    static const int signums[] = { SIGTERM, SIGINT };

    CHECK(!loop->signals_started);
    loop->signals_started = true;
    loop->signal_fn = fn;
    loop->signal_user = user;
    for (size_t i = 0; i < ARRAY_SIZE(signums); i++) {
        CHECK(uv_signal_init(&loop->uv, &loop->signals[i]) == 0);
        loop->signals[i].data = loop;
    }
    for (size_t i = 0; i < ARRAY_SIZE(signums); i++)
        if (uv_signal_start(&loop->signals[i], signalled, signums[i]) != 0)
            return ERR_IO;
    return ERR_OK;
}
