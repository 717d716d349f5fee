/* metadata_include: the field `include` of lists of targets, which may ask for their metadata. */
#ifndef ROUTER_RPC_METADATA_METADATA_INCLUDE_H
#define ROUTER_RPC_METADATA_METADATA_INCLUDE_H

#include "router/rpc/metadata/metadata_gather.h"

/* False: it has something else, and the request has ended as INVALID_ARGUMENT. */
bool metadata_include_check(struct request *request, size_t count, char *const *include);

/* An ask about targets of that collection, "" for the default one, in the request's arena; `done`
 * finds `user` in it. Their ids are put into the list that comes with it, `count` of them. */
struct metadata_ask *metadata_ask_new(struct request *request, const char *collection, size_t count,
                                      char ***ret_targets);
/* As lists tell it: who wrote it is no caller's business. NULL stays NULL. */
Holdfast__V1__TargetMetadata *metadata_listed(Holdfast__V1__TargetMetadata *told);

#endif
