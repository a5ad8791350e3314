/* shim.c: stands between a process and the C library for everything under one folder (LD_PRELOAD).
 *
 * It numbers the calls that reach the file system, writes down what each did (TELHA_SHIM_TRACE), and at one number
 * fails or kills (TELHA_SHIM_AT). disk.py makes of the trace what a disk would hold after a power cut. Knows nothing of
 * queues.
 *
 * TELHA_SHIM_ROOT   the folder; paths are compared as they are given, but for those through a descriptor of a folder
 * TELHA_SHIM_TRACE  a file: one `struct head` per call with its bytes, and one per write to descriptor 1, which is
 *                   where the process tells what was acknowledged. So the trace has one order for both.
 * TELHA_SHIM_AT     "<number> <action> <times>": EIO or ENOSPC fails so many calls from that one on, 0 for all;
 *                   before, torn or after kills the process there (torn: when half of a write is done).
 *
 * One lock is held through each call, so calls are recorded in the order in which they happened.
 */
#define _GNU_SOURCE
#undef _FORTIFY_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define MAX_FILES 4096

struct __attribute__((packed)) head {
  char kind;
  int32_t fd;
  int64_t a;
  int64_t b;
  uint32_t path_bytes;
  uint32_t data_bytes;
};

static pthread_mutex_t turn = PTHREAD_MUTEX_INITIALIZER;
static const char *root;
static size_t root_bytes;
static int trace = -1;
static long number; /* of the last call */
static long at;
static long times;
static int error_at;
static enum { NOTHING, BEFORE, TORN, AFTER } kill_at;
static char *names[MAX_FILES]; /* by descriptor, of what is open under the root */

