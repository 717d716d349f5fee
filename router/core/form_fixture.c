#include "router/core/form_fixture.h"

int form_setup(void **state)
{
    static struct form_fixture f;

    f = (struct form_fixture){ 0 };
    *state = &f;
    return 0;
}

int form_teardown(void **state)
{
    struct form_fixture *f = *state;

    arena_deinit(&f->arena);
    return 0;
}

const void *form_make(struct form_fixture *f, uint32_t method, const ProtobufCMessage *message)
{
    const ProtobufCMessage *made;

    if (node_form_make(method_find(method), message, &f->arena, &made, &f->detail) != ERR_OK)
        return NULL;
    return made;
}
