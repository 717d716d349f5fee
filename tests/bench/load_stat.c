#include "load_stat.h"

#include <dirent.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#define PROCESSES_MAX 8192u

struct process {
    int pid;
    int parent;
    bool counted;
    double cpu_s;
};

uint64_t clock_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static unsigned bucket_of(uint64_t ns)
{
    unsigned shift = 0;

    while (ns >> shift >= 2 * HISTOGRAM_STEPS)
        shift++;
    unsigned bucket = (unsigned)(shift * HISTOGRAM_STEPS + (ns >> shift));
    return bucket < HISTOGRAM_BUCKETS ? bucket : HISTOGRAM_BUCKETS - 1;
}

/* The middle of a bucket. */
static double bucket_ns(unsigned bucket)
{
    unsigned shift = bucket < 2 * HISTOGRAM_STEPS ? 0 : bucket / HISTOGRAM_STEPS - 1;
    uint64_t step = bucket - shift * HISTOGRAM_STEPS;

    return ((double)step + 0.5) * (double)(1ull << shift);
}

void histogram_add(struct histogram *histogram, uint64_t ns)
{
    histogram->buckets[bucket_of(ns)]++;
    histogram->count++;
    if (ns > histogram->max_ns)
        histogram->max_ns = ns;
}

double histogram_ms(const struct histogram *histogram, double fraction)
{
    uint64_t wanted = (uint64_t)(fraction * (double)histogram->count);
    uint64_t seen = 0;

    for (unsigned i = 0; i < HISTOGRAM_BUCKETS; i++) {
        seen += histogram->buckets[i];
        if (seen > wanted)
            return bucket_ns(i) / 1e6;
    }
    return (double)histogram->max_ns / 1e6;
}

static bool process_read(int pid, struct process *ret_process)
{
    char path[64];
    char line[1024];
    unsigned long user, system;
    long user_children, system_children;
    FILE *file;
    char *rest;

    snprintf(path, sizeof path, "/proc/%d/stat", pid);
    file = fopen(path, "re");
    if (file == NULL)
        return false;
    size_t size = fread(line, 1, sizeof line - 1, file);
    fclose(file);
    line[size] = 0;
    rest = strrchr(line, ')'); /* The name before it may hold anything. */
    if (rest == NULL ||
        sscanf(rest + 2, "%*c %d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu %ld %ld",
               &ret_process->parent, &user, &system, &user_children, &system_children) != 5)
        return false;
    ret_process->pid = pid;
    ret_process->counted = false;
    ret_process->cpu_s = ((double)(user + system) + (double)(user_children + system_children)) /
                         (double)sysconf(_SC_CLK_TCK);
    return true;
}

static size_t processes_list(struct process *ret_list)
{
    DIR *folder = opendir("/proc");
    struct dirent *entry;
    size_t count = 0;

    while (folder != NULL && count < PROCESSES_MAX && (entry = readdir(folder)) != NULL) {
        int pid = (int)strtol(entry->d_name, NULL, 10);
        if (pid > 0 && process_read(pid, &ret_list[count]))
            count++;
    }
    if (folder != NULL)
        closedir(folder);
    return count;
}

static bool is_listed(const char *pids, int pid)
{
    while (*pids != 0) {
        if (strtol(pids, NULL, 10) == pid)
            return true;
        pids += strcspn(pids, ",");
        pids += *pids == ',';
    }
    return false;
}

static bool parent_counted(const struct process *list, size_t count, int parent)
{
    for (size_t i = 0; i < count; i++) {
        if (list[i].pid == parent)
            return list[i].counted;
    }
    return false;
}

double server_cpu_s(const char *pids)
{
    struct process *list = calloc(PROCESSES_MAX, sizeof *list);
    size_t count = list != NULL && pids[0] != 0 ? processes_list(list) : 0;
    double sum = 0;
    bool changed = true;

    while (changed) {
        changed = false;
        for (size_t i = 0; i < count; i++) {
            if (list[i].counted ||
                !(is_listed(pids, list[i].pid) || parent_counted(list, count, list[i].parent)))
                continue;
            list[i].counted = true;
            changed = true;
            sum += list[i].cpu_s;
        }
    }
    free(list);
    return sum;
}

double own_cpu_s(void)
{
    struct rusage usage;

    getrusage(RUSAGE_SELF, &usage);
    return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
           (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
}

double machine_cpu_s(void)
{
    unsigned long long user, nice, system, irq, soft_irq;
    FILE *file = fopen("/proc/stat", "re");
    int found = 0;

    if (file != NULL) {
        found = fscanf(file, "cpu %llu %llu %llu %*u %*u %llu %llu", &user, &nice, &system, &irq,
                       &soft_irq);
        fclose(file);
    }
    if (found != 5)
        return 0;
    return (double)(user + nice + system + irq + soft_irq) / (double)sysconf(_SC_CLK_TCK);
}
