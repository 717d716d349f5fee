#include "router/core/name_form.h"
#include "router/rpc/forward/forward.h"
#include "router/rpc/request/handlers.h"
#include "runtime/codec/proto_codec.h"

static void tell(struct request *request, struct slice body)
{
    Holdfast__V1__FindByNameResponse response = HOLDFAST__V1__FIND_BY_NAME_RESPONSE__INIT;
    struct codec_scope scope = { .arena = request->arena };
    ProtobufCMessage *profile;

    if (proto_decode(&holdfast__v1__get_profile_response__descriptor, body, &scope, &profile) !=
            ERR_OK ||
        name_form_found((const void *)profile, request->arena, &response) != ERR_OK)
        request_fail_text(request, HOLDFAST__V1__ERROR_CODE__ERROR_CODE_INTERNAL,
                          "a node's answer cannot be read");
    else
        request_reply(request, &response.base);
}

/* The profile of the name, in the form that nodes know (name_form.h). */
void user_find_by_name_handle(struct request *request)
{
    forward_as_told(request, method_find(request->method->element), tell);
}
