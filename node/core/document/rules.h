/*
 * rules: the collections of documents that are defined (docs/definitions.md, kind `documents`), as
 * a member knows them from etcd. Strict shards do not know of them: a policy never changes, and all
 * else that a definition says holds for writes that come from now on, so members need not agree on
 * when.
 */
#ifndef NODE_CORE_DOCUMENT_RULES_H
#define NODE_CORE_DOCUMENT_RULES_H

#include "node/core/mergeable/policy.h"
#include "node/core/mergeable/replica.h"

#define DOCUMENT_NAME_BYTES_MAX 64u
#define DOCUMENT_RULES_MAX      4096u
#define DOCUMENT_BYTES_DEFAULT  65536u
#define DOCUMENT_BYTES_MAX      1048576u

struct document_rule {
    uint64_t number;  /* Documents are kept under it: a name made again has another one. */
    uint64_t version; /* The newest that was heard of. */
    bool deleted;
    char name[DOCUMENT_NAME_BYTES_MAX + 1];
    enum merge_policy policy;
    enum merge_durability durability;
    uint64_t ttl_ms; /* 0: none. */
    uint32_t bytes_max;
};

/* A zeroed one is valid and empty. */
struct document_rules {
    bool complete; /* All that etcd has was told: a name that is not here is not defined. */
    uint32_t count, deleted_count;
    struct document_rule *list; /* By number. */
};

void document_rules_deinit(struct document_rules *rules);
/* A version as etcd has it (internal.v1.DefinitionVersion). Other kinds are left alone, and
 * versions that are no news. ERR_CORRUPT: it cannot be read. ERR_FULL: DOCUMENT_RULES_MAX. */
NODISCARD err document_rules_take(struct document_rules *rules, struct slice version);
/* Nothing is known any more, nor complete: etcd tells all of them again. */
void document_rules_clear(struct document_rules *rules);
/* The collection of that number was deleted. */
bool document_rules_deleted(const struct document_rules *rules, uint64_t number);
/* NULL: none of that name is defined. Valid until the next take or clear. */
const struct document_rule *document_rules_find(const struct document_rules *rules,
                                                struct slice name);

#endif
