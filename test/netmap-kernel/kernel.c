// Stands for the kernel in tests of how the shim encodes its requests and undoes its steps, on machines without
// netmap. It is loaded into a child process with LD_PRELOAD and answers for /dev/netmap there. It is not netmap: it
// imitates what was observed of the real module (layout, sizes, errors, pipes), moves frames through pipes only, and
// proves nothing about the kernel. The real one is tested by setting NETMAP_PORTS.
//
// Numbers are written out here a second time, not taken from addon/netmap_abi.h: an error there must show.
//
// Environment: NETMAP_KERNEL_LOG      file that receives each request, one JSON line in hexadecimal
//              NETMAP_KERNEL_OPEN     errno that opening the device gives
//              NETMAP_KERNEL_MMAP     errno that mapping gives
//              NETMAP_KERNEL_PLAIN    the module knows no options
//              NETMAP_KERNEL_DOWN     file: while it is there, interfaces are down and a sync or poll on one does not return
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define IFS_BYTES 1024u
#define BUFFER_BYTES 2048u
#define FIRST_BUFFER 2u // 0 and 1 are reserved
#define RINGS_MAX 16
#define PORTS_MAX 32
#define OPENS_MAX 64
#define REGIONS_MAX 16
#define SLOTS_MAX 4096u

enum { NIOCCTRL = 0xc0586997, NIOCTXSYNC = 0x6994, NIOCRXSYNC = 0x6995 };
enum { REGISTER = 1, PORT_INFO_GET = 2 };
enum { ALL_NIC = 1, SW = 2, NIC_SW = 3, ONE_NIC = 4, NONE = 7, ONE_SW = 8 };
enum { MONITORS = 0x300, EXCLUSIVE = 0x800, RX_ONLY = 0x2000, TX_ONLY = 0x4000, NO_TX_POLL = 0x20000 };
enum { EXTMEM = 1, OFFSETS = 5 };

// One memory: netmap_ifs, then rings, then buffers, each object in use or not.
typedef struct {
  uint16_t id;
  int fd; // memfd, -1 for the caller's own memory
  uint8_t *base;
  uint64_t bytes;
  uint32_t ifs, rings, ring_bytes, buffers;
  uint32_t lowest; // no free buffer lies below it
  uint8_t *used;   // ifs, rings, buffers
  char owner[64];
} region;

typedef struct {
  uint64_t at; // in the region
  uint32_t slots, hwcur, hwtail;
  uint32_t rhead;     // head as the last sync accepted it
  uint32_t told;      // tail as the ring shows it
  uint32_t pipe_tail; // of a pipe: what the other end has made of it, shown at this end's next sync
  bool tx;
} kring;

typedef struct port port;
struct port {
  char name[64]; // empty: not in use
  region *memory;
  port *peer; // the other end of a pipe, which is there as long as one of them is open
  uint32_t tx, rx, host_tx, host_rx; // rings
  uint32_t tx_slots, rx_slots;
  kring rings[4][RINGS_MAX]; // NIC tx, host tx, NIC rx, host rx
  int users;
  bool exclusive;
  bool interface; // it stands behind the port, not a pipe or a switch
};

typedef struct {
  int fd; // -1 closed
  bool used;
  port *bound;
  uint64_t nifp;
  uint64_t flags;
  bool mine[4][RINGS_MAX];
  uint8_t *map;
  size_t map_bytes;
} descriptor;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static region regions[REGIONS_MAX];
static port ports[PORTS_MAX];
static descriptor opens[OPENS_MAX];

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

static uint64_t get(const void *p, size_t at, size_t bytes) {
  uint64_t value = 0;
  memcpy(&value, (const uint8_t *)p + at, bytes); // little-endian, as are all machines this runs on
  return value;
}

static void put(void *p, size_t at, size_t bytes, uint64_t value) {
  memcpy((uint8_t *)p + at, &value, bytes);
}

static int env_errno(const char *name) {
  const char *value = getenv(name);
  return value == NULL ? 0 : atoi(value);
}

static descriptor *find(int fd) {
  for (int i = 0; i < OPENS_MAX; i++)
    if (opens[i].used && opens[i].fd == fd && fd >= 0) return &opens[i];
  return NULL;
}

// --- Memory ---

static uint64_t rings_at(const region *r) {
  return (uint64_t)r->ifs * IFS_BYTES;
}

static uint64_t buffers_at(const region *r) {
  return rings_at(r) + (uint64_t)r->rings * r->ring_bytes;
}

