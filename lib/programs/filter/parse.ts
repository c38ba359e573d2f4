/**
 * The filter language, a part of tcpdump's (pcap-filter(7)):
 *
 *     expression = term { ("and" | "&&" | "or" | "||") term }        "and" and "or" bind alike, from the left
 *     term       = ("not" | "!") term | "(" expression ")" | primitive | value relation value
 *     primitive  = [ protocol ] [ direction ] [ "host" | "net" | "port" | "portrange" | "proto" ] id | protocol
 *                | [ "ether" | "ip" | "ip6" ] "multicast" | [ "ether" ] "broadcast" | "vlan" [ N ] | "less" N | "greater" N
 *     direction  = "src" | "dst" | "src or dst" | "src and dst"
 *     value      = N | "len" | protocol "[" value [ ":" 1, 2 or 4 ] "]" | value operator value | "(" value ")" | "-" value
 *
 * An id alone takes the words of the primitive before it: `port 53 or 80`. Names of hosts, networks and services are
 * not looked up: addresses and ports are numbers.
 */
import { unknown } from '../../names/port-options.js';
import type { Slice } from '../../names/slice.js';
import { ipBytes, macBytes } from '../../text/address.js';
import { ALWAYS, all, any, arithmetic, compare, LENGTH, not, number } from './ast.js';
import type { Arithmetic, Relation, Test, Value } from './ast.js';
import { tokens } from './lexer.js';
import { IP_PROTOCOLS, LINK_PROTOCOLS, PORT_PROTOCOLS, Primitives } from './primitives.js';
import type { Direction, Network } from './primitives.js';

type Kind = 'host' | 'net' | 'port' | 'portrange' | 'proto';

/** What a primitive says before its id. */
interface Words {
  readonly protocol: Slice | undefined;
  readonly direction: Direction | undefined;
  readonly kind: Kind;
}

const KINDS: readonly string[] = ['host', 'net', 'port', 'portrange', 'proto'] satisfies Kind[];
const PROTOCOLS: readonly string[] = ['ether', 'link', ...LINK_PROTOCOLS.keys(), ...IP_PROTOCOLS.keys()];
const ALONE = ['broadcast', 'multicast', 'vlan', 'less', 'greater', 'len'];
const PRIMITIVES = [...PROTOCOLS, 'src', 'dst', ...KINDS, ...ALONE];
/** Protocols whose bytes can be looked at: those with a header at a known place. */
const INDEXED = PROTOCOLS.filter((name) => name !== 'ah' && name !== 'esp');

const AND = ['and', '&&'];
const OR = ['or', '||'];
const NOT = ['not', '!'];
const RELATIONS: ReadonlyMap<string, Relation> = new Map([
  ['=', '='],
  ['==', '='],
  ['!=', '!='],
  ['<', '<'],
  ['<=', '<='],
  ['>', '>'],
  ['>=', '>='],
]);
/**
 * Operators by how tightly they bind, the loosest first. For `%` and `^` tcpdump's grammar leaves that open, so that
 * they take the nearest operand on their left, and on their right all that follows: `a + b % c + d` is a + (b % (c + d)).
 */
const LEVELS: readonly (readonly Arithmetic[])[] = [['|'], ['&'], ['<<', '>>'], ['+', '-'], ['*', '/'], ['%', '^']];
const CALCULATES: readonly string[] = [...RELATIONS.keys(), ...LEVELS.flat()];

/** Names for offsets and values in headers. */
const CONSTANTS: ReadonlyMap<string, number> = new Map([
  ['tcpflags', 13],
  ...['fin', 'syn', 'rst', 'push', 'ack', 'urg', 'ece', 'cwr'].map((name, i) => [`tcp-${name}`, 1 << i] as const),
  ['icmptype', 0],
  ['icmpcode', 1],
  ['icmp-echoreply', 0],
  ['icmp-unreach', 3],
  ['icmp-redirect', 5],
  ['icmp-echo', 8],
  ['icmp-timxceed', 11],
  ['icmp6type', 0],
  ['icmp6code', 1],
  ['icmp6-packettoobig', 2],
  ['icmp6-echo', 128],
  ['icmp6-echoreply', 129],
  ['icmp6-neighborsolicit', 135],
  ['icmp6-neighboradvert', 136],
]);

