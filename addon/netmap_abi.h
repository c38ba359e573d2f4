// The netmap kernel interface, API 14, in our own words: what is read and written through /dev/netmap and in the
// memory it maps. The system's <net/netmap.h> is not needed; where it is found, every number here is held against it.
#ifndef NETMAP_BRIDGE_NETMAP_ABI_H
#define NETMAP_BRIDGE_NETMAP_ABI_H

#include <assert.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/ioctl.h>

#define NM_DEVICE "/dev/netmap"
#define NM_API 14
#define NM_NAME_MAX 64

// --- In shared memory: read by TypeScript (lib/abi.ts), declared here to be held against the system's header ---

typedef struct {
  uint32_t buffer;
  uint16_t length, flags;
  uint64_t pointer; // the low bits hold the data offset where offsets are on
} nm_slot;

typedef struct {
  int64_t buffers_offset; // of buffer 0, from this ring
  uint32_t slots, buffer_bytes;
  uint16_t id, direction; // 1 tx, 0 rx
  uint32_t head, cur, tail, flags;
  uint32_t padding;
  int64_t seconds, microseconds;
  uint64_t offset_mask, buffer_align;
  uint8_t gap[56];
  uint8_t opaque[128];
  // slots follow
} nm_ring;

typedef struct {
  char name[16];
  uint32_t version, flags;
  uint32_t tx_rings, rx_rings;
  uint32_t extra_head; // first of the chained extra buffers
  uint32_t host_tx_rings, host_rx_rings;
  uint32_t spare[3];
  // int64_t ring offsets follow, from this structure: NIC tx, host tx, NIC rx, host rx; 0: not bound here
} nm_if;

// --- Requests ---

enum { NM_REGISTER = 1, NM_PORT_INFO = 2 };
enum { NM_OPTION_EXTMEM = 1, NM_OPTION_OFFSETS = 5 };

typedef struct {
  uint16_t version, type;
  uint32_t reserved;
  char name[NM_NAME_MAX];
  uint64_t options, body; // addresses
} nm_header;

typedef struct {
  uint64_t offset, memsize; // of the nm_if; of the mapping
  uint32_t tx_slots, rx_slots;
  uint16_t tx_rings, rx_rings, host_tx_rings, host_rx_rings;
  uint16_t mem_id, ring_id;
  uint32_t mode, extra_buffers;
  uint64_t flags;
} nm_register;

typedef struct {
  uint64_t memsize;
  uint32_t tx_slots, rx_slots;
  uint16_t tx_rings, rx_rings, host_tx_rings, host_rx_rings;
  uint16_t mem_id, padding[3];
} nm_port_info;

typedef struct {
  uint64_t next; // address
  uint32_t type, status;
  uint64_t size; // 0 for the two below
} nm_option;

typedef struct {
  uint64_t memsize;
  uint16_t mem_id, padding[3];
  uint64_t if_offset;
  uint32_t if_count, if_bytes;
  uint64_t ring_offset;
  uint32_t ring_count, ring_bytes;
  uint64_t buffer_offset;
  uint32_t buffer_count, buffer_bytes;
} nm_pools;

typedef struct {
  nm_option option;
  uint64_t address;
  nm_pools pools;
} nm_option_extmem;

typedef struct {
  nm_option option;
  uint64_t max, initial;
  uint32_t bits, tx_align;
  uint64_t min_gap;
} nm_option_offsets;

#define NM_CTRL _IOWR('i', 151, nm_header)
#define NM_TXSYNC _IO('i', 148)
#define NM_RXSYNC _IO('i', 149)

#define NM_SIZE(type, bytes) static_assert(sizeof(type) == (bytes), #type " size")
#define NM_AT(type, member, bytes) static_assert(offsetof(type, member) == (bytes), #type "." #member)

NM_SIZE(nm_slot, 16);
NM_AT(nm_slot, length, 4);
NM_AT(nm_slot, flags, 6);
NM_AT(nm_slot, pointer, 8);
NM_SIZE(nm_ring, 256);
NM_AT(nm_ring, slots, 8);
NM_AT(nm_ring, buffer_bytes, 12);
NM_AT(nm_ring, id, 16);
NM_AT(nm_ring, direction, 18);
NM_AT(nm_ring, head, 20);
NM_AT(nm_ring, cur, 24);
NM_AT(nm_ring, tail, 28);
NM_AT(nm_ring, flags, 32);
NM_AT(nm_ring, seconds, 40);
NM_AT(nm_ring, offset_mask, 56);
NM_AT(nm_ring, buffer_align, 64);
NM_AT(nm_ring, opaque, 128);
NM_SIZE(nm_if, 56);
NM_AT(nm_if, version, 16);
NM_AT(nm_if, flags, 20);
NM_AT(nm_if, tx_rings, 24);
NM_AT(nm_if, rx_rings, 28);
NM_AT(nm_if, extra_head, 32);
NM_AT(nm_if, host_tx_rings, 36);
NM_AT(nm_if, host_rx_rings, 40);
NM_SIZE(nm_header, 88);
NM_AT(nm_header, type, 2);
NM_AT(nm_header, reserved, 4);
NM_AT(nm_header, name, 8);
NM_AT(nm_header, options, 72);
NM_AT(nm_header, body, 80);
NM_SIZE(nm_register, 56);
NM_AT(nm_register, memsize, 8);
NM_AT(nm_register, tx_slots, 16);
NM_AT(nm_register, rx_slots, 20);
NM_AT(nm_register, tx_rings, 24);
NM_AT(nm_register, rx_rings, 26);
NM_AT(nm_register, host_tx_rings, 28);
NM_AT(nm_register, host_rx_rings, 30);
NM_AT(nm_register, mem_id, 32);
NM_AT(nm_register, ring_id, 34);
NM_AT(nm_register, mode, 36);
NM_AT(nm_register, extra_buffers, 40);
NM_AT(nm_register, flags, 48);
NM_SIZE(nm_port_info, 32);
NM_SIZE(nm_option, 24);
NM_AT(nm_option, type, 8);
NM_AT(nm_option, status, 12);
NM_AT(nm_option, size, 16);
NM_SIZE(nm_pools, 64);
NM_SIZE(nm_option_extmem, 96);
NM_AT(nm_option_extmem, address, 24);
NM_AT(nm_option_extmem, pools, 32);
NM_SIZE(nm_option_offsets, 56);
static_assert(NM_CTRL == 0xc0586997, "NIOCCTRL");
static_assert((NM_TXSYNC & 0xffff) == 0x6994 && (NM_RXSYNC & 0xffff) == 0x6995, "NIOCTXSYNC, NIOCRXSYNC");

#endif
