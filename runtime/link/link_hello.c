/* Whether a HELLO is admitted: version, cluster, and who the peer is by its certificate. */
#include <stdio.h>
#include <string.h>

#include "runtime/link/link_private.h"

static const char *const labels[LINK_REFUSALS] = { "admitted",
#define LINK_REFUSAL_LABEL(enumerator, label, field, meaning) label,
                                                   LINK_REFUSAL_TABLE(LINK_REFUSAL_LABEL)
#undef LINK_REFUSAL_LABEL
};

static const char *const fields[LINK_REFUSALS] = { "",
#define LINK_REFUSAL_FIELD(enumerator, label, field, meaning) field,
                                                   LINK_REFUSAL_TABLE(LINK_REFUSAL_FIELD)
#undef LINK_REFUSAL_FIELD
};

static const char *const meanings[LINK_REFUSALS] = { "",
#define LINK_REFUSAL_MEANING(enumerator, label, field, meaning) meaning,
                                                     LINK_REFUSAL_TABLE(LINK_REFUSAL_MEANING)
#undef LINK_REFUSAL_MEANING
};

const char *link_refusal_name(enum link_refusal refusal)
{
    return labels[refusal];
}

const char *link_refusal_field(enum link_refusal refusal)
{
    return fields[refusal];
}

bool link_names_find(const char *name, enum link_names *ret_names)
{
    bool accept = strcmp(name, "accept-unnamed") == 0;

    if (!accept && strcmp(name, "require") != 0)
        return false;
    *ret_names = accept ? LINK_NAMES_ACCEPT : LINK_NAMES_REQUIRE;
    return true;
}

static void deny(struct link_verdict *verdict, enum link_refusal refusal, const char *ours,
                 const char *theirs)
{
    verdict->refusal = refusal;
    snprintf(verdict->ours, sizeof verdict->ours, "%s", ours);
    snprintf(verdict->theirs, sizeof verdict->theirs, "%s", theirs);
}

static void deny_numbers(struct link_verdict *verdict, enum link_refusal refusal, uint64_t ours,
                         uint64_t theirs)
{
    verdict->refusal = refusal;
    snprintf(verdict->ours, sizeof verdict->ours, "%llu", (unsigned long long)ours);
    snprintf(verdict->theirs, sizeof verdict->theirs, "%llu", (unsigned long long)theirs);
}

static void judge_cluster(const struct link *link, struct link_verdict *verdict)
{
    const struct hello *self = &link->hub->self;
    const struct hello *peer = &link->peer;

    if (peer->protocol_version != self->protocol_version)
        deny_numbers(verdict, LINK_REFUSED_PROTOCOL, self->protocol_version,
                     peer->protocol_version);
    else if (strcmp(peer->cluster_id, self->cluster_id) != 0)
        deny(verdict, LINK_REFUSED_CLUSTER_ID, self->cluster_id, peer->cluster_id);
}

static err find_identity(const struct tls_san *sans, size_t count, struct identity *ret_identity,
                         struct identity_error *ret_why)
{
    struct identity_san names[IDENTITY_SANS_MAX];

    for (size_t i = 0; i < count && i < IDENTITY_SANS_MAX; i++)
        names[i] =
            (struct identity_san){ sans[i].is_uri ? IDENTITY_URI : IDENTITY_DNS, sans[i].text };
    return identity_find(names, count, ret_identity, ret_why);
}

/* Without TLS, HELLO is believed: for tests only. */
static void judge_certificate(struct link *link, struct link_verdict *verdict)
{
    const struct link_hub *hub = link->hub;
    const struct identity *identity = &link->identity;
    struct tls_san sans[IDENTITY_SANS_MAX];
    struct identity_error why;

    if (link->tls == NULL)
        return;
    size_t count = tls_session_peer_sans(link->tls, sans, IDENTITY_SANS_MAX);
    err e = find_identity(sans, count, &link->identity, &why);
    if (e == ERR_NOT_FOUND && hub->names == LINK_NAMES_ACCEPT)
        return;
    if (e == ERR_NOT_FOUND)
        deny(verdict, LINK_REFUSED_UNNAMED, "holdfast://<cluster>/<role>/<name>",
             tls_session_peer_name(link->tls));
    else if (e != ERR_OK)
        deny(verdict, LINK_REFUSED_IDENTITY, "holdfast://<cluster>/<role>/<name>", why.text);
    else if (strcmp(identity->cluster, hub->cluster) != 0)
        deny(verdict, LINK_REFUSED_CLUSTER, hub->cluster, identity->cluster);
    else if (identity->role != link->peer.role)
        deny(verdict, LINK_REFUSED_ROLE, identity_role_name(identity->role),
             identity_role_name(link->peer.role));
    else if (!identity_covers(identity, link->peer.name))
        deny(verdict, LINK_REFUSED_NAME, identity->name, link->peer.name);
}

