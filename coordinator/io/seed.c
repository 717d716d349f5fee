#include "coordinator/io/seed.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "holdfast/v1/admin.pb-c.h"
#include "idl/policy_limit.h"
#include "runtime/base/check.h"

#define CURRENCY_NAME_MAX   32u
#define OPERATION_WINDOW_MS 86400000u
#define OPERATIONS_MAX      2000000u
#define ITEMS_MAX           10000u

struct currency_seed {
    char name[CURRENCY_NAME_MAX + 1];
    int64_t min;
    int64_t max;
};

static bool name_is_valid(const char *name, size_t size)
{
    if (size == 0 || size > CURRENCY_NAME_MAX)
        return false;
    for (size_t i = 0; i < size; i++) {
        bool good = (name[i] >= 'a' && name[i] <= 'z') || (name[i] >= '0' && name[i] <= '9') ||
                    name[i] == '_';

        if (!good)
            return false;
    }
    return true;
}

/* A bound within what a shard takes; *text is moved behind it. */
static bool amount_parse(const char **text, int64_t *ret_amount)
{
    char *end;

    if (**text != ':' || ((*text)[1] != '-' && ((*text)[1] < '0' || (*text)[1] > '9')))
        return false;
    errno = 0;
    long long amount = strtoll(*text + 1, &end, 10);
    bool good = errno == 0 && end != *text + 1 && amount >= -(long long)POLICY_AMOUNT_MAX &&
                amount <= (long long)POLICY_AMOUNT_MAX;
    *text = end;
    *ret_amount = amount;
    return good;
}

static err currency_parse(const char *text, struct currency_seed *ret_currency,
                          struct seed_error *ret_why)
{
    size_t size = strcspn(text, ":");
    const char *bounds = text + size;
    int64_t min = 0, max = 0;

    if (!name_is_valid(text, size)) {
        snprintf(ret_why->text, sizeof ret_why->text,
                 "currencies: a name is 1 to %u of a-z, 0-9, '_'; got '%.64s'", CURRENCY_NAME_MAX,
                 text);
        return ERR_INVALID;
    }
    if (*bounds != '\0' && (!amount_parse(&bounds, &min) || !amount_parse(&bounds, &max) ||
                            *bounds != '\0' || min > 0 || max < 0)) {
        snprintf(ret_why->text, sizeof ret_why->text,
                 "currencies: expected name[:min:max] with -%lld <= min <= 0 <= max <= %lld; got "
                 "'%.64s'",
                 (long long)POLICY_AMOUNT_MAX, (long long)POLICY_AMOUNT_MAX, text);
        return ERR_INVALID;
    }
    memcpy(ret_currency->name, text, size);
    ret_currency->name[size] = '\0';
    ret_currency->min = min;
    ret_currency->max = max;
    return ERR_OK;
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(((const struct currency_seed *)a)->name, ((const struct currency_seed *)b)->name);
}

static err currencies_parse(const struct config_list *list, struct currency_seed *ret_currencies,
                            struct seed_error *ret_why)
{
    for (uint32_t i = 0; i < list->count; i++) {
        err e = currency_parse(list->items[i], &ret_currencies[i], ret_why);

        if (e != ERR_OK)
            return e;
    }
    qsort(ret_currencies, list->count, sizeof *ret_currencies, compare_names);
    for (uint32_t i = 1; i < list->count; i++) {
        if (compare_names(&ret_currencies[i - 1], &ret_currencies[i]) == 0) {
            snprintf(ret_why->text, sizeof ret_why->text, "currencies: '%s' is given twice",
                     ret_currencies[i].name);
            return ERR_INVALID;
        }
    }
    return ERR_OK;
}

/* The same policy, packed for etcd's policy key and as JSON for the cluster's record. */
static err policy_make(struct currency_seed *currencies, uint32_t count, struct seed *seed,
                       struct seed_error *ret_why)
{
    Holdfast__V1__Policy policy = HOLDFAST__V1__POLICY__INIT;
    Holdfast__V1__CurrencyPolicy messages[CONFIG_LIST_MAX];
    Holdfast__V1__CurrencyPolicy *pointers[CONFIG_LIST_MAX];
    struct buf json = { 0 };

    policy.version = 1;
    policy.operation_window_ms = OPERATION_WINDOW_MS;
    policy.operations_max = OPERATIONS_MAX;
    policy.items_max = ITEMS_MAX;
    buf_printf(&json, "{\"version\":\"1\",\"currencies\":[");
    for (uint32_t i = 0; i < count; i++) {
        holdfast__v1__currency_policy__init(&messages[i]);
        messages[i].name = currencies[i].name;
        messages[i].min_balance = currencies[i].min;
        messages[i].max_balance = currencies[i].max;
        pointers[i] = &messages[i];
        buf_printf(&json, "%s{\"name\":\"%s\",\"minBalance\":\"%lld\",\"maxBalance\":\"%lld\"}",
                   i > 0 ? "," : "", currencies[i].name, (long long)currencies[i].min,
                   (long long)currencies[i].max);
    }
    buf_printf(&json, "]}");
    policy.n_currencies = count;
    policy.currencies = pointers;
    bool fits = json.size <= CLUSTER_POLICY_SEED_MAX;

    if (fits) {
        size_t size = holdfast__v1__policy__get_packed_size(&policy);

        memcpy(seed->cluster.policy_seed, json.data, json.size);
        seed->cluster.policy_seed[json.size] = '\0';
        holdfast__v1__policy__pack(&policy, buf_reserve(&seed->policy, size));
        seed->policy.size = size;
    } else {
        snprintf(ret_why->text, sizeof ret_why->text,
                 "currencies: the first policy may have %u bytes as JSON; it has %zu",
                 CLUSTER_POLICY_SEED_MAX, json.size);
    }
    buf_deinit(&json);
    return fits ? ERR_OK : ERR_TOO_LARGE;
}

err seed_init(const struct coordinator_config *config, struct uuid id, struct seed *ret_seed,
              struct seed_error *ret_why)
{
    struct currency_seed currencies[CONFIG_LIST_MAX];
    struct record_error why;

    *ret_seed = (struct seed){
        .cluster = { .generation = 1,
                     .shard_count = config->shard_count,
                     .replication_factor = config->replication_factor },
    };
    uuid_print(&id, ret_seed->cluster.cluster_id);
    snprintf(ret_seed->cluster.created_by, sizeof ret_seed->cluster.created_by, "%s", config->name);
    err e = currencies_parse(&config->currencies, currencies, ret_why);

    if (e == ERR_OK && config->currencies.count > 0)
        e = policy_make(currencies, config->currencies.count, ret_seed, ret_why);
    if (e != ERR_OK)
        return e;
    e = cluster_record_validate(&ret_seed->cluster, &why);
    if (e != ERR_OK) {
        snprintf(ret_why->text, sizeof ret_why->text, "%s", why.text);
        seed_deinit(ret_seed);
    }
    return e;
}

void seed_deinit(struct seed *seed)
{
    buf_deinit(&seed->policy);
}
