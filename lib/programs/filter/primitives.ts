/**
 * The filter's primitives as tests of bytes, with tcpdump's meaning of each (pcap-filter(7), and what `tcpdump -d`
 * shows of libpcap 1.10): ports are not looked for in any fragment but the first, nor behind IPv6 extension headers;
 * what is said behind `vlan` is said of what follows the tag.
 */
import { ARP, FRAGMENT, ICMP, ICMP6, IPV4, IPV6, OLD_VLAN, SERVICE_VLAN, TCP, UDP, VLAN } from '../protocols.js';
import { ALWAYS, all, any, arithmetic, compare, LENGTH, load, not, number, type Test, type Value } from './ast.js';

const RARP = 0x8035;
const SCTP = 132;

/** Which of the two ends: source, destination, either or both. */
export type Direction = 'src' | 'dst' | 'src or dst' | 'src and dst';

/** Protocols that stand for an EtherType. */
export const LINK_PROTOCOLS: ReadonlyMap<string, number> = new Map([
  ['ip', IPV4],
  ['ip6', IPV6],
  ['arp', ARP],
  ['rarp', RARP],
]);

/** Protocols over IP: their number, and the version of IP below them where it is only one. */
export const IP_PROTOCOLS: ReadonlyMap<string, { number: number; over?: 'ip' | 'ip6' }> = new Map([
  ['tcp', { number: TCP }],
  ['udp', { number: UDP }],
  ['sctp', { number: SCTP }],
  ['icmp', { number: ICMP, over: 'ip' }],
  ['icmp6', { number: ICMP6, over: 'ip6' }],
  ['igmp', { number: 2, over: 'ip' }],
  ['pim', { number: 103 }],
  ['ah', { number: 51 }],
  ['esp', { number: 50 }],
]);

/** Protocols with ports at their first four bytes. */
export const PORT_PROTOCOLS: readonly string[] = ['tcp', 'udp', 'sctp'];

/** `test` of one end or the other, or of both. */
function ends(direction: Direction, test: (end: 'src' | 'dst') => Test): Test {
  if (direction === 'src' || direction === 'dst') return test(direction);
  return (direction === 'src and dst' ? all : any)(test('src'), test('dst'));
}

/** The bytes of `load`, as far as `mask` has them, are `value`. */
function masked(load: Value, mask: number, value: number): Test {
  return compare(mask === 0xffffffff ? load : arithmetic('&', load, number(mask)), '=', value);
}

function word(bytes: readonly number[], at: number): number {
  return ((bytes[at] << 24) | (bytes[at + 1] << 16) | (bytes[at + 2] << 8) | bytes[at + 3]) >>> 0;
}

/** An address of 4 or 16 bytes, and which of its bits count. */
export interface Network {
  readonly bytes: readonly number[];
  readonly mask: readonly number[];
}

/** Tests of a frame from where the headers stand; `vlan()` moves all that comes after it behind one more tag. */
export class Primitives {
  /** Offset of the EtherType that is spoken of. */
  #type = 12;

