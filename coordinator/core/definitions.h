/*
 * definitions: what a team configures (docs/definitions.md): the copy of what etcd has, and who has
 * logged it.
 *
 * A version is a record of its own in etcd, made once and never changed: etcd refuses a second one
 * under its number and version. The order of all versions is the revision at
 * which etcd got them, under the cluster's generation. Each shard follows that order and says how
 * far it is; a version is in force once all of them are at it or beyond.
 */
#ifndef COORDINATOR_CORE_DEFINITIONS_H
#define COORDINATOR_CORE_DEFINITIONS_H

#include "coordinator/core/coord_state.h"
#include "holdfast/internal/v1/definition.pb-c.h"

#define DEFINITION_GENERATION_BITS 40u /* Below the generation in a number. */

typedef Holdfast__Internal__V1__DefinitionVersion definition_record;

/* A record of etcd, or one that this coordinator wrote. False: it cannot be read. */
bool definitions_put(struct coord *coord, uint64_t number, uint64_t version, struct slice packed,
                     int64_t revision);
void definitions_deleted(struct coord *coord, uint64_t number, uint64_t version);
void definitions_free(struct coord *coord);
/* NULL: none. */
struct definition *definition_find(const struct coord *coord, uint64_t number);
/* The one of that kind and name that is not deleted; NULL: there is none. */
struct definition *definition_named(const struct coord *coord, uint32_t kind, const char *name);
const struct definition_version *definition_newest(const struct definition *definition);
/* NULL: it is not kept. */
const struct definition_version *definition_get(const struct definition *definition,
                                                uint64_t version);
/* To be freed by protobuf. */
definition_record *definition_unpack(const struct definition_version *version);
/* What a shard keeps of that version: the body, the name, and 64 bytes for fields of a fixed size.
 */
uint32_t definition_bytes(const definition_record *record);
/* Of all that etcd has; 0: there is none. */
uint64_t definitions_revision(const struct coord *coord);

struct definition_write {
    bool written;
    int64_t revision;
    struct slice packed;
};
/* etcd's watch has come to this revision; all of etcd was read: INT64_MAX. */
void definitions_reached(struct coord *coord, int64_t revision);
/* What came of the write of a version. */
void definition_written(struct coord *coord, uint64_t number, uint64_t version,
                        const struct definition_write *write);

#endif
