import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { UsageError } from '../../lib/text/errors.js';
import {
  formatPortSpec,
  parsePortSpec,
  type NetmapSpec,
  type PcapSpec,
  type PipeSpec,
  type PortSpec,
  type SimSpec,
  type XdpSpec,
} from '../../lib/names/portspec.js';

const netmap = (fields: Partial<NetmapSpec> & { name: string }): Omit<NetmapSpec, 'text'> => ({
  kind: 'netmap',
  mode: 'nic',
  vale: false,
  exclusive: false,
  rxOnly: false,
  txOnly: false,
  monitorTx: false,
  monitorRx: false,
  zcopyMonitor: false,
  ...fields,
});
const xdp = (fields: Partial<XdpSpec> & { ifname: string }): Omit<XdpSpec, 'text'> => ({
  kind: 'xdp',
  queues: 'all',
  mode: 'auto',
  copy: 'auto',
  slots: 2048,
  frame: 2048,
  busyPoll: 0,
  ...fields,
});
const sim = (fields: Partial<SimSpec>): Omit<SimSpec, 'text'> => ({
  kind: 'sim',
  name: 'a',
  rate: 1e10,
  load: 1,
  size: [{ size: 64, weight: 1 }],
  slots: 1024,
  rings: 1,
  itr: 0,
  txtimer: 0,
  frags: 0,
  skip: 0,
  budget: 0,
  drop: 0,
  wedge: 0,
  clock: 'real',
  step: 1000,
  count: 0,
  check: true,
  buf: 2048,
  seed: 1,
  ...fields,
});

/** Each text, what it says, and its canonical form where that differs. */
function says(table: readonly (readonly [string, Omit<PortSpec, 'text'>, string?])[]): void {
  for (const [text, fields, canonical = text] of table) {
    const spec = parsePortSpec(text);
    assert.deepEqual(spec, { ...fields, text });
    assert.equal(formatPortSpec(spec), canonical);
  }
}

