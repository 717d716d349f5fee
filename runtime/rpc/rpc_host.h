/* rpc_host: what may stand among the names that Host may have, beside names; as refusals tell it.
 */
#ifndef RUNTIME_RPC_RPC_HOST_H
#define RUNTIME_RPC_RPC_HOST_H

#define RPC_HOST_ADDRESS "any address"            /* IPv4, or IPv6 in brackets. */
#define RPC_HOST_PLAIN   "any name without a dot" /* Of the own network, or machine. */

#endif
