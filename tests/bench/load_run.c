#include "load_run.h"

#include <stdio.h>

static struct load_cpu cpu_now(const struct load_options *options)
{
    return (struct load_cpu){ .server_s = server_cpu_s(options->pids),
                              .aside_s = server_cpu_s(options->aside_pids),
                              .own_s = own_cpu_s(),
                              .machine_s = machine_cpu_s() };
}

void load_run_start(struct load_run *run, const struct load_options *options)
{
    run->options = options;
    run->phase = LOAD_WARM_UP;
    run->begin_ns = clock_ns() + (uint64_t)(options->warm_up_s * 1e9);
}

void load_run_finish(struct load_run *run)
{
    struct load_cpu now = cpu_now(run->options);

    if (run->phase == LOAD_DRAIN)
        return;
    run->phase = LOAD_DRAIN;
    run->end_ns = clock_ns();
    run->cpu.server_s = now.server_s - run->cpu.server_s;
    run->cpu.aside_s = now.aside_s - run->cpu.aside_s;
    run->cpu.own_s = now.own_s - run->cpu.own_s;
    run->cpu.machine_s = now.machine_s - run->cpu.machine_s;
}

void load_run_advance(struct load_run *run, uint64_t now_ns)
{
    if (run->phase == LOAD_WARM_UP && now_ns >= run->begin_ns) {
        run->phase = LOAD_MEASURE;
        run->cpu = cpu_now(run->options);
        run->begin_ns = clock_ns();
        run->end_ns = run->begin_ns + (uint64_t)(run->options->seconds * 1e9);
    } else if (run->phase == LOAD_MEASURE && now_ns >= run->end_ns) {
        load_run_finish(run);
    }
}

void load_run_count(struct load_run *run, uint64_t sent_ns, const struct load_outcome *outcome)
{
    run->acknowledged += outcome->done - outcome->duplicates;
    run->duplicates += outcome->duplicates;
    run->throttled += outcome->codes[LOAD_THROTTLED];
    run->unknown += outcome->codes[LOAD_OTHER];
    if (run->phase != LOAD_MEASURE)
        return;
    run->operations += outcome->done;
    run->errors += outcome->failed;
    for (unsigned i = 0; i < LOAD_CODE_COUNT; i++)
        run->codes[i] += outcome->codes[i];
    if (sent_ns < run->begin_ns)
        return;
    if (outcome->done > 0)
        histogram_add(&run->histogram, clock_ns() - sent_ns);
    else if (outcome->failed > 0 && outcome->codes[LOAD_THROTTLED] == outcome->failed)
        histogram_add(&run->refused, clock_ns() - sent_ns);
}

static void report_codes(const struct load_run *run)
{
    static const char *const names[LOAD_CODE_COUNT] = {
#define LOAD_CODE_NAME(enumerator, text) [LOAD_##enumerator] = (text),
        LOAD_CODES(LOAD_CODE_NAME)
#undef LOAD_CODE_NAME
    };

    for (unsigned i = 0; i < LOAD_CODE_COUNT; i++)
        printf("\"errors_%s\":%llu,", names[i], (unsigned long long)run->codes[i]);
}

void load_run_report(const struct load_run *run, unsigned operations_per_request)
{
    const struct load_options *options = run->options;
    const struct load_cpu *cpu = &run->cpu;
    double seconds = (double)(run->end_ns - run->begin_ns) / 1e9;
    double ops = (double)run->operations;

    printf("{\"op\":\"%s\",\"batch\":%u,\"connections\":%u,\"players\":%u,\"seconds\":%.2f,",
           options->op, operations_per_request, options->connections, options->players, seconds);
    printf("\"ops\":%llu,\"ops_per_s\":%.0f,\"calls\":%llu,\"errors\":%llu,",
           (unsigned long long)run->operations, ops / seconds,
           (unsigned long long)run->histogram.count, (unsigned long long)run->errors);
    printf("\"p50_ms\":%.3f,\"p99_ms\":%.3f,\"p999_ms\":%.3f,\"max_ms\":%.3f,",
           histogram_ms(&run->histogram, 0.5), histogram_ms(&run->histogram, 0.99),
           histogram_ms(&run->histogram, 0.999), (double)run->histogram.max_ns / 1e6);
    printf("\"server_cpu_s\":%.2f,\"server_cpu_us_per_op\":%.2f,\"ops_per_server_cpu_s\":%.0f,",
           cpu->server_s, ops > 0 ? cpu->server_s * 1e6 / ops : 0,
           cpu->server_s > 0 ? ops / cpu->server_s : 0);
    printf("\"client_cpu_s\":%.2f,\"aside_cpu_s\":%.2f,\"other_cpu_s\":%.2f,", cpu->own_s,
           cpu->aside_s, cpu->machine_s - cpu->server_s - cpu->aside_s - cpu->own_s);
    printf("\"refused_calls\":%llu,\"refused_p50_ms\":%.3f,\"refused_p99_ms\":%.3f,",
           (unsigned long long)run->refused.count, histogram_ms(&run->refused, 0.5),
           histogram_ms(&run->refused, 0.99));
    report_codes(run);
    printf("\"acknowledged\":%llu,\"duplicates\":%llu,\"throttled\":%llu,\"unknown\":%llu",
           (unsigned long long)run->acknowledged, (unsigned long long)run->duplicates,
           (unsigned long long)run->throttled, (unsigned long long)run->unknown);
}