describe('port names', () => {
  it('of netmap: every choice of rings', () => {
    says([
      ['netmap:ix0', netmap({ name: 'ix0' })],
      ['netmap:ix0^', netmap({ name: 'ix0', mode: 'host' })],
      ['netmap:ix0^2', netmap({ name: 'ix0', mode: 'one-host', ring: 2 })],
      ['netmap:ix0*', netmap({ name: 'ix0', mode: 'nic-host' })],
      ['netmap:ix0+', netmap({ name: 'ix0', mode: 'nic-host' }), 'netmap:ix0*'],
      ['netmap:ix0-3', netmap({ name: 'ix0', mode: 'one-nic', ring: 3 })],
      ['netmap:ix0-4094', netmap({ name: 'ix0', mode: 'one-nic', ring: 4094 })],
      ['netmap:br-lan', netmap({ name: 'br-lan' })],
      ['netmap:br-lan-0', netmap({ name: 'br-lan', mode: 'one-nic', ring: 0 })],
      ['netmap:eth0.100', netmap({ name: 'eth0.100' })],
      ['netmap:ix0{1', netmap({ name: 'ix0{1', mode: 'pipe-master', pipe: '1' })],
      ['netmap:ix0}1', netmap({ name: 'ix0}1', mode: 'pipe-slave', pipe: '1' })],
      ['netmap:x{ab_2-1', netmap({ name: 'x{ab_2', mode: 'pipe-master', pipe: 'ab_2', ring: 1 })],
    ]);
  });

  it('of VALE switches, with and without netmap: in front', () => {
    says([
      ['vale0:a', netmap({ name: 'vale0:a', vale: true })],
      ['vale:a', netmap({ name: 'vale:a', vale: true })],
      ['valelab_1:p.2', netmap({ name: 'valelab_1:p.2', vale: true })],
      ['netmap:vale0:a', netmap({ name: 'vale0:a', vale: true }), 'vale0:a'],
      ['vale0:a-1', netmap({ name: 'vale0:a', vale: true, mode: 'one-nic', ring: 1 })],
      ['vale0:a{1', netmap({ name: 'vale0:a{1', vale: true, mode: 'pipe-master', pipe: '1' })],
      ['vale0:a@conf:rings=2', netmap({ name: 'vale0:a', vale: true, conf: { rings: 2 } })],
    ]);
  });

  it('of netmap: flags, memory ids and options', () => {
    says([
      ['netmap:ix0/x', netmap({ name: 'ix0', exclusive: true })],
      ['netmap:ix0-1/R', netmap({ name: 'ix0', mode: 'one-nic', ring: 1, rxOnly: true })],
      ['netmap:ix0^/T', netmap({ name: 'ix0', mode: 'host', txOnly: true })],
      [
        'netmap:ix0/rtz',
        netmap({ name: 'ix0', monitorRx: true, monitorTx: true, zcopyMonitor: true }),
        'netmap:ix0/ztr',
      ],
      ['netmap:ix0@5', netmap({ name: 'ix0', memId: 5 })],
      ['netmap:ix0@5/x', netmap({ name: 'ix0', memId: 5, exclusive: true }), 'netmap:ix0/x@5'],
      ['netmap:ix0@share=netmap:ix1', netmap({ name: 'ix0', share: 'netmap:ix1' })],
      ['netmap:ix0@share=vale0:a{1', netmap({ name: 'ix0', share: 'vale0:a{1' })],
      [
        'netmap:ix0@conf:rings=2,slots=1024,host-rings=1,tx-slots=512',
        netmap({ name: 'ix0', conf: { rings: 2, slots: 1024, hostRings: 1, txSlots: 512 } }),
        'netmap:ix0@conf:rings=2,host-rings=1,slots=1024,tx-slots=512',
      ],
      [
        'netmap:ix0@conf:host_tx_rings=2',
        netmap({ name: 'ix0', conf: { hostTxRings: 2 } }),
        'netmap:ix0@conf:host-tx-rings=2',
      ],
      ['netmap:ix0@extmem:file=/mnt/a/b', netmap({ name: 'ix0', extmem: { file: '/mnt/a/b' } })],
      [
        'netmap:ix0@extmem:/mnt/a/b',
        netmap({ name: 'ix0', extmem: { file: '/mnt/a/b' } }),
        'netmap:ix0@extmem:file=/mnt/a/b',
      ],
      [
        'netmap:ix0@extmem=/m,buf-num=8k,buf_size=2048',
        netmap({ name: 'ix0', extmem: { file: '/m', bufNum: 8000, bufSize: 2048 } }),
        'netmap:ix0@extmem:file=/m,buf-num=8000,buf-size=2048',
      ],
      ['netmap:ix0@offset:0', netmap({ name: 'ix0', offset: { initial: 0 } }), 'netmap:ix0@offset:initial=0'],
      ['netmap:ix0@offset=64', netmap({ name: 'ix0', offset: { initial: 64 } }), 'netmap:ix0@offset:initial=64'],
      ['netmap:ix0@offset:initial=64,bits=16', netmap({ name: 'ix0', offset: { initial: 64, bits: 16 } })],
      [
        'netmap:ix0*/x@2@conf:rings=1@extmem:file=/a@offset:initial=8',
        netmap({
          name: 'ix0',
          mode: 'nic-host',
          exclusive: true,
          memId: 2,
          conf: { rings: 1 },
          extmem: { file: '/a' },
          offset: { initial: 8 },
        }),
      ],
    ]);
  });

  it('of xdp', () => {
    says([
      ['xdp:eth0', xdp({ ifname: 'eth0' })],
      ['xdp:eth0-1', xdp({ ifname: 'eth0', queues: { first: 1, last: 1 } }), 'xdp:eth0@queue=1'],
      ['xdp:eth0-0:3', xdp({ ifname: 'eth0', queues: { first: 0, last: 3 } }), 'xdp:eth0@queue=0:3'],
      ['xdp:eth0@queue=2', xdp({ ifname: 'eth0', queues: { first: 2, last: 2 } })],
      ['xdp:eth0@queue=all', xdp({ ifname: 'eth0' }), 'xdp:eth0'],
      ['xdp:veth-a', xdp({ ifname: 'veth-a' })],
      ['xdp:veth-1@queue=all', xdp({ ifname: 'veth-1' })],
      [
        'xdp:veth-1@slots=64,queue=0',
        xdp({ ifname: 'veth-1', slots: 64, queues: { first: 0, last: 0 } }),
        'xdp:veth-1@queue=0,slots=64',
      ],
      [
        'xdp:eth0@mode=native@zerocopy',
        xdp({ ifname: 'eth0', mode: 'native', copy: 'zerocopy' }),
        'xdp:eth0@mode=native,zerocopy',
      ],
      ['xdp:eth0@mode=generic,copy', xdp({ ifname: 'eth0', mode: 'generic', copy: 'copy' })],
      [
        'xdp:eth0@slots=4096,frame=4096,busy-poll=64,netns=lab',
        xdp({ ifname: 'eth0', slots: 4096, frame: 4096, busyPoll: 64, netns: 'lab' }),
      ],
      ['xdp:eth0@busy-poll=off', xdp({ ifname: 'eth0' }), 'xdp:eth0'],
    ]);
  });

  it('of sim', () => {
    const imix = [
      { size: 64, weight: 7 },
      { size: 594, weight: 4 },
      { size: 1518, weight: 1 },
    ];
    says([
      ['sim:a', sim({})],
      ['sim:a@rate=10G,size=64,slots=1024', sim({}), 'sim:a'],
      ['sim:a@rate=25G,size=128,slots=2048', sim({ rate: 25e9, size: [{ size: 128, weight: 1 }], slots: 2048 })],
      ['sim:left.1@rate=max', sim({ name: 'left.1', rate: Infinity })],
      ['sim:a@size=imix', sim({ size: imix }), 'sim:a@size=64*7+594*4+1518'],
      ['sim:a@size=64*7+594*4+1518', sim({ size: imix })],
      ['sim:a@load=50%', sim({ load: 0.5 })],
      ['sim:a@itr=124us,txtimer=90us', sim({ itr: 124_000, txtimer: 90_000 })],
      ['sim:a@itr=off,txtimer=0,skip=off,budget=0', sim({}), 'sim:a'],
      ['sim:a@rings=4,frags=3,skip=10,budget=32', sim({ rings: 4, frags: 3, skip: 10, budget: 32 })],
      ['sim:a@drop=1%', sim({ drop: 0.01 })],
      ['sim:a@wedge=10M', sim({ wedge: 1e7 }), 'sim:a@wedge=10000000'],
      ['sim:a@drop=0.01', sim({ drop: 0.01 }), 'sim:a@drop=1%'],
      ['sim:a@flap=1s/100ms', sim({ flap: { up: 1_000_000_000, down: 100_000_000 } })],
      [
        'sim:a@clock=virtual,step=2us,count=1M,check=off',
        sim({ clock: 'virtual', step: 2000, count: 1e6, check: false }),
        'sim:a@clock=virtual,step=2us,count=1000000,check=off',
      ],
      ['sim:a@buf=4096,seed=7', sim({ buf: 4096, seed: 7 })],
      ['sim:a@size=9018,frags=5', sim({ size: [{ size: 9018, weight: 1 }], frags: 5 })],
      ['sim:a@slots=2', sim({ slots: 2 })],
    ]);
  });

  it('of pipe, pcap and bare interfaces', () => {
    const pipe = (name: string, id: string, end: PipeSpec['end'], slots = 1024) =>
      ({ kind: 'pipe', name, pipe: id, end, slots }) as const;
    const pcap = (files: Omit<PcapSpec, 'kind' | 'text'>) => ({ kind: 'pcap', ...files }) as const;
    says([
      ['pipe:lab{1', pipe('lab', '1', 'master')],
      ['pipe:lab}1@slots=2048', pipe('lab', '1', 'slave', 2048)],
      ['pipe:lab-2.x_{a@slots=1024', pipe('lab-2.x_', 'a', 'master'), 'pipe:lab-2.x_{a'],
      ['pcap:in.pcap', pcap({ read: 'in.pcap' })],
      ['pcap:@out=out.pcap', pcap({ write: 'out.pcap' })],
      ['pcap:in.pcap@out=out.pcap', pcap({ read: 'in.pcap', write: 'out.pcap' })],
      ['pcap:/a b/x@y,z=1:2@out=o@p,q', pcap({ read: '/a b/x@y,z=1:2', write: 'o@p,q' })],
      ['pcap:-@out=-', pcap({ read: '-', write: '-' })],
      ['pcap:in.pcap@follow', pcap({ read: 'in.pcap', follow: true })],
      [
        'pcap:in.pcap@out=out@x,format=pcapng@follow,short=cut',
        pcap({ read: 'in.pcap', write: 'out@x', format: 'pcapng', follow: true, short: 'cut' }),
        'pcap:in.pcap@short=cut,follow,out=out@x,format=pcapng',
      ],
      ['pcap:a@followed,x', pcap({ read: 'a@followed,x' })],
      ['ix0', { kind: 'auto', ifname: 'ix0' }],
      ['eth0-1', { kind: 'auto', ifname: 'eth0-1' }],
      ['eth0.100', { kind: 'auto', ifname: 'eth0.100' }],
      ['fifteencharsxyz', { kind: 'auto', ifname: 'fifteencharsxyz' }],
      ['ix0^', netmap({ name: 'ix0', mode: 'host' }), 'netmap:ix0^'],
      ['ix0*', netmap({ name: 'ix0', mode: 'nic-host' }), 'netmap:ix0*'],
      ['ix0{1', netmap({ name: 'ix0{1', mode: 'pipe-master', pipe: '1' }), 'netmap:ix0{1'],
      ['ix0}1@3', netmap({ name: 'ix0}1', mode: 'pipe-slave', pipe: '1', memId: 3 }), 'netmap:ix0}1@3'],
      ['ix0/x', netmap({ name: 'ix0', exclusive: true }), 'netmap:ix0/x'],
    ] as never);
  });
});

