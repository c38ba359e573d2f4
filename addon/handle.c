// Handles, arguments, errors: the plumbing between JavaScript values and C.
#include "common.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// A pipe takes three: its memory and a lock an end. Generation and index make 31 bits.
#define HANDLES_MAX 4096
#define GENERATION_SHIFT 12
#define GENERATION_MASK 0x7ffff

typedef struct {
  handle entries[HANDLES_MAX];
} table;

// Closes what a worker or a process that ended without close() left open.
static void table_cleanup(void *data) {
  table *t = data;
  for (size_t i = 0; i < HANDLES_MAX; i++) {
    handle *h = &t->entries[i];
    if (h->kind != HANDLE_FREE && h->close != NULL) h->close(NULL, h);
    h->kind = HANDLE_FREE;
  }
  free(t);
}

static void throw_system(napi_env env, int error, const char *syscall, const char *port, const char *text);

static table *get_table(napi_env env) {
  void *data = NULL;
  if (napi_get_instance_data(env, &data) == napi_ok && data != NULL) return data;
  table *t = calloc(1, sizeof *t);
  if (t == NULL) return NULL;
  if (napi_set_instance_data(env, t, NULL, NULL) != napi_ok ||
      napi_add_env_cleanup_hook(env, table_cleanup, t) != napi_ok) {
    free(t);
    return NULL;
  }
  return t;
}

handle *handle_new(napi_env env, handle_kind kind, const char *name, int32_t *id) {
  table *t = get_table(env);
  if (t == NULL) {
    throw_errno(env, ENOMEM, "open", name);
    return NULL;
  }
  for (uint32_t i = 0; i < HANDLES_MAX; i++) {
    handle *h = &t->entries[i];
    if (h->kind != HANDLE_FREE) continue;
    uint32_t generation = (h->generation + 1) & GENERATION_MASK;
    *h = (handle){.kind = kind, .generation = generation, .fd = -1};
    snprintf(h->name, sizeof h->name, "%s", name);
    *id = (int32_t)(generation << GENERATION_SHIFT | i);
    return h;
  }
  char text[256];
  snprintf(text, sizeof text,
           "%s: this thread has %d memories, locks and sockets of ports open, which is the most; "
           "close some ports, or open them in another thread (EMFILE)",
           name, HANDLES_MAX);
  throw_system(env, EMFILE, "handle", name, text);
  return NULL;
}

handle *handle_find(napi_env env, napi_value value, handle_kind kind) {
  int32_t id = -1;
  table *t = get_table(env);
  if (t == NULL || napi_get_value_int32(env, value, &id) != napi_ok || id < 0) return NULL;
  handle *h = &t->entries[id & (HANDLES_MAX - 1)];
  return h->kind == kind && h->generation == (uint32_t)id >> GENERATION_SHIFT ? h : NULL;
}

handle *handle_get(napi_env env, napi_value value, handle_kind kind) {
  handle *h = handle_find(env, value, kind);
  if (h == NULL) throw_errno(env, EBADF, "handle", "(closed port)");
  return h;
}

void handle_release(napi_env env, handle *h) {
  if (h->close != NULL) h->close(env, h);
  h->kind = HANDLE_FREE;
  h->close = NULL;
  h->state = NULL;
  h->fd = -1;
}

