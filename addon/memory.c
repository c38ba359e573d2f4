// Memory that both JavaScript and others see: anonymous regions, named shared memory with an owner's lock, and the
// copy of a batch of frames from one region to another.
#include "common.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define HUGE_PAGE ((size_t)2 << 20)

#ifndef MAP_NORESERVE // FreeBSD never reserves
#define MAP_NORESERVE 0
#endif

struct mapping {
  void *address;
  size_t bytes;
  napi_ref buffer;    // weak: the buffer may be gone before close
  bool closed;        // the device or file is no longer mapped
  atomic_int holders; // close() and V8's release each hold one
};

static void mapping_put(mapping *m) {
  if (atomic_fetch_sub(&m->holders, 1) != 1) return;
  munmap(m->address, m->bytes);
  free(m);
}

// V8 has let the ArrayBuffer go: nobody can hold the address any more.
static void released(napi_env env, void *data, void *hint) {
  (void)env;
  (void)data;
  mapping_put(hint);
}

mapping *mapping_new(napi_env env, void *address, size_t bytes, napi_value *buffer) {
  mapping *m = calloc(1, sizeof *m);
  if (m == NULL) {
    munmap(address, bytes);
    throw_errno(env, ENOMEM, "mmap", "memory");
    return NULL;
  }
  m->address = address;
  m->bytes = bytes;
  atomic_init(&m->holders, 2);
  if (napi_create_external_arraybuffer(env, address, bytes, released, m, buffer) != napi_ok) {
    munmap(address, bytes);
    free(m);
    throw_errno(env, ENOMEM, "napi_create_external_arraybuffer", "memory");
    return NULL;
  }
  napi_create_reference(env, *buffer, 0, &m->buffer);
  return m;
}

void mapping_close(napi_env env, mapping *m) {
  if (m->closed) return;
  m->closed = true;
  if (env != NULL) { // at the end of an environment V8 detaches by itself
    napi_value buffer = NULL;
    if (m->buffer != NULL && napi_get_reference_value(env, m->buffer, &buffer) == napi_ok && buffer != NULL)
      napi_detach_arraybuffer(env, buffer);
    if (m->buffer != NULL) napi_delete_reference(env, m->buffer);
  }
  mmap(m->address, m->bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0);
  mapping_put(m);
}

uint8_t *mapping_address(const mapping *m) {
  return m->address;
}

size_t mapping_bytes(const mapping *m) {
  return m->bytes;
}

static void memory_close(napi_env env, handle *h) {
  if (h->state != NULL) mapping_close(env, h->state);
  if (h->fd >= 0) close(h->fd);
}

static napi_value memory_result(napi_env env, const char *name, int fd, void *address, size_t bytes) {
  napi_value buffer = NULL;
  mapping *m = mapping_new(env, address, bytes, &buffer);
  int32_t id;
  handle *h = m == NULL ? NULL : handle_new(env, HANDLE_MEMORY, name, &id);
  if (h == NULL) {
    if (m != NULL) mapping_close(env, m);
    if (fd >= 0) close(fd);
    return NULL;
  }
  h->fd = fd;
  h->state = m;
  h->close = memory_close;
  napi_value result;
  napi_create_object(env, &result);
  set_value(env, result, "handle", make_i32(env, id));
  set_value(env, result, "buffer", buffer);
  return result;
}