static void judge_place(const struct link *link, struct link_verdict *verdict)
{
    const struct hello *peer = &link->peer;
    const struct hello *expected = &link->expected;

    if (link->roles != 0 && (link->roles >> peer->role & 1u) == 0)
        deny(verdict, LINK_REFUSED_PLACE, identity_role_name(link->hub->self.role),
             identity_role_name(peer->role));
    else if (expected->role != 0 && expected->role != peer->role)
        deny(verdict, LINK_REFUSED_EXPECTED, identity_role_name(expected->role),
             identity_role_name(peer->role));
    else if (expected->replica_id != 0 && expected->replica_id != peer->replica_id)
        deny_numbers(verdict, LINK_REFUSED_EXPECTED, expected->replica_id, peer->replica_id);
    else if (expected->name[0] != 0 && strcmp(expected->name, peer->name) != 0)
        deny(verdict, LINK_REFUSED_EXPECTED, expected->name, peer->name);
}

void link_check_own(const struct link_hub *hub)
{
    struct tls_san sans[IDENTITY_SANS_MAX];
    struct identity identity = { 0 };
    struct identity_error why;
    char found[IDENTITY_TEXT_SIZE] = "no identity", wanted[IDENTITY_TEXT_SIZE];

    if (hub->tls_server == NULL)
        return;
    size_t count = tls_config_own_sans(hub->tls_server, sans, IDENTITY_SANS_MAX);
    err e = find_identity(sans, count, &identity, &why);
    if (e == ERR_OK && identity.role == hub->self.role &&
        strcmp(identity.cluster, hub->cluster) == 0 && identity_covers(&identity, hub->self.name))
        return;
    if (e == ERR_OK)
        identity_print(&identity, found);
    else if (e != ERR_NOT_FOUND)
        snprintf(found, sizeof found, "%s", why.text);
    snprintf(wanted, sizeof wanted, "holdfast://%s/%s/%s", hub->cluster,
             identity_role_name(hub->self.role), hub->self.name);
    log_event(hub->log, LOG_ERROR, "link.own_certificate", LOG_S("wanted", wanted),
              LOG_S("found", found),
              LOG_S("what", "this process's certificate does not name it: others refuse it"));
}

void link_judge_hello(struct link *link, struct link_verdict *ret_verdict)
{
    enum link_refusal refusal = LINK_ADMITTED;

    *ret_verdict = (struct link_verdict){ .refusal = LINK_ADMITTED };
    link->identity = (struct identity){ 0 };
    judge_cluster(link, ret_verdict);
    if (ret_verdict->refusal == LINK_ADMITTED)
        judge_certificate(link, ret_verdict);
    if (ret_verdict->refusal == LINK_ADMITTED)
        judge_place(link, ret_verdict);
    if (ret_verdict->refusal != LINK_ADMITTED || link->handlers.admit == NULL)
        return;
    refusal = link->handlers.admit(link->handlers.user, link, &link->peer);
    if (refusal != LINK_ADMITTED)
        deny_numbers(ret_verdict, refusal, link->hub->self.replica_id, link->peer.replica_id);
}

void link_note_refusal(struct link *link, const struct link_verdict *verdict)
{
    struct link_hub *hub = link->hub;
    enum link_refusal refusal = verdict->refusal;
    uint64_t more = 0;

    hub->stats.refused[refusal]++;
    if (hub->refusals[refusal] != NULL)
        counter_add(hub->refusals[refusal], 1);
    if (!log_gate_pass(&hub->refused_gates[refusal], loop_now_ms(hub->loop), &more))
        return;
    /* A node that has just started is refused until the others have seen its record. */
    log_event(hub->log, refusal == LINK_REFUSED_UNREGISTERED ? LOG_INFO : LOG_ERROR, "link.refused",
              LOG_S("address", link->address), LOG_S("peer", link->peer.name),
              LOG_S("reason", labels[refusal]), LOG_S("what", meanings[refusal]),
              LOG_S("field", fields[refusal]), LOG_S("ours", verdict->ours),
              LOG_S("theirs", verdict->theirs), LOG_N("more", more));
}
