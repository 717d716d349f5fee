/* What the kernel knows about this process, read from /proc at each scrape. */
#include "runtime/metrics/metrics.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

static double resident_bytes(void *context)
{
    FILE *file = fopen("/proc/self/statm", "re");
    unsigned long long total = 0;
    unsigned long long resident = 0;
    (void)context;

    if (file == NULL)
        return 0;
    if (fscanf(file, "%llu %llu", &total, &resident) != 2)
        resident = 0;
    fclose(file);
    return (double)resident * (double)sysconf(_SC_PAGESIZE);
}

static double seconds(struct timeval t)
{
    return (double)t.tv_sec + (double)t.tv_usec * 1e-6;
}

static double cpu_seconds(void *context)
{
    struct rusage usage;
    (void)context;

    if (getrusage(RUSAGE_SELF, &usage) != 0)
        return 0;
    return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

static double open_fds(void *context)
{
    DIR *directory = opendir("/proc/self/fd");
    double count = 0;
    (void)context;

    if (directory == NULL)
        return 0;
    for (const struct dirent *entry = readdir(directory); entry != NULL; entry = readdir(directory))
        count += entry->d_name[0] != '.' ? 1 : 0;
    closedir(directory);
    return count - 1; /* Not the one that looks. */
}

static double max_fds(void *context)
{
    struct rlimit limit;
    (void)context;

    return getrlimit(RLIMIT_NOFILE, &limit) == 0 ? (double)limit.rlim_cur : 0;
}

/* Field 22 of /proc/self/stat counts clock ticks since boot; btime of /proc/stat is the boot. */
static double start_time(void *context)
{
    char line[1024] = "";
    unsigned long long ticks = 0;
    unsigned long long boot = 0;
    FILE *file = fopen("/proc/self/stat", "re");
    (void)context;

    if (file == NULL)
        return 0;
    const char *behind = fgets(line, sizeof line, file) != NULL ? strrchr(line, ')') : NULL;
    fclose(file);
    /* The name in parentheses may hold blanks; field 3 comes behind it. */
    for (int field = 2; behind != NULL && field < 22; field++)
        behind = strchr(behind + 1, ' ');
    if (behind != NULL)
        ticks = strtoull(behind + 1, NULL, 10);
    file = fopen("/proc/stat", "re");
    if (file == NULL)
        return 0;
    while (fgets(line, sizeof line, file) != NULL) {
        if (strncmp(line, "btime ", 6) == 0)
            boot = strtoull(line + 6, NULL, 10);
    }
    fclose(file);
    return (double)boot + (double)ticks / (double)sysconf(_SC_CLK_TCK);
}

void metrics_process_register(struct metrics *metrics, const char *version)
{
    const struct metric_label labels[] = { { "version", version }, { NULL, NULL } };

    metrics_gauge_callback(metrics,
                           &(struct metric_info){ "process_resident_memory_bytes",
                                                  "Resident memory size in bytes.", NULL },
                           resident_bytes, NULL);
    metrics_counter_callback(
        metrics,
        &(struct metric_info){ "process_cpu_seconds_total",
                               "Total user and system CPU time spent in seconds.", NULL },
        cpu_seconds, NULL);
    metrics_gauge_callback(
        metrics,
        &(struct metric_info){ "process_open_fds", "Number of open file descriptors.", NULL },
        open_fds, NULL);
    metrics_gauge_callback(metrics,
                           &(struct metric_info){ "process_max_fds",
                                                  "Maximum number of open file descriptors.",
                                                  NULL },
                           max_fds, NULL);
    metrics_gauge_callback(
        metrics,
        &(struct metric_info){ "process_start_time_seconds",
                               "Start time of the process since unix epoch in seconds.", NULL },
        start_time, NULL);
    gauge_set(
        metrics_gauge(metrics, &(struct metric_info){ "holdfast_build_info",
                                                      "Version of the running binary.", labels }),
        1);
}
