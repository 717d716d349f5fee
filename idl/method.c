#include "idl/method.h"

#include <string.h>

#ifdef HOLDFAST_DEBUG_INJECT
#include "holdfast/debug/v1/debug.pb-c.h"
#endif
#include "holdfast/internal/v1/channel.pb-c.h"
#include "holdfast/internal/v1/definition.pb-c.h"
#include "holdfast/internal/v1/earlier.pb-c.h"
#include "holdfast/internal/v1/mailbox.pb-c.h"
#include "holdfast/internal/v1/node.pb-c.h"
#include "holdfast/internal/v1/operation.pb-c.h"
#include "holdfast/internal/v1/transaction.pb-c.h"
#include "holdfast/v1/admin.pb-c.h"
#include "holdfast/v1/backup.pb-c.h"
#include "holdfast/v1/counter.pb-c.h"
#include "holdfast/v1/erasure.pb-c.h"
#include "holdfast/v1/events.pb-c.h"
#include "holdfast/v1/definition.pb-c.h"
#include "holdfast/v1/document.pb-c.h"
#include "holdfast/v1/favorites.pb-c.h"
#include "holdfast/v1/inventory.pb-c.h"
#include "holdfast/v1/ledger.pb-c.h"
#include "holdfast/v1/mailbox.pb-c.h"
#include "holdfast/v1/operation_service.pb-c.h"
#include "holdfast/v1/presence.pb-c.h"
#include "holdfast/v1/profile.pb-c.h"
#include "holdfast/v1/session.pb-c.h"
#include "holdfast/v1/transaction.pb-c.h"
#include "holdfast/v1/user.pb-c.h"
#include "idl/method_players.h"
#include "runtime/base/check.h"
#include "runtime/base/nearest.h"

#define PACKAGE_v1            "holdfast.v1."
#define PACKAGE_internal__v1  "holdfast.internal.v1."
#define PACKAGE_debug__v1     "holdfast.debug.v1."
#define INTERNAL_v1           false
#define INTERNAL_internal__v1 true
#define INTERNAL_debug__v1    false

#define SERVICE_admin       "AdminService/"
#define SERVICE_backup      "BackupService/"
#define SERVICE_channel     "ChannelService/"
#define SERVICE_coordinator "CoordinatorService/"
#define SERVICE_counter     "CounterService/"
#define SERVICE_debug       "DebugService/"
#define SERVICE_definition  "DefinitionService/"
#define SERVICE_document    "DocumentService/"
#define SERVICE_earlier     "EarlierService/"
#define SERVICE_erasure     "ErasureService/"
#define SERVICE_favorites   "FavoritesService/"
#define SERVICE_event       "EventService/"
#define SERVICE_inventory   "InventoryService/"
#define SERVICE_ledger      "LedgerService/"
#define SERVICE_mailbox     "MailboxService/"
#define SERVICE_node        "NodeService/"
#define SERVICE_operation   "OperationService/"
#define SERVICE_presence    "PresenceService/"
#define SERVICE_profile     "ProfileService/"
#define SERVICE_session     "SessionService/"
#define SERVICE_transaction "TransactionService/"
#define SERVICE_user        "UserService/"

#define WRITES_ROUTER       false /* It writes by calls of other methods. */
#define WRITES_STREAM       false
#define WRITES_GATHER       false
#define WRITES_SCATTER      false
#define WRITES_MUTATION     true
#define WRITES_READ         false
#define WRITES_SHARD        false
#define WRITES_SHARD_WRITE  true
#define WRITES_MEMBER_READ  false
#define WRITES_MEMBER_WRITE true
#define WRITES_SHARD_VIEW   false
#define WRITES_NODE         false
#define WRITES_OWNER        true
#define WRITES_COORDINATOR  false

/* The methods that carry a public one out answer as its callers are answered. */
#define holdfast__internal__v1__swap_goods_response__descriptor                                    \
    holdfast__v1__swap_response__descriptor
#define holdfast__internal__v1__deliver_to_player_response__descriptor                             \
    holdfast__v1__mail_delivery__descriptor

