#include "idl/method.h"
#include "node/core/apply/apply_internal.h"
#include "node/core/favorite/partial.h"

void applier_row_changed(void *user, struct slice key, struct slice before, struct slice after)
{
    struct applier *applier = user;
    struct changed_row note;

    if (key.data[0] == TABLE_CHANGED && after.size > 0 && changed_key_parse(key, &note) == ERR_OK)
        recent_changes_note(&applier->recent, applier->applying, note.home);
    audit_row(&applier->auditor, key, before, after);
}

void applier_note_rows_put(struct applier *applier, uint32_t method)
{
    if (method == METHOD_REPAIR_ROW || method == METHOD_RESTORE_ROWS ||
        method == METHOD_FINISH_RESTORE)
        recent_changes_forget(&applier->recent, applier->applying);
}
