// Holds netmap_abi.h against the system's own header, where there is one. Nothing is left of this at run time.
#include "netmap_abi.h"

#ifdef __has_include
#if __has_include(<net/netmap.h>)
#include <sys/types.h>

#include <sys/socket.h>
#include <sys/time.h>

#include <net/if.h>

#include <net/netmap.h>

// An older header has another API: the kernel that comes with it accepts ours or refuses it at run time.
#if NETMAP_API == NM_API
#define SAME_SIZE(ours, theirs) static_assert(sizeof(ours) == sizeof(struct theirs), #theirs " size")
#define SAME(ours, our, theirs, their)                                                                                 \
  static_assert(offsetof(ours, our) == offsetof(struct theirs, their) &&                                               \
                    sizeof(((ours *)0)->our) == sizeof(((struct theirs *)0)->their),                                   \
                #theirs "." #their)

SAME_SIZE(nm_slot, netmap_slot);
SAME(nm_slot, buffer, netmap_slot, buf_idx);
SAME(nm_slot, length, netmap_slot, len);
SAME(nm_slot, flags, netmap_slot, flags);
SAME(nm_slot, pointer, netmap_slot, ptr);

static_assert(sizeof(nm_ring) == offsetof(struct netmap_ring, slot), "netmap_ring.slot");
SAME(nm_ring, buffers_offset, netmap_ring, buf_ofs);
SAME(nm_ring, slots, netmap_ring, num_slots);
SAME(nm_ring, buffer_bytes, netmap_ring, nr_buf_size);
SAME(nm_ring, id, netmap_ring, ringid);
SAME(nm_ring, direction, netmap_ring, dir);
SAME(nm_ring, head, netmap_ring, head);
SAME(nm_ring, cur, netmap_ring, cur);
SAME(nm_ring, tail, netmap_ring, tail);
SAME(nm_ring, flags, netmap_ring, flags);
static_assert(offsetof(nm_ring, seconds) == offsetof(struct netmap_ring, ts), "netmap_ring.ts");
SAME(nm_ring, offset_mask, netmap_ring, offset_mask);
SAME(nm_ring, buffer_align, netmap_ring, buf_align);

static_assert(sizeof(nm_if) == offsetof(struct netmap_if, ring_ofs), "netmap_if.ring_ofs");
SAME(nm_if, name, netmap_if, ni_name);
SAME(nm_if, version, netmap_if, ni_version);
SAME(nm_if, flags, netmap_if, ni_flags);
SAME(nm_if, tx_rings, netmap_if, ni_tx_rings);
SAME(nm_if, rx_rings, netmap_if, ni_rx_rings);
SAME(nm_if, extra_head, netmap_if, ni_bufs_head);
SAME(nm_if, host_tx_rings, netmap_if, ni_host_tx_rings);
SAME(nm_if, host_rx_rings, netmap_if, ni_host_rx_rings);

SAME_SIZE(nm_header, nmreq_header);
SAME(nm_header, version, nmreq_header, nr_version);
SAME(nm_header, type, nmreq_header, nr_reqtype);
SAME(nm_header, name, nmreq_header, nr_name);
SAME(nm_header, options, nmreq_header, nr_options);
SAME(nm_header, body, nmreq_header, nr_body);

SAME_SIZE(nm_register, nmreq_register);
SAME(nm_register, offset, nmreq_register, nr_offset);
SAME(nm_register, memsize, nmreq_register, nr_memsize);
SAME(nm_register, tx_slots, nmreq_register, nr_tx_slots);
SAME(nm_register, rx_slots, nmreq_register, nr_rx_slots);
SAME(nm_register, tx_rings, nmreq_register, nr_tx_rings);
SAME(nm_register, rx_rings, nmreq_register, nr_rx_rings);
SAME(nm_register, host_tx_rings, nmreq_register, nr_host_tx_rings);
SAME(nm_register, host_rx_rings, nmreq_register, nr_host_rx_rings);
SAME(nm_register, mem_id, nmreq_register, nr_mem_id);
SAME(nm_register, ring_id, nmreq_register, nr_ringid);
SAME(nm_register, mode, nmreq_register, nr_mode);
SAME(nm_register, extra_buffers, nmreq_register, nr_extra_bufs);
SAME(nm_register, flags, nmreq_register, nr_flags);

SAME_SIZE(nm_port_info, nmreq_port_info_get);
SAME(nm_port_info, memsize, nmreq_port_info_get, nr_memsize);
SAME(nm_port_info, tx_slots, nmreq_port_info_get, nr_tx_slots);
SAME(nm_port_info, rx_slots, nmreq_port_info_get, nr_rx_slots);
SAME(nm_port_info, tx_rings, nmreq_port_info_get, nr_tx_rings);
SAME(nm_port_info, rx_rings, nmreq_port_info_get, nr_rx_rings);
SAME(nm_port_info, host_tx_rings, nmreq_port_info_get, nr_host_tx_rings);
SAME(nm_port_info, host_rx_rings, nmreq_port_info_get, nr_host_rx_rings);
SAME(nm_port_info, mem_id, nmreq_port_info_get, nr_mem_id);

SAME_SIZE(nm_option, nmreq_option);
SAME(nm_option, next, nmreq_option, nro_next);
SAME(nm_option, type, nmreq_option, nro_reqtype);
SAME(nm_option, status, nmreq_option, nro_status);
SAME(nm_option, size, nmreq_option, nro_size);
SAME_SIZE(nm_pools, nmreq_pools_info);
SAME(nm_pools, memsize, nmreq_pools_info, nr_memsize);
SAME(nm_pools, mem_id, nmreq_pools_info, nr_mem_id);
SAME(nm_pools, if_offset, nmreq_pools_info, nr_if_pool_offset);
SAME(nm_pools, if_count, nmreq_pools_info, nr_if_pool_objtotal);
SAME(nm_pools, if_bytes, nmreq_pools_info, nr_if_pool_objsize);
SAME(nm_pools, ring_offset, nmreq_pools_info, nr_ring_pool_offset);
SAME(nm_pools, ring_count, nmreq_pools_info, nr_ring_pool_objtotal);
SAME(nm_pools, ring_bytes, nmreq_pools_info, nr_ring_pool_objsize);
SAME(nm_pools, buffer_offset, nmreq_pools_info, nr_buf_pool_offset);
SAME(nm_pools, buffer_count, nmreq_pools_info, nr_buf_pool_objtotal);
SAME(nm_pools, buffer_bytes, nmreq_pools_info, nr_buf_pool_objsize);
SAME_SIZE(nm_option_extmem, nmreq_opt_extmem);
SAME(nm_option_extmem, address, nmreq_opt_extmem, nro_usrptr);
SAME(nm_option_extmem, pools, nmreq_opt_extmem, nro_info);
SAME_SIZE(nm_option_offsets, nmreq_opt_offsets);
SAME(nm_option_offsets, max, nmreq_opt_offsets, nro_max_offset);
SAME(nm_option_offsets, initial, nmreq_opt_offsets, nro_initial_offset);
SAME(nm_option_offsets, bits, nmreq_opt_offsets, nro_offset_bits);
SAME(nm_option_offsets, tx_align, nmreq_opt_offsets, nro_tx_align);
SAME(nm_option_offsets, min_gap, nmreq_opt_offsets, nro_min_gap);

static_assert((int)NM_REGISTER == (int)NETMAP_REQ_REGISTER && (int)NM_PORT_INFO == (int)NETMAP_REQ_PORT_INFO_GET,
              "request types");
static_assert((int)NM_OPTION_EXTMEM == (int)NETMAP_REQ_OPT_EXTMEM &&
                  (int)NM_OPTION_OFFSETS == (int)NETMAP_REQ_OPT_OFFSETS,
              "option types");
static_assert(NM_CTRL == NIOCCTRL && NM_TXSYNC == NIOCTXSYNC && NM_RXSYNC == NIOCRXSYNC, "ioctl numbers");

// The numbers lib/abi.ts and lib/portspec.ts use.
static_assert(NR_REG_ALL_NIC == 1 && NR_REG_SW == 2 && NR_REG_NIC_SW == 3 && NR_REG_ONE_NIC == 4 && NR_REG_NULL == 7 &&
                  NR_REG_ONE_SW == 8,
              "modes");
static_assert(NR_MONITOR_TX == 0x100 && NR_MONITOR_RX == 0x200 && NR_ZCOPY_MON == 0x400 && NR_EXCLUSIVE == 0x800 &&
                  NR_RX_RINGS_ONLY == 0x2000 && NR_TX_RINGS_ONLY == 0x4000 && NR_ACCEPT_VNET_HDR == 0x8000 &&
                  NR_DO_RX_POLL == 0x10000 && NR_NO_TX_POLL == 0x20000,
              "register flags");
static_assert(NS_BUF_CHANGED == 1 && NS_REPORT == 2 && NS_FORWARD == 4 && NS_NO_LEARN == 8 && NS_INDIRECT == 0x10 &&
                  NS_MOREFRAG == 0x20 && NS_TXMON == 0x40,
              "slot flags");
static_assert(NR_TIMESTAMP == 2 && NR_FORWARD == 4, "ring flags");
#endif
#endif
#endif
