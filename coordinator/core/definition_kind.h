/* definition_kind: the kinds of definitions, and what one of each may say. */
#ifndef COORDINATOR_CORE_DEFINITION_KIND_H
#define COORDINATOR_CORE_DEFINITION_KIND_H

#include <stdbool.h>
#include <stdint.h>

#include "coordinator/core/definition_state.h"
#include "holdfast/v1/definition.pb-c.h"

/* NULL: the number is none. */
const char *definition_kind_name(uint32_t kind);
/* 0: there is no such kind; the nearest one is put into *ret_hint ("" if none is near). */
uint32_t definition_kind_find(const char *name, const char **ret_hint);
struct definition_fault {
    const char *field;
    char limit[96];
    char value[72];
};
/* Fills in defaults. False: *ret_fault says what is wrong. */
bool definition_body_check(Holdfast__V1__DefinitionBody *body, const char *name,
                           struct definition_fault *ret_fault);
/* What may never change. NULL: it did not, else the field. */
const char *definition_frozen(const Holdfast__V1__DefinitionBody *before,
                              const Holdfast__V1__DefinitionBody *after);

#endif
