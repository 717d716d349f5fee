/*
 * definition_value: one field of a definition's body as text, for DiffDefinitions.
 */
#ifndef ROUTER_RPC_DEFINITIONS_DEFINITION_VALUE_H
#define ROUTER_RPC_DEFINITIONS_DEFINITION_VALUE_H

#include <protobuf-c/protobuf-c.h>

#include "runtime/base/arena.h"

/* In the arena. NULL: the field is of a type that this does not know; definition_value_test holds
 * that no body has one. */
char *definition_value(struct arena *arena, const ProtobufCMessage *body,
                       const ProtobufCFieldDescriptor *field);

#endif