/** The text, the column of the caret, and the first line of the message. */
const ERRORS: readonly (readonly [string, number, string])[] = [
  ['', 0, "it is empty; expected an interface such as eth0, or one of netmap, vale, xdp, sim, pipe, pcap with ':'"],
  [':', 0, 'the driver is missing; expected one of netmap, vale, xdp, sim, pipe, pcap'],
  ['nmap:ix0', 0, "unknown driver 'nmap'; did you mean 'netmap'? expected one of netmap, vale, xdp, sim, pipe, pcap"],
  ['netmap:', 7, 'an interface name is missing; expected for example eth0 or ix0'],
  ['netmap:vale0', 12, "the port of switch 'vale0' is missing; expected for example vale0:a"],
  ['vale0', 5, "the port of switch 'vale0' is missing; expected for example vale0:a"],
  [
    'NETMAP:ix0',
    0,
    "unknown driver 'NETMAP'; did you mean 'netmap'? expected one of netmap, vale, xdp, sim, pipe, pcap",
  ],
  ['af_xdp:eth0', 0, "unknown driver 'af_xdp'; did you mean 'xdp'? expected one of netmap, vale, xdp, sim, pipe, pcap"],
  ['tap:x', 0, "unknown driver 'tap'; expected one of netmap, vale, xdp, sim, pipe, pcap"],
  ['ix0@1', 3, "options need a driver in front; expected one of netmap, vale, xdp, sim, pipe, pcap with ':'"],
  ['in.pcap', 0, "'in.pcap' looks like a capture file; expected pcap:in.pcap"],
  ['averylonginterface', 15, "an interface name has at most 15 characters, 'averylonginterface' has 18"],
  ['netmap:averylonginterface0', 22, "an interface name has at most 15 characters, 'averylonginterface0' has 19"],
  ['netmap:ix0^x', 11, "ring 'x' does not begin with a digit; write a whole number from 0 to 4094"],
  ['netmap:ix0*1', 11, "nothing can follow '*' but '/' with flags or '@' with options"],
  ['netmap:ix0{', 11, 'the pipe is missing; expected a number behind the brace, for example {1'],
  ['netmap:ix0{1^', 12, "a pipe has no host rings; expected -k, '/', '@' or the end"],
  [
    'netmap:ix0/q',
    11,
    "unknown flag 'q'; expected x (exclusive), R (rx rings only), T (tx rings only), t or r (monitor tx or rx) or z (zero-copy monitor)",
  ],
  [
    'netmap:ix0/',
    11,
    "flags are missing behind '/'; expected x (exclusive), R (rx rings only), T (tx rings only), t or r (monitor tx or rx) or z (zero-copy monitor)",
  ],
  ['netmap:ix0/RT', 11, 'flags R and T together leave no ring open; expected one of them, or none for both sides'],
  ['netmap:ix0/z', 11, 'flag z needs a side to monitor; expected t, r or both beside it'],
  ['netmap:ix0@', 11, 'the option is missing; expected one of share, conf, extmem, offset, a memory id'],
  ['netmap:ix0@0', 11, "memory id '0' is out of range; write a whole number from 1 to 65535"],
  ['netmap:ix0@5@6', 13, 'a memory id is given twice; expected it once'],
  ['netmap:ix0@conf', 15, "option 'conf' needs a value; expected for example conf:rings=2"],
  ['netmap:ix0@conf=rings=2', 15, "option 'conf' takes a list behind ':'; expected for example conf:rings=2"],
  [
    'netmap:ix0@conf:',
    16,
    'the option is missing; expected one of rings, tx-rings, rx-rings, host-rings, host-tx-rings, host-rx-rings, slots, tx-slots, rx-slots',
  ],
  [
    'netmap:ix0@conf:ring=2',
    16,
    "unknown option 'ring' of conf; did you mean 'rings'? expected one of rings, tx-rings, rx-rings, host-rings, host-tx-rings, host-rx-rings, slots, tx-slots, rx-slots",
  ],
  ['netmap:ix0@conf:rings=2,rings=3', 24, "option 'rings' is given twice; expected it once"],
  ['netmap:ix0@conf:rings=0', 22, "number '0' is out of range; write a whole number from 1 to 65535"],
  ['netmap:ix0@share:x', 16, "option 'share' needs a port; expected for example share=netmap:ix0"],
  ['netmap:ix0@share=xdp:e', 17, "unknown driver 'xdp'; expected an interface or a VALE port such as vale0:a"],
  ['netmap:ix0@5@share=netmap:ix1', 13, 'share and the memory id @5 exclude each other; expected one of them'],
  [
    'netmap:ix0@shared=x',
    11,
    "unknown option 'shared' of a netmap port; did you mean 'share'? expected one of share, conf, extmem, offset, a memory id",
  ],
  ['netmap:ix 0', 9, "' ' cannot be in an interface name; expected letters, digits, dot, underscore or hyphen"],
  ['netmap:ix0-4095', 11, "ring '4095' is out of range; write a whole number from 0 to 4094"],
  ['netmap:ix0/x/x', 12, "flags are given twice; expected '@' with options or the end"],
  ['netmap:ix0@extmem', 17, "option 'extmem' needs a value; expected for example extmem:file=/dev/hugepages/netmap"],
  [
    'netmap:ix0@extmem:if-num=3',
    18,
    "option 'extmem' needs 'file'; expected for example extmem:file=/dev/hugepages/netmap",
  ],
  ['netmap:ix0@extmem:/a,file=/b', 21, "option 'file' is given twice; expected it once"],
  ['netmap:ix0@offset:bits=3', 18, "option 'offset' needs 'initial'; expected for example offset:initial=64"],
  ['xdp:eth0-3:1', 11, 'the last queue is below the first; expected 3 or more'],
  [
    'xdp:eth0@queues=2',
    9,
    "unknown option 'queues' of an xdp port; did you mean 'queue'? expected one of queue, mode, zerocopy, copy, slots, frame, busy-poll, netns",
  ],
  ['xdp:eth0@slots=1000', 15, 'AF_XDP rings have a power of two of slots, not 1000; expected for example 2048'],
  ['xdp:eth0@frame=1024', 15, "unknown value '1024'; expected one of 2048, 4096"],
  ['xdp:eth0@mode=skb', 14, "unknown value 'skb'; expected one of native, generic, auto"],
  ['xdp:eth0@zerocopy,copy', 18, "option 'copy' contradicts an earlier one; expected one of them"],
  ['xdp:eth0@zerocopy=1', 17, "option 'zerocopy' takes no value; write it alone"],
  ['xdp:eth0@mode=generic,zerocopy', 22, 'zero-copy needs the driver; expected mode=native or no mode beside it'],
  [
    'xdp:eth0@netns=/run/x',
    15,
    'a network namespace is given by its name, not a path; expected one that ip netns lists',
  ],
  ['sim:', 4, 'a name is missing; expected for example sim:a'],
  [
    'sim:a@slot=2048',
    6,
    "unknown option 'slot' of a sim port; did you mean 'slots'? expected one of rate, load, size, slots, rings, itr, txtimer, frags, skip, budget, drop, wedge, flap, clock, step, count, check, buf, seed",
  ],
  [
    'sim:a@rate=10Q',
    13,
    "rate '10Q' has the unknown unit 'Q'; write bits per second with k, M, G or T, for example 10G, or 'max'",
  ],
  ['sim:a@rate', 10, "option 'rate' needs a value; expected for example rate=10G"],
  ['sim:a@rate=', 10, "option 'rate' needs a value; expected for example rate=10G"],
  [
    'sim:a@',
    6,
    'the option is missing; expected one of rate, load, size, slots, rings, itr, txtimer, frags, skip, budget, drop, wedge, flap, clock, step, count, check, buf, seed',
  ],
  ['sim:a@load=2', 11, "share '2' is above 100%; write a percentage or a number from 0 to 1, for example 1% or 0.01"],
  ['sim:a@frags=65', 12, "number '65' is out of range; write a whole number from 0 to 64"],
  ['sim:a@size=9000,frags=2', 16, 'a frame of 9000 bytes takes 5 buffers of 2048 bytes; expected frags=5 or more'],
  ['sim:a@size=9000,slots=4', 6, 'a frame of 5 slots never fits a ring of 4; expected slots=6 or more'],
  [
    'sim:a@size=600000',
    6,
    'a frame of 600000 bytes takes 293 buffers of 2048 bytes; expected 64 at most, so raise buf or lower size',
  ],
  ['sim:a@flap=1s', 13, "'/' is missing; expected time up / time down, for example flap=1s/100ms"],
  ['sim:a@flap=0/1s', 11, 'a time above 0 is expected here, for example 1ms'],
  ['sim:a@buf=100', 10, 'a buffer size is a multiple of 64 bytes; expected for example 2048'],
  ['sim:a@check=no', 12, "unknown value 'no'; expected one of on, off"],
  ['sim:a@seed=1,seed=2', 13, "option 'seed' is given twice; expected it once"],
  ['pipe:lab', 8, "the pipe's end is missing; expected { (master) or } (slave) and a number, for example pipe:lab{1"],
  ['pipe:lab{', 9, 'the pipe is missing; expected a number behind the brace, for example {1'],
  ['pipe:.lab{1', 5, 'this name cannot begin with a dot; expected a letter or digit'],
  ['pcap:', 5, 'a file is missing; expected pcap:IN, pcap:@out=OUT or pcap:IN@out=OUT'],
  [
    'pcap:@in=x',
    6,
    "unknown option 'in' of a pcap port (a file name that begins with @ is written ./@name); " +
      'expected one of short, follow, out, format',
  ],
  ['pcap:@out=', 9, "option 'out' needs a value; expected for example out=out.pcap"],
  ['pcap:a@out=b@out=c', 13, "option 'out' is given twice; expected it once"],
  ['pcap:a@short=fill', 13, "unknown value 'fill'; expected one of drop, pad, cut"],
  ['pcap:a@follow=1', 13, "option 'follow' takes no value; write it alone"],
  ['pcap:a@format=pcapng', 5, '@format is about the file that is written, and none is named; expected @out=OUT'],
  [
    'pcap:@out=b,short=pad',
    5,
    '@short and @follow are about the file that is read, and none is named; expected pcap:IN@…',
  ],
  [
    'pcap:@out=b.pcap.gz',
    5,
    'captures are not compressed when they are written; write @out=- and pipe it: … | gzip > FILE',
  ],
  ['a:b:c', 0, "unknown driver 'a'; expected one of netmap, vale, xdp, sim, pipe, pcap"],
  ['eth0{', 5, 'the pipe is missing; expected a number behind the brace, for example {1'],
  ['eth0:1', 0, "unknown driver 'eth0'; expected one of netmap, vale, xdp, sim, pipe, pcap"],
];

