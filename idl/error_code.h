/* error_code: CODE(NOT_FOUND) is the error code ERROR_CODE_NOT_FOUND of error.proto. */
#ifndef IDL_ERROR_CODE_H
#define IDL_ERROR_CODE_H

#include "holdfast/v1/error.pb-c.h"

#define CODE(name) HOLDFAST__V1__ERROR_CODE__ERROR_CODE_##name

#endif
