/*
 * error_tell: a refusal as the node stores it, told as the public API does: with its outcome, its
 * action and the facts behind it. What is stored stays as it was recorded; so a refusal that an
 * earlier version recorded is told in today's words, as far as it has the facts.
 */
#ifndef IDL_ERROR_TELL_H
#define IDL_ERROR_TELL_H

#include "holdfast/internal/v1/refusal.pb-c.h"
#include "holdfast/v1/error.pb-c.h"
#include "runtime/base/arena.h"

/* Complete (error_rule.h), but for `entity`, `op_id` and `trace_id`, which are the request's. Texts
 * and facts are shared with `refusal` or in the arena. */
Holdfast__V1__ErrorDetail error_tell(const Holdfast__Internal__V1__Refusal *refusal,
                                     struct arena *arena);

#endif
