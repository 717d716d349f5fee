/*
 * native_name: what a native client is called where a key's id counts or is logged, and in ledgers
 * (docs/security.md). Pure.
 */
#ifndef ROUTER_CORE_NATIVE_NAME_H
#define ROUTER_CORE_NATIVE_NAME_H

#include <stdbool.h>

#include "runtime/base/arena.h"

/*
 * "cert:arena-7", in what an authority in a ledger may hold (caller_name_is_good);
 * "cert:any:arena-7" where the certificate is good for any name, and HELLO's is what the client
 * likes to be called. Two clients never have one such name: no certificate's name has a colon, and
 * a name that is too long ends in its hash. In the arena.
 */
const char *native_name(struct arena *arena, const char *name, bool any);

#endif
