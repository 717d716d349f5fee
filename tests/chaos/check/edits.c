#include "tests/chaos/check/edits.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/base/check.h"

static const char *const kind_names[] = {
    [EDIT_WRITE] = "write", [EDIT_ADD] = "add", [EDIT_DISCARD] = "discard", [EDIT_COUNT] = "count"
};

const char *edit_name(enum edit_kind kind)
{
    return (size_t)kind < ARRAY_SIZE(kind_names) ? kind_names[kind] : NULL;
}

bool edit_find(const char *name, enum edit_kind *ret_kind)
{
    for (size_t i = 0; i < ARRAY_SIZE(kind_names); i++) {
        if (strcmp(kind_names[i], name) == 0) {
            *ret_kind = (enum edit_kind)i;
            return true;
        }
    }
    return false;
}

void edits_deinit(struct edits *edits)
{
    names_deinit(&edits->documents);
    names_deinit(&edits->hands);
    names_deinit(&edits->numbers);
    free(edits->edits);
    free(edits->looks);
    free(edits->values);
    *edits = (struct edits){ 0 };
}
