/* Preloaded, it kills its process at one operation on files, the number of which is given: a write is two of them.
 * SQLite does its own, which no function of Python sees. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

static long left = 0;

void kill_at(long steps) { left = steps; }

static void step(void) {
    if (left > 0 && __sync_sub_and_fetch(&left, 1) == 0) kill(getpid(), SIGKILL);
}

static int counts(int file) {
    struct stat about;
    return left > 0 && fstat(file, &about) == 0 && S_ISREG(about.st_mode);
}

#define REAL(name, type) static type real; if (!real) real = (type)dlsym(RTLD_NEXT, name)

typedef ssize_t (*writes)(int, const void *, size_t);
ssize_t write(int file, const void *bytes, size_t n) {
    REAL("write", writes);
    if (!counts(file) || n < 2) return real(file, bytes, n);
    step();
    ssize_t done = real(file, bytes, n / 2);
    step();
    if (done < (ssize_t)(n / 2)) return done;
    ssize_t more = real(file, (const char *)bytes + done, n - done);
    return more < 0 ? done : done + more;
}

typedef ssize_t (*pwrites)(int, const void *, size_t, off_t);
static ssize_t in_halves(pwrites real, int file, const void *bytes, size_t n, off_t at) {
    if (!counts(file) || n < 2) return real(file, bytes, n, at);
    step();
    ssize_t done = real(file, bytes, n / 2, at);
    step();
    if (done < (ssize_t)(n / 2)) return done;
    ssize_t more = real(file, (const char *)bytes + done, n - done, at + done);
    return more < 0 ? done : done + more;
}
ssize_t pwrite(int file, const void *bytes, size_t n, off_t at) {
    REAL("pwrite", pwrites);
    return in_halves(real, file, bytes, n, at);
}
ssize_t pwrite64(int file, const void *bytes, size_t n, off64_t at) {
    REAL("pwrite64", pwrites);
    return in_halves(real, file, bytes, n, at);
}

#define BEFORE(result, name, parameters, arguments)  \
    result name parameters {                         \
        typedef result(*own) parameters;             \
        REAL(#name, own);                            \
        step();                                      \
        return real arguments;                       \
    }
BEFORE(int, fsync, (int file), (file))
BEFORE(int, fdatasync, (int file), (file))
BEFORE(int, ftruncate, (int file, off_t n), (file, n))
BEFORE(int, ftruncate64, (int file, off64_t n), (file, n))
BEFORE(int, unlink, (const char *path), (path))
BEFORE(int, rename, (const char *from, const char *to), (from, to))
BEFORE(int, mkdir, (const char *path, mode_t mode), (path, mode))

#define OPENED(name)                                            \
    int name(const char *path, int flags, ...) {                \
        typedef int (*own)(const char *, int, ...);             \
        REAL(#name, own);                                       \
        va_list rest;                                           \
        va_start(rest, flags);                                  \
        int mode = flags & O_CREAT ? va_arg(rest, int) : 0;     \
        va_end(rest);                                           \
        if (flags & O_CREAT) step();                            \
        return real(path, flags, mode);                         \
    }
OPENED(open)
OPENED(open64)
