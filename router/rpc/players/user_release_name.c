#include "router/rpc/forward/forward.h"
#include "router/rpc/request/handlers.h"

/* In the form that nodes know (name_form.h), to the home player. */
void user_release_name_handle(struct request *request)
{
    forward_as(request, method_find(request->method->element));
}
