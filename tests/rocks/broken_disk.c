/* broken_disk.c: a library that stands before libc and lets a test break the disk while the process runs.
 *
 * TELHA_BROKEN_DISK names a file of three ints, each an errno or 0: for writes, for fsyncs, for opening to write.
 * Concerned are regular files beneath the directory that is named in TELHA_BROKEN_UNDER. Built by test_broken_disk.py.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { WRITE, SYNC, OPEN };

static volatile int *broken(void) {
  static volatile int *states;
  if (states == NULL) {
    int (*real_open)(const char *, int, ...) = dlsym(RTLD_NEXT, "open");
    int file = real_open(getenv("TELHA_BROKEN_DISK"), O_RDWR | O_CLOEXEC);
    states = mmap(NULL, 3 * sizeof(int), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
  }
  return states;
}

/* A path may lead through the descriptor of a directory. */
static int is_under(const char *path) {
  const char *under = getenv("TELHA_BROKEN_UNDER");
  char link[64], named[PATH_MAX];
  int file;
  if (sscanf(path, "/proc/self/fd/%d/", &file) == 1) {
    snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    ssize_t size = readlink(link, named, sizeof named - 1);
    named[size < 0 ? 0 : size] = 0;
    path = named;
  }
  return strncmp(path, under, strlen(under)) == 0;
}

static int fails(int file, int what) {
  char link[64], path[PATH_MAX];
  if (broken()[what] == 0) return 0;
  snprintf(link, sizeof link, "/proc/self/fd/%d", file);
  ssize_t size = readlink(link, path, sizeof path - 1);
  if (size < 0) return 0;
  path[size] = 0;
  if (!is_under(path)) return 0;
  errno = broken()[what];
  return 1;
}

#define REAL(name) __typeof__(&name) real = (__typeof__(&name))dlsym(RTLD_NEXT, #name)

ssize_t write(int file, const void *data, size_t size) {
  REAL(write);
  return fails(file, WRITE) ? -1 : real(file, data, size);
}
ssize_t pwrite(int file, const void *data, size_t size, off_t at) {
  REAL(pwrite);
  return fails(file, WRITE) ? -1 : real(file, data, size, at);
}
ssize_t pwrite64(int file, const void *data, size_t size, off64_t at) {
  REAL(pwrite64);
  return fails(file, WRITE) ? -1 : real(file, data, size, at);
}
int fsync(int file) {
  REAL(fsync);
  return fails(file, SYNC) ? -1 : real(file);
}
int fdatasync(int file) {
  REAL(fdatasync);
  return fails(file, SYNC) ? -1 : real(file);
}

#define OPENS(name)                                                            \
  int name(const char *path, int flags, ...) {                                 \
    REAL(name);                                                                \
    va_list more;                                                              \
    va_start(more, flags);                                                     \
    int mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(more, int) : 0;          \
    va_end(more);                                                              \
    if ((flags & O_ACCMODE) != O_RDONLY && broken()[OPEN] && is_under(path)) { \
      errno = broken()[OPEN];                                                  \
      return -1;                                                               \
    }                                                                          \
    return real(path, flags, mode);                                            \
  }
OPENS(open)
OPENS(open64)
