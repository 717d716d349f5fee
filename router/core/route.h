/*
 * route: where a request belongs: its entity, that entity's shard, and the shard's owner as the
 * map has it (DESIGN sections 2 and 3). Also checks the envelope that every routed request shares.
 * Pure. What a request means is the node's business.
 */
#ifndef ROUTER_CORE_ROUTE_H
#define ROUTER_CORE_ROUTE_H

#include "holdfast/v1/error.pb-c.h"
#include "idl/limit.h"
#include "idl/method.h"
#include "runtime/base/arena.h"
#include "runtime/cluster/shard_map.h"

#define ROUTE_ENTITY_BYTES_MAX LIMIT_ENTITY_BYTES
#define ROUTE_PLAYER_BYTES_MAX LIMIT_PLAYER_ID_BYTES
#define ROUTE_OP_ID_BYTES_MAX  LIMIT_OP_ID_BYTES

/* Whose shard a request goes to: "player:42" from `player_id`, or `entity` as it is. */
struct route_entity {
    char text[ROUTE_ENTITY_BYTES_MAX + 1];
    size_t size;
};

/*
 * For METHOD_MUTATION, METHOD_READ, METHOD_MEMBER_READ and METHOD_MEMBER_WRITE: field 1 is
 * `player_id` or `entity`; a mutation also needs its `op_id` (field 2, where the method has one).
 *
 * ERR_INVALID: the envelope is wrong; *ret_detail (texts in `arena`) says which field and why.
 */
NODISCARD err route_find_entity(const struct method_info *method, const ProtobufCMessage *message,
                                struct arena *arena, struct route_entity *ret_entity,
                                Holdfast__V1__ErrorDetail *ret_detail);

/*
 * Names in *detail, unless it does already, what a request is about: its home entity, and its
 * op_id, where it has them and they are well formed. Texts in the arena, or the message's own.
 */
void route_name(const ProtobufCMessage *message, struct arena *arena,
                Holdfast__V1__ErrorDetail *detail);

/* The entity of a player. player_id.size <= ROUTE_PLAYER_BYTES_MAX (CHECK). */
struct route_entity route_entity_of_player(struct slice player_id);

/* The owner to ask, by its record and under the record's epoch. owner 0: none, for now. */
struct route_target {
    uint64_t owner;
    uint64_t epoch;
};

/*
 * Whom to ask of those who may answer at any member (METHOD_MEMBER_READ, METHOD_MEMBER_WRITE): at
 * first the owner, at each later `turn` another member, of those that `reaches` says can be asked;
 * NULL: all. Owner 0: none of them.
 */
struct route_reach {
    bool (*reaches)(void *context, uint64_t replica_id);
    void *context;
    uint32_t turn;
};
struct route_target route_find_member(const struct shard_map *map, uint32_t shard,
                                      const struct route_reach *reach);

/* {0, 0} when the map has no record of that shard. */
struct route_target route_find_target(const struct shard_map *map, uint32_t shard);

#endif
