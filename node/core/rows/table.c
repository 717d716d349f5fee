#include "node/core/rows/table.h"

#define RUN_NO(NAME)      0
#define RUN_YES(NAME)     1 + TABLE_RUN_##NAME
#define TREE_NONE(NAME)   0
#define TREE_ENTITY(NAME) 0
#define TREE_ALWAYS(NAME) 1 + TABLE_TREE_OF_##NAME
#define TREE_ASKED(NAME)  1 + TABLE_TREE_OF_##NAME

/* clang-format off */
#define FACTS(NAME, name, letter, entity_, tail_, order_, run_, drop_, miss_, carried_) \
    [TABLE_##NAME] = { \
        .entity = TABLE_ENTITY_##entity_, \
        .tail = TABLE_TAIL_##tail_, \
        .order = TABLE_ORDER_##order_, \
        .drop = TABLE_DROP_##drop_, \
        .miss = TABLE_MISS_##miss_, \
        .carried = TABLE_CARRIED_##carried_, \
        .run = RUN_##run_(NAME), \
        .tree = TREE_##order_(NAME), \
    },
/* clang-format on */

const struct table_facts table_facts[256] = { TABLE_LIST(FACTS) };
