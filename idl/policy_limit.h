/*
 * policy_limit: the bounds of a cluster's policy (AdminService.SetPolicy). The router checks a
 * policy before it is stored, and each shard checks it before it is logged: by the same bounds,
 * since a stored policy that no shard takes would be sent to all of them for ever.
 */
#ifndef IDL_POLICY_LIMIT_H
#define IDL_POLICY_LIMIT_H

#include "idl/limit.h"

#define POLICY_CURRENCIES_MAX    64u
#define POLICY_CURRENCY_NAME_MAX LIMIT_CURRENCY_NAME_BYTES
#define POLICY_AMOUNT_MAX        LIMIT_AMOUNT
#define POLICY_WINDOW_MS_MIN     900000ull
#define POLICY_WINDOW_MS_MAX     604800000ull
#define POLICY_OPERATIONS_MIN    1000ull
#define POLICY_OPERATIONS_MAX    100000000ull
#define POLICY_ITEMS_MAX         1000000u
#define POLICY_MAILS_MAX         100000u

#endif
