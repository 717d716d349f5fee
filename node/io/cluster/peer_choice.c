#include "node/io/cluster/peer_choice.h"

#include "runtime/link/link.h"

enum peer_choice peer_choose(const struct peer_held *held, uint64_t life)
{
    if (!held->is_there)
        return PEER_TAKE;
    if (held->life != 0 && life > held->life)
        return PEER_REPLACE;
    if (held->idle_ms >= (uint64_t)PEER_SILENT_PINGS * LINK_PING_PERIOD_MS)
        return PEER_REPLACE;
    return PEER_REFUSE;
}
