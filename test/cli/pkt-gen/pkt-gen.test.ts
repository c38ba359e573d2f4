// pkt-gen from the outside: processes on pipes, files, simulated ports and veth, held against tshark and tcpdump.
import assert from 'node:assert/strict';
import { spawn, spawnSync, type ChildProcess } from 'node:child_process';
import { createWriteStream, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { setImmediate as nextTurn, setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import fc from 'fast-check';
import { parsePktGen } from '../../../lib/cli/pkt-gen/pkt-gen-options.js';
import { ratesOfRun } from '../../../lib/cli/pkt-gen/pkt-gen-text.js';
import { counters, openPort, parsePortSpec } from '../../../lib/index.js';
import { forwarder } from '../../support/forwarder.js';
import { skipWithout } from '../../support/needs.js';
import { UsageError } from '../../../lib/text/errors.js';
import { Pacer } from '../../../lib/gen/pacer.js';
import type { GenReport, Received, Sent } from '../../../lib/gen/gen-report.js';
import { readResults } from '../../../lib/measure/results/results.js';
import { Lab, skipWithoutLab, type Namespace } from '../../lab/lab.js';
import { Capture, says } from '../../lab/traffic.js';

const tool = fileURLToPath(new URL('../../../tools/pkt-gen.js', import.meta.url));
const captures = fileURLToPath(new URL('../../../../test/captures/', import.meta.url));

interface Times {
  count: number;
  minNs: number;
  p50Ns: number;
  p99Ns: number;
  maxNs: number;
}

interface Summary {
  type: 'summary';
  reason: string;
  seconds: number;
  sent: Omit<Sent, 'gaps'> & { gaps?: Times };
  received: Omit<Received, 'latency'> & { latency?: Times };
  reflected: { frames: number; ignored: number };
  stats: Record<string, number>;
}

interface Ended {
  code: number | null;
  stdout: string;
  stderr: string;
  summary: Summary;
}

interface Running {
  child: ChildProcess;
  ended: Promise<Ended>;
}

const running = new Set<ChildProcess>();
after(() => {
  for (const child of running) child.kill('SIGKILL');
});

/** Starts pkt-gen with --json; `summary` is its last line. */
function start(...args: string[]): Running {
  const child = spawn(process.execPath, [tool, '--json', '-T', '0', ...args], { stdio: ['ignore', 'pipe', 'pipe'] });
  running.add(child);
  const late = setTimeout(() => child.kill('SIGKILL'), 60_000);
  let stdout = '';
  let stderr = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => (stdout += text));
  child.stderr.setEncoding('utf8').on('data', (text: string) => (stderr += text));
  const ended = new Promise<Ended>((resolve) => {
    child.once('close', (code) => {
      running.delete(child);
      clearTimeout(late);
      const last = stdout.trim().split('\n').at(-1)!;
      const summary = (last.startsWith('{') ? JSON.parse(last) : {}) as Summary;
      resolve({ code, stdout, stderr, summary });
    });
  });
  return { child, ended };
}

/** Runs pkt-gen to its end, which must be a good one. */
async function finish(...args: string[]): Promise<Summary> {
  const { code, stderr, summary } = await start(...args).ended;
  assert.equal(code, 0, stderr);
  return summary;
}

/** Exchanges two fields of `length` bytes that lie behind each other. */
function swap(u8: Uint8Array, at: number, length: number): void {
  const first = u8.slice(at, at + length);
  u8.copyWithin(at, at + length, at + 2 * length);
  u8.set(first, at + length);
}

const withoutTshark = skipWithout('tshark');

/** The fields of every frame of a capture, as tshark reads them with all checksums verified. */
function fieldsOf(file: string, ...fields: string[]): string[][] {
  const args = ['-n', '-r', file, '-o', 'udp.check_checksum:TRUE', '-o', 'ip.check_checksum:TRUE', '-T', 'fields'];
  const { status, stdout, stderr } = spawnSync('tshark', [...args, ...fields.flatMap((field) => ['-e', field])], {
    encoding: 'utf8',
    maxBuffer: 1 << 28,
  });
  assert.equal(status, 0, stderr);
  return stdout
    .split('\n')
    .slice(0, -1)
    .map((line) => line.split('\t'));
}

/** What tshark says of a checksum that is right. */
const GOOD = '1';

/** VLAN ids as --vlan has them; tshark keeps the outer of two apart, as 802.1ad does. */
const vlanText = (outer: string, inner: string): string => [outer, inner].filter((id) => id !== '').join(':');

describe('pkt-gen', () => {
  let folder: string;
  let files = 0;
  before(() => {
    folder = mkdtempSync(join(tmpdir(), 'pkt-gen-'));
  });
  after(() => {
    rmSync(folder, { recursive: true });
  });
  const file = (): string => join(folder, `${files++}.pcap`);
  const pipe = (): string => `pkt-gen-${process.pid}-${files++}`;

  describe('ping', () => {
    /** Runs ping on one end of a pipe; `turn` does to each frame at the other what is sent back. */
    async function pinged(turn: (frame: Uint8Array, at: number) => void, ...args: string[]): Promise<Ended> {
      const name = pipe();
      const far = openPort(parsePortSpec(`pipe:${name}}1`));
      try {
        const [rx, tx] = [far.rx[0], far.tx[0]];
        const forward = forwarder(rx, tx, new Float64Array(counters.COUNTERS));
        const { child, ended } = start('-i', `pipe:${name}{1`, '-f', 'ping', '-S', '02:00:00:00:00:01', ...args);
        while (child.exitCode === null && child.signalCode === null) {
          far.rxsync();
          while (rx.space > 0) {
            turn(rx.u8, rx.dataStart(rx.head));
            forward(1);
          }
          far.txsync();
          await nextTurn();
        }
        return await ended;
      } finally {
        far.close();
      }
    }

    it('times the answers of a pong that only exchanges addresses', async () => {
      const turn = (frame: Uint8Array, at: number): void => {
        swap(frame, at, 6);
        swap(frame, at + 26, 4);
      };
      const { code, stderr, summary } = await pinged(turn, '-n', '20');
      assert.equal(code, 0, stderr);
      const { sent, received } = summary;
      assert.deepEqual([sent.frames, received.tagged, received.lost, received.latency?.count], [20, 20, 0, 20]);
    });

    it('takes its own frames that come back for no answers, and fails when there is none', async () => {
      const { code, stderr, summary } = await pinged(() => undefined, '-n', '1');
      assert.deepEqual([summary.sent.frames, summary.received.frames, summary.received.tagged], [1, 1, 0]);
      assert.equal(code, 1);
      assert.match(stderr, /none of 1 pings was answered/);
    });
  });

  describe('tx → pipe → rx, two processes: what was sent is what is counted', () => {
    for (const { title, rate, frames } of [
      { title: '2 kpps', rate: ['-R', '2k'], frames: 1000 },
      { title: '10 kpps', rate: ['-R', '10k'], frames: 5000 },
      { title: '100 kpps', rate: ['-R', '100k'], frames: 50_000 },
      { title: 'as fast as possible', rate: [], frames: 200_000 },
    ])
      it(title, async () => {
        const name = pipe();
        const rx = start('-i', `pipe:${name}{1`, '-f', 'rx', '-n', String(frames));
        await says(rx.child, /"open"/);
        const sent = await finish('-i', `pipe:${name}}1`, '-f', 'tx', '-n', String(frames), ...rate);
        const { code, summary, stderr } = await rx.ended;
        assert.equal(code, 0, stderr);
        assert.equal(sent.sent.frames, frames);
        assert.equal(sent.sent.unsent, 0);
        const { latency, ...received } = summary.received;
        assert.deepEqual(received, {
          ...{ frames, bytes: 60 * frames, tagged: frames, streams: 1 },
          ...{ lost: 0, duplicates: 0, reordered: 0, before: 0 },
          // A busy machine may hold a frame up for longer than a latency is believed.
          otherClock: frames - (latency?.count ?? 0),
          old: 0,
        });
        assert.ok(latency !== undefined && latency.minNs > 0);
        if (rate.length === 0) return;
        assert.equal(sent.sent.gaps?.count, frames - 1);
        const { gaps, meanDeviationNs, givenUp } = sent.sent;
        console.log(
          `# ${title}: frame to frame median ${gaps.p50Ns} ns, 99 % ${gaps.p99Ns} ns, ` +
            `max ${gaps.maxNs} ns; mean deviation ${Math.round(meanDeviationNs!)} ns; given up ${givenUp}`,
        );
      });
  });

  it('a receiver that is there first sees a stream from its first frame, one that comes later says what it missed', async () => {
    const name = pipe();
    const first = start('-i', `pipe:${name}{1`, '-f', 'rx', '-n', '10');
    await says(first.child, /"open"/);
    const tx = start('-i', `pipe:${name}}1`, '-f', 'tx', '-R', '2k');
    assert.equal((await first.ended).summary.received.before, 0);
    const { received } = await finish('-i', `pipe:${name}{1`, '-f', 'rx', '-n', '500');
    assert.equal(received.before, 10);
    assert.equal(received.lost, 0);
    tx.child.kill('SIGINT');
    assert.equal((await tx.ended).code, 0);
    // What waits in a pipe keeps its memory: take it out.
    await finish('-i', `pipe:${name}{1`, '-f', 'rx', '-t', '0.3');
  });

  it('prints nothing after the summary, though a report was on its way when the run ended', () => {
    const args = ['-i', 'sim:a', '-f', 'rx', '-T', '100', '-t', '0.2', '--json'];
    for (let run = 0; run < 6; run++) {
      const { stdout, stderr } = spawnSync(process.execPath, [tool, ...args], { encoding: 'utf8' });
      assert.match(stdout.trim().split('\n').at(-1)!, /^{"type":"summary"/, stderr);
    }
  });

  it("tx → sim: the simulated wire carried what pkt-gen says was sent, at three rates, several rings' streams too", async () => {
    for (const args of [['-R', '2k'], ['-R', '20k'], ['--imix'], ['-l', '9018']]) {
      const { sent, stats } = await finish('-i', 'sim:a@rings=2,check=off', '-f', 'tx', '-n', '2000', ...args);
      assert.equal(sent.frames, 2000);
      assert.equal(stats['sent'], 2000);
      assert.equal(stats['sentBytes'], sent.bytes);
    }
  });

  it('rx ← sim: counts the frames that arrive, and ends with them', async () => {
    const { received, stats, reason } = await finish('-i', 'sim:a@rate=100M,size=128,count=3000', '-f', 'rx');
    assert.equal(reason, 'ended');
    assert.equal(received.frames, 3000 - stats['missed']);
    assert.equal(received.bytes, 124 * received.frames);
    assert.equal(received.tagged, 0);
  });

  it('rx ← a file: loss is told, latency is not: the frames were sent in another life', async () => {
    const path = file();
    await finish('-i', `pcap:@out=${path}`, '-f', 'tx', '-n', '20');
    const { received } = await finish('-i', `pcap:${path}`, '-f', 'rx');
    assert.deepEqual([received.tagged, received.lost, received.otherClock], [20, 0, 20]);
    assert.equal(received.latency, undefined);
  });

  describe('several threads', () => {
    it("tx → sim: exactly the frames asked for, each thread's rings streams of their own", async () => {
      const { sent, stats } = await finish('-i', 'sim:a@rings=5,check=off', '-f', 'tx', '-n', '20001', '-c', '3');
      assert.deepEqual([sent.frames, sent.bytes, sent.unsent], [20_001, 60 * 20_001, 0]);
      assert.equal(stats['sent'], 20_001);
    });
    it('tx at a rate: each thread has its share of it', async () => {
      const { sent } = await finish('-i', 'sim:a@rings=2', '-f', 'tx', '-n', '1000', '-c', '2', '-R', '2k');
      assert.deepEqual([sent.frames, sent.targetPps, sent.gapNs], [1000, 2000, 1e6]);
      // Between n frames of a thread lie n - 1 gaps.
      assert.equal(sent.gaps!.count, 1000 - 2);
    });
    it('rx ← sim: every frame of every ring is counted, or missed', async () => {
      const port = 'sim:a@rings=3,rate=100M,size=128,count=3001';
      const { received, stats, reason } = await finish('-i', port, '-f', 'rx', '-c', '2');
      assert.equal(reason, 'ended');
      assert.equal(stats['offered'], 3001);
      assert.equal(received.frames, 3001 - stats['missed']);
      assert.equal(received.bytes, 124 * received.frames);
    });
    it('rx -n: not one frame more', async () => {
      const { received, reason } = await finish('-i', 'sim:a@rings=2,rate=1G', '-f', 'rx', '-c', '2', '-n', '5003');
      assert.deepEqual([received.frames, reason], [5003, 'frames']);
    });
    it('a signal stops all of them, with one summary', async () => {
      const rx = start('-i', 'sim:a@rings=2,rate=1M', '-f', 'rx', '-c', '2');
      await says(rx.child, /"open"/);
      rx.child.kill('SIGINT');
      const { code, summary, stdout } = await rx.ended;
      assert.equal(code, 0);
      assert.equal(summary.reason, 'stopped');
      assert.equal(stdout.match(/"summary"/g)?.length, 1);
    });
    it('when one cannot open its part the run fails, and says why once', async () => {
      const { code, stderr } = await start('-i', 'sim:a@rings=2,buf=64', '-f', 'tx', '-6', '-c', '2').ended;
      assert.equal(code, 2);
      assert.equal(stderr.match(/buffers of 64 bytes do not hold the headers/g)?.length, 1);
    });
    for (const { args, message } of [
      { args: ['-i', 'sim:a', '-f', 'tx', '-c', '2'], message: /1 ring each way, .* -c 1, or .* rings=2 in its name/ },
      { args: ['-i', 'sim:a@rings=4', '-f', 'tx', '-c', '3', '-p', '2'], message: /3 threads cannot send on 2 rings/ },
      {
        args: ['-i', 'sim:a@rings=4,count=2', '-f', 'rx', '-c', '3'],
        message: /fewer frames than 3 threads: write -c 2/,
      },
      { args: ['-i', 'sim:a@rings=4', '-f', 'tx', '-p', '9'], message: /has 4 tx rings; write -p 4 or less/ },
      { args: ['-i', 'pipe:x{1', '-f', 'rx', '-c', '2'], message: /a pipe has one ring each way/ },
      { args: ['-i', 'pcap:@out=/dev/null', '-f', 'tx', '-c', '2'], message: /by one thread; leave -c out/ },
      { args: ['-i', 'sim:a@rings=2', '-f', 'ping', '-c', '2'], message: /--threads does not go with -f ping/ },
      { args: ['-i', 'sim:a@rings=2', '-f', 'tx', '-P', 'x.pcap', '-c', '2'], message: /--threads is about frames/ },
      { args: ['-i', 'sim:a@rings=2', '-f', 'tx', '-c', '0'], message: /threads/ },
      { args: ['-i', 'sim:a@rings=2', '-f', 'tx', '-c', '2', '-a', '4000'], message: /CPU 400[01]/ },
    ])
      it(`refused: ${args.join(' ')}`, async () => {
        const { code, stderr } = await start(...args).ended;
        assert.match(stderr, message);
        assert.equal(code, 2);
      });
  });

  describe('into a file, read by tshark: valid UDP with right checksums', { skip: withoutTshark }, () => {
    for (const { title, args, vlan } of [
      { title: 'IPv4', args: ['-4'], vlan: '' },
      { title: 'IPv6', args: ['-6'], vlan: '' },
      { title: 'IPv4, a VLAN tag', args: ['--vlan', '100'], vlan: '100' },
      { title: 'IPv6, two VLAN tags, IMIX', args: ['-6', '--vlan', '100:200', '--imix'], vlan: '100:200' },
      { title: 'IPv4, no tag of ours', args: ['--no-tag'], vlan: '' },
      { title: 'IPv4, random payloads and sizes', args: ['-z', '-Z', '1518'], vlan: '' },
      { title: 'IPv6, random payloads and sizes', args: ['-6', '-z', '-l', '66', '-Z', '1518'], vlan: '' },
      { title: 'IPv4, frames of five slots', args: ['-l', '9018', '-z'], vlan: '' },
      {
        title: 'IPv4, ranges',
        args: ['-s', '10.0.0.250:65530-10.0.1.5:65535', '-S', '02:00:00:00:00:f0-02:00:00:00:01:10'],
        vlan: '',
      },
      { title: 'IPv6, ranges', args: ['-d', '[fd00::fffe]:1-[fd00::1:2]:3'], vlan: '' },
    ])
      it(title, async () => {
        const path = file();
        await finish('-i', `pcap:@out=${path}`, '-f', 'tx', '-n', '300', ...args);
        const v6 = args.includes('-6') || title.includes('IPv6');
        const ip = v6 ? 'ipv6' : 'ip';
        const frames = fieldsOf(
          path,
          'udp.checksum.status',
          'ip.checksum.status',
          'vlan.id',
          'ieee8021ad.id',
          `${ip}.version`,
          'udp.length',
        );
        assert.equal(frames.length, 300);
        for (const [udp, header, inner, outer, version, length] of frames) {
          assert.equal(udp, GOOD);
          assert.equal(header, v6 ? '' : GOOD);
          assert.equal(vlanText(outer, inner), vlan);
          assert.equal(version, v6 ? '6' : '4');
          assert.ok(Number(length) >= 8);
        }
      });

    it('ranges as tshark sees them', async () => {
      const path = file();
      await finish(
        '-i',
        `pcap:@out=${path}`,
        '-f',
        'tx',
        '-n',
        '8',
        '-s',
        '10.0.0.255:7-10.0.1.0:8',
        '-d',
        '10.1.0.1:9',
      );
      assert.deepEqual(
        fieldsOf(path, 'ip.src', 'udp.srcport', 'ip.dst', 'udp.dstport').map((fields) => fields.join(' ')),
        Array.from({ length: 8 }, (_, k) => `10.0.${k & 2 ? '1.0' : '0.255'} ${7 + (k & 1)} 10.1.0.1 9`),
      );
    });

    it('pong swaps addresses and ports, marks the tag, keeps the checksums right, and answers nothing twice', async () => {
      for (const version of ['-4', '-6']) {
        const [asked, answered, again] = [file(), file(), file()];
        await finish(
          '-i',
          `pcap:@out=${asked}`,
          '-f',
          'tx',
          '-n',
          '50',
          version,
          '-s',
          version === '-4' ? '10.0.0.1:1-10.0.0.9:3' : 'fd00::1-fd00::9',
          '--vlan',
          '7',
        );
        const one = await finish('-i', `pcap:${asked}@out=${answered}`, '-f', 'pong');
        assert.deepEqual([one.reflected.frames, one.reflected.ignored], [50, 0]);
        const ip = version === '-4' ? 'ip' : 'ipv6';
        const ends = ['eth', ip, 'udp'].map((layer) =>
          layer === 'udp' ? ['udp.srcport', 'udp.dstport'] : [`${layer}.src`, `${layer}.dst`],
        );
        const there = fieldsOf(asked, ...ends.flat());
        const back = fieldsOf(answered, ...ends.map(([src, dst]) => [dst, src]).flat());
        assert.deepEqual(back, there);
        for (const [udp, payload] of fieldsOf(answered, 'udp.checksum.status', 'udp.payload')) {
          assert.equal(udp, GOOD);
          assert.equal(payload.slice(4, 12), '6e6d6221');
        }
        const two = await finish('-i', `pcap:${answered}@out=${again}`, '-f', 'pong');
        assert.deepEqual([two.reflected.frames, two.reflected.ignored], [0, 50]);
      }
    });

    it('pong answers a foreign payload: addresses are swapped, the payload is as it was', async () => {
      const [asked, answered] = [file(), file()];
      // The payload of netmap's pkt-gen is not ours either; 64 bytes are enough for its number and time.
      const args = ['-n', '40', '--no-tag', '-z', '-s', '10.0.0.1:7-10.0.0.9:9'];
      await finish('-i', `pcap:@out=${asked}`, '-f', 'tx', ...args);
      const { reflected } = await finish('-i', `pcap:${asked}@out=${answered}`, '-f', 'pong');
      assert.deepEqual([reflected.frames, reflected.ignored], [40, 0]);
      const there = ['eth.src', 'eth.dst', 'ip.src', 'ip.dst', 'udp.srcport', 'udp.dstport'];
      const back = ['eth.dst', 'eth.src', 'ip.dst', 'ip.src', 'udp.dstport', 'udp.srcport'];
      const same = ['udp.payload', 'udp.checksum.status'];
      assert.deepEqual(fieldsOf(answered, ...back, ...same), fieldsOf(asked, ...there, ...same));
    });

    it('a replayed capture comes out as it went in', async () => {
      for (const name of ['afs.pcap', '802.1ad_QinQ.pcap', 'bigtcp-ipv4.pcap']) {
        const path = file();
        const { sent } = await finish(
          '-i',
          `pcap:@out=${path}`,
          '-f',
          'tx',
          '-P',
          join(captures, name),
          '--speed',
          'max',
        );
        const raw = (from: string): string => {
          const { stdout } = spawnSync('tshark', ['-n', '-r', from, '-x'], { encoding: 'utf8', maxBuffer: 1 << 28 });
          return stdout;
        };
        assert.ok(sent.frames > 0);
        assert.equal(raw(path), raw(join(captures, name)), name);
      }
    });
  });

  it('a capture keeps its own timing, scaled by --speed, and is sent --loops times', async () => {
    const path = file();
    await finish('-i', `pcap:@out=${path}`, '-f', 'tx', '-n', '5', '-R', '10'); // 400 ms from first to last
    const own = await finish('-i', `pcap:@out=${file()}`, '-f', 'tx', '-P', path);
    assert.equal(own.sent.frames, 5);
    // A frame may be late, never early; the first one's own lateness is what the second run cannot see.
    assert.ok(own.seconds > 0.3, `${own.seconds}`);
    const slower = await finish('-i', `pcap:@out=${file()}`, '-f', 'tx', '-P', path, '--speed', '0.5');
    assert.ok(slower.seconds > 0.6, `${slower.seconds}`);
    const thrice = await finish('-i', `pcap:@out=${file()}`, '-f', 'tx', '-P', path, '--speed', 'max', '--loops', '3');
    assert.equal(thrice.sent.frames, 15);
  });

  it(
    'a capture from a FIFO: waited for, stopped while it waits, sent as it comes',
    { skip: skipWithout('mkfifo') },
    async () => {
      const fifo = file();
      const path = file();
      spawnSync('mkfifo', [fifo]);
      const waiting = start('-i', 'sim:a', '-f', 'tx', '-P', fifo);
      await says(waiting.child, /"open"/);
      waiting.child.kill('SIGINT');
      const { code, summary } = await waiting.ended;
      assert.deepEqual([code, summary.reason, summary.sent.frames], [0, 'stopped', 0]);

      await finish('-i', `pcap:@out=${path}`, '-f', 'tx', '-n', '20');
      const bytes = readFileSync(path);
      const sender = start('-i', `pcap:@out=${file()}`, '-f', 'tx', '-P', fifo, '--speed', 'max');
      await says(sender.child, /"open"/);
      const writer = createWriteStream(fifo);
      const again = await start('-i', 'sim:a', '-f', 'tx', '-P', fifo, '--loops', '2').ended;
      assert.equal(again.code, 2);
      assert.match(again.stderr, /is a FIFO, .* leave --loops out/);
      // In pieces: of the header, of a frame, and the rest.
      for (const piece of [bytes.subarray(0, 10), bytes.subarray(10, 60), bytes.subarray(60)]) {
        writer.write(piece);
        await sleep(20);
      }
      writer.end();
      const { summary: sent } = await sender.ended;
      assert.deepEqual([sent.reason, sent.sent.frames], ['ended', 20]);
    },
  );

  it('a damaged capture is sent as far as it goes, then told: exit 1', async () => {
    const path = file();
    await finish('-i', `pcap:@out=${path}`, '-f', 'tx', '-n', '5');
    spawnSync('truncate', ['-s', '-10', path]);
    const { code, summary, stderr } = await start('-i', `pcap:@out=${file()}`, '-f', 'tx', '-P', path, '--speed', 'max')
      .ended;
    assert.equal(code, 1);
    assert.equal(summary.sent.frames, 4);
    assert.match(stderr, /truncated at byte/);
  });

  it('ping and pong on a pipe: every one answered', async () => {
    for (const args of [
      ['-n', '50'],
      ['-n', '50', '-6', '--vlan', '9'],
      ['-n', '100', '-R', '1k', '-l', '1518'],
    ]) {
      const name = pipe();
      const pong = start('-i', `pipe:${name}{1`, '-f', 'pong');
      await says(pong.child, /"open"/);
      const { sent, received } = await finish('-i', `pipe:${name}}1`, '-f', 'ping', ...args);
      assert.equal(sent.frames, Number(args[1]));
      assert.equal(received.tagged, sent.frames);
      assert.deepEqual([received.lost, received.duplicates, received.reordered], [0, 0, 0]);
      assert.ok(received.latency!.minNs > 0);
      pong.child.kill('SIGTERM');
      const { code, summary } = await pong.ended;
      assert.equal(code, 0);
      assert.equal(summary.reflected.frames, sent.frames);
      assert.equal(summary.reason, 'stopped');
    }
  });

  it('ping without a pong: unanswered, and it ends', async () => {
    const { code, summary } = await start('-i', 'sim:a@load=0', '-f', 'ping', '-n', '2', '-R', '100', '-b', '8').ended;
    assert.equal(code, 1);
    const { sent, received } = summary;
    assert.equal(sent.frames, 2);
    assert.equal(received.tagged, 0);
    // 100 more would have been due while the last answer was awaited; nobody asked for them.
    assert.equal(sent.givenUp, 0);
  });

  it('rates are of the time in which frames flowed, not of the wait for them', () => {
    const flow = { frames: 1001, bytes: 60_060 };
    const of = (part: Partial<GenReport>): GenReport => ({ ns: 10e9, stats: {}, userNs: 0, systemNs: 0, ...part });
    // A thousand frames in one second, behind a first one: 1,000 a second, 84 bytes each on the wire.
    const span = { firstNs: 5e9, latestNs: 6e9, firstFrames: 1 };
    const { sent } = ratesOfRun(of({ reflected: { ...flow, unsent: 0, refused: 0, ignored: 0, span } }));
    assert.deepEqual(sent, { ...flow, pps: 1000, wireBitsPerSecond: 84 * 8 * 1000 });
    // All at once: over the run.
    const once = { ...span, latestNs: 5e9, firstFrames: 1001 };
    const alone = ratesOfRun(of({ reflected: { ...flow, unsent: 0, refused: 0, ignored: 0, span: once } }));
    assert.equal(alone.sent!.pps, 100.1);
    assert.equal(ratesOfRun(of({})).received, undefined);
  });

  it('a capture at a bit rate: each frame takes the time of its own size, from one round to the next too', async () => {
    const [from, to] = [file(), file()];
    await finish('-i', `pcap:@out=${from}`, '-f', 'tx', '-n', '10', '-l', '1500');
    const args = ['-f', 'tx', '-P', from, '-R', '10Mbit/s', '--loops', '20'];
    const { seconds, sent } = await finish('-i', `pcap:@out=${to}`, ...args);
    assert.equal(sent.frames, 200);
    // 199 frames of 1,520 bytes on the wire before the last.
    assert.ok(seconds >= (199 * 1520 * 8) / 10e6, `${seconds}`);
  });

  it('a capture without a frame to send is told, exit 1', async () => {
    const path = file();
    await finish('-i', `pcap:@out=${path}`, '-f', 'tx', '-n', '1');
    spawnSync('truncate', ['-s', '24', path]);
    const { code, stderr } = await start('-i', 'sim:a', '-f', 'tx', '-P', path).ended;
    assert.equal(code, 1);
    assert.match(stderr, /no frame in it could be sent/);
  });

  it('a result file that cannot be written is told before anything is sent', async () => {
    const { code, stdout, stderr } = await start('-i', 'sim:a', '-f', 'tx', '-n', '1', '--out', '/nowhere/x.jsonl')
      .ended;
    assert.equal(code, 2);
    assert.match(stderr, /\/nowhere/);
    assert.doesNotMatch(stdout, /summary|open/);
  });

  it('SIGINT ends a receiver with its summary and exit code 0', async () => {
    const rx = start('-i', `pipe:${pipe()}{1`, '-f', 'rx', '--wait', 'poll');
    await says(rx.child, /"open"/);
    rx.child.kill('SIGINT');
    const { code, summary } = await rx.ended;
    assert.equal(code, 0);
    assert.equal(summary.reason, 'stopped');
    assert.equal(summary.received.frames, 0);
  });

  it('on the virtual clock neither rates nor gaps are told, for they would be the machine’s', async () => {
    const path = file();
    const args = ['-i', 'sim:a@clock=virtual', '-f', 'tx', '-R', '10k', '-n', '100', '--out', path];
    const { stdout, summary } = await start(...args).ended;
    assert.deepEqual([summary.sent.frames, summary.sent.gapNs], [100, 100_000]);
    assert.doesNotMatch(stdout, /(sent|received)Pps|bitsPerSecond|gaps|deviation/i);
    const { metrics } = readResults(path).lines[0].result;
    assert.deepEqual(
      Object.keys(metrics).filter((name) => !name.startsWith('cpu_')),
      [],
    );
    const { stdout: text } = spawnSync(process.execPath, [tool, ...args], { encoding: 'utf8' });
    assert.match(text, /^sent 100 frames, 6,000 bytes$/m);
    assert.doesNotMatch(text.slice(text.indexOf('ran for')), /pps|bit\/s|frame to frame|jitter/);
  });

  it('results are added to a file that measure reads', async () => {
    const path = join(folder, 'results.jsonl');
    for (let k = 0; k < 2; k++) await finish('-i', 'sim:a', '-f', 'tx', '-n', '100', '--out', path);
    const { lines, notices } = readResults(path);
    assert.deepEqual(notices, []);
    assert.equal(lines.length, 2);
    assert.deepEqual(lines[0].result.cell, { port: 'sim:a', mode: 'tx', size: 64 });
  });

  describe('wrong usage: exit code 2, the cause and the remedy', () => {
    for (const { args, message } of [
      { args: [], message: /no port is named; write pkt-gen -i PORT/ },
      {
        args: ['-i', 'sim:a', '-f', 'both'],
        message: /-f, --function: 'both' is unknown; write tx or rx or ping or pong/,
      },
      { args: ['-i', 'sim:a', '-f', 'tx', '-l', '63'], message: /frame size/ },
      {
        args: ['-i', 'sim:a', '-f', 'tx', '-6', '-l', '64'],
        message: /64 is too small for UDP over IPv6: it takes 66/,
      },
      {
        args: ['-i', 'sim:a', '-f', 'ping', '-6', '-l', '70'],
        message: /no room for the tag that ping needs; write -l 84/,
      },
      { args: ['-i', 'sim:a', '-f', 'tx', '-4', '-d', 'fd00::1'], message: /destination is an IPv6 address/ },
      { args: ['-i', 'sim:a', '-f', 'tx', '-4', '-6'], message: /leave one out/ },
      { args: ['-i', 'sim:a', '-f', 'rx', '-l', '64'], message: /-f rx makes none/ },
      { args: ['-i', 'sim:a', '-f', 'rx', '-P', 'x.pcap'], message: /goes with -f tx/ },
      { args: ['-i', 'sim:a', '-f', 'tx', '-P', 'x.pcap', '-6'], message: /-P sends those of a capture/ },
      { args: ['-i', 'sim:a', '-f', 'tx', '--speed', '2'], message: /goes with -P/ },
      { args: ['-i', 'sim:a', '-f', 'tx', '-R', '10q'], message: /frame rate '10q'/ },
      { args: ['-i', 'sim:a', '-f', 'tx', '--vlan', '4095'], message: /VLAN id/ },
      { args: ['-i', 'sim:a', '-f', 'tx', '--imix', '-l', '64'], message: /--imix says the sizes/ },
      { args: ['-i', 'sim:a@buf=64', '-f', 'tx', '-6'], message: /buffers of 64 bytes do not hold the headers/ },
      {
        args: ['-i', 'sim:a', '-f', 'tx', '-n', '1', '--out', '/dev/null/x'],
        message: /path is no folder; name a file/,
      },
      { args: ['-i', 'pcap:@out=/nowhere/x.pcap', '-f', 'rx'], message: /receives nothing|nowhere/ },
    ])
      it(args.join(' ') || 'nothing', async () => {
        const { code, stderr, stdout } = await start(...args).ended;
        assert.match(stderr, message);
        assert.equal(code, /nowhere/.test(stderr) ? 1 : 2);
        if (code === 2) assert.doesNotMatch(stdout, /summary/);
      });
  });

  it('rates: frames, bits on the wire, and mixes by their mean size', () => {
    const rate = (...args: string[]): number | undefined =>
      parsePktGen(['-i', 'sim:a', '-f', 'tx', ...args]).settings.rate;
    assert.equal(rate('-R', '14.88M'), 14_880_000);
    assert.equal(rate('-R', '10Gbps'), 1e10 / (8 * 84));
    assert.equal(rate('-R', '10Gbit/s', '-l', '1518'), 1e10 / (8 * 1538));
    // 7 × 64, 4 × 594, 1 × 1518: 4,342 bytes in 12 frames, and 20 more each.
    assert.ok(Math.abs(rate('-R', '1Gbps', '--imix')! - (1e9 * 12) / (8 * (4342 + 240))) < 1e-6);
    assert.equal(rate(), undefined);
    assert.throws(() => rate('-R', '0'), UsageError);
  });

  it('the help counts the FCS, and the start says what is in the slot', () => {
    const help = spawnSync(process.execPath, [tool, '--help'], { encoding: 'utf8' });
    assert.equal(help.status, 0);
    assert.match(help.stdout, /-l, --size SIZE\s+Frame size in bytes with the 4-byte FCS/);
    const run = spawnSync(process.execPath, [tool, '-i', 'sim:a', '-f', 'tx', '-n', '1'], { encoding: 'utf8' });
    assert.match(run.stdout, /frames of 64 bytes with FCS \(60 in the slot\)/);
    assert.match(run.stdout, /sent 1 frames, 60 bytes/);
  });
});

describe('pacing', () => {
  it('sends what is due, never more than the bound at once, and gives up what is beyond', () => {
    const steps = fc.array(fc.integer({ min: 0, max: 200_000 }), { minLength: 1, maxLength: 200 });
    fc.assert(
      fc.property(
        steps,
        fc.integer({ min: 1, max: 64 }),
        fc.integer({ min: 1000, max: 1_000_000 }),
        (gaps, bound, rate) => {
          const pacer = new Pacer(rate, bound);
          let t = 1e15;
          let sent = 0;
          for (const gap of gaps) {
            t += gap;
            const due = pacer.due(t);
            assert.ok(due >= 0 && due <= bound);
            if (due > 0) pacer.left(due, t);
            sent += due;
            // The schedule in whole: one at the start, one every 1/rate after.
            const schedule = Math.floor(((t - 1e15 - gaps[0]) * rate) / 1e9) + 1;
            assert.ok(Math.abs(sent + pacer.givenUp - schedule) <= 1, `${sent} + ${pacer.givenUp}, ${schedule}`);
          }
          assert.equal(pacer.gaps.count, Math.max(0, sent - 1));
        },
      ),
    );
  });

  it('on time it sends one by one', () => {
    const pacer = new Pacer(1000, 512);
    const due = [0, 0.5e6, 1e6, 1.5e6, 2e6].map((t) => {
      const n = pacer.due(t);
      if (n > 0) pacer.left(n, t);
      return n;
    });
    assert.deepEqual(due, [1, 0, 1, 0, 1]);
    assert.deepEqual([pacer.gaps.min, pacer.gaps.max, pacer.deviation], [1e6, 1e6, 0]);
    assert.equal(pacer.wait(2.25e6), 0.75e6);
  });
});

describe('pkt-gen on veth', { skip: skipWithoutLab() }, () => {
  let lab: Lab;
  let a: Namespace;
  let b: Namespace;
  let folder: string;
  before(() => {
    folder = mkdtempSync(join(tmpdir(), 'pkt-gen-veth-'));
    lab = new Lab();
    [a, b] = [lab.namespace('a'), lab.namespace('b')];
    lab.veth(a, { name: 'a0' }, b, { name: 'b0' });
  });
  after(() => {
    lab.close();
    rmSync(folder, { recursive: true });
  });
  const portA = (): string => `xdp:a0@netns=${a.name}`;
  const portB = (): string => `xdp:b0@netns=${b.name},slots=4096`;

  for (const { rate, frames } of [
    { rate: '1k', frames: 1000 },
    { rate: '10k', frames: 3000 },
    { rate: '50k', frames: 4000 },
  ])
    it(`tx → veth → rx at ${rate}pps: what was sent is what is counted`, async () => {
      const rx = start('-i', portB(), '-f', 'rx', '-t', '30', '-n', String(frames));
      await says(rx.child, /"open"/);
      // All fit into the receiver's ring, and each burst into veth's queue of 256: however long somebody is held up.
      const { sent } = await finish('-i', portA(), '-f', 'tx', '-n', String(frames), '-R', rate, '-b', '64');
      const { summary, code, stderr } = await rx.ended;
      assert.equal(code, 0, stderr);
      assert.equal(sent.frames, frames);
      const { received } = summary;
      assert.equal(received.tagged, frames, JSON.stringify(summary));
      assert.deepEqual([received.lost, received.duplicates, received.reordered], [0, 0, 0], JSON.stringify(summary));
    });

  for (const args of [['-4'], ['-6'], ['-4', '--vlan', '42'], ['-6', '--vlan', '42:43'], ['-4', '-z', '-Z', '1518']])
    it(`tcpdump and tshark at the far end: ${args.join(' ')}`, { skip: skipWithout('tshark', 'tcpdump') }, async () => {
      const path = join(folder, `${args.join('')}.pcap`);
      const capture = await Capture.start(b, 'b0', path);
      await finish('-i', portA(), '-f', 'tx', '-n', '200', '-R', '2k', ...args);
      await capture.stop();
      const frames = fieldsOf(
        path,
        'udp.checksum.status',
        'ip.checksum.status',
        'udp.srcport',
        'ieee8021ad.id',
        'vlan.id',
      );
      assert.equal(frames.length, 200);
      const vlan = args.includes('--vlan') ? args.at(-1)! : '';
      for (const [udp, ip, port, outer, inner] of frames) {
        assert.deepEqual([udp, ip, port, vlanText(outer, inner)], [GOOD, args[0] === '-6' ? '' : GOOD, '1234', vlan]);
      }
    });

  it('ping and pong across veth: every one answered', async () => {
    const pong = start('-i', portB(), '-f', 'pong');
    await says(pong.child, /"open"/);
    const { sent, received } = await finish('-i', portA(), '-f', 'ping', '-n', '100');
    assert.equal(sent.frames, 100);
    assert.equal(received.tagged, 100);
    pong.child.kill('SIGINT');
    const { code, summary } = await pong.ended;
    assert.equal(code, 0);
    assert.equal(summary.reflected.frames, 100);
  });

  describe('several threads on an interface with four queues', () => {
    let c: Namespace;
    let d: Namespace;
    before(() => {
      [c, d] = [lab.namespace('c'), lab.namespace('d')];
      lab.veth(c, { name: 'c0' }, d, { name: 'd0' }, { queues: 4 });
    });
    const portC = (): string => `xdp:c0@netns=${c.name}`;
    const portD = (): string => `xdp:d0@netns=${d.name},slots=4096`;
    const untouched = (): void => {
      for (const [ns, link] of [[c, 'c0'] as const, [d, 'd0'] as const]) {
        assert.deepEqual(ns.xdpPrograms(link), []);
        assert.equal(ns.promiscuity(link), 0);
      }
    };

    for (const [tx, rx] of [
      [2, 3],
      [4, 1],
      [1, 4],
    ] as const)
      it(`tx -c ${tx} → veth → rx -c ${rx}: what was sent is what is counted, in a stream for each ring`, async () => {
        const sink = start('-i', portD(), '-f', 'rx', '-c', String(rx));
        await says(sink.child, /"open"/);
        assert.equal(d.xdpPrograms('d0').length, 1);
        assert.equal(d.promiscuity('d0'), 1);
        // By time, so that every thread sends on each of its rings, however late it starts.
        const { sent } = await finish('-i', portC(), '-f', 'tx', '-t', '1', '-R', '4k', '-b', '64', '-c', String(tx));
        await sleep(200); // until the last has been taken
        sink.child.kill('SIGINT');
        const { summary, code, stderr } = await sink.ended;
        assert.equal(code, 0, stderr);
        assert.ok(sent.frames > 0);
        const { frames, tagged, streams, lost, duplicates } = summary.received;
        const all = [sent.frames, sent.frames, 4, 0, 0];
        assert.deepEqual([frames, tagged, streams, lost, duplicates], all, JSON.stringify(summary));
        untouched();
      });

    it('pong -c 4 answers a ping', async () => {
      const pong = start('-i', portD(), '-f', 'pong', '-c', '4');
      await says(pong.child, /"open"/);
      const { sent, received } = await finish('-i', portC(), '-f', 'ping', '-n', '50');
      assert.deepEqual([sent.frames, received.tagged], [50, 50]);
      pong.child.kill('SIGINT');
      const { code, summary } = await pong.ended;
      assert.deepEqual([code, summary.reflected.frames], [0, 50]);
      untouched();
    });

    it('more threads than queues are refused, and leave the interface as it was', async () => {
      const { code, stderr } = await start('-i', portC(), '-f', 'rx', '-c', '5').ended;
      assert.match(stderr, /4 rings each way, and each of 5 threads .* -c 4, or .*ethtool -L c0/);
      assert.equal(code, 2);
      untouched();
    });

    it('killed, it leaves the interface as it was', async () => {
      const rx = start('-i', portD(), '-f', 'rx', '-c', '2');
      await says(rx.child, /"open"/);
      rx.child.kill('SIGKILL');
      await rx.ended;
      // The kernel takes sockets and program back in its own time.
      for (let i = 0; i < 100 && d.xdpPrograms('d0').length > 0; i++) await sleep(20);
      untouched();
    });

    it('stopped while they wait for the link, they send nothing', async () => {
      d.ip('link', 'set', 'd0', 'down');
      try {
        const tx = start('-i', portC(), '-f', 'tx', '-c', '2', '-w', '60');
        await says(tx.child, /waiting up to 60 s for the link/);
        tx.child.kill('SIGINT');
        const { code, summary, stdout } = await tx.ended;
        assert.deepEqual([code, summary.reason, summary.sent.frames], [0, 'stopped', 0], stdout);
        assert.doesNotMatch(stdout, /frames flow once it is up/);
      } finally {
        d.ip('link', 'set', 'd0', 'up');
      }
    });

    it('the interface is deleted while they receive: the error, after a summary of what had come', async () => {
      const sink = start('-i', portD(), '-f', 'rx', '-c', '2');
      await says(sink.child, /"open"/);
      await finish('-i', portC(), '-f', 'tx', '-n', '1000', '-R', '10k', '-b', '64');
      c.ip('link', 'del', 'c0');
      const { code, stdout, stderr } = await sink.ended;
      assert.equal(code, 1, stdout);
      const lines = stdout
        .trim()
        .split('\n')
        .map((line) => JSON.parse(line) as Summary | { type: 'error' });
      assert.equal(lines.at(-1)!.type, 'error');
      const summary = lines.at(-2) as Summary;
      assert.deepEqual([summary.type, summary.reason, summary.received.frames], ['summary', 'failed', 1000]);
      assert.match(`${stdout}${stderr}`, /the interface d0 is gone/);
    });
  });
});
