/* One question to etcd about a game server that is on its way: made, listed, and given up with the
 * list. */
#include <stdlib.h>

#include "router/rpc/servers/servers_private.h"
#include "runtime/base/check.h"

struct server_task *server_task_new(struct servers *servers, uint64_t timeout_ms)
{
    struct server_task *task = mem_zalloc(sizeof *task);

    task->servers = servers;
    task->give_up_ms = loop_now_ms(servers->loop) + timeout_ms;
    task->next = &servers->tasks;
    task->previous = servers->tasks.previous;
    task->previous->next = task;
    servers->tasks.previous = task;
    return task;
}

void server_task_free(struct server_task *task)
{
    task->previous->next = task->next;
    task->next->previous = task->previous;
    if (task->claims)
        caller_share_give(task->servers->claims, task->claimant, 1);
    free(task);
}
