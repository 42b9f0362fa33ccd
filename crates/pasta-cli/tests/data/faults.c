/* Preloaded into a program, it makes one call on files fail: the FAULT_AT-th of those that change what is under FAULT_UNDER.
   FAULT_KIND is the number of an error, or "kill" (the program dies instead of the call), or "torn" (a write stops halfway, and the program dies).
   Every call is counted in the file FAULT_COUNT, a byte each. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

static int count, log_file = -1;

#define NEXT(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

static int is_under(const char *path) {
    const char *under = getenv("FAULT_UNDER");
    char resolved[PATH_MAX + 1];
    if (!under || !path) return 0;
    if (path[0] != '/') {
        char here[PATH_MAX];
        if (!getcwd(here, sizeof here) || snprintf(resolved, sizeof resolved, "%s/%s", here, path) >= PATH_MAX) return 0;
        path = resolved;
    }
    return strncmp(path, under, strlen(under)) == 0;
}

static int is_ours(int fd) {
    char link[64], path[PATH_MAX + 1];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, path, PATH_MAX);
    if (fd == log_file || length < 0) return 0;
    path[length] = 0;
    return is_under(path);
}

/* True if this call is to fail; it does not come back where the program dies. */
static int fails(int fd, const void *data, size_t size) {
    const char *at = getenv("FAULT_AT"), *kind = getenv("FAULT_KIND"), *to = getenv("FAULT_COUNT");
    if (log_file < 0 && to) log_file = NEXT(open64)(to, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    if (log_file >= 0) NEXT(write)(log_file, ".", 1);
    if (!at || !kind || ++count != atoi(at)) return 0;
    if (!strcmp(kind, "torn") && data && size > 1) NEXT(write)(fd, data, size / 2);
    if (!strcmp(kind, "torn") || !strcmp(kind, "kill")) raise(SIGKILL);
    errno = atoi(kind);
    return 1;
}

#define WRITES (O_WRONLY | O_RDWR | O_CREAT | O_TRUNC)

int open64(const char *path, int flags, ...) {
    va_list rest;
    va_start(rest, flags);
    mode_t mode = va_arg(rest, mode_t);
    va_end(rest);
    if ((flags & WRITES) && is_under(path) && fails(-1, NULL, 0)) return -1;
    return NEXT(open64)(path, flags, mode);
}

ssize_t write(int fd, const void *data, size_t size) {
    return is_ours(fd) && fails(fd, data, size) ? -1 : NEXT(write)(fd, data, size);
}
int fsync(int fd) { return is_ours(fd) && fails(fd, NULL, 0) ? -1 : NEXT(fsync)(fd); }
int fdatasync(int fd) { return is_ours(fd) && fails(fd, NULL, 0) ? -1 : NEXT(fdatasync)(fd); }
int ftruncate64(int fd, off64_t to) { return is_ours(fd) && fails(fd, NULL, 0) ? -1 : NEXT(ftruncate64)(fd, to); }
int rename(const char *from, const char *to) { return is_under(to) && fails(-1, NULL, 0) ? -1 : NEXT(rename)(from, to); }
int unlink(const char *path) { return is_under(path) && fails(-1, NULL, 0) ? -1 : NEXT(unlink)(path); }
int mkdir(const char *path, mode_t mode) { return is_under(path) && fails(-1, NULL, 0) ? -1 : NEXT(mkdir)(path, mode); }
