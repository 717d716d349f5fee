#include "runtime/loop/work.h"

#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>
#include <uv.h>

#include "runtime/base/check.h"

#define NICENESS 10 /* A tenth of a loop's share of a processor that both want. */

struct job {
    uv_work_t request;
    struct work work;
};

static void on_thread(uv_work_t *request)
{
    static _Thread_local bool gives_way;
    const struct job *job = request->data;

    /* Where the kernel refuses, the thread is as any other. */
    if (!gives_way)
        (void)setpriority(PRIO_PROCESS, (id_t)gettid(), NICENESS);
    gives_way = true;
    job->work.run(job->work.user);
}

static void on_done(uv_work_t *request, int status)
{
    struct job *job = request->data;
    struct work work = job->work;

    CHECK(status == 0); /* We never cancel. */
    free(job);
    work.done(work.user);
}

void work_start(struct loop *loop, const struct work *work)
{
    struct job *job = mem_zalloc(sizeof *job);

    CHECK(work->run != NULL && work->done != NULL);
    job->work = *work;
    job->request.data = job;
    CHECK(uv_queue_work(loop_uv(loop), &job->request, on_thread, on_done) == 0);
}