// mapAnonymous(bytes) → {handle, buffer}. Zeroed, page-aligned, on huge pages where the system has them:
// a region's buffers are touched all over, and 4 KiB pages overrun the TLB.
static napi_value map_anonymous(napi_env env, napi_callback_info info) {
  napi_value argv[1];
  int64_t bytes;
  if (!get_args(env, info, 1, argv) || !get_i64(env, argv[0], &bytes, "bytes")) return NULL;
  if (bytes <= 0) return throw_argument(env, "bytes: expected more than 0");
  size_t size = ((size_t)bytes + HUGE_PAGE - 1) & ~(HUGE_PAGE - 1);
  // One huge page more, so that the start can be aligned to one; the surplus is given back.
  uint8_t *raw =
      mmap(NULL, size + HUGE_PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (raw == MAP_FAILED) return throw_errno(env, errno, "mmap", "memory");
  uint8_t *address = (uint8_t *)(((uintptr_t)raw + HUGE_PAGE - 1) & ~(uintptr_t)(HUGE_PAGE - 1));
  if (address != raw) munmap(raw, (size_t)(address - raw));
  if (address + size != raw + size + HUGE_PAGE)
    munmap(address + size, (size_t)(raw + size + HUGE_PAGE - (address + size)));
#ifdef MADV_HUGEPAGE
  madvise(address, size, MADV_HUGEPAGE);
#endif
  return memory_result(env, "memory", -1, address, size);
}

// The file that is there, or a new one. Who loses the race to make it takes the winner's.
static int open_shared(const char *path, bool make, bool *created) {
  for (;;) {
    int fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
    if (fd >= 0 || errno != ENOENT || !make) return fd;
    fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    *created = fd >= 0;
    if (fd >= 0 || errno != EEXIST) return fd;
  }
}

// mapShared(path, bytes) → {handle, buffer, created}. A file of the caller's own (0600), made if it is not there.
// One that is there keeps its size; bytes 0 maps only such a one (ENOENT while it is missing or still empty).
static napi_value map_shared(napi_env env, napi_callback_info info) {
  napi_value argv[2];
  char path[PATH_MAX];
  int64_t bytes;
  if (!get_args(env, info, 2, argv) || !get_string(env, argv[0], path, sizeof path, "path") ||
      !get_i64(env, argv[1], &bytes, "bytes"))
    return NULL;
  if (bytes < 0) return throw_argument(env, "bytes: expected 0 or more");
  bool created = false;
  int fd = open_shared(path, bytes > 0, &created);
  if (fd < 0) return throw_errno(env, errno, "open", path);
  struct stat st;
  int error = 0;
  const char *syscall = "fstat";
  if (fstat(fd, &st) != 0) {
    error = errno;
  } else if (st.st_uid != geteuid() || (st.st_mode & 077) != 0) {
    error = EACCES; // somebody else's, or open to others: not ours to trust
    syscall = "open";
  } else if (st.st_size == 0 && bytes > 0) {
    // Made just now, by us or by one who died before giving it a size.
    created = true;
    st.st_size = (off_t)bytes;
    syscall = "ftruncate";
    if (ftruncate(fd, (off_t)bytes) != 0) error = errno;
  }
  if (error == 0 && st.st_size <= 0) error = ENOENT;
  void *address = MAP_FAILED;
  if (error == 0) {
    syscall = "mmap";
    address = mmap(NULL, (size_t)st.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (address == MAP_FAILED) error = errno;
  }
  if (error != 0) {
    close(fd);
    return throw_errno(env, error, syscall, path);
  }
  napi_value result = memory_result(env, path, fd, address, (size_t)st.st_size);
  if (result == NULL) return NULL;
  napi_value flag;
  napi_get_boolean(env, created, &flag);
  set_value(env, result, "created", flag);
  return result;
}

// closeMemory(handle): detaches the buffer, then lets the memory go.
static napi_value close_memory(napi_env env, napi_callback_info info) {
  napi_value argv[1];
  if (!get_args(env, info, 1, argv)) return NULL;
  handle *h = handle_get(env, argv[0], HANDLE_MEMORY);
  if (h != NULL) handle_release(env, h);
  return NULL;
}

static void lock_close(napi_env env, handle *h) {
  (void)env;
  close(h->fd);
}

// Whether `fd` is still the file that `path` names, and our own: the holder of a lock may remove its file, and then
// the next one makes another.
static int lock_check(int fd, const char *path, bool *current) {
  struct stat held, named;
  if (fstat(fd, &held) != 0) return errno;
  if (held.st_uid != geteuid()) return EACCES;
  *current = lstat(path, &named) == 0 && named.st_dev == held.st_dev && named.st_ino == held.st_ino;
  return 0;
}

// lock(path) → handle, or throws EBUSY while another holds it. flock() belongs to the open file, so two threads of
// one process exclude each other too, and the kernel drops it when its owner dies. The file may be removed by
// whoever holds the lock.
static napi_value lock_file(napi_env env, napi_callback_info info) {
  napi_value argv[1];
  char path[PATH_MAX];
  if (!get_args(env, info, 1, argv) || !get_string(env, argv[0], path, sizeof path, "path")) return NULL;
  int fd;
  for (bool current = false; !current;) {
    fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0) return throw_errno(env, errno, "open", path);
    const char *syscall = "flock";
    int error = 0;
    if (flock(fd, LOCK_EX | LOCK_NB) != 0) {
      error = errno == EWOULDBLOCK ? EBUSY : errno;
    } else {
      syscall = "open";
      error = lock_check(fd, path, &current);
    }
    if (error != 0 || !current) close(fd);
    if (error != 0) return throw_errno(env, error, syscall, path);
  }
  int32_t id;
  handle *h = handle_new(env, HANDLE_LOCK, path, &id);
  if (h == NULL) {
    close(fd);
    return NULL;
  }
  h->fd = fd;
  h->close = lock_close;
  return make_i32(env, id);
}

// unlock(handle)
static napi_value unlock_file(napi_env env, napi_callback_info info) {
  napi_value argv[1];
  if (!get_args(env, info, 1, argv)) return NULL;
  handle *h = handle_get(env, argv[0], HANDLE_LOCK);
  if (h != NULL) handle_release(env, h);
  return NULL;
}

// Words of the list between a copy and the one whose cache lines are asked for meanwhile.
#define AHEAD (3 * 2)

// What a copier has bound. The arrays are kept, and with them the address ranges (see mapping_close): a copier whose
// memory was closed meanwhile copies zeros.
typedef struct {
  uint8_t *dst;
  const uint8_t *src;
  const int32_t *list;
  uint64_t dst_bytes, src_bytes;
  size_t list_words;
  napi_ref arrays[3];
} copier;

static void copier_free(napi_env env, void *data, void *hint) {
  (void)hint;
  copier *c = data;
  for (size_t i = 0; i < 3; i++)
    if (c->arrays[i] != NULL) napi_delete_reference(env, c->arrays[i]);
  free(c);
}

// Asks for all cache lines of a copy, source and target: the processor's own prefetcher knows neither where the next
// frame is nor where it goes to. 5 to 10 % of the time of frames of 512 bytes and more.
static void ask_for(const copier *c, const int32_t *l) {
  const uint8_t *from = c->src + (uint32_t)l[1], *to = c->dst + (uint32_t)l[0];
  for (uint32_t line = 0; line < (uint32_t)l[2]; line += 64) {
    __builtin_prefetch(from + line);
    __builtin_prefetch(to + line, 1);
  }
}

// The function of a copier: (count) copies what the first `count` triples of the list say. Every triple is held against
// both memories before a byte moves; cache lines are asked for two copies ahead.
static napi_value copier_run(napi_env env, napi_callback_info info) {
  napi_value argv[1];
  size_t argc = 1;
  void *data = NULL;
  int32_t count;
  if (napi_get_cb_info(env, info, &argc, argv, NULL, &data) != napi_ok || argc < 1 || data == NULL)
    return throw_argument(env, "count: missing");
  if (!get_i32(env, argv[0], &count, "count")) return NULL;
  const copier *c = data;
  if (count < 0 || (size_t)count * 3 > c->list_words) return throw_argument(env, "count: longer than the list");
  const int32_t *end = c->list + 3 * (size_t)count;
  for (const int32_t *l = c->list; l < end; l += 3) {
    const uint64_t to = (uint32_t)l[0], from = (uint32_t)l[1], bytes = (uint32_t)l[2];
    if (to + bytes > c->dst_bytes || from + bytes > c->src_bytes)
      return throw_argument(env, "list: a copy outside its memory");
    if (l < c->list + AHEAD) ask_for(c, l);
  }
  for (const int32_t *l = c->list; l < end; l += 3) {
    if (l + AHEAD < end) ask_for(c, l + AHEAD);
    memmove(c->dst + (uint32_t)l[0], c->src + (uint32_t)l[1], (uint32_t)l[2]);
  }
  return NULL;
}

// copier(dst, src, list) → (count) => void. list holds triples (byte offset in dst, in src, bytes); no copy may change
// it. Bound once because looking three arrays up took 110 ns of a call's 170.
static napi_value make_copier(napi_env env, napi_callback_info info) {
  napi_value argv[3], function;
  int32_t *dst, *src, *list;
  size_t dst_words, src_words, list_words;
  if (!get_args(env, info, 3, argv) || !get_i32_array(env, argv[0], &dst, &dst_words, "dst") ||
      !get_i32_array(env, argv[1], &src, &src_words, "src") || !get_i32_array(env, argv[2], &list, &list_words, "list"))
    return NULL;
  if (list < dst + dst_words && dst < list + list_words) return throw_argument(env, "list: lies in dst");
  copier *c = calloc(1, sizeof *c);
  if (c == NULL) return throw_errno(env, ENOMEM, "malloc", "copier");
  *c = (copier){.dst = (uint8_t *)dst,
                .src = (const uint8_t *)src,
                .list = list,
                .dst_bytes = (uint64_t)dst_words * 4,
                .src_bytes = (uint64_t)src_words * 4,
                .list_words = list_words};
  bool made = napi_create_function(env, "copy", NAPI_AUTO_LENGTH, copier_run, c, &function) == napi_ok;
  for (size_t i = 0; made && i < 3; i++) made = napi_create_reference(env, argv[i], 1, &c->arrays[i]) == napi_ok;
  if (made && napi_add_finalizer(env, function, c, copier_free, NULL, NULL) == napi_ok) return function;
  copier_free(env, c, NULL);
  return NULL;
}

void memory_exports(napi_env env, napi_value exports) {
  const export_entry entries[] = {{"mapAnonymous", map_anonymous}, {"mapShared", map_shared},
                                  {"closeMemory", close_memory},   {"lock", lock_file},
                                  {"unlock", unlock_file},         {"copier", make_copier}};
  export_all(env, exports, entries, sizeof entries / sizeof entries[0]);
}
