/** LINKTYPE_ETHERNET, the one link type that can be bridged (https://www.tcpdump.org/linktypes.html). */
export const ETHERNET = 1;

/** Common link types by number, named as in https://www.tcpdump.org/linktypes.html. */
const NAMES = new Map([
  [0, 'LINKTYPE_NULL'],
  [1, 'LINKTYPE_ETHERNET'],
  [6, 'LINKTYPE_IEEE802_5'],
  [8, 'LINKTYPE_SLIP'],
  [9, 'LINKTYPE_PPP'],
  [10, 'LINKTYPE_FDDI'],
  [50, 'LINKTYPE_PPP_HDLC'],
  [51, 'LINKTYPE_PPP_ETHER'],
  [101, 'LINKTYPE_RAW'],
  [104, 'LINKTYPE_C_HDLC'],
  [105, 'LINKTYPE_IEEE802_11'],
  [107, 'LINKTYPE_FRELAY'],
  [108, 'LINKTYPE_LOOP'],
  [113, 'LINKTYPE_LINUX_SLL'],
  [117, 'LINKTYPE_PFLOG'],
  [119, 'LINKTYPE_IEEE802_11_PRISM'],
  [127, 'LINKTYPE_IEEE802_11_RADIOTAP'],
  [147, 'LINKTYPE_USER0'],
  [189, 'LINKTYPE_USB_LINUX'],
  [195, 'LINKTYPE_IEEE802_15_4_WITHFCS'],
  [201, 'LINKTYPE_BLUETOOTH_HCI_H4_WITH_PHDR'],
  [220, 'LINKTYPE_USB_LINUX_MMAPPED'],
  [227, 'LINKTYPE_CAN_SOCKETCAN'],
  [228, 'LINKTYPE_IPV4'],
  [229, 'LINKTYPE_IPV6'],
  [239, 'LINKTYPE_NFLOG'],
  [247, 'LINKTYPE_INFINIBAND'],
  [249, 'LINKTYPE_USBPCAP'],
  [253, 'LINKTYPE_NETLINK'],
  [274, 'LINKTYPE_ETHERNET_MPACKET'],
  [276, 'LINKTYPE_LINUX_SLL2'],
]);

/** A link type by number and name. */
export function linkName(linkType: number): string {
  return `${linkType} (${NAMES.get(linkType) ?? 'not a common one; see tcpdump.org/linktypes.html'})`;
}

/** Why a link type is refused, and what helps; `undefined` for Ethernet. */
export function refusal(linkType: number): string | undefined {
  if (linkType === ETHERNET) return undefined;
  return (
    `link type ${linkName(linkType)} carries no Ethernet frames, and only Ethernet (link type 1) can be bridged; ` +
    `capture on an Ethernet interface instead (not on "any")`
  );
}
