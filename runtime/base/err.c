#include "runtime/base/err.h"

#include "runtime/base/check.h"

static const struct {
    enum retry retry;
    const char *name;
    const char *text;
} err_table[ERR_COUNT] = { [ERR_OK] = { RETRY_NEVER, "ERR_OK", "ok" },
#define ERR_ROW(code, r, t) [code] = { r, #code, t },
                           ERR_TABLE(ERR_ROW)
#undef ERR_ROW
};

const char *err_text(err e)
{
    CHECK(e < ERR_COUNT);
    return err_table[e].text;
}

const char *err_name(err e)
{
    CHECK(e < ERR_COUNT);
    return err_table[e].name;
}

enum retry err_retry(err e)
{
    CHECK(e < ERR_COUNT);
    return err_table[e].retry;
}
