/*
 * top_alerts: which alerts of charts/holdfast/rules would fire if the cluster stayed as it is seen
 * now. Only those that can be told from here: others need a history, or a process that does not
 * answer routers. Pure.
 */
#ifndef CLIENT_CLI_TOP_TOP_ALERTS_H
#define CLIENT_CLI_TOP_TOP_ALERTS_H

#include "client/cli/top/top_view.h"

/* Fills in view->alerts from the rest of the view. */
void top_alerts_find(struct top_view *view);

#endif
