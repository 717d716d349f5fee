/*
 * section_edit: edits of a player's sections, for UpdateProfile and EndSession. Checked and made
 * canonical before the log; carried out at apply on the stored text. DESIGN section 3.
 */
#ifndef NODE_CORE_PROFILE_SECTION_EDIT_H
#define NODE_CORE_PROFILE_SECTION_EDIT_H

#include "holdfast/v1/profile.pb-c.h"
#include "idl/limit.h"
#include "node/core/handler/handler.h"

#define SECTION_EDITS_MAX LIMIT_SECTION_EDITS
/* Roles and flags of the player (user_flags.h): no edit of a caller names it. */
#define USER_FLAGS_SECTION "hf_flags"

/* Names, limits, JSON. Replaces JSON texts by their canonical form (arena). ERR_INVALID. */
NODISCARD err section_edits_check(struct check_context *context, size_t count,
                                  Holdfast__V1__SectionEdit **edits);
/* One of them, which the request calls `called`. ERR_INVALID. */
NODISCARD err section_edit_check(struct check_context *context, const char *called,
                                 Holdfast__V1__SectionEdit *edit);
/* Section rows that the edits need to read. */
void section_edits_footprint(const struct op *op, size_t count,
                             Holdfast__V1__SectionEdit *const *edits, struct need *keys);
/* All or nothing. *ret_versions: arena, one per edit. ERR_NEED, ERR_CONFLICT, ERR_INVALID. */
NODISCARD err section_edits_apply(struct apply_context *context, size_t count,
                                  Holdfast__V1__SectionEdit *const *edits,
                                  Holdfast__V1__SectionVersion ***ret_versions);

#endif
