#include "client/cli/console/terminal.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <termios.h>
#include <unistd.h>

#include "runtime/base/check.h"

#define ENTER "\033[?1049h\033[?25l\033[H\033[2J" /* Another screen, no cursor. */
#define LEAVE "\033[?25h\033[?1049l"

struct terminal {
    bool screen;
    struct termios before;
    sigset_t mask_before;
    int signals; /* A signalfd. */
    struct buf out;
};

static bool write_all(const void *bytes, size_t size)
{
    const uint8_t *at = bytes;

    while (size > 0) {
        ssize_t written = write(STDOUT_FILENO, at, size);
        if (written < 0 && errno == EINTR)
            continue;
        if (written <= 0)
            return false;
        at += written;
        size -= (size_t)written;
    }
    return true;
}

static bool has_screen(void)
{
    const char *term = getenv("TERM");

    return isatty(STDIN_FILENO) == 1 && isatty(STDOUT_FILENO) == 1 && term != NULL &&
           term[0] != 0 && strcmp(term, "dumb") != 0;
}

/* Keys come one by one and unseen; Ctrl-C and Ctrl-Z are signals as ever. */
static void enter(struct terminal *terminal)
{
    struct termios raw;

    if (!terminal->screen)
        return;
    raw = terminal->before;
    raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
    raw.c_cc[VMIN] = 1;
    raw.c_cc[VTIME] = 0;
    (void)tcsetattr(STDIN_FILENO, TCSADRAIN, &raw);
    (void)write_all(ENTER, sizeof ENTER - 1);
}

static void leave(struct terminal *terminal)
{
    if (!terminal->screen)
        return;
    (void)write_all(LEAVE, sizeof LEAVE - 1);
    (void)tcsetattr(STDIN_FILENO, TCSADRAIN, &terminal->before);
}

static void followed_signals(sigset_t *ret_set)
{
    static const int followed[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGWINCH, SIGTSTP, SIGPIPE };

    sigemptyset(ret_set);
    for (size_t i = 0; i < ARRAY_SIZE(followed); i++)
        sigaddset(ret_set, followed[i]);
}

err terminal_open(bool wants_screen, struct terminal **ret_terminal)
{
    struct terminal *terminal = mem_zalloc(sizeof *terminal);
    sigset_t set;

    followed_signals(&set);
    CHECK(sigprocmask(SIG_BLOCK, &set, &terminal->mask_before) == 0);
    terminal->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    if (terminal->signals < 0) {
        CHECK(sigprocmask(SIG_SETMASK, &terminal->mask_before, NULL) == 0);
        free(terminal);
        return ERR_IO;
    }
    terminal->screen =
        wants_screen && has_screen() && tcgetattr(STDIN_FILENO, &terminal->before) == 0;
    enter(terminal);
    *ret_terminal = terminal;
    return ERR_OK;
}

void terminal_close(struct terminal *terminal)
{
    if (terminal == NULL)
        return;
    leave(terminal);
    close(terminal->signals);
    CHECK(sigprocmask(SIG_SETMASK, &terminal->mask_before, NULL) == 0);
    buf_deinit(&terminal->out);
    free(terminal);
}

bool terminal_has_screen(const struct terminal *terminal)
{
    return terminal->screen;
}

void terminal_size(const struct terminal *terminal, uint32_t *ret_width, uint32_t *ret_height)
{
    struct winsize size = { 0 };

    *ret_width = 80;
    *ret_height = 24;
    if (!terminal->screen || ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0)
        return;
    if (size.ws_col > 0)
        *ret_width = size.ws_col;
    if (size.ws_row > 0)
        *ret_height = size.ws_row;
}

/* Each line in its place, so that nothing flickers; what follows it is erased. */
static void draw_screen(struct terminal *terminal, struct slice lines)
{
    struct buf *out = &terminal->out;
    size_t begin = 0;

    buf_printf(out, "\033[H");
    for (size_t i = 0; i < lines.size; i++) {
        if (lines.data[i] != '\n')
            continue;
        /* No newline behind the last line: in the window's last row it would scroll. */
        if (begin > 0)
            buf_printf(out, "\r\n");
        buf_append(out, lines.data + begin, i - begin);
        buf_printf(out, "\033[K");
        begin = i + 1;
    }
    buf_printf(out, "\033[J");
}

bool terminal_draw(struct terminal *terminal, struct slice lines)
{
    buf_clear(&terminal->out);
    if (terminal->screen) {
        draw_screen(terminal, lines);
    } else {
        buf_append(&terminal->out, lines.data, lines.size);
        buf_put_u8(&terminal->out, '\n');
    }
    return write_all(terminal->out.data, terminal->out.size);
}

/* To the background: as it was before, until somebody brings it back. */
static void stop(struct terminal *terminal)
{
    leave(terminal);
    (void)kill(getpid(), SIGSTOP);
    enter(terminal);
}

static enum terminal_event take_signal(struct terminal *terminal, int *ret_key)
{
    struct signalfd_siginfo info;

    if (read(terminal->signals, &info, sizeof info) != (ssize_t)sizeof info)
        return TERMINAL_NONE;
    if (info.ssi_signo == SIGTSTP)
        stop(terminal);
    if (info.ssi_signo == SIGTSTP || info.ssi_signo == SIGWINCH)
        return TERMINAL_RESIZE;
    *ret_key = (int)info.ssi_signo;
    return TERMINAL_END;
}

static enum terminal_event take_key(int *ret_key)
{
    uint8_t key;
    ssize_t size = read(STDIN_FILENO, &key, 1);

    if (size < 0 && (errno == EINTR || errno == EAGAIN))
        return TERMINAL_NONE;
    if (size <= 0)
        return TERMINAL_END;
    *ret_key = key;
    return TERMINAL_KEY;
}

enum terminal_event terminal_wait(struct terminal *terminal, uint32_t wait_ms, int *ret_key)
{
    struct pollfd fds[2] = {
        { .fd = terminal->signals, .events = POLLIN },
        { .fd = terminal->screen ? STDIN_FILENO : -1, .events = POLLIN },
    };

    *ret_key = 0;
    if (poll(fds, ARRAY_SIZE(fds), (int)wait_ms) <= 0)
        return TERMINAL_NONE;
    if (fds[0].revents != 0)
        return take_signal(terminal, ret_key);
    return take_key(ret_key);
}
