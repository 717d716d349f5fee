/* form_fixture: for tests of node_form.h: an arena, and what was refused last. Not a part of the
 * router. */
#ifndef ROUTER_CORE_FORM_FIXTURE_H
#define ROUTER_CORE_FORM_FIXTURE_H

#include "router/core/node_form.h"

struct form_fixture {
    struct arena arena;
    Holdfast__V1__ErrorDetail detail;
};

int form_setup(void **state);
int form_teardown(void **state);
/* NULL: refused. */
const void *form_make(struct form_fixture *f, uint32_t method, const ProtobufCMessage *message);

#endif
