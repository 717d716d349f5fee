#include "node/core/document/methods.h"

#include "idl/method.h"

extern const struct document_method document_put_document_method, document_get_document_method,
    document_delete_document_method, document_update_document_method,
    document_list_documents_method, presence_set_presence_method, presence_clear_presence_method,
    presence_get_presence_method, user_upsert_user_method, user_get_user_method;

const struct document_method *document_method_find(uint32_t method)
{
    switch (method) {
    case METHOD_PUT_DOCUMENT:
        return &document_put_document_method;
    case METHOD_GET_DOCUMENT:
        return &document_get_document_method;
    case METHOD_DELETE_DOCUMENT:
        return &document_delete_document_method;
    case METHOD_UPDATE_DOCUMENT:
        return &document_update_document_method;
    case METHOD_LIST_DOCUMENTS:
        return &document_list_documents_method;
    case METHOD_SET_PRESENCE:
        return &presence_set_presence_method;
    case METHOD_CLEAR_PRESENCE:
        return &presence_clear_presence_method;
    case METHOD_GET_PRESENCE:
        return &presence_get_presence_method;
    case METHOD_UPSERT_USER:
        return &user_upsert_user_method;
    case METHOD_GET_USER:
        return &user_get_user_method;
    default:
        return NULL;
    }
}
