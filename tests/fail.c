/* Makes calls on files whose name ends with a given text fail, as a full or dying disk does:
 * FAIL_SYNC=name: fdatasync gives EIO; FAIL_WRITE=name: write gives ENOSPC;
 * FAIL_READ=name: all reads but the first give EIO;
 * FAIL_SHORT_WRITE=name: the first write takes half, the next gives ENOSPC;
 * FAIL_TRUNCATE=1: ftruncate gives EIO. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

static int is_named(int fd, const char *variable) {
    const char *name = getenv(variable);
    char link[64], path[4096];
    if (!name) return 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, path, sizeof path - 1);
    if (length < 0) return 0;
    path[length] = 0;
    size_t wanted = strlen(name);
    return (size_t)length >= wanted && strcmp(path + length - wanted, name) == 0;
}

int fdatasync(int fd) {
    static int (*real)(int);
    if (!real) real = (int (*)(int))dlsym(RTLD_NEXT, "fdatasync");
    if (is_named(fd, "FAIL_SYNC")) { errno = EIO; return -1; }
    return real(fd);
}

ssize_t write(int fd, const void *bytes, size_t count) {
    static ssize_t (*real)(int, const void *, size_t);
    static int writes;
    if (!real) real = (ssize_t (*)(int, const void *, size_t))dlsym(RTLD_NEXT, "write");
    if (is_named(fd, "FAIL_WRITE")) { errno = ENOSPC; return -1; }
    if (is_named(fd, "FAIL_SHORT_WRITE")) {
        if (writes++ == 0) return real(fd, bytes, count / 2);
        errno = ENOSPC;
        return -1;
    }
    return real(fd, bytes, count);
}

ssize_t read(int fd, void *bytes, size_t count) {
    static ssize_t (*real)(int, void *, size_t);
    static int reads;
    if (!real) real = (ssize_t (*)(int, void *, size_t))dlsym(RTLD_NEXT, "read");
    if (is_named(fd, "FAIL_READ") && reads++ > 0) { errno = EIO; return -1; }
    return real(fd, bytes, count);
}

int ftruncate64(int fd, off64_t length) {
    static int (*real)(int, off64_t);
    if (!real) real = (int (*)(int, off64_t))dlsym(RTLD_NEXT, "ftruncate64");
    if (getenv("FAIL_TRUNCATE")) { errno = EIO; return -1; }
    return real(fd, length);
}

int ftruncate(int fd, off_t length) { return ftruncate64(fd, length); }
