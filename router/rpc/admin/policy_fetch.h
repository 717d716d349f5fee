/*
 * policy_fetch: the cluster's policy as etcd has it, for answers that tell it among other things.
 */
#ifndef ROUTER_RPC_ADMIN_POLICY_FETCH_H
#define ROUTER_RPC_ADMIN_POLICY_FETCH_H

#include "holdfast/v1/admin.pb-c.h"
#include "router/rpc/request/request.h"

/* `policy` lives in the request's arena; NULL: there is none yet, it cannot be read, or etcd did
 * not answer in time. */
typedef void policy_fetched(void *user, Holdfast__V1__Policy *policy);

/* Calls `done` once, perhaps before it returns; not if the request is cancelled meanwhile. Takes
 * the request's `state` and `cancel` until then. */
void policy_fetch(struct request *request, policy_fetched *done, void *user);

#endif
