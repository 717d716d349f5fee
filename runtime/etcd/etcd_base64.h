/* etcd_base64: RFC 4648 section 4, padded, as etcd's gateway carries keys and values. Pure. */
#ifndef RUNTIME_ETCD_ETCD_BASE64_H
#define RUNTIME_ETCD_ETCD_BASE64_H

#include <stdbool.h>

#include "runtime/base/arena.h"
#include "runtime/base/buf.h"

/* Appends. */
void etcd_base64_encode(struct slice bytes, struct buf *out);
/* Into the arena. False when a character, the padding or the length is wrong. */
bool etcd_base64_decode(struct slice text, struct arena *arena, struct slice *ret_bytes);

#endif
