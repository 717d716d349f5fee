/*
 * definition_call: what the methods of DefinitionService share: the question to the elected
 * coordinator, which alone writes definitions, and how its versions are told.
 */
#ifndef ROUTER_RPC_DEFINITIONS_DEFINITION_CALL_H
#define ROUTER_RPC_DEFINITIONS_DEFINITION_CALL_H

#include "holdfast/internal/v1/node.pb-c.h"
#include "holdfast/v1/definition.pb-c.h"
#include "router/rpc/request/handlers.h"

#define DEFINITION_PAGE_DEFAULT 100u
#define DEFINITION_PAGE_MAX     200u
#define DEFINITION_HISTORY_LIMIT                                                                   \
    200u /* More than the versions of one definition that are kept.                                \
          */

/* Takes the answer, in the request's arena, and ends the request, or goes on with it: the request's
 * state and `cancel` are again what they were when the question was asked. */
typedef void definition_told(struct request *request, const ProtobufCMessage *answer);

/* CHANGE_DEFINITION with the caller's key as the author, and FIND_DEFINITIONS. Whatever goes wrong
 * ends the request. */
void definition_change_ask(struct request *request,
                           Holdfast__Internal__V1__ChangeDefinitionRequest *change,
                           definition_told *told);
void definition_find_ask(struct request *request,
                         const Holdfast__Internal__V1__FindDefinitionsRequest *find,
                         definition_told *told);
/* As the public API tells it; shares texts with `version`. */
Holdfast__V1__Definition *definition_tell(struct arena *arena,
                                          const Holdfast__Internal__V1__DefinitionVersion *version);
Holdfast__V1__Definition *
definition_tell_found(struct arena *arena, const Holdfast__Internal__V1__FoundDefinition *found);
/* ... of what a change made. */
Holdfast__V1__Definition *
definition_tell_made(struct arena *arena,
                     const Holdfast__Internal__V1__ChangeDefinitionResponse *answer, bool dry_run);
/* Ends the request: there is no such definition, or version of it. */
void definition_fail_unknown(struct request *request, const char *field, const char *value);
/* The kind that a body is of; "": of none. */
const char *definition_body_kind(const Holdfast__V1__DefinitionBody *body);

#endif