static const struct method_info methods[] = {
#define METHOD_ROW(number, enumerator, package, service, method, snake, r, sc, pr, kind, e, m)     \
    { .id = METHOD_##enumerator,                                                                   \
      .route = METHOD_##r,                                                                         \
      .priority = METHOD_PRIORITY_##pr,                                                            \
      .element = (e),                                                                              \
      .most = (m),                                                                                 \
      .scopes = METHOD_SCOPES_##sc,                                                                \
      .traits = METHOD_TRAITS_##kind,                                                              \
      .internal = INTERNAL_##package,                                                              \
      .writes = WRITES_##r || (METHOD_TRAITS_##kind & METHOD_WRITES_BESIDE) != 0,                  \
      .name = PACKAGE_##package SERVICE_##service #method,                                         \
      .request = &holdfast__##package##__##snake##_request__descriptor,                            \
      .response = &holdfast__##package##__##snake##_response__descriptor },
    METHOD_TABLE(METHOD_ROW)
#undef METHOD_ROW
};

enum {
#define METHOD_PLACE(number, enumerator, ...) METHOD_PLACE_##enumerator,
    METHOD_TABLE(METHOD_PLACE)
#undef METHOD_PLACE
};

/* Place in `methods` plus one, by number; 0 where there is no method. */
static const uint8_t method_places[METHOD_ID_MAX + 1] = {
#define METHOD_PLACE(number, enumerator, ...) [METHOD_##enumerator] = METHOD_PLACE_##enumerator + 1,
    METHOD_TABLE(METHOD_PLACE)
#undef METHOD_PLACE
};

/* Methods that are told by other names: those that carry a public one out, and public ones of
 * earlier versions, with what does their deeds today. */
static const struct told {
    enum method_id id;
    const char *name;
    enum method_id successor;
} told[] = {
    { METHOD_MINT, PACKAGE_v1 SERVICE_inventory "Mint", METHOD_GRANT },
    { METHOD_CONSUME, PACKAGE_v1 SERVICE_inventory "Consume", METHOD_SPEND },
    { METHOD_SWAP_GOODS, PACKAGE_v1 SERVICE_transaction "Swap", METHOD_SWAP },
    { METHOD_DELIVER_TO_PLAYER, PACKAGE_v1 SERVICE_mailbox "DeliverMail", METHOD_DELIVER_MAIL },
};

static const bool public_methods[METHOD_ID_MAX + 1] = {
#define METHOD_PUBLIC(enumerator) [METHOD_##enumerator] = true,
    METHODS_PUBLIC(METHOD_PUBLIC)
#undef METHOD_PUBLIC
};

static const char *const player_fields[METHOD_ID_MAX + 1] = {
#define METHOD_PLAYER(enumerator, field) [METHOD_##enumerator] = #field,
    METHOD_PLAYERS(METHOD_PLAYER)
#undef METHOD_PLAYER
};

const struct method_info *method_find(uint32_t id)
{
    if (id > METHOD_ID_MAX || method_places[id] == 0)
        return NULL;
    return &methods[method_places[id] - 1];
}

const struct method_info *method_told(const struct method_info *method)
{
    for (size_t i = 0; i < ARRAY_SIZE(told); i++) {
        if (told[i].id == method->id)
            return method_find(told[i].successor);
    }
    return method;
}

const ProtobufCMessageDescriptor *method_answer(const struct method_info *method)
{
    if (method->id == METHOD_GET_OPERATION || method->id == METHOD_RESOLVE_OPERATION)
        return &holdfast__internal__v1__operation_answer__descriptor;
    return method->response;
}

const struct method_info *method_find_name(struct slice name)
{
    for (size_t i = 0; i < ARRAY_SIZE(methods); i++) {
        if (slice_equal(name, slice_from_text(methods[i].name)))
            return &methods[i];
    }
    return NULL;
}

const char *method_told_name(const struct method_info *method)
{
    for (size_t i = 0; i < ARRAY_SIZE(told); i++) {
        if (told[i].id == method->id)
            return told[i].name;
    }
    return method->name;
}

const struct method_info *method_find_told(struct slice name)
{
    for (size_t i = 0; i < ARRAY_SIZE(told); i++) {
        if (slice_equal(name, slice_from_text(told[i].name)))
            return method_find(told[i].id);
    }
    return method_find_name(name);
}

/* What follows the last `mark` in `text`; all of it where there is none. */
static struct slice behind_last(struct slice text, uint8_t mark)
{
    for (size_t i = text.size; i > 0; i--) {
        if (text.data[i - 1] == mark)
            return (struct slice){ text.data + i, text.size - i };
    }
    return text;
}

/* "LedgerService/Grant" of "holdfast.v1.LedgerService/Grant". No method's name has a dot. */
static struct slice without_package(struct slice name)
{
    return behind_last(name, '.');
}

/* The public method nearest to `given`, by what `part` leaves of its name, of those whose own name
 * is near by itself: a service's long name makes every method of it look near. */
static const struct method_info *find_near(struct slice given,
                                           struct slice (*part)(struct slice name))
{
    const struct method_info *best = NULL;
    struct nearest whole, method;

    nearest_init(&whole, part(given));
    nearest_init(&method, behind_last(given, '/'));
    for (size_t i = 0; i < ARRAY_SIZE(methods); i++) {
        struct slice name = slice_from_text(methods[i].name);
        struct slice offered = part(name);
        if (methods[i].internal || !nearest_is_near(&method, behind_last(name, '/')))
            continue;
        nearest_offer(&whole, offered);
        if (whole.name.data == offered.data)
            best = &methods[i];
    }
    return best;
}

static struct slice without_service(struct slice name)
{
    return behind_last(without_package(name), '/');
}

/* The method that does what one of an earlier version did, in whatever service it is looked for. */
static const struct method_info *find_successor(struct slice name)
{
    struct slice asked = without_service(name);

    for (size_t i = 0; i < ARRAY_SIZE(told); i++) {
        if (slice_equal(asked, without_service(slice_from_text(told[i].name))))
            return method_find(told[i].successor);
    }
    return NULL;
}

const char *method_suggest(struct slice name)
{
    const size_t package = strlen(PACKAGE_v1);
    bool packaged = name.size > package && memcmp(name.data, PACKAGE_v1, package) == 0 &&
                    without_package(name).size == name.size - package;
    const struct method_info *meant = find_successor(name);

    if (meant == NULL)
        meant = find_near(without_package(name), without_package);
    if (meant == NULL)
        meant = find_near(without_package(name), without_service);
    if (meant == NULL)
        return NULL;
    return packaged ? (const char *)without_package(slice_from_text(meant->name)).data
                    : meant->name;
}

static uint32_t route_request_bytes_max(enum method_route route)
{
    switch (route) {
    case METHOD_SCATTER:
        return METHOD_BYTES_LARGE;
    case METHOD_MEMBER_WRITE:
    case METHOD_MUTATION:
    case METHOD_SHARD_WRITE:
    case METHOD_OWNER:
        return METHOD_BYTES_GOODS;
    case METHOD_ROUTER:
    case METHOD_STREAM:
    case METHOD_GATHER:
    case METHOD_READ:
    case METHOD_SHARD:
    case METHOD_MEMBER_READ:
    case METHOD_SHARD_VIEW:
    case METHOD_NODE:
    case METHOD_COORDINATOR:
        break;
    }
    return METHOD_BYTES_SMALL;
}

uint32_t method_request_bytes_max(const struct method_info *method)
{
    switch (method->id) {
    case METHOD_UPDATE_PROFILE: /* Documents. */
    case METHOD_PUT_DOCUMENT:
    case METHOD_UPDATE_DOCUMENT:
    case METHOD_END_SESSION:
    case METHOD_EXECUTE_TRANSACTION:
    case METHOD_REPAIR_PLAYER:
    case METHOD_REPAIR_ROW:
    case METHOD_RESTORE_ROWS:
    case METHOD_RESTORE_DOCUMENTS:
    case METHOD_BEGIN_RESTORE:
    case METHOD_FINISH_RESTORE:
    case METHOD_RENEW_SESSIONS: /* A thousand names and tokens. */
        return METHOD_BYTES_LARGE;
    case METHOD_SET_POLICY:
    case METHOD_SWAP:
        return METHOD_BYTES_GOODS;
    case METHOD_GET_PROFILE: /* Names of sections, or cursors that name a place on each node. */
    case METHOD_READ_PLAYERS:
    case METHOD_LIST_INCIDENTS:
    case METHOD_WATCH_INCIDENTS:
    case METHOD_READ_BACKUP:
    case METHOD_PUT_DEFINITION: /* A body of at most 4000 bytes. */
    case METHOD_RESTORE_DEFINITION:
    case METHOD_CHANGE_DEFINITION:
        return METHOD_BYTES_LISTS;
    case METHOD_POLL: /* A cursor names a place in each shard. */
    case METHOD_SUBSCRIBE:
    case METHOD_CREATE_CONSUMER:
    case METHOD_COMMIT_CONSUMER:
        return METHOD_BYTES_GOODS;
    case METHOD_BATCH_GET_STATUS: /* 200 ids of targets. */
    case METHOD_GET_PARTIALS:
    case METHOD_PULL_PARTIALS: /* Each home, and how far it is. */
    case METHOD_BATCH_GET_COUNTS:
    case METHOD_BATCH_GET_PLAYER_COUNTERS:
    case METHOD_BATCH_GET_COUNTERS:
    case METHOD_BATCH_GET_TARGET_METADATA:
        return METHOD_BYTES_IDS;
    default:
        return route_request_bytes_max(method->route);
    }
}

bool method_keeps_caller(const struct method_info *method)
{
    return method->id == METHOD_CREATE_CONSUMER || method->id == METHOD_COMMIT_CONSUMER ||
           method->id == METHOD_PUT_TARGET_METADATA;
}

const char *method_player_field(const struct method_info *method)
{
    return player_fields[method->id];
}

bool method_is_public(const struct method_info *method)
{
    return public_methods[method->id];
}

const struct method_info *method_all(size_t *ret_count)
{
    *ret_count = ARRAY_SIZE(methods);
    return methods;
}

bool method_goes_whole(const struct method_info *method)
{
    return method->id == METHOD_BATCH_GET_PRESENCE || method->id == METHOD_BATCH_SET_PRESENCE ||
           method->id == METHOD_BATCH_GET_USERS;
}
