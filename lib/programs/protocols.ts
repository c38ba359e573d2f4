/** Numbers in headers. */

/** EtherTypes (IEEE 802 numbers at IANA). */
export const IPV4 = 0x0800;
export const ARP = 0x0806;
export const IPV6 = 0x86dd;
/** Customer, service and (before there was a standard) outer VLAN tags. */
export const VLAN = 0x8100;
export const SERVICE_VLAN = 0x88a8;
export const OLD_VLAN = 0x9100;

/** IP protocols (protocol numbers at IANA). */
export const ICMP = 1;
export const TCP = 6;
export const UDP = 17;
export const ICMP6 = 58;

/** IPv6 extension headers, which have numbers of the same registry. */
export const HOP_BY_HOP = 0;
export const ROUTING = 43;
export const FRAGMENT = 44;
export const AUTHENTICATION = 51;
export const NO_NEXT = 59;
export const DESTINATION = 60;
export const MOBILITY = 135;
export const HIP = 139;
export const SHIM6 = 140;