static region *region_new(const char *owner, uint32_t ifs, uint32_t rings, uint32_t ring_bytes, uint32_t buffers,
                          uint8_t *base) {
  for (int i = 0; i < REGIONS_MAX; i++) {
    region *r = &regions[i];
    if (r->used != NULL) continue;
    *r = (region){.id = (uint16_t)(i + 1), .fd = -1, .base = base, .ifs = ifs, .rings = rings, .lowest = FIRST_BUFFER};
    r->ring_bytes = ring_bytes;
    r->buffers = buffers;
    r->bytes = buffers_at(r) + (uint64_t)buffers * BUFFER_BYTES;
    r->used = calloc(1, (size_t)ifs + rings + buffers);
    snprintf(r->owner, sizeof r->owner, "%s", owner);
    if (base == NULL) {
      r->fd = memfd_create("netmap-memory", MFD_CLOEXEC);
      if (r->fd < 0 || ftruncate(r->fd, (off_t)r->bytes) != 0) abort();
      r->base = REAL(mmap)(NULL, r->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, r->fd, 0);
      if (r->base == MAP_FAILED) abort();
    }
    return r;
  }
  return NULL;
}

static uint32_t larger(uint32_t a, uint32_t b) {
  return a > b ? a : b;
}

// Sizes as observed: 343,019,520 bytes shared by all NICs (id 1), 42,369,024 private ones, larger where a port needs it.
// The split is ours.
static region *region_for(const port *p, bool nic, uint16_t wanted) {
  char owner[64];
  snprintf(owner, sizeof owner, "%.*s", (int)strcspn(p->name, "{}"), p->name);
  for (int i = 0; i < REGIONS_MAX; i++) {
    region *r = &regions[i];
    if (r->used == NULL) continue;
    if (wanted != 0 ? r->id == wanted : nic ? r->id == 1 : strcmp(r->owner, owner) == 0) return r;
  }
  if (wanted != 0) return NULL;
  const uint32_t rings = p->tx + p->rx + p->host_tx + p->host_rx;
  const uint32_t buffers = (p->tx + p->host_tx) * p->tx_slots + (p->rx + p->host_rx) * p->rx_slots;
  return region_new(owner, 16, larger(20, 2 * rings), 69632, larger(20000, buffers + FIRST_BUFFER), NULL);
}

static bool take(region *r, uint32_t first, uint32_t from, uint32_t count, uint32_t *index) {
  for (uint32_t i = from; i < count; i++) {
    if (r->used[first + i]) continue;
    *index = i;
    r->used[first + i] = 1;
    return true;
  }
  return false;
}

// 0: none left. The search starts below no free buffer: tens of thousands are taken one by one.
static uint32_t buffer_new(region *r) {
  uint32_t index;
  if (!take(r, r->ifs + r->rings, r->lowest, r->buffers, &index)) return 0;
  r->lowest = index + 1;
  return index;
}

static void buffer_free(region *r, uint64_t index) {
  if (index < FIRST_BUFFER || index >= r->buffers) return;
  r->used[r->ifs + r->rings + index] = 0;
  if (index < r->lowest) r->lowest = (uint32_t)index;
}

// --- Rings ---

static uint8_t *ring_of(const port *p, const kring *k) {
  return p->memory->base + k->at;
}

static uint8_t *slot_of(const port *p, const kring *k, uint32_t i) {
  return ring_of(p, k) + 256 + (size_t)i * 16;
}

// `mirrored`: another ring whose buffers it names, instead of some of its own.
static int ring_new(port *p, kring *k, bool tx, uint32_t id, uint32_t slots, const uint8_t *mirrored) {
  region *r = p->memory;
  uint32_t index;
  if (256 + slots * 16 > r->ring_bytes || !take(r, r->ifs, 0, r->rings, &index)) return ENOMEM;
  *k = (kring){.at = rings_at(r) + (uint64_t)index * r->ring_bytes, .slots = slots, .tx = tx};
  k->hwtail = k->told = k->pipe_tail = tx ? slots - 1 : 0;
  uint8_t *ring = ring_of(p, k);
  memset(ring, 0, r->ring_bytes);
  put(ring, 0, 8, buffers_at(r) - k->at);
  put(ring, 8, 4, slots);
  put(ring, 12, 4, BUFFER_BYTES);
  put(ring, 16, 2, id);
  put(ring, 18, 2, tx ? 1 : 0);
  put(ring, 28, 4, k->hwtail);
  if (mirrored != NULL) memcpy(ring + 256, mirrored + 256, (size_t)slots * 16);
  for (uint32_t i = 0; i < slots && mirrored == NULL; i++) {
    const uint32_t buffer = buffer_new(r);
    if (buffer == 0) return ENOMEM;
    put(slot_of(p, k, i), 0, 4, buffer);
    put(slot_of(p, k, i), 4, 2, BUFFER_BYTES);
  }
  return 0;
}

