/*
 * metadata_rule: what the metadata of targets may hold, if a caller of PutTargetMetadata says it or
 * an endpoint that routers ask. Pure; for untrusted input.
 */
#ifndef RUNTIME_CLUSTER_METADATA_RULE_H
#define RUNTIME_CLUSTER_METADATA_RULE_H

#include "runtime/base/buf.h"

/* A target's title; empty, or up to LIMIT_METADATA_TITLE_BYTES of clean UTF-8. */
bool metadata_title_is_good(struct slice title);
/* Empty, or https:// and a host, up to LIMIT_METADATA_URL_BYTES of visible ASCII without quotes,
 * brackets of tags and backslashes: pages put it into attributes of tags. */
bool metadata_url_is_good(struct slice url);

#endif