  get #network(): number {
    return this.#type + 2;
  }

  /** `ether proto N`, and `ip`, `ip6`, `arp`, `rarp`. */
  etherType(type: number): Test {
    const field = load(this.#type, 2);
    // Up to 1500 the field is a length, and LLC follows: the same in both of its first bytes for OSI, IP and NetBEUI.
    if (type > 1500) return compare(field, '=', type);
    const pair = [0xfe, 0x06, 0xf0].includes(type);
    const sap = pair ? compare(load(this.#network, 2), '=', type * 0x101) : compare(load(this.#network, 1), '=', type);
    return all(compare(field, '<=', 1500), sap);
  }

  /** `proto N`, `ip proto N`, `ip6 proto N`, `tcp`, …; in IPv6 behind a fragment header too, and behind no other. */
  protocol(protocol: number, over?: 'ip' | 'ip6'): Test {
    const ip4 = all(this.etherType(IPV4), compare(load(this.#network + 9, 1), '=', protocol));
    const next = load(this.#network + 6, 1);
    const fragment = all(compare(next, '=', FRAGMENT), compare(load(this.#network + 40, 1), '=', protocol));
    const ip6 = all(this.etherType(IPV6), any(compare(next, '=', protocol), fragment));
    return over === undefined ? any(ip4, ip6) : over === 'ip' ? ip4 : ip6;
  }

  /** `host` and `net`: the address of IP, or the one ARP or RARP asks with or for. */
  address({ bytes, mask }: Network, direction: Direction, of: readonly string[]): Test {
    const size = bytes.length;
    const matches = (at: number): Test[] =>
      Array.from({ length: size / 4 }, (_, i) =>
        masked(load(this.#network + at + 4 * i, 4), word(mask, 4 * i), word(bytes, 4 * i)),
      );
    const tests = of.map((protocol) => {
      const source = size === 16 ? 8 : protocol === 'ip' ? 12 : 14;
      const target = protocol === 'ip' || protocol === 'ip6' ? source + size : 24;
      const type = this.etherType(LINK_PROTOCOLS.get(protocol)!);
      return ends(direction, (end) => all(type, ...matches(end === 'src' ? source : target)));
    });
    return any(...tests);
  }

  /** `port` and `portrange`, of `protocols`. */
  ports(first: number, last: number, direction: Direction, protocols: readonly number[]): Test {
    const within = (at: Value): Test => {
      const port = load(at, 2);
      return first === last ? compare(port, '=', first) : all(compare(port, '>=', first), compare(port, '<=', last));
    };
    const isOne = (field: Value): Test => any(...protocols.map((protocol) => compare(field, '=', protocol)));
    const offset = (end: 'src' | 'dst'): number => (end === 'src' ? 0 : 2);
    const ip6 = all(
      this.etherType(IPV6),
      isOne(load(this.#network + 6, 1)),
      ends(direction, (end) => within(number(this.#network + 40 + offset(end)))),
    );
    const ip4 = all(
      this.etherType(IPV4),
      isOne(load(this.#network + 9, 1)),
      this.#first(),
      ends(direction, (end) => within(this.#transport(offset(end)))),
    );
    return any(ip6, ip4);
  }

  /** `ether host`. */
  mac(bytes: readonly number[], direction: Direction): Test {
    return ends(direction, (end) => {
      const at = end === 'src' ? 6 : 0;
      const high = (bytes[0] << 8) | bytes[1];
      return all(compare(load(at + 2, 4), '=', word(bytes, 2)), compare(load(at, 2), '=', high));
    });
  }

  /** `ether multicast`: the group bit. */
  multicast(): Test {
    return compare(arithmetic('&', load(0, 1), number(1)), '!=', 0);
  }

  /** `ip multicast`, `ip6 multicast`. */
  ipMulticast(over: 'ip' | 'ip6'): Test {
    if (over === 'ip') return all(this.etherType(IPV4), compare(load(this.#network + 16, 1), '>=', 224));
    return all(this.etherType(IPV6), compare(load(this.#network + 24, 1), '=', 0xff));
  }

  /** `vlan`, `vlan N`: one tag, and everything said after it is about what follows the tag. */
  vlan(id: number | undefined): Test {
    const tagged = any(this.etherType(VLAN), this.etherType(SERVICE_VLAN), this.etherType(OLD_VLAN));
    const tag = masked(load(this.#network, 2), 0xfff, id ?? 0);
    this.#type += 4;
    return id === undefined ? tagged : all(tagged, tag);
  }

  /** `less N`, `greater N`: the whole frame, without FCS. */
  length(op: '<=' | '>=', bytes: number): Test {
    return compare(LENGTH, op, bytes);
  }

  /** `name[at:size]`, and what must hold of the frame for it to be there. */
  bytesOf(name: string, at: Value, size: 1 | 2 | 4): { value: Value; needs: Test } {
    if (name === 'ether' || name === 'link') return { value: load(at, size), needs: ALWAYS };
    const type = LINK_PROTOCOLS.get(name);
    const from = (offset: number): Value => load(arithmetic('+', at, number(offset)), size);
    if (type !== undefined) return { value: from(this.#network), needs: this.etherType(type) };
    const { number: protocol } = IP_PROTOCOLS.get(name)!;
    if (name === 'icmp6') {
      const next = compare(load(this.#network + 6, 1), '=', protocol);
      return { value: from(this.#network + 40), needs: all(this.etherType(IPV6), next) };
    }
    const offset = at.kind === 'number' ? this.#transport(at.value) : arithmetic('+', at, this.#transport(0));
    return {
      value: load(offset, size),
      needs: all(this.protocol(protocol, 'ip'), this.#first()),
    };
  }

  /** Not a fragment, or the first one. */
  #first(): Test {
    return not(compare(arithmetic('&', load(this.#network + 6, 2), number(0x1fff)), '!=', 0));
  }

  /** Offset of byte `at` behind the IPv4 header. */
  #transport(at: number): Value {
    const words = arithmetic('&', load(this.#network, 1), number(0xf));
    return arithmetic('+', arithmetic('<<', words, number(2)), number(this.#network + at));
  }
}
