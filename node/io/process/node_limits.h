/* node_limits: what the table of options cannot say of them: 0 or at least so much, and which
 * words. */
#ifndef NODE_IO_PROCESS_NODE_LIMITS_H
#define NODE_IO_PROCESS_NODE_LIMITS_H

#include "node/io/process/node_config.h"
#include "runtime/link/link.h"

#define NODE_LIMITS_TEXT_BYTES 64u

/* NULL: all is well. Else the name of an option, static, and what it has to be. */
const char *node_limits_check(const struct node_config *config,
                              char ret_why[NODE_LIMITS_TEXT_BYTES]);
/* The same of what serves links and asks for names. */
const char *node_links_find(const struct node_config *config, enum link_transport *ret_transport,
                            enum link_names *ret_names, char ret_why[NODE_LIMITS_TEXT_BYTES]);

#endif
