#include "router/rpc/forward/forward.h"
#include "router/rpc/request/handlers.h"

/* In the form that nodes know (node_form.h), to the home player. */
void transaction_swap_handle(struct request *request)
{
    forward_as(request, method_find(request->method->element));
}