describe('errors', () => {
  it('say what was expected and point at the character', () => {
    for (const [text, at, message] of ERRORS) {
      assert.throws(
        () => parsePortSpec(text),
        (error) => {
          assert.ok(error instanceof UsageError, text);
          assert.equal(error.message, `bad port name: ${message}\n  ${text}\n  ${' '.repeat(at)}^`);
          assert.equal(error.at, at);
          return true;
        },
        text,
      );
    }
  });

  it('keep line breaks of the name out of the message', () => {
    assert.throws(() => parsePortSpec('a\nb!'), {
      message:
        "bad port name: '\\u{0a}' cannot be in an interface name; expected letters, digits, dot, underscore or hyphen\n" +
        '  a\\u{0a}b!\n   ^',
    });
  });
});

describe('limits', () => {
  /** The part that varies is put in place of `#`: the first values are the limits, the others lie just outside. */
  const LIMITS: readonly (readonly [string, readonly string[], readonly string[]])[] = [
    ['netmap:ix0^#', ['0', '4094'], ['4095']],
    ['netmap:ix0@#', ['1', '65535'], ['0', '65536']],
    ['netmap:ix0@conf:rings=#', ['1', '65535'], ['0', '65536']],
    ['netmap:ix0@conf:rx-slots=#', ['1', '65536'], ['0', '65537']],
    ['netmap:ix0@extmem:file=a,buf-num=#', ['1', '4294967295'], ['0', '4294967296']],
    ['netmap:ix0@offset:#', ['0', '65535'], ['65536']],
    ['netmap:ix0@offset:initial=0,bits=#', ['1', '64'], ['0', '65']],
    ['netmap:ix0{#', ['a'.repeat(15)], ['', 'a'.repeat(16)]],
    ['vale#:a', ['', 'a'.repeat(11)], ['a'.repeat(12)]],
    ['vale0:#', ['', 'a'.repeat(15)], ['a'.repeat(16)]],
    ['xdp:#', ['a'.repeat(15)], ['', '.', '..', 'a'.repeat(16)]],
    ['xdp:eth0@queue=#', ['0', '4095', '0:4095', '5:5'], ['4096', '0:4096', '5:4', ':1', '1:']],
    ['xdp:eth0@slots=#', ['16', '65536'], ['8', '131072']],
    ['xdp:eth0@busy-poll=#', ['0', '65535'], ['65536']],
    ['sim:#', ['a'.repeat(64)], ['', '.a', 'a'.repeat(65)]],
    ['sim:a@slots=#', ['2', '65536'], ['1', '65537']],
    ['sim:a@rings=#', ['1', '64'], ['0', '65']],
    ['sim:a@load=#', ['0%', '100%'], ['100.1%', '1.001']],
    ['sim:a@step=#', ['1ns'], ['0', '0.5ns']],
    ['sim:a@buf=#', ['64', '65472'], ['0', '65', '65536']],
    ['sim:a@seed=#', ['0', '4294967295'], ['4294967296']],
    // 4 bytes are FCS; the rest goes into buffers of 2048 bytes, 64 at most.
    ['sim:a@size=#', ['64', '131076'], ['63', '131077']],
    ['sim:a@size=4100,frags=#', ['2', '64'], ['1', '65']],
    ['sim:a@frags=#', ['60'], ['61']],
    ['sim:a@slots=8,frags=#', ['7'], ['8']],
    ['sim:a@slots=#,size=2053', ['3'], ['2']],
    ['pipe:lab{1@slots=#', ['2', '65536'], ['1', '65537']],
  ];

  it('are kept, to the number', () => {
    for (const [form, inside, outside] of LIMITS) {
      for (const value of inside) assert.doesNotThrow(() => parsePortSpec(form.replace('#', value)), form + value);
      for (const value of outside)
        assert.throws(() => parsePortSpec(form.replace('#', value)), UsageError, form + value);
    }
  });
});

