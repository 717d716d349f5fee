/* slow_log: the line of a request that was slow or failed, with its spans (docs/logs.md). */
#ifndef ROUTER_IO_SLOW_LOG_H
#define ROUTER_IO_SLOW_LOG_H

#include "router/rpc/request/request.h"
#include "runtime/base/log.h"
#include "runtime/trace/slow_gate.h"

struct slow_log {
    const struct log *log;
    struct slow_gate slow;
    struct slow_gate failed; /* Whatever it took: slow_ns is 1. */
};

/* How a request ended. */
struct slow_end {
    const char *code; /* As text. */
    bool failed;      /* See request_is_failure. */
    uint64_t took_ns;
};

/* Does nothing unless the request was slow or failed. */
void slow_log_request(struct slow_log *log, const struct request *request,
                      const struct slow_end *end);

#endif
