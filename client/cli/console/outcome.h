/* outcome: what became of an operation, for people: the state, then a line for each field of its
 * answer or refusal, under its name in plain JSON. Formats only; it makes no call. */
#ifndef CLIENT_CLI_CONSOLE_OUTCOME_H
#define CLIENT_CLI_CONSOLE_OUTCOME_H

#include <jansson.h>

#include "runtime/base/buf.h"

/* `operation` is an OperationStatus in plain JSON, borrowed; NULL where none was told. Appends:
 *
 *   COMMITTED holdfast.v1.LedgerService/Grant
 *   decidedAt  2026-11-01T12:00:00Z
 *   write      version 3, replicasFsynced 2, asOf c1.AAE
 *   ledgerSeq  3
 *   balances   gold 50, gems 2
 *
 * What is not printable in a text becomes '?'; a value longer than 4 KiB is cut and ends in "...".
 */
void outcome_format(const json_t *operation, struct buf *out);

#endif
