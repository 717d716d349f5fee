/*
 * scope: what the key of a caller is for. A key has one or more scopes; which methods each opens is
 * a column of METHOD_TABLE (method.h). Back-end services act under the authority `system:<scope>`:
 * a message may only claim a scope that its caller's key has. DESIGN section 11.
 */
#ifndef IDL_SCOPE_H
#define IDL_SCOPE_H

#include "runtime/base/buf.h"

/* clang-format off */
/*    enumerator  bit  name          what a key with it is for */
#define SCOPE_TABLE(X)                                                                              \
    X(GAME,       0,   "game",       "a game server: sessions, and writes of the players it holds") \
    X(PAYMENTS,   1,   "payments",   "a payment webhook: system authority \"payments\"")            \
    X(MAIL,       2,   "mail",       "a mail service: system authority \"mail\"")                   \
    X(MATCH,      3,   "match",      "a match service: system authority \"match\"")                 \
    X(MODERATION, 4,   "moderation", "moderators: system authority \"moderation\"")                 \
    X(ADMIN,      5,   "admin",      "operators: system authority \"admin\", policy")               \
    X(READ,       6,   "read",       "reads alone, of everything")                                  \
    X(READ_PLAYER, 7,  "read:player", "reads alone, of players: profiles, ledgers, items, mail")    \
    X(READ_OPS,   8,   "read:ops",   "reads alone, of the cluster: members, load, incidents")
/* clang-format on */

#define SCOPE_ENUM(enumerator, bit, name, meaning) SCOPE_##enumerator = 1u << (bit),
enum scope { SCOPE_TABLE(SCOPE_ENUM) };
#undef SCOPE_ENUM

#define SCOPES_ALL   511u
#define SCOPES_READ  (unsigned)(SCOPE_READ | SCOPE_READ_PLAYER | SCOPE_READ_OPS)
#define SCOPES_WRITE (SCOPES_ALL & ~SCOPES_READ)
#define SCOPES_SYSTEM                                                                              \
    (SCOPES_WRITE & ~(unsigned)SCOPE_GAME) /* Of the authority `system:<name>`.                    \
                                            */

#define SCOPES_TEXT_SIZE 96u /* All names with commas between, and a NUL. */

/* The scope of that name; 0: there is none. */
uint32_t scope_find(struct slice name);
/* The names of all scopes in `scopes`, as "game, read". */
void scopes_print(uint32_t scopes, char ret_text[SCOPES_TEXT_SIZE]);
/* "game,read", spaces allowed. ERR_INVALID: no name at all, or *ret_bad is none. */
NODISCARD err scopes_parse(struct slice text, uint32_t *ret_scopes, struct slice *ret_bad);

struct scope_info {
    uint32_t scope;
    const char *name;
    const char *meaning;
};
/* All of them, for listings; *ret_count of them. */
const struct scope_info *scope_all(size_t *ret_count);

#endif
