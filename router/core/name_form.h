/*
 * name_form: claims and releases of users' names as transactions, in which nodes know them. Pure.
 *
 * A name has an entity, the player "user-name:<name>#<tag>", letters of ASCII in lower case, which
 * no caller may write, nor a player's section of that name. A claim makes three sections and a
 * release deletes them, in one transaction:
 *
 *   of the player  hf_name      the name; so a player has one at most
 *   of the name    holder       who has it; so a name has one holder at most
 *   of the name    of_<hash>    by the hash of the player's id, always along with `holder`
 *
 * A claim wants that there is none of the three. Versions of sections only rise, also over deletes,
 * and the last two have the same one: the number of the binding. A release wants it of both, so it
 * can take neither a later binding nor another player's. A rename is both in one transaction, of
 * three entities; where both names are one, it writes the sections again.
 */
#ifndef ROUTER_CORE_NAME_FORM_H
#define ROUTER_CORE_NAME_FORM_H

#include "holdfast/v1/error.pb-c.h"
#include "holdfast/v1/profile.pb-c.h"
#include "holdfast/v1/user.pb-c.h"
#include "idl/method.h"
#include "runtime/base/arena.h"

#define NAME_BYTES_MAX     32u
#define NAME_TAG_BYTES_MAX 8u

/* ClaimName and ReleaseName as ExecuteTransaction, FindByName as GetProfile; in the arena, with
 * texts of `message`. ERR_INVALID: *ret_detail says which field is wrong. */
NODISCARD err name_form_make(const struct method_info *method, const ProtobufCMessage *message,
                             struct arena *arena, const ProtobufCMessage **ret_message,
                             Holdfast__V1__ErrorDetail *ret_detail);
/* What a refusal of the transaction says of the claim, or of the release. */
void name_form_tell(const struct method_info *method, struct arena *arena,
                    Holdfast__V1__ErrorDetail *detail);
/* Whether a player's id is a name's: callers may not write there. */
bool name_form_is_name(struct slice player_id);
void name_form_refuse_id(struct arena *arena, const char *field, struct slice player_id,
                         Holdfast__V1__ErrorDetail *ret_detail);
/* INVALID_ARGUMENT: a write of the caller's own edits a section that UserService keeps, or names a
 * name as a further player: who receives, trades or takes part. Its home, and those of a batch's
 * elements, are route_find_entity's. */
NODISCARD err name_form_check_writes(const struct method_info *method,
                                     const ProtobufCMessage *message, struct arena *arena,
                                     Holdfast__V1__ErrorDetail *ret_detail);
/* What the profile of a name says; ERR_CORRUPT: its section is none of a claim's. */
NODISCARD err name_form_found(const Holdfast__V1__GetProfileResponse *profile, struct arena *arena,
                              Holdfast__V1__FindByNameResponse *ret_response);

#endif
