/* slow_log: the line of a slow request, with its spans (docs/operating.md). */
#ifndef ROUTER_IO_SLOW_LOG_H
#define ROUTER_IO_SLOW_LOG_H

#include "router/rpc/request.h"
#include "runtime/base/log.h"
#include "runtime/trace/slow_gate.h"

struct slow_log {
    const struct log *log;
    struct slow_gate gate;
};

/* `code` as text. Does nothing unless the request was slow. */
void slow_log_request(struct slow_log *slow, const struct request *request, const char *code,
                      uint64_t took_ns);

#endif
