/*
 * config_fuzz: a YAML configuration file, against every program's table. What is taken must be
 * printed as a file that is taken again, and reads the same. The first byte picks the program.
 */
#include <stdlib.h>

#include "coordinator/io/coordinator_config.h"
#include "node/io/process/node_config.h"
#include "router/io/router_config.h"
#include "runtime/base/check.h"
#include "runtime/config/config.h"
#include "runtime/config/config_file.h"
#include "runtime/config/config_yaml.h"
#include "tests/fuzz/fuzz.h"

#define FUZZ_TABLE(tag, TABLE)                                                                     \
    static const struct config_option tag##_options[] = { TABLE(FUZZ_ROW_##tag) };
#define FUZZ_ROW(tag, field, type, initial, min, max, unit, doc)                                   \
    { #field, CONFIG_##type, offsetof(struct tag, field), initial, min, max, unit, doc },
#define FUZZ_ROW_node_config(...)        FUZZ_ROW(node_config, __VA_ARGS__)
#define FUZZ_ROW_router_config(...)      FUZZ_ROW(router_config, __VA_ARGS__)
#define FUZZ_ROW_coordinator_config(...) FUZZ_ROW(coordinator_config, __VA_ARGS__)
FUZZ_TABLE(node_config, NODE_CONFIG)
FUZZ_TABLE(router_config, ROUTER_CONFIG)
FUZZ_TABLE(coordinator_config, COORDINATOR_CONFIG)

static const struct config_program programs[] = {
    { .name = "node",
      .options = node_config_options,
      .option_count = ARRAY_SIZE(node_config_options) },
    { .name = "router",
      .options = router_config_options,
      .option_count = ARRAY_SIZE(router_config_options) },
    { .name = "coordinator",
      .options = coordinator_config_options,
      .option_count = ARRAY_SIZE(coordinator_config_options) },
};

union any_config {
    struct node_config node;
    struct router_config router;
    struct coordinator_config coordinator;
};

/* Defaults first: only with them can the values be printed. */
static void load_defaults(const struct config_program *program, union any_config *config)
{
    const struct config_input nothing = { 0 };
    enum config_action action;
    struct config_error why;

    CHECK(config_load(program, &nothing, config, &action, &why) == ERR_OK);
}

void fuzz_one(struct slice input)
{
    union any_config config = { 0 };
    union any_config again = { 0 };
    struct config_error why = { "" };
    struct buf first = { 0 };
    struct buf second = { 0 };

    if (input.size == 0)
        return;
    const struct config_program *program = &programs[input.data[0] % ARRAY_SIZE(programs)];
    struct slice yaml = { input.data + 1, input.size - 1 };
    load_defaults(program, &config);
    if (config_yaml_load(program, "fuzz.yaml", yaml, &config, &why) == ERR_OK) {
        config_yaml_print(program, &config, &first);
        load_defaults(program, &again);
        CHECK(config_yaml_load(program, "again.yaml", buf_slice(&first), &again, &why) == ERR_OK);
        config_yaml_print(program, &again, &second);
        CHECK(slice_equal(buf_slice(&first), buf_slice(&second)));
        config_deinit(program, &again);
    } else {
        CHECK(why.text[0] != 0);
    }
    config_deinit(program, &config);
    buf_deinit(&first);
    buf_deinit(&second);
}

void fuzz_seed(struct fuzz_seeds *seeds)
{
    for (uint8_t i = 0; i < ARRAY_SIZE(programs); i++) {
        union any_config config = { 0 };
        struct buf yaml = { 0 };
        load_defaults(&programs[i], &config);
        config_yaml_print(&programs[i], &config, &yaml);
        fuzz_seed_add_kind(seeds, programs[i].name, i, buf_slice(&yaml));
        config_deinit(&programs[i], &config);
        buf_deinit(&yaml);
    }
    fuzz_seed_add_kind(seeds, "forms", 0,
                       SLICE_LITERAL("# a comment\n---\nname: 'a ''b'''\nzone: \"\\x41\\n\"\n"
                                     "etcd: [http://a:1, \"http://b:2\"]\ntick: 20ms\n"
                                     "cache_size: 2GiB\ninsecure: true\ndata_dir: |\n  /x\n  y\n"));
    fuzz_seed_add_kind(seeds, "list", 1, SLICE_LITERAL("etcd:\n  - http://a:1\n  - &x b\n"));
    fuzz_seed_add_kind(seeds, "wrong", 2, SLICE_LITERAL("name: [a]\nname: b\n? {}\n: *y\n"));
}