describe('any text', () => {
  /** Texts made of pieces of the grammar, most of them nearly right. */
  const nearly = fc
    .array(
      fc.oneof(
        fc.constantFrom('netmap:', 'vale0:', 'xdp:', 'sim:a', 'pipe:lab', 'pcap:', 'ix0', 'vale'),
        fc.constantFrom('^', '*', '+', '-', '{', '}', '/', '@', ':', ',', '=', '.', '\0', '\n', 'é', '\u{1f600}'),
        fc.constantFrom(
          'share=',
          'conf:',
          'rings=',
          'extmem:',
          'file=',
          'offset:',
          'queue=',
          'slots=',
          'netns=',
          'out=',
        ),
        fc.constantFrom(
          'zerocopy',
          'copy',
          'mode=',
          'size=',
          'rate=',
          'flap=',
          'load=',
          'frags=',
          'check=',
          'itr=',
          'busy-poll=',
        ),
        fc.constantFrom(
          '0',
          '1',
          '64',
          '2048',
          '10G',
          '124us',
          '1s/1ms',
          '50%',
          '1e9',
          'x',
          'RT',
          'off',
          'all',
          'generic',
        ),
      ),
      { maxLength: 9 },
    )
    .map((pieces) => pieces.join(''));

  it('is read, or refused by a UsageError with the caret inside the text', () => {
    fc.assert(
      fc.property(fc.oneof(nearly, fc.string({ unit: 'binary' })), (text) => {
        let spec;
        try {
          spec = parsePortSpec(text);
        } catch (error) {
          assert.ok(error instanceof UsageError, String(error));
          assert.ok(error.at >= 0 && error.at <= text.length);
          const [, shown, caret, ...more] = error.message.split('\n');
          assert.deepEqual(more, []);
          assert.match(caret, /^ {2,}\^$/);
          assert.ok(caret.length - 1 <= shown.length);
          return;
        }
        assert.equal(spec.text, text);
        const canonical = formatPortSpec(spec);
        assert.deepEqual(parsePortSpec(canonical), { ...spec, text: canonical });
      }),
      { numRuns: 5000 },
    );
  });
});