static uint32_t span(const kring *k, uint32_t from, uint32_t to) {
  return (to + k->slots - from) % k->slots;
}

// The ring at the other end of a pipe that names the same buffers.
static kring *mirror_of(const port *p, const kring *k) {
  if (p->peer == NULL) return NULL;
  return k->tx ? &p->peer->rings[2][k - p->rings[0]] : &p->peer->rings[0][k - p->rings[2]];
}

// Of two mirrored slots the receiver's counts while it holds it, else the sender's.
static bool counts(const port *p, const kring *k, uint32_t i) {
  const kring *other = mirror_of(p, k), *rx = k->tx ? other : k;
  if (other == NULL || other->at == 0) return true;
  return (span(rx, rx->hwcur, i) < span(rx, rx->hwcur, rx->pipe_tail)) != k->tx;
}

static void ring_free(port *p, kring *k) {
  if (k->at == 0) return;
  region *r = p->memory;
  for (uint32_t i = 0; i < k->slots; i++)
    if (counts(p, k, i)) buffer_free(r, get(slot_of(p, k, i), 0, 4));
  r->used[r->ifs + (k->at - rings_at(r)) / r->ring_bytes] = 0;
}

static void tell(const port *p, kring *k) {
  k->told = k->hwtail;
  put(ring_of(p, k), 28, 4, k->told);
}

// Whether the user's head and cur keep the rule. Out of range they are put back to the kernel's own state; in range but
// not the user's, nothing is put back, and the next sync takes them as where the user was.
static bool accept(const port *p, kring *k, uint32_t *head) {
  uint8_t *ring = ring_of(p, k);
  *head = (uint32_t)get(ring, 20, 4);
  const uint32_t cur = (uint32_t)get(ring, 24, 4);
  const uint32_t from = k->tx ? k->rhead : k->hwcur, to = k->tx ? k->told : k->hwtail;
  if (*head < k->slots && cur < k->slots && span(k, from, *head) <= span(k, from, cur) &&
      span(k, from, cur) <= span(k, from, to)) {
    put(ring, 28, 4, k->told);
    k->rhead = *head;
    return true;
  }
  for (uint32_t i = 0; i < k->slots; i++) { // slots that name no buffer lose what they say
    uint8_t *slot = slot_of(p, k, i);
    const uint64_t index = get(slot, 0, 4);
    if (index < FIRST_BUFFER || index >= p->memory->buffers) put(slot, 0, 4, 0), put(slot, 4, 2, 0);
    if (get(slot, 4, 2) > BUFFER_BYTES) put(slot, 4, 2, 0);
  }
  if (*head < k->slots && cur < k->slots && get(ring, 28, 4) < k->slots) {
    k->rhead = *head;
    return false;
  }
  k->rhead = k->hwcur;
  put(ring, 20, 4, k->hwcur);
  put(ring, 24, 4, k->hwcur);
  tell(p, k);
  return false;
}

// Copies slots from one end to the other; the buffers' new holder finds no trace of how they came to be there.
static void mirror(const port *p, kring *k, uint32_t head, void (*shown)(kring *, uint32_t, bool)) {
  kring *other = mirror_of(p, k);
  for (; k->hwcur != head; k->hwcur = (k->hwcur + 1) % k->slots) {
    uint8_t *slot = slot_of(p, k, k->hwcur);
    memcpy(slot_of(p->peer, other, k->hwcur), slot, 16);
    put(slot, 6, 2, get(slot, 6, 2) & ~1ull); // BUF_CHANGED
    shown(other, k->hwcur, (get(slot, 6, 2) & 0x20) == 0);
  }
}

// Only whole frames are shown to the receiver; the sender gets back all but the slot before what was released.
static void show_frame(kring *rx, uint32_t slot, bool whole) {
  if (whole) rx->pipe_tail = (slot + 1) % rx->slots;
}

static void show_room(kring *tx, uint32_t slot, bool whole) {
  (void)whole;
  tx->pipe_tail = slot;
}

static bool sync_tx(port *p, kring *k) {
  uint32_t head;
  if (!accept(p, k, &head)) return false;
  if (p->peer != NULL) {
    k->hwtail = k->pipe_tail;
    mirror(p, k, head, show_frame);
  } else { // a NIC whose cable ends in nothing
    k->hwcur = head;
    k->hwtail = (head + k->slots - 1) % k->slots;
  }
  tell(p, k);
  return true;
}

