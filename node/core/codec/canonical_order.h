/*
 * canonical_order: puts what is a map in a request into one order, so that two requests that differ
 * in the order of its entries alone are one operation, with one payload hash. Maps are lists of
 * CurrencyAmount (by currency) and of SectionEdit (by name), at any depth. Entries of one key keep
 * their order, and so does every other list: items, steps of a patch, changes of a transaction.
 *
 * For requests on their way to the log, after their checks: what is in a log is as it is.
 */
#ifndef NODE_CORE_CODEC_CANONICAL_ORDER_H
#define NODE_CORE_CODEC_CANONICAL_ORDER_H

#include <protobuf-c/protobuf-c.h>

/* In place: lists are permuted, no entry is changed. */
void canonical_order(ProtobufCMessage *message);

#endif
