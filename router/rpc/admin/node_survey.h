/*
 * node_survey: asks every live node one question, for administration: about itself and its shards,
 * or what another method of METHOD_NODE tells. What does not answer within ROUTER_STATUS_MS_MAX is
 * left out.
 */
#ifndef ROUTER_RPC_ADMIN_NODE_SURVEY_H
#define ROUTER_RPC_ADMIN_NODE_SURVEY_H

#include "holdfast/internal/v1/node.pb-c.h"
#include "router/rpc/request/request.h"
#include "router/rpc/request/router_state.h"

struct node_survey;

/* What to ask. */
struct node_question {
    enum method_id method;
    const ProtobufCMessageDescriptor *response;
    /* The request's bytes for that node, in the request's arena; NULL: an empty request. */
    struct slice (*body)(struct node_survey *survey, uint64_t replica_id);
};

struct node_answer {
    struct node_survey *survey;
    uint64_t replica_id;
    uint64_t call;                   /* 0: none open. */
    uint64_t begun_ns;               /* Of loop_clock_ns. */
    uint64_t took_ms;                /* Until the answer came, */
    uint64_t answered_wall_ms;       /* which was then. */
    const ProtobufCMessage *message; /* NULL: no answer. */
};

/* Lives in the request's arena, with all answers. */
struct node_survey {
    struct request *request;
    const struct node_question *question;
    struct node_answer *answers; /* By rising replica id. */
    uint32_t count;
    uint32_t open;
    bool refused; /* The router has no room for an answer: the request fails with `refusal`. */
    Holdfast__V1__ErrorDetail refusal;
    /* Called once, maybe from inside node_survey_start, unless refused; must end the request. */
    void (*done)(struct node_survey *survey);
    void *user;
};

/* `question` must stay until done. */
void node_survey_ask(struct request *request, const struct node_question *question,
                     void (*done)(struct node_survey *survey), void *user);
/* GetNodeStatus, with all shards. Both set request->state and request->cancel. */
void node_survey_start(struct request *request, void (*done)(struct node_survey *survey),
                       void *user);
/* What that node says of itself; NULL when it did not answer. */
const Holdfast__Internal__V1__GetNodeStatusResponse *
node_survey_find(const struct node_survey *survey, uint64_t replica_id);
/* What that node says of that shard; NULL: nothing. */
const Holdfast__V1__ShardStatus *node_survey_find_shard(const struct node_survey *survey,
                                                        uint64_t replica_id, uint32_t shard);

#endif