// The names users and documentation use; strerror() gives only the sentence.
static const char *errno_name(int error) {
#define NAME(e)                                                                                                        \
  { e, #e }
  static const struct {
    int number;
    const char *name;
  } names[] = {NAME(EPERM),      NAME(ENOENT),        NAME(ESRCH),           NAME(EINTR),        NAME(EIO),
               NAME(ENXIO),      NAME(E2BIG),         NAME(EBADF),           NAME(EAGAIN),       NAME(ENOMEM),
               NAME(EACCES),     NAME(EFAULT),        NAME(EBUSY),           NAME(EEXIST),       NAME(ENODEV),
               NAME(ENOTDIR),    NAME(EISDIR),        NAME(EINVAL),          NAME(ENFILE),       NAME(EMFILE),
               NAME(ENOTTY),     NAME(EFBIG),         NAME(ENOSPC),          NAME(ESPIPE),       NAME(EROFS),
               NAME(EPIPE),      NAME(ERANGE),        NAME(ENOSYS),          NAME(ENAMETOOLONG), NAME(ELOOP),
               NAME(EOVERFLOW),  NAME(ENOPROTOOPT),   NAME(EPROTONOSUPPORT), NAME(EOPNOTSUPP),   NAME(EAFNOSUPPORT),
               NAME(EADDRINUSE), NAME(EADDRNOTAVAIL), NAME(ENETDOWN),        NAME(ENETUNREACH),  NAME(ENOBUFS),
               NAME(ETIMEDOUT),  NAME(EOWNERDEAD)};
#undef NAME
  for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
    if (names[i].number == error) return names[i].name;
  return "EUNKNOWN";
}

static void throw_system(napi_env env, int error, const char *syscall, const char *port, const char *text) {
  napi_value message, code, object;
  if (napi_create_string_utf8(env, text, NAPI_AUTO_LENGTH, &message) != napi_ok ||
      napi_create_string_utf8(env, errno_name(error), NAPI_AUTO_LENGTH, &code) != napi_ok ||
      napi_create_error(env, code, message, &object) != napi_ok)
    return;
  set_number(env, object, "errno", error);
  set_string(env, object, "syscall", syscall);
  set_string(env, object, "port", port);
  napi_throw(env, object);
}

napi_value throw_errno(napi_env env, int error, const char *syscall, const char *port) {
  char text[512];
  snprintf(text, sizeof text, "%s: %s: %s (%s)", port, syscall, strerror(error), errno_name(error));
  throw_system(env, error, syscall, port, text);
  return NULL;
}

napi_value throw_argument(napi_env env, const char *message) {
  napi_throw_type_error(env, "EINVAL", message);
  return NULL;
}

static bool refuse(napi_env env, const char *what, const char *expected) {
  char text[160];
  snprintf(text, sizeof text, "%s: expected %s", what, expected);
  throw_argument(env, text);
  return false;
}

bool get_args(napi_env env, napi_callback_info info, size_t count, napi_value *argv) {
  size_t given = count;
  if (napi_get_cb_info(env, info, &given, argv, NULL, NULL) == napi_ok && given >= count) return true;
  char text[64];
  snprintf(text, sizeof text, "expected %zu arguments, got %zu", count, given);
  throw_argument(env, text);
  return false;
}

bool get_string(napi_env env, napi_value value, char *out, size_t size, const char *what) {
  size_t length = 0;
  if (napi_get_value_string_utf8(env, value, NULL, 0, &length) != napi_ok) return refuse(env, what, "a string");
  if (length >= size) {
    // Report the offending name itself, cut, as the kernel would have seen it.
    napi_get_value_string_utf8(env, value, out, size, &length);
    throw_errno(env, ENAMETOOLONG, what, out);
    return false;
  }
  napi_get_value_string_utf8(env, value, out, size, &length);
  if (strlen(out) != length) return refuse(env, what, "a string without a NUL character");
  return true;
}

bool get_i64(napi_env env, napi_value value, int64_t *out, const char *what) {
  double number;
  if (napi_get_value_double(env, value, &number) != napi_ok ||
      !(number >= -9007199254740991.0 && number <= 9007199254740991.0) || number != (double)(int64_t)number)
    return refuse(env, what, "an integer");
  *out = (int64_t)number;
  return true;
}

bool get_i32(napi_env env, napi_value value, int32_t *out, const char *what) {
  int64_t wide;
  if (!get_i64(env, value, &wide, what)) return false;
  if (wide < INT32_MIN || wide > INT32_MAX) return refuse(env, what, "a 32-bit integer");
  *out = (int32_t)wide;
  return true;
}

bool get_u32(napi_env env, napi_value value, uint32_t *out, const char *what) {
  int64_t wide;
  if (!get_i64(env, value, &wide, what)) return false;
  if (wide < 0 || wide > UINT32_MAX) return refuse(env, what, "an unsigned 32-bit integer");
  *out = (uint32_t)wide;
  return true;
}

bool get_bool(napi_env env, napi_value value, bool *out, const char *what) {
  if (napi_get_value_bool(env, value, out) == napi_ok) return true;
  return refuse(env, what, "true or false");
}

bool get_i32_array(napi_env env, napi_value value, int32_t **out, size_t *words, const char *what) {
  bool typed = false;
  napi_typedarray_type type;
  void *data = NULL;
  if (napi_is_typedarray(env, value, &typed) != napi_ok || !typed ||
      napi_get_typedarray_info(env, value, &type, words, &data, NULL, NULL) != napi_ok || type != napi_int32_array ||
      data == NULL)
    return refuse(env, what, "an Int32Array whose memory is attached");
  *out = data;
  return true;
}

bool get_f64_array(napi_env env, napi_value value, size_t least, double **out, const char *what) {
  napi_typedarray_type type;
  size_t length;
  void *data = NULL;
  char expected[64];
  if (napi_get_typedarray_info(env, value, &type, &length, &data, NULL, NULL) != napi_ok ||
      type != napi_float64_array || length < least || data == NULL) {
    snprintf(expected, sizeof expected, "a Float64Array of at least %zu elements", least);
    return refuse(env, what, expected);
  }
  *out = data;
  return true;
}

napi_value make_i32(napi_env env, int32_t value) {
  napi_value result = NULL;
  napi_create_int32(env, value, &result);
  return result;
}

napi_value make_number(napi_env env, double value) {
  napi_value result = NULL;
  napi_create_double(env, value, &result);
  return result;
}

void set_value(napi_env env, napi_value object, const char *key, napi_value value) {
  napi_set_named_property(env, object, key, value);
}

void set_number(napi_env env, napi_value object, const char *key, double value) {
  set_value(env, object, key, make_number(env, value));
}

void set_string(napi_env env, napi_value object, const char *key, const char *value) {
  napi_value text = NULL;
  if (napi_create_string_utf8(env, value, NAPI_AUTO_LENGTH, &text) == napi_ok) set_value(env, object, key, text);
}

void set_bool(napi_env env, napi_value object, const char *key, bool value) {
  napi_value flag = NULL;
  if (napi_get_boolean(env, value, &flag) == napi_ok) set_value(env, object, key, flag);
}

void set_null(napi_env env, napi_value object, const char *key) {
  napi_value null = NULL;
  if (napi_get_null(env, &null) == napi_ok) set_value(env, object, key, null);
}

void export_all(napi_env env, napi_value exports, const export_entry *entries, size_t count) {
  for (size_t i = 0; i < count; i++) {
    napi_value function;
    if (napi_create_function(env, entries[i].name, NAPI_AUTO_LENGTH, entries[i].call, NULL, &function) == napi_ok)
      set_value(env, exports, entries[i].name, function);
  }
}
