/* methods: the methods of DocumentService, PresenceService and UserService that a member carries
 * out, by number. */
#ifndef NODE_CORE_DOCUMENT_METHODS_H
#define NODE_CORE_DOCUMENT_METHODS_H

#include "node/core/document/call.h"

/* Of METHOD_MEMBER_READ or METHOD_MEMBER_WRITE; NULL: it is no such method. */
const struct document_method *document_method_find(uint32_t method);

#endif