/** The deepest nesting, and the most primitives: what a compiler written in recursion takes without harm. */
const DEEPEST = 100;
const MOST = 1000;

/** The test that `text` describes; of an empty text, one that every frame passes. @throws UsageError */
export function parseFilter(text: string): Test {
  return new Parser(tokens(text)).whole();
}

class Parser {
  readonly #tokens: readonly Slice[];
  readonly #primitives = new Primitives();
  #at = 0;
  #depth = 0;
  #count = 0;
  /** Words of the last primitive, for an id that comes alone. */
  #words: Words | undefined;

  constructor(list: readonly Slice[]) {
    this.#tokens = list;
  }

  whole(): Test {
    if (this.#tokens.length === 1) return ALWAYS;
    const test = this.#expression();
    if (this.#next.text !== '') this.#next.fail(`${this.#next.quoted} cannot stand here; expected and, or, or the end`);
    return test;
  }

  get #next(): Slice {
    return this.#tokens[this.#at];
  }

  #take(): Slice {
    const token = this.#next;
    if (token.text !== '') this.#at++;
    return token;
  }

  #accept(words: readonly string[]): boolean {
    if (!words.includes(this.#next.text)) return false;
    this.#at++;
    return true;
  }

  #expect(text: string): void {
    if (!this.#accept([text])) this.#next.fail(`${this.#found(this.#next)}; expected '${text}'`);
  }

  #found(token: Slice): string {
    return token.text === '' ? 'the expression ends here' : `${token.quoted} cannot stand here`;
  }

  #nested<T>(read: () => T): T {
    if (++this.#depth > DEEPEST)
      this.#next.fail(`it is nested more than ${DEEPEST} deep; expected a flatter expression`);
    const result = read();
    this.#depth--;
    return result;
  }