static bool sync_rx(port *p, kring *k) {
  uint32_t head;
  if (!accept(p, k, &head)) return false;
  if (p->peer != NULL) {
    k->hwtail = k->pipe_tail;
    mirror(p, k, head, show_room);
  } else {
    k->hwcur = head;
  }
  tell(p, k);
  return true;
}

// An interface that is down: a sync or poll on it sleeps until it is up, whatever signals come.
static void await_up(const descriptor *d) {
  const char *file = getenv("NETMAP_KERNEL_DOWN");
  const struct timespec pause = {.tv_nsec = 1000000};
  while (file != NULL && d->bound != NULL && d->bound->interface && access(file, F_OK) == 0) {
    pthread_mutex_unlock(&lock);
    nanosleep(&pause, NULL);
    pthread_mutex_lock(&lock);
  }
}

// One direction of everything bound to a descriptor; false when a ring had to be reset.
static bool sync_all(descriptor *d, bool tx) {
  bool good = true;
  for (int kind = tx ? 0 : 2; kind < (tx ? 2 : 4); kind++)
    for (int i = 0; i < RINGS_MAX; i++) {
      if (!d->mine[kind][i]) continue;
      kring *k = &d->bound->rings[kind][i];
      if (!(tx ? sync_tx(d->bound, k) : sync_rx(d->bound, k))) good = false;
    }
  return good;
}

// --- Requests ---

static uint32_t or_default(uint64_t asked, uint32_t fallback, uint32_t max) {
  return asked == 0 ? fallback : asked > max ? max : (uint32_t)asked;
}

// The interfaces of this machine: nm0 (one ring pair), nm1 (2 tx, 4 rx), nm2 (1,024 slots), and VALE ports and pipes by
// name.
static int describe(const char *name, const uint8_t *body, bool info, port *p, bool *nic) {
  const size_t slots = info ? 8 : 16, rings = info ? 16 : 24; // where the two bodies keep them
  const char *brace = strpbrk(name, "{}"), *colon = strchr(name, ':');
  *p = (port){.tx = 1, .rx = 1, .host_tx = 1, .host_rx = 1, .tx_slots = 256, .rx_slots = 256};
  memcpy(p->name, name, strlen(name) + 1);
  *nic = false;
  if (strcmp(name, "lo") == 0) return EINVAL;
  if (strncmp(name, "vale", 4) == 0) {
    if (colon == NULL) return ENOMEM;
  } else if (brace == NULL || strncmp(name, "nm", 2) == 0) {
    *nic = true;
    if (strncmp(name, "nm1", 3) == 0) {
      p->tx = 2;
      p->rx = 4;
    } else if (strncmp(name, "nm2", 3) == 0) {
      p->tx_slots = p->rx_slots = 1024;
    } else if (strncmp(name, "nm0", 3) != 0) {
      return ENXIO;
    }
    if (brace == NULL && name[3] != '\0') return ENXIO; // not a bare name
    if (brace == NULL) {
      p->interface = true;
      return 0;
    }
  }
  p->tx_slots = or_default(get(body, slots, 4), *nic ? p->tx_slots : 1024, SLOTS_MAX);
  p->rx_slots = or_default(get(body, slots + 4, 4), *nic ? p->rx_slots : 1024, SLOTS_MAX);
  p->tx = or_default(get(body, rings, 2), 1, RINGS_MAX);
  p->rx = or_default(get(body, rings + 2, 2), 1, RINGS_MAX);
  p->host_tx = p->host_rx = 0;
  return 0;
}

static void rings_free(port *p) {
  for (int kind = 0; kind < 4; kind++)
    for (int i = 0; i < RINGS_MAX; i++) ring_free(p, &p->rings[kind][i]);
}

static void port_put(port *p) {
  if (--p->users > 0 || (p->peer != NULL && p->peer->users > 0)) return;
  rings_free(p);
  if (p->peer != NULL) {
    rings_free(p->peer);
    *p->peer = (port){0};
  }
  *p = (port){0};
}

static port *port_named(const char *name) {
  for (int i = 0; i < PORTS_MAX; i++)
    if (strcmp(ports[i].name, name) == 0) return &ports[i];
  return NULL;
}