describe('any spec', () => {
  const chars = (set: string, maxLength: number, minLength = 1) =>
    fc.string({ unit: fc.constantFrom(...set.split('')), minLength, maxLength });
  const ALNUM = 'abcXYZ019_';
  const ifname = chars('abz09._-', 15).filter((name) => name !== '.' && name !== '..');
  /** Behind netmap's names a hyphen and digits mean a ring. */
  const netmapName = ifname.filter((name) => !/-\d+$/.test(name) && !/^vale\d*$/.test(name));
  const poolName = chars('abz09._-', 64).filter((name) => !name.startsWith('.'));
  const pipeId = chars(ALNUM, 15);
  const ring = fc.nat(4094);
  const count = fc.integer({ min: 1, max: 65535 });
  const optional = <T extends object>(model: { [K in keyof T]-?: fc.Arbitrary<T[K]> }) =>
    fc.record(model, { requiredKeys: [] });

  const base = fc.oneof(
    netmapName.map((name) => ({ vale: false, name })),
    fc.tuple(chars(ALNUM, 11, 0), netmapName).map(([id, port]) => ({ vale: true, name: `vale${id}:${port}` })),
  );
  const port = base.chain(({ vale, name }) =>
    fc.oneof(
      fc.constantFrom('nic' as const, 'host' as const, 'nic-host' as const).map((mode) => ({ vale, name, mode })),
      fc
        .tuple(fc.constantFrom('one-nic' as const, 'one-host' as const), ring)
        .map(([mode, k]) => ({ vale, name, mode, ring: k })),
      fc
        .tuple(
          fc.constantFrom('pipe-master' as const, 'pipe-slave' as const),
          pipeId,
          fc.option(ring, { nil: undefined }),
        )
        .map(([mode, pipe, k]) => ({
          ...{ vale, name: `${name}${mode === 'pipe-master' ? '{' : '}'}${pipe}`, mode, pipe },
          ...(k === undefined ? {} : { ring: k }),
        })),
    ),
  );
  const path = chars('ab/.=:-x ', 20).filter((file) => file !== '');
  const objects = fc.integer({ min: 1, max: 0xffffffff });
  const flags = fc
    .record({
      exclusive: fc.boolean(),
      rxOnly: fc.boolean(),
      txOnly: fc.boolean(),
      monitorTx: fc.boolean(),
      monitorRx: fc.boolean(),
      zcopyMonitor: fc.boolean(),
    })
    .filter((f) => !(f.rxOnly && f.txOnly) && (!f.zcopyMonitor || f.monitorTx || f.monitorRx));
  const conf = optional({
    ...{ rings: count, txRings: count, rxRings: count, hostRings: count, hostTxRings: count, hostRxRings: count },
    ...{ slots: count, txSlots: count, rxSlots: count },
  }).filter((c) => Object.keys(c).length > 0);
  const extmem = fc.record(
    {
      file: path,
      ifNum: objects,
      ifSize: objects,
      ringNum: objects,
      ringSize: objects,
      bufNum: objects,
      bufSize: objects,
    },
    { requiredKeys: ['file'] },
  );
  const offset = fc.record(
    { initial: fc.nat(65535), bits: fc.integer({ min: 1, max: 64 }) },
    { requiredKeys: ['initial'] },
  );
  const memory = fc.oneof(
    fc.constant({}),
    count.map((memId) => ({ memId })),
    base.map(({ vale, name }) => ({ share: `${vale ? '' : 'netmap:'}${name}` })),
  );
  const netmapSpec = fc
    .tuple(port, flags, memory, optional({ conf, extmem, offset }))
    .map(([where, how, region, options]) => ({ kind: 'netmap' as const, ...where, ...how, ...region, ...options }));

  const queues = fc.oneof(
    fc.constant('all' as const),
    fc.tuple(fc.nat(2000), fc.nat(2000)).map(([first, more]) => ({ first, last: first + more })),
  );
  const xdpSpec = fc
    .record(
      {
        kind: fc.constant('xdp' as const),
        ifname,
        queues,
        mode: fc.constantFrom('native', 'generic', 'auto'),
        copy: fc.constantFrom('zerocopy', 'copy', 'auto'),
        slots: fc.integer({ min: 4, max: 16 }).map((power) => 2 ** power),
        frame: fc.constantFrom(2048, 4096),
        busyPoll: fc.nat(65535),
        netns: chars('ab-_.= é', 20).filter((name) => name !== '.' && name !== '..'),
      },
      { requiredKeys: ['kind', 'ifname', 'queues', 'mode', 'copy', 'slots', 'frame', 'busyPoll'] },
    )
    .filter(({ mode, copy }) => mode !== 'generic' || copy !== 'zerocopy');

  const time = fc.maxSafeNat();
  const someTime = fc.maxSafeInteger().map((n) => Math.abs(n) || 1);
  const share = fc.double({ min: 0, max: 1, noNaN: true }).map(Math.abs);
  const simSpec = fc.record(
    {
      kind: fc.constant('sim' as const),
      name: poolName,
      rate: fc.oneof(
        fc.constant(Infinity),
        fc.integer({ min: 1, max: 4e11 }),
        fc.double({ min: 1, max: 1e15, noNaN: true }),
      ),
      load: share,
      // With slots of 130 and more and buffers of 2048 and more, 64 bytes to 64 buffers always fit, whatever is skipped.
      size: fc.array(fc.record({ size: fc.integer({ min: 64, max: 131076 }), weight: count }), {
        minLength: 1,
        maxLength: 5,
      }),
      slots: fc.integer({ min: 130, max: 65536 }),
      rings: fc.integer({ min: 1, max: 64 }),
      itr: time,
      txtimer: time,
      frags: fc.constant(0),
      skip: time.map((every) => (every === 1 ? 0 : every)),
      budget: time,
      drop: share,
      wedge: time,
      flap: fc.record({ up: someTime, down: someTime }),
      clock: fc.constantFrom('real', 'virtual'),
      step: someTime,
      count: time,
      check: fc.boolean(),
      buf: fc.integer({ min: 32, max: 1023 }).map((n) => n * 64),
      seed: fc.nat(0xffffffff),
    },
    {
      requiredKeys: [
        ...(['kind', 'name', 'rate', 'load', 'size', 'slots', 'rings', 'itr', 'txtimer', 'frags', 'skip'] as const),
        ...(['budget', 'drop', 'wedge', 'clock', 'step', 'count', 'check', 'buf', 'seed'] as const),
      ],
    },
  );
  const pipeSpec = fc.record({
    kind: fc.constant('pipe' as const),
    name: poolName,
    pipe: pipeId,
    end: fc.constantFrom('master', 'slave'),
    slots: fc.integer({ min: 2, max: 65536 }),
  });
  const file = fc
    .string({
      unit: fc.oneof(
        fc.constantFrom('@', ',', 'out=', 'follow', ':', '/'),
        fc.string({ minLength: 1, maxLength: 1, unit: 'binary' }),
      ),
      minLength: 1,
    })
    .filter((name) => !name.includes('\0') && !/[@,](short|follow|out|format)([=@,]|$)/.test(name))
    .filter((name) => !/\.(gz|zst|xz|bz2|lz4)$/i.test(name));
  const pcapSpec = fc
    .record(
      {
        kind: fc.constant('pcap' as const),
        read: file.filter((name) => !name.startsWith('@')),
        write: file,
        short: fc.constantFrom('drop', 'pad', 'cut'),
        follow: fc.constant(true),
        format: fc.constantFrom('pcap', 'pcapng'),
      },
      { requiredKeys: ['kind'] },
    )
    .filter(({ read, short, follow }) => read !== undefined || (short === undefined && follow === undefined))
    .filter(({ write, format }) => write !== undefined || format === undefined)
    .filter(({ read, write }) => read !== undefined || write !== undefined);
  const autoSpec = fc.record({
    kind: fc.constant('auto' as const),
    ifname: ifname.filter((name) => !/^vale\d*$/.test(name) && !/\.pcap(ng)?$/.test(name)),
  });

  const kinds = { netmap: netmapSpec, xdp: xdpSpec, sim: simSpec, pipe: pipeSpec, pcap: pcapSpec, auto: autoSpec };
  for (const [kind, specs] of Object.entries(kinds)) {
    it(`of kind ${kind} is written and read back the same`, () => {
      fc.assert(
        fc.property(specs as fc.Arbitrary<Omit<PortSpec, 'text'>>, (generated) => {
          // Records come without a prototype at times; a copy is a plain object.
          const fields = structuredClone(generated);
          const text = formatPortSpec({ ...fields, text: '' } as PortSpec);
          assert.deepEqual(parsePortSpec(text), { ...fields, text });
        }),
        { numRuns: 500 },
      );
    });
  }
});