  #expression(): Test {
    let test = this.#term();
    for (;;) {
      if (this.#accept(AND)) test = all(test, this.#term());
      else if (this.#accept(OR)) test = any(test, this.#term());
      else return test;
    }
  }

  #term(): Test {
    if (this.#accept(NOT)) return not(this.#nested(() => this.#term()));
    if (++this.#count > MOST) this.#next.fail(`it has more than ${MOST} primitives`);
    const { text } = this.#next;
    if (text === '(' && !this.#bracketsValue()) return this.#bracketed();
    if (this.#beginsValue()) return this.#relation();
    return this.#isId()
      ? this.#id(this.#words ?? { protocol: undefined, direction: undefined, kind: 'host' })
      : this.#primitive();
  }

  #bracketed(): Test {
    this.#expect('(');
    const test = this.#nested(() => this.#expression());
    this.#expect(')');
    return test;
  }

  /** Whether the parentheses that open here are arithmetic's: an operator of it follows them. */
  #bracketsValue(): boolean {
    let open = 0;
    for (let i = this.#at; i < this.#tokens.length; i++) {
      if (this.#tokens[i].text === '(') open++;
      if (this.#tokens[i].text === ')' && --open === 0) return CALCULATES.includes(this.#tokens[i + 1].text);
    }
    return false;
  }

  #beginsValue(): boolean {
    const { text } = this.#next;
    const after = this.#tokens[this.#at + 1]?.text ?? '';
    if (text === '(' || text === '-' || text === 'len' || CONSTANTS.has(text)) return true;
    return after === '[' || (isNumber(text) && after !== '/' && CALCULATES.includes(after));
  }

  /** Whether an id stands here: an address, a number or a range of them. */
  #isId(): boolean {
    return /^[0-9:]/.test(this.#next.text) || macBytes(this.#next.text) !== undefined || this.#next.text.includes(':');
  }

  #primitive(): Test {
    this.#words = undefined;
    const first = this.#next;
    if (first.text === '') first.fail('a primitive is missing; expected for example udp, host 10.0.0.1 or port 53');
    const protocol = PROTOCOLS.includes(first.text) ? this.#take() : undefined;
    const alone = this.#alone(protocol);
    if (alone !== undefined) return alone;
    const direction = this.#direction();
    const kind = KINDS.includes(this.#next.text) ? (this.#take().text as Kind) : undefined;
    if (direction === undefined && kind === undefined) {
      if (protocol === undefined) return first.fail(unknown(first, 'word', PRIMITIVES));
      if (!this.#isId()) return this.#protocol(protocol);
    }
    this.#words = { protocol, direction, kind: kind ?? 'host' };
    if (this.#next.text === '(') return this.#bracketed();
    return this.#id(this.#words);
  }

  /** A protocol that is a primitive by itself. */
  #protocol(name: Slice): Test {
    const type = LINK_PROTOCOLS.get(name.text);
    if (type !== undefined) return this.#primitives.etherType(type);
    const known = IP_PROTOCOLS.get(name.text);
    if (known !== undefined) return this.#primitives.protocol(known.number, known.over);
    return this.#next.fail(
      `${this.#found(this.#next)}; expected host, src, dst, proto, broadcast, multicast or '[' behind ${name.quoted}`,
    );
  }

  /** The primitives that are not about an id. */
  #alone(protocol: Slice | undefined): Test | undefined {
    const word = this.#next;
    const over = protocol?.text;
    const link = over === undefined || over === 'ether' || over === 'link';
    if (word.text === 'multicast' && (link || over === 'ip' || over === 'ip6')) {
      this.#at++;
      return over === 'ip' || over === 'ip6' ? this.#primitives.ipMulticast(over) : this.#primitives.multicast();
    }
    if (word.text === 'broadcast' && link) {
      this.#at++;
      return this.#primitives.mac([255, 255, 255, 255, 255, 255], 'dst');
    }
    if (protocol !== undefined) return undefined;
    if (this.#accept(['vlan'])) {
      return this.#primitives.vlan(isNumber(this.#next.text) ? readNumber(this.#take(), 4095, 'a VLAN') : undefined);
    }
    if (this.#accept(['less'])) return this.#primitives.length('<=', this.#number('a length'));
    if (this.#accept(['greater'])) return this.#primitives.length('>=', this.#number('a length'));
    return undefined;
  }

  #number(what: string): number {
    return readNumber(this.#take(), 0xffffffff, what);
  }

  #direction(): Direction | undefined {
    const first = this.#next.text;
    if (first !== 'src' && first !== 'dst') return undefined;
    this.#at++;
    const other = first === 'src' ? 'dst' : 'src';
    if (this.#tokens[this.#at + 1]?.text !== other) return first;
    if (this.#accept(OR)) {
      this.#at++;
      return 'src or dst';
    }
    if (this.#accept(AND)) {
      this.#at++;
      return 'src and dst';
    }
    return first;
  }

  #id(words: Words): Test {
    const id = this.#take();
    if (id.text === '') id.fail(`the expression ends here; expected ${EXAMPLES[words.kind]}`);
    switch (words.kind) {
      case 'port':
        return this.#ports(words, readNumber(id, 65535, 'a port'));
      case 'portrange': {
        const hyphen = id.text.indexOf('-');
        if (hyphen < 0) id.fail(`${id.quoted} is not a range of ports; expected ${EXAMPLES.portrange}`);
        const ends = [id.cut(0, hyphen), id.cut(hyphen + 1)].map((end) => readNumber(end, 65535, 'a port'));
        return this.#ports(words, Math.min(...ends), Math.max(...ends));
      }
      case 'proto':
        return this.#proto(words, id);
      case 'net':
        return this.#address(words, id, this.#network(id));
      case 'host': {
        const mac = macBytes(id.text);
        if (mac !== undefined) return this.#mac(words, id, mac);
        if (this.#next.text === '/') return this.#address(words, id, this.#network(id));
        const bytes = ipBytes(id.text);
        if (bytes === undefined) return id.fail(`${id.quoted} is not an address; expected ${EXAMPLES.host}`);
        return this.#address(words, id, { bytes, mask: bytes.map(() => 255) });
      }
    }
  }

  #ports({ protocol, direction = 'src or dst' }: Words, first: number, last = first): Test {
    if (protocol !== undefined && !PORT_PROTOCOLS.includes(protocol.text))
      protocol.fail(`${protocol.quoted} has no ports; expected ${PORT_PROTOCOLS.join(', ')} or no protocol`);
    const names = protocol === undefined ? PORT_PROTOCOLS : [protocol.text];
    const numbers = names.map((name) => IP_PROTOCOLS.get(name)!.number);
    return this.#primitives.ports(first, last, direction, numbers);
  }

  #proto({ protocol, direction }: Words, id: Slice): Test {
    if (direction !== undefined) id.fail("a protocol has no direction; expected 'proto' without src or dst");
    const name = id.text.replace('\\', '');
    const over = protocol?.text;
    if (over === 'ether' || over === 'link')
      return this.#primitives.etherType(LINK_PROTOCOLS.get(name) ?? readNumber(id, 65535, 'an EtherType'));
    if (protocol !== undefined && over !== 'ip' && over !== 'ip6')
      protocol.fail(`${protocol.quoted} cannot stand before proto; expected ether, ip, ip6 or no protocol`);
    const value = IP_PROTOCOLS.get(name)?.number ?? readNumber(id, 255, 'an IP protocol');
    return this.#primitives.protocol(value, over === 'ip' || over === 'ip6' ? over : undefined);
  }

  #mac({ protocol, direction = 'src or dst' }: Words, id: Slice, bytes: readonly number[]): Test {
    if (protocol?.text !== 'ether' && protocol?.text !== 'link')
      id.fail(`${id.quoted} is a MAC address; expected 'ether' before host, src or dst`);
    return this.#primitives.mac(bytes, direction);
  }

  #address({ protocol, direction = 'src or dst' }: Words, id: Slice, network: Network): Test {
    const able = network.bytes.length === 4 ? ['ip', 'arp', 'rarp'] : ['ip6'];
    const name = protocol?.text;
    if (name !== undefined && !able.includes(name)) {
      const version = network.bytes.length === 4 ? 'IPv4' : 'IPv6';
      id.fail(`'${name}' has no ${version} addresses; expected ${able.join(', ')} or no protocol before ${id.quoted}`);
    }
    return this.#primitives.address(network, direction, name === undefined ? able : [name]);
  }

