/* node_text: small texts of a node's configuration. Pure. */
#ifndef NODE_IO_PROCESS_NODE_TEXT_H
#define NODE_IO_PROCESS_NODE_TEXT_H

#include <stdint.h>

/* "host:port" as others reach it: `advertise` if there is one, else `listen`, "host:port", with the
 * real port, since one of 0 became another. */
void address_of(const char *advertise, const char *listen, uint16_t port, char ret[256]);

#endif
