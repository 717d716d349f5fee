/*
 * include: what of a player a read returns, as `include` of GetProfile, StartSession and
 * ReadPlayers names it: "sections" or "sections.<name>", "balances", "items", "mail".
 */
#ifndef NODE_CORE_PROFILE_INCLUDE_H
#define NODE_CORE_PROFILE_INCLUDE_H

#include "holdfast/v1/session.pb-c.h"
#include "node/core/handler/handler.h"

struct include {
    bool sections; /* All of them. */
    bool balances;
    bool items;          /* The first page. */
    bool mail;           /* The first page. */
    struct slice *names; /* Of single sections. In the arena; texts are borrowed from the words. */
    size_t name_count;
};

/* No words: sections and balances. ERR_INVALID with *refusal: there is no such word (with the one
 * that was probably meant), a section's name is malformed, or there are more than 68 words. */
NODISCARD err include_parse(struct arena *arena, struct refusal *refusal, size_t count,
                            char *const *words, struct include *ret_include);
/* Of a StartSession that was checked before it was logged. Those of old logs name sections in a
 * field that requests have no more. */
struct include include_of_session(struct arena *arena,
                                  const Holdfast__V1__StartSessionRequest *request);
bool include_has_section(const struct include *include, struct slice name);

#endif