// `mirrored`: the end of a pipe that is there already, whose buffers this one's rings name.
static int rings_new(port *p, const port *mirrored) {
  const uint32_t counts[4] = {p->tx, p->host_tx, p->rx, p->host_rx};
  for (int kind = 0; kind < 4; kind++)
    for (uint32_t i = 0; i < counts[kind]; i++) {
      const uint8_t *of = mirrored == NULL ? NULL : ring_of(mirrored, &mirrored->rings[2 - kind][i]);
      const int error = ring_new(p, &p->rings[kind][i], kind < 2, i, kind < 2 ? p->tx_slots : p->rx_slots, of);
      if (error != 0) return error;
    }
  return 0;
}

static port *port_new(const port *wanted, const char *name) {
  port *p = port_named("");
  if (p == NULL) return NULL;
  *p = *wanted;
  memcpy(p->name, name, strlen(name) + 1);
  return p;
}

// A pipe comes to be with both its ends, of four rings.
static port *port_get(const port *wanted, int *error) {
  port *p = port_named(wanted->name);
  if (p != NULL) {
    p->users++;
    return p;
  }
  *error = ENOMEM;
  p = port_new(wanted, wanted->name);
  if (p == NULL) return NULL;
  p->users = 1;
  *error = rings_new(p, NULL);
  char other[64];
  strcpy(other, p->name);
  char *brace = strpbrk(other, "{}");
  if (*error == 0 && brace != NULL) {
    *brace = *brace == '{' ? '}' : '{';
    p->peer = port_new(wanted, other);
    if (p->peer == NULL) abort();
    p->peer->tx = p->rx, p->peer->rx = p->tx;
    p->peer->tx_slots = p->rx_slots, p->peer->rx_slots = p->tx_slots;
    p->peer->peer = p;
    *error = rings_new(p->peer, p);
  }
  if (*error == 0) return p;
  port_put(p);
  return NULL;
}

static int select_rings(descriptor *d, uint32_t mode, uint32_t id, uint64_t flags) {
  const port *p = d->bound;
  const uint32_t counts[4] = {p->tx, p->host_tx, p->rx, p->host_rx};
  const bool nic = mode == ALL_NIC || mode == NIC_SW || mode == ONE_NIC;
  const bool host = mode == SW || mode == NIC_SW || mode == ONE_SW;
  const bool one = mode == ONE_NIC || mode == ONE_SW;
  if ((!nic && !host && mode != NONE) || (host && p->host_tx == 0)) return EINVAL;
  const int first = nic ? 0 : 1;
  if (one && id >= counts[first] && id >= counts[first + 2]) return EINVAL;
  for (uint32_t kind = 0; kind < 4; kind++)
    for (uint32_t i = 0; i < counts[kind]; i++) {
      const bool tx = kind < 2;
      d->mine[kind][i] = (kind % 2 == 0 ? nic : host) && (!one || i == id) && (flags & (tx ? RX_ONLY : TX_ONLY)) == 0;
    }
  return 0;
}

static int set_offsets(descriptor *d, uint8_t *option) {
  const uint64_t max = get(option, 24, 8), initial = get(option, 32, 8), bits = get(option, 40, 4);
  const uint64_t mask = bits == 0 || bits >= 64 ? UINT64_MAX : (1ull << bits) - 1;
  if (strncmp(d->bound->name, "vale", 4) == 0) return EOPNOTSUPP;
  if (bits > 64 || max > BUFFER_BYTES || (max & mask) != max || initial > max) return EINVAL;
  for (int kind = 0; kind < 4; kind++)
    for (int i = 0; i < RINGS_MAX; i++) {
      if (!d->mine[kind][i]) continue;
      const kring *k = &d->bound->rings[kind][i];
      put(ring_of(d->bound, k), 56, 8, mask);
      for (uint32_t s = 0; s < k->slots; s++) put(slot_of(d->bound, k, s), 8, 8, initial);
    }
  return 0;
}

static int write_if(descriptor *d, uint8_t *body) {
  const port *p = d->bound;
  region *r = p->memory;
  uint32_t index;
  if (!take(r, 0, 0, r->ifs, &index)) return ENOMEM;
  d->nifp = (uint64_t)index * IFS_BYTES;
  uint8_t *nifp = r->base + d->nifp;
  memset(nifp, 0, IFS_BYTES);
  memcpy(nifp, p->name, strnlen(p->name, 15));
  put(nifp, 16, 4, 14);
  put(nifp, 20, 4, r->id != 1);
  put(nifp, 24, 4, p->tx);
  put(nifp, 28, 4, p->rx);
  put(nifp, 36, 4, p->host_tx);
  put(nifp, 40, 4, p->host_rx);
  const uint32_t counts[4] = {p->tx, p->host_tx, p->rx, p->host_rx};
  size_t at = 56;
  for (int kind = 0; kind < 4; kind++)
    for (uint32_t i = 0; i < counts[kind]; i++, at += 8)
      if (d->mine[kind][i]) put(nifp, at, 8, p->rings[kind][i].at - d->nifp);
  uint32_t granted = 0, head = 0;
  for (; granted < get(body, 40, 4); granted++) {
    const uint32_t buffer = buffer_new(r);
    if (buffer == 0) break;
    put(r->base + buffers_at(r) + (uint64_t)buffer * BUFFER_BYTES, 0, 4, head);
    head = buffer;
  }
  put(nifp, 32, 4, head);
  put(body, 40, 4, granted);
  return 0;
}

