/* client_result: how a call to a router ended. */
#ifndef CLIENT_SDK_CLIENT_RESULT_H
#define CLIENT_SDK_CLIENT_RESULT_H

/* docs/operations.md, "The rule for every caller", as code. */
enum client_result {
    CLIENT_OK,         /* `body` is the response.                                                 */
    CLIENT_REFUSED,    /* `body` is the error: code, message, and what is in ErrorDetail.         */
    CLIENT_LATER,      /* Nothing was done, and the deadline is over: `body` as above; the same
                        * call may succeed after its retryAfterMs. */
    CLIENT_UNKNOWN,    /* The outcome is unknown: repeat the same call, or ResolveOperation.      */
    CLIENT_UNREACHABLE /* Nothing was sent; `body` is a sentence that says why.                */
};

#endif