__attribute__((constructor)) static void start(void) {
  const char *where = getenv("TELHA_SHIM_TRACE");
  const char *what = getenv("TELHA_SHIM_AT");
  char action[16] = "";
  root = getenv("TELHA_SHIM_ROOT");
  root_bytes = root ? strlen(root) : 0;
  if (where) trace = (int)syscall(SYS_openat, AT_FDCWD, where, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  if (what && sscanf(what, "%ld %15s %ld", &at, action, &times) == 3) {
    if (!strcmp(action, "EIO")) error_at = EIO;
    if (!strcmp(action, "ENOSPC")) error_at = ENOSPC;
    if (!strcmp(action, "before")) kill_at = BEFORE;
    if (!strcmp(action, "torn")) kill_at = TORN;
    if (!strcmp(action, "after")) kill_at = AFTER;
  }
}

static int under(const char *path) {
  return root && path && !strncmp(path, root, root_bytes) && (path[root_bytes] == 0 || path[root_bytes] == '/');
}

/* The path itself, or with the folder's name where it leads through a descriptor of that. */
static const char *named(const char *path, char room[PATH_MAX]) {
  char way[64];
  int folder, size = 0;
  if (path == NULL || sscanf(path, "/proc/self/fd/%d%n", &folder, &size) != 1) return path;
  snprintf(way, sizeof way, "/proc/self/fd/%d", folder);
  const long got = syscall(SYS_readlinkat, AT_FDCWD, way, room, PATH_MAX - 1);
  if (got < 0 || (size_t)got + strlen(path + size) >= PATH_MAX) return path;
  strcpy(room + got, path + size);
  return room;
}

static int known(int fd) { return fd >= 0 && fd < MAX_FILES && names[fd] != NULL; }

static void put(const void *bytes, size_t size) {
  const char *next = bytes;
  while (size > 0) {
    const long done = syscall(SYS_write, trace, next, size);
    if (done <= 0) abort(); /* a trace with a gap would prove nothing */
    next += done;
    size -= (size_t)done;
  }
}

static void record(char kind, int fd, int64_t a, int64_t b, const char *path, const void *data, size_t data_bytes) {
  const int kept = errno;
  struct head head = {kind, fd, a, b, path ? (uint32_t)strlen(path) : 0, (uint32_t)data_bytes};
  if (trace < 0) return;
  put(&head, sizeof head);
  put(path ? path : "", head.path_bytes);
  put(data ? data : "", head.data_bytes);
  errno = kept;
}

/* Takes the turn and gives the call its number; true when the call is to fail, with errno set. */
static int begin(const char *call, const char *path) {
  pthread_mutex_lock(&turn);
  ++number;
  if (kill_at == BEFORE && number == at) kill(getpid(), SIGKILL);
  if (error_at && number >= at && (times == 0 || number < at + times)) {
    if (number == at) dprintf(2, "shim: call %ld, %s of %s, fails with %d\n", number, call, path + root_bytes, error_at);
    errno = error_at;
    return 1;
  }
  return 0;
}

static int is_torn(void) { return (kill_at == TORN && number == at) || (error_at == ENOSPC && number == at); }

static long end(long result) {
  if (kill_at != NOTHING && number == at) kill(getpid(), SIGKILL);
  pthread_mutex_unlock(&turn);
  return result;
}

static int fails(char kind, int fd) { /* a call that was made to fail still has its line, so that numbers agree */
  record(kind, fd, -1, 0, NULL, NULL, 0);
  return (int)end(-1);
}

/* Opening and closing */

static int do_open(int folder, const char *path, int flags, mode_t mode) {
  char room[PATH_MAX];
  path = named(path, room);
  if (!under(path)) return (int)syscall(SYS_openat, folder, path, flags, mode);
  if (begin("open", path)) return fails('o', -1);
  const int fd = (int)syscall(SYS_openat, folder, path, flags, mode);
  if (fd >= 0 && fd < MAX_FILES) {
    free(names[fd]);
    names[fd] = strdup(path);
  }
  record('O', fd, flags, 0, path, NULL, 0);
  return (int)end(fd);
}

#define MODE_OF(flags, mode)                                  \
  mode_t mode = 0;                                            \
  if ((flags) & (O_CREAT | O_TMPFILE)) {                      \
    va_list rest;                                             \
    va_start(rest, flags);                                    \
    mode = va_arg(rest, mode_t);                              \
    va_end(rest);                                             \
  }

int open(const char *path, int flags, ...) {
  MODE_OF(flags, mode)
  return do_open(AT_FDCWD, path, flags, mode);
}
int open64(const char *path, int flags, ...) {
  MODE_OF(flags, mode)
  return do_open(AT_FDCWD, path, flags, mode);
}
int openat(int folder, const char *path, int flags, ...) {
  MODE_OF(flags, mode)
  return do_open(folder, path, flags, mode);
}
int openat64(int folder, const char *path, int flags, ...) {
  MODE_OF(flags, mode)
  return do_open(folder, path, flags, mode);
}
int creat(const char *path, mode_t mode) { return do_open(AT_FDCWD, path, O_CREAT | O_WRONLY | O_TRUNC, mode); }

int close(int fd) {
  if (!known(fd)) return (int)syscall(SYS_close, fd);
  pthread_mutex_lock(&turn);
  const int result = (int)syscall(SYS_close, fd);
  free(names[fd]);
  names[fd] = NULL;
  record('C', fd, 0, 0, NULL, NULL, 0);
  pthread_mutex_unlock(&turn);
  return result;
}

static void *opendir_of(const char *path) {
  void *(*real)(const char *) = (void *(*)(const char *))dlsym(RTLD_NEXT, "opendir");
  return real(path);
}
void *opendir(const char *path) {
  char room[PATH_MAX];
  path = named(path, room);
  if (!under(path)) return opendir_of(path);
  if (begin("opendir", path)) {
    fails('o', -1);
    return NULL;
  }
  void *folder = opendir_of(path);
  record('o', -1, 0, 0, NULL, NULL, 0);
  end(0);
  return folder;
}

/* Bytes */

static ssize_t do_write(int fd, const void *data, size_t size, int64_t offset) {
  const int fail = begin("write", names[fd]);
  const int64_t from = offset >= 0 ? offset : (int64_t)syscall(SYS_lseek, fd, 0, SEEK_CUR);
  const size_t wanted = is_torn() ? size / 2 : fail ? 0 : size;
  const int error = errno;
  ssize_t done = 0;
  if (wanted > 0) {
    done = offset >= 0 ? syscall(SYS_pwrite64, fd, data, wanted, offset) : syscall(SYS_write, fd, data, wanted);
  }
  record('W', fd, from, 0, NULL, data, done > 0 ? (size_t)done : 0);
  if (fail) errno = error;
  return end(fail ? -1 : done);
}

ssize_t write(int fd, const void *data, size_t size) {
  if (known(fd)) return do_write(fd, data, size, -1);
  if (fd != 1 || trace < 0) return syscall(SYS_write, fd, data, size);
  pthread_mutex_lock(&turn);
  record('A', fd, 0, 0, NULL, data, size);
  pthread_mutex_unlock(&turn);
  return (ssize_t)size;
}
ssize_t pwrite(int fd, const void *data, size_t size, off_t offset) {
  return known(fd) ? do_write(fd, data, size, offset) : syscall(SYS_pwrite64, fd, data, size, offset);
}
ssize_t pwrite64(int fd, const void *data, size_t size, off64_t offset) { return pwrite(fd, data, size, offset); }

ssize_t read(int fd, void *data, size_t size) {
  if (!known(fd)) return syscall(SYS_read, fd, data, size);
  if (begin("read", names[fd])) return fails('r', fd);
  const ssize_t done = syscall(SYS_read, fd, data, size);
  record('r', fd, 0, 0, NULL, NULL, 0);
  return end(done);
}
ssize_t pread(int fd, void *data, size_t size, off_t offset) {
  if (!known(fd)) return syscall(SYS_pread64, fd, data, size, offset);
  if (begin("read", names[fd])) return fails('r', fd);
  const ssize_t done = syscall(SYS_pread64, fd, data, size, offset);
  record('r', fd, 0, 0, NULL, NULL, 0);
  return end(done);
}
ssize_t pread64(int fd, void *data, size_t size, off64_t offset) { return pread(fd, data, size, offset); }

/* Sizes, syncs, locks: a call with a descriptor. The letter in small is that of a call that changed nothing. */

#define ON_FD(name, letter, small, a, b, call)                   \
  if (!known(fd)) return (int)(call);                            \
  if (begin(name, names[fd])) return fails(small, fd);           \
  const long done = (call);                                      \
  record(done == 0 ? (letter) : (small), fd, a, b, NULL, NULL, 0); \
  return (int)end(done);

int ftruncate(int fd, off_t size) { ON_FD("truncate", 'T', 't', size, 0, syscall(SYS_ftruncate, fd, size)) }
int ftruncate64(int fd, off64_t size) { return ftruncate(fd, size); }
int fallocate(int fd, int mode, off_t from, off_t size) {
  ON_FD("allocate", 'L', 'l', mode, from + size, syscall(SYS_fallocate, fd, mode, from, size))
}
int fallocate64(int fd, int mode, off64_t from, off64_t size) { return fallocate(fd, mode, from, size); }
int fsync(int fd) { ON_FD("sync", 'S', 's', 0, 0, syscall(SYS_fsync, fd)) }
int fdatasync(int fd) { ON_FD("sync", 'S', 's', 0, 0, syscall(SYS_fdatasync, fd)) }
int flock(int fd, int operation) { ON_FD("lock", 'k', 'k', 0, 0, syscall(SYS_flock, fd, operation)) }
static int lock_range(int fd, int operation, void *more) {
  ON_FD("lock", 'k', 'k', 0, 0, syscall(SYS_fcntl, fd, operation, more))
}
int fcntl(int fd, int operation, ...) {
  va_list rest;
  va_start(rest, operation);
  void *more = va_arg(rest, void *);
  va_end(rest);
  return operation == F_SETLK ? lock_range(fd, operation, more) : (int)syscall(SYS_fcntl, fd, operation, more);
}
int fcntl64(int fd, int operation, ...) {
  va_list rest;
  va_start(rest, operation);
  void *more = va_arg(rest, void *);
  va_end(rest);
  return operation == F_SETLK ? lock_range(fd, operation, more) : (int)syscall(SYS_fcntl, fd, operation, more);
}

/* Names: a call with a path, and maybe a second one. */

#define ON_PATH(name, letter, path, other, other_bytes, call)                     \
  char room[PATH_MAX];                                                           \
  path = named(path, room);                                                      \
  if (!under(path)) return (int)(call);                                          \
  if (begin(name, path)) return fails('n', -1);                                  \
  const long done = (call);                                                      \
  record(done == 0 ? (letter) : 'n', -1, 0, 0, path, other, other_bytes);        \
  return (int)end(done);

int rename(const char *from, const char *to) {
  char there[PATH_MAX];
  to = named(to, there);
  ON_PATH("rename", 'R', from, to, strlen(to), syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0))
}
int link(const char *from, const char *to) {
  char there[PATH_MAX];
  to = named(to, there);
  ON_PATH("link", 'H', from, to, strlen(to), syscall(SYS_linkat, AT_FDCWD, from, AT_FDCWD, to, 0))
}
int unlink(const char *path) { ON_PATH("unlink", 'U', path, NULL, 0, syscall(SYS_unlinkat, AT_FDCWD, path, 0)) }
int rmdir(const char *path) {
  ON_PATH("rmdir", 'D', path, NULL, 0, syscall(SYS_unlinkat, AT_FDCWD, path, AT_REMOVEDIR))
}
int mkdir(const char *path, mode_t mode) {
  ON_PATH("mkdir", 'M', path, NULL, 0, syscall(SYS_mkdirat, AT_FDCWD, path, mode))
}