static void release(descriptor *d) {
  if (d->bound != NULL) {
    region *r = d->bound->memory;
    uint32_t buffer = (uint32_t)get(r->base + d->nifp, 32, 4);
    while (buffer >= FIRST_BUFFER && buffer < r->buffers) { // the chain of extra buffers
      buffer_free(r, buffer);
      buffer = (uint32_t)get(r->base + buffers_at(r) + (uint64_t)buffer * BUFFER_BYTES, 0, 4);
    }
    r->used[d->nifp / IFS_BYTES] = 0;
    if (get(&d->flags, 0, 8) & EXCLUSIVE) d->bound->exclusive = false;
    port_put(d->bound);
  }
  *d = (descriptor){.fd = -1};
}

static region *extmem(uint8_t *option, int *status) {
  uint8_t *base = (uint8_t *)(uintptr_t)get(option, 24, 8);
  const uint64_t bytes = get(option, 32, 8), rings = 8, fixed = 4 * IFS_BYTES + rings * 36864;
  *status = EINVAL;
  if (base == NULL || bytes < fixed + 4096 * (uint64_t)BUFFER_BYTES) return NULL;
  *status = 0;
  return region_new("extmem", 4, (uint32_t)rings, 36864, (uint32_t)((bytes - fixed) / BUFFER_BYTES), base);
}

static int do_register(descriptor *d, uint8_t *header, uint8_t *body) {
  port wanted;
  bool nic;
  region *own = NULL;
  if (d->bound != NULL) return EBUSY;
  uint8_t *offsets = NULL;
  for (uint8_t *o = (uint8_t *)(uintptr_t)get(header, 72, 8); o != NULL; o = (uint8_t *)(uintptr_t)get(o, 0, 8)) {
    put(o, 12, 4, EOPNOTSUPP);
    if (getenv("NETMAP_KERNEL_PLAIN") != NULL) continue;
    if (get(o, 8, 4) == OFFSETS) offsets = o;
    if (get(o, 8, 4) != EXTMEM) continue;
    int status;
    own = extmem(o, &status);
    put(o, 12, 4, (uint64_t)status);
    if (own == NULL) return status;
  }
  int error = describe((const char *)header + 8, body, false, &wanted, &nic);
  if (error != 0) return error;
  wanted.memory = own != NULL ? own : region_for(&wanted, nic, (uint16_t)get(body, 32, 2));
  if (wanted.memory == NULL) return EINVAL;
  const uint64_t flags = get(body, 48, 8);
  if ((flags & MONITORS) != 0 && port_named(wanted.name) == NULL) return EINVAL; // nobody has it open
  port *p = port_get(&wanted, &error);
  if (p == NULL) return error;
  d->bound = p;
  d->flags = get(body, 48, 8);
  error = p->exclusive || ((d->flags & EXCLUSIVE) && p->users > 1) ? EBUSY : 0;
  if (error == 0) error = select_rings(d, (uint32_t)get(body, 36, 4), (uint32_t)get(body, 34, 2), d->flags);
  if (error == 0 && offsets != NULL) {
    error = set_offsets(d, offsets);
    put(offsets, 12, 4, (uint64_t)error);
  }
  if (error == 0) error = write_if(d, body);
  for (uint8_t *o = (uint8_t *)(uintptr_t)get(header, 72, 8); o != NULL; o = (uint8_t *)(uintptr_t)get(o, 0, 8))
    if (error == 0 && get(o, 12, 4) == EOPNOTSUPP) error = EOPNOTSUPP;
  if (error != 0) {
    port_put(p);
    d->bound = NULL;
    return error;
  }
  p->exclusive = (d->flags & EXCLUSIVE) != 0;
  put(body, 0, 8, d->nifp);
  put(body, 8, 8, p->memory->bytes);
  put(body, 16, 4, p->tx_slots);
  put(body, 20, 4, p->rx_slots);
  put(body, 24, 2, p->tx);
  put(body, 26, 2, p->rx);
  put(body, 28, 2, p->host_tx);
  put(body, 30, 2, p->host_rx);
  put(body, 32, 2, p->memory->id);
  return 0;
}

