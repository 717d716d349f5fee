#include "client/cli/verb_rows.h"

/* VERB_FILES is the build's: VERB(NAME) for each verb_NAME.c. */
#define VERB(name) extern const struct verb verb_##name[];
VERB_FILES
#undef VERB

const struct verb *const verb_rows[] = {
#define VERB(name) verb_##name,
    VERB_FILES
#undef VERB
        NULL,
};
