#include "node/rpc/handlers.h"

#include "node/rpc/methods.h"
#include "runtime/base/check.h"

static const struct handler *const handlers[] = {
#define HANDLER_ROW(number, enumerator, package, service, method, name, route, ...)                \
    HANDLED_##route([METHOD_##enumerator] = &service##_##name##_handler, )
    METHOD_TABLE(HANDLER_ROW)
#undef HANDLER_ROW
};

const struct handler_table *node_handlers(void)
{
    static const struct handler_table table = { handlers, ARRAY_SIZE(handlers) };
    return &table;
}