static int do_port_info(uint8_t *header, uint8_t *body) {
  port p = {0};
  bool nic = true;
  const bool named = header[8] != '\0';
  int error = named ? describe((const char *)header + 8, body, true, &p, &nic) : 0;
  if (error != 0) return error;
  const region *r = region_for(&p, nic, (uint16_t)get(body, 24, 2));
  if (r == NULL) return EINVAL;
  put(body, 0, 8, r->bytes);
  put(body, 24, 2, r->id);
  if (!named) return 0;
  put(body, 8, 4, p.tx_slots);
  put(body, 12, 4, p.rx_slots);
  put(body, 16, 2, p.tx);
  put(body, 18, 2, p.rx);
  put(body, 20, 2, p.host_tx);
  put(body, 22, 2, p.host_rx);
  return 0;
}

static void hex(FILE *out, const char *key, const uint8_t *p, size_t bytes) {
  fprintf(out, "\"%s\":\"", key);
  for (size_t i = 0; p != NULL && i < bytes; i++) fprintf(out, "%02x", p[i]);
  fprintf(out, "\"");
}

static void record(const uint8_t *header, size_t body_bytes) {
  const char *path = getenv("NETMAP_KERNEL_LOG");
  FILE *out = path == NULL ? NULL : fopen(path, "a");
  if (out == NULL) return;
  fprintf(out, "{");
  hex(out, "header", header, 88);
  fprintf(out, ",");
  hex(out, "body", (const uint8_t *)(uintptr_t)get(header, 80, 8), body_bytes);
  fprintf(out, ",\"options\":[");
  const char *comma = "";
  for (const uint8_t *o = (const uint8_t *)(uintptr_t)get(header, 72, 8); o != NULL; comma = ",") {
    fprintf(out, "%s{", comma);
    hex(out, "bytes", o, get(o, 8, 4) == EXTMEM ? 96 : 56);
    fprintf(out, "}");
    o = (const uint8_t *)(uintptr_t)get(o, 0, 8);
  }
  fprintf(out, "]}\n");
  fclose(out);
}

static int control(descriptor *d, uint8_t *header) {
  if (regions[0].used == NULL) region_new("", 100, 200, 36864, 163840, NULL);
  const uint64_t version = get(header, 0, 2), type = get(header, 2, 2);
  const size_t body_bytes = type == REGISTER ? 56 : type == PORT_INFO_GET ? 32 : 0;
  record(header, body_bytes);
  uint8_t *body = (uint8_t *)(uintptr_t)get(header, 80, 8);
  if (version < 14 || version > 15 || get(header, 4, 4) != 0) return EINVAL;
  if (body_bytes == 0 || body == NULL) return EINVAL;
  header[8 + 63] = '\0';
  return type == REGISTER ? do_register(d, header, body) : do_port_info(header, body);
}

// --- The calls taken over ---

static int open_device(void) {
  const int error = env_errno("NETMAP_KERNEL_OPEN");
  if (error != 0) {
    errno = error;
    return -1;
  }
  pthread_mutex_lock(&lock);
  descriptor *d = NULL;
  for (int i = 0; i < OPENS_MAX && d == NULL; i++)
    if (!opens[i].used) d = &opens[i];
  if (d == NULL) abort();
  *d = (descriptor){.used = true, .fd = memfd_create("netmap-descriptor", MFD_CLOEXEC)};
  const int fd = d->fd;
  pthread_mutex_unlock(&lock);
  return fd;
}

#define OPEN(name)                                                                                                     \
  int name(const char *path, int flags, ...) {                                                                         \
    va_list arguments;                                                                                                 \
    va_start(arguments, flags);                                                                                        \
    const mode_t mode = va_arg(arguments, mode_t);                                                                     \
    va_end(arguments);                                                                                                 \
    return strcmp(path, "/dev/netmap") == 0 ? open_device() : REAL(name)(path, flags, mode);                           \
  }
OPEN(open)
OPEN(open64)