  /** `10.0.0.0/8`, `10`, `192.168`, `10.0.0.0 mask 255.0.0.0`, `fd00::/8`; `id` has been taken. */
  #network(id: Slice): Network {
    const short = /^\d{1,3}(\.\d{1,3}){0,2}$/.test(id.text);
    const parts = short ? id.text.split('.').length : 4;
    const bytes = ipBytes(short ? id.text + '.0'.repeat(4 - parts) : id.text);
    if (bytes === undefined) return id.fail(`${id.quoted} is not a network; expected ${EXAMPLES.net}`);
    const mask = this.#mask(bytes.length, short ? 8 * parts : 8 * bytes.length);
    const beyond = bytes.findIndex((byte, i) => (byte & ~mask[i]) !== 0);
    if (beyond >= 0) id.fail(`${id.quoted} has bits beyond its mask; expected a network's own address`);
    return { bytes, mask };
  }

  /** The mask written behind a network of `size` bytes, or else its first `bits` bits. */
  #mask(size: number, bits: number): number[] {
    if (this.#accept(['mask'])) {
      const mask = this.#take();
      const bytes = ipBytes(mask.text);
      if (bytes?.length !== 4 || size !== 4)
        mask.fail(`${mask.quoted} is not the mask of an IPv4 network; expected for example 255.255.0.0`);
      return bytes!;
    }
    const prefix = this.#accept(['/']) ? readNumber(this.#take(), 8 * size, 'a prefix length') : bits;
    return Array.from({ length: size }, (_, i) => 0xff & ~(0xff >> Math.min(8, Math.max(0, prefix - 8 * i))));
  }

  #relation(): Test {
    this.#words = undefined;
    const left = this.#value();
    const op = RELATIONS.get(this.#next.text);
    if (op === undefined) {
      const token = this.#next;
      return token.fail(`${this.#found(token)}; expected a comparison: ${[...RELATIONS.keys()].join(' ')}`);
    }
    this.#at++;
    const right = this.#value();
    return all(left.needs, right.needs, compare(left.value, op, right.value));
  }

  /** A value, and what must hold of a frame for it to be there. */
  #value(level = 0): { value: Value; needs: Test } {
    if (level === LEVELS.length) return this.#operand();
    const first = this.#value(level + 1);
    const { needs } = first;
    let { value } = first;
    for (;;) {
      const token = this.#next;
      const op = LEVELS[level].find((known) => known === token.text);
      if (op === undefined) return { value, needs };
      this.#at++;
      if (++this.#count > MOST) token.fail(`it has more than ${MOST} operations`);
      const right = this.#value(level + 1 < LEVELS.length ? level + 1 : 0);
      if ((op === '/' || op === '%') && isConstant(right.value, 0)) token.fail('division by zero');
      if ((op === '<<' || op === '>>') && right.value.kind === 'number' && right.value.value > 31)
        token.fail(`a shift by ${right.value.value} bits; expected 31 at most`);
      // Only the leftmost bytes ask for their protocol, as in tcpdump.
      value = arithmetic(op, value, right.value);
    }
  }

  #operand(): { value: Value; needs: Test } {
    const token = this.#take();
    const constant = CONSTANTS.get(token.text);
    if (constant !== undefined) return { value: number(constant), needs: ALWAYS };
    if (token.text === 'len') return { value: LENGTH, needs: ALWAYS };
    if (token.text === '-') {
      const { value, needs } = this.#nested(() => this.#value(LEVELS.length - 1));
      return { value: arithmetic('-', number(0), value), needs };
    }
    if (token.text === '(') {
      const inner = this.#nested(() => this.#value());
      this.#expect(')');
      return inner;
    }
    if (this.#next.text === '[') return this.#bytes(token);
    if (isNumber(token.text)) return { value: number(readNumber(token, 0xffffffff, 'a number')), needs: ALWAYS };
    return token.fail(`${this.#found(token)}; expected a number, len, or bytes such as tcp[13]`);
  }

  /** `tcp[13]`, `ip[16:4]`; the protocol has been taken. */
  #bytes(protocol: Slice): { value: Value; needs: Test } {
    if (!INDEXED.includes(protocol.text)) protocol.fail(unknown(protocol, 'protocol', INDEXED));
    this.#expect('[');
    const at = this.#nested(() => this.#value());
    const colon = this.#accept([':']);
    const size = colon ? this.#take() : undefined;
    if (size !== undefined && !['1', '2', '4'].includes(size.text))
      size.fail(`${this.#found(size)}; expected 1, 2 or 4 bytes`);
    this.#expect(']');
    const bytes = Number(size?.text ?? 1) as 1 | 2 | 4;
    const { value, needs } = this.#primitives.bytesOf(protocol.text, at.value, bytes);
    return { value, needs: all(at.needs, needs) };
  }
}

const EXAMPLES: Readonly<Record<Kind, string>> = {
  host: 'for example 10.0.0.1 or fd00::1 (names are not looked up)',
  net: 'for example 10.0.0.0/8, 192.168 or fd00::/8 (names are not looked up)',
  port: 'a number from 0 to 65535 (names are not looked up)',
  portrange: 'for example 1024-65535',
  proto: 'a number, or a name such as tcp',
};

function isNumber(text: string): boolean {
  return /^(0|[1-9]\d*|0x[0-9a-f]+)$/i.test(text);
}

function isConstant(value: Value, n: number): boolean {
  return value.kind === 'number' && value.value === n;
}

/** A whole number, decimal or with 0x. */
function readNumber(token: Slice, most: number, what: string): number {
  const range = `expected a number from 0 to ${most}`;
  if (token.text === '') token.fail(`${what} is missing; ${range}`);
  if (!isNumber(token.text)) token.fail(`${token.quoted} is not ${what}; ${range}`);
  const value = Number(token.text);
  return value <= most ? value : token.fail(`${what} cannot be ${token.text}; ${range}`);
}
