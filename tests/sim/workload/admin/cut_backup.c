/* CutBackup, which the command line calls for a backup (../backup.c). */
#include "tests/sim/oracle/answer.h"
#include "tests/sim/servers/workload.h"

const struct workload_row workload_cut_backup = {
    .method = METHOD_CUT_BACKUP,
    .rule = { .told = told_nothing },
};