int ioctl(int fd, unsigned long request, ...) {
  va_list arguments;
  va_start(arguments, request);
  void *data = va_arg(arguments, void *);
  va_end(arguments);
  pthread_mutex_lock(&lock);
  descriptor *d = find(fd);
  int error = 0;
  if (d != NULL && request == NIOCCTRL)
    error = control(d, data);
  else if (d != NULL && (request == NIOCTXSYNC || request == NIOCRXSYNC) && d->bound == NULL)
    error = ENXIO;
  else if (d != NULL && (request == NIOCTXSYNC || request == NIOCRXSYNC)) {
    await_up(d);
    sync_all(d, request == NIOCTXSYNC); // a ring that had to be reset is not reported
  } else if (d != NULL)
    error = ENOTTY;
  pthread_mutex_unlock(&lock);
  if (d == NULL) return REAL(ioctl)(fd, request, data);
  errno = error;
  return error == 0 ? 0 : -1;
}

// A mapping that goes, by munmap() or by another put over it, and a closed descriptor: both, before the port is let go.
static void forget(uint8_t *address) {
  for (int i = 0; i < OPENS_MAX; i++) {
    descriptor *d = &opens[i];
    if (!d->used || d->map == NULL || d->map != address) continue;
    d->map = NULL;
    if (d->fd < 0) release(d);
  }
}

static void *map(void *address, size_t bytes, int protection, int flags, int fd, off_t offset) {
  pthread_mutex_lock(&lock);
  if (flags & MAP_FIXED) forget(address);
  descriptor *d = find(fd);
  if (d == NULL) {
    pthread_mutex_unlock(&lock);
    return REAL(mmap)(address, bytes, protection, flags, fd, offset);
  }
  void *result = MAP_FAILED;
  errno = env_errno("NETMAP_KERNEL_MMAP");
  if (errno == 0 && (d->bound == NULL || bytes > d->bound->memory->bytes)) errno = EINVAL;
  if (errno == 0) {
    result = REAL(mmap)(address, bytes, protection, flags, d->bound->memory->fd, offset);
    d->map = result;
    d->map_bytes = bytes;
  }
  pthread_mutex_unlock(&lock);
  return result;
}

void *mmap(void *address, size_t bytes, int protection, int flags, int fd, off_t offset) {
  return map(address, bytes, protection, flags, fd, offset);
}

void *mmap64(void *address, size_t bytes, int protection, int flags, int fd, off_t offset) {
  return map(address, bytes, protection, flags, fd, offset);
}

int munmap(void *address, size_t bytes) {
  pthread_mutex_lock(&lock);
  forget(address);
  pthread_mutex_unlock(&lock);
  return REAL(munmap)(address, bytes);
}

int close(int fd) {
  pthread_mutex_lock(&lock);
  descriptor *d = find(fd);
  if (d != NULL) {
    d->fd = -1;
    if (d->map == NULL) release(d); // a mapping left behind keeps the port
  }
  pthread_mutex_unlock(&lock);
  return REAL(close)(fd);
}

static short ready(descriptor *d, short events) {
  if (d->bound == NULL) return POLLERR;
  bool good = true;
  short result = 0;
  await_up(d);
  if ((events & POLLOUT) || !(d->flags & NO_TX_POLL)) good = sync_all(d, true);
  if (events & POLLIN) good = sync_all(d, false) && good;
  for (int kind = 0; kind < 4; kind++)
    for (int i = 0; i < RINGS_MAX; i++) {
      if (!d->mine[kind][i]) continue;
      const uint8_t *ring = ring_of(d->bound, &d->bound->rings[kind][i]);
      if (get(ring, 24, 4) != get(ring, 28, 4)) result |= kind < 2 ? POLLOUT : POLLIN;
    }
  return good ? (short)(result & events) : POLLERR;
}

int ppoll(struct pollfd *fds, nfds_t count, const struct timespec *limit, const sigset_t *mask) {
  bool any = false;
  pthread_mutex_lock(&lock);
  for (nfds_t i = 0; i < count; i++) any = any || find(fds[i].fd) != NULL;
  pthread_mutex_unlock(&lock);
  if (!any) return REAL(ppoll)(fds, count, limit, mask);
  int64_t left = limit == NULL ? INT64_MAX : limit->tv_sec * 1000 + limit->tv_nsec / 1000000;
  for (;; left--) {
    int found = 0;
    pthread_mutex_lock(&lock);
    for (nfds_t i = 0; i < count; i++) {
      descriptor *d = find(fds[i].fd);
      if (d == NULL)
        REAL(poll)(&fds[i], 1, 0);
      else
        fds[i].revents = ready(d, fds[i].events);
      found += fds[i].revents != 0;
    }
    pthread_mutex_unlock(&lock);
    if (found > 0 || left <= 0) return found;
    const struct timespec pause = {.tv_nsec = 1000000};
    nanosleep(&pause, NULL);
  }
}
