import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { UsageError, pointAt, printable } from '../../lib/text/errors.js';
import {
  FCS_BYTES,
  IMIX,
  WIRE_OVERHEAD_BYTES,
  bitRateColumn,
  formatFrameRate,
  formatRate,
  formatTime,
  frameRateColumn,
  lineRate,
  parseCount,
  parseCountWithin,
  parseFrameRate,
  parseFrameSize,
  parsePercent,
  parseRate,
  parseShare,
  parseSizeMix,
  parseSizes,
  parseTime,
  rateText,
  shareText,
  sizeMixText,
  timeText,
  within,
  parseSeconds,
  parsePace,
  parseMilliseconds,
  parseDuration,
  isWithin,
  BURST,
} from '../../lib/text/units.js';

/** Runs `parse` on each text of the table and compares exactly. */
function reads<T>(parse: (text: string) => T, table: readonly (readonly [string, T])[]): void {
  for (const [text, value] of table) assert.deepEqual(parse(text), value, text);
}

/** Each text of the table must be refused with exactly this message, pointing at this index. */
function refuses(parse: (text: string) => unknown, table: readonly (readonly [string, number, string])[]): void {
  for (const [text, at, message] of table) {
    assert.throws(
      () => parse(text),
      (error) => {
        assert.ok(error instanceof UsageError, text);
        assert.equal(error.message, message);
        assert.equal(error.at, at, message);
        return true;
      },
    );
  }
}

describe('parsers', () => {
  it('read frame sizes in bytes with FCS', () => {
    reads(parseFrameSize, [
      ['64', 64],
      ['1518', 1518],
      ['9018', 9018],
      ['80070', 80070],
      ['4194240', 4194240],
    ]);
    const remedy = 'write bytes with the 4-byte FCS, 64 to 4194240, for example 1518';
    refuses(parseFrameSize, [
      ['', 0, `frame size '' is empty; ${remedy}`],
      ['63', 0, `frame size '63' is out of range; ${remedy}`],
      ['4194241', 0, `frame size '4194241' is out of range; ${remedy}`],
      ['64.5', 0, `frame size '64.5' is not a whole number of bytes; ${remedy}`],
      ['64b', 2, `frame size '64b' has the unknown unit 'b'; ${remedy}`],
      ['-64', 0, `frame size '-64' does not begin with a digit; ${remedy}`],
      ['64\n', 2, `frame size '64\\u{0a}' has the unknown unit '\\u{0a}'; ${remedy}`],
    ]);
  });

  it('read lists of sizes, and point into the list', () => {
    reads(parseSizes, [
      ['64', [64]],
      ['64,128,1518', [64, 128, 1518]],
    ]);
    refuses(parseSizes, [
      ['64,,128', 3, "frame size '' is empty; write bytes with the 4-byte FCS, 64 to 4194240, for example 1518"],
      [
        '64,128x',
        6,
        "frame size '128x' has the unknown unit 'x'; write bytes with the 4-byte FCS, 64 to 4194240, for example 1518",
      ],
    ]);
  });

  it('read mixes of sizes', () => {
    reads(parseSizeMix, [
      ['64', [{ size: 64, weight: 1 }]],
      ['imix', IMIX],
      ['64*7+594*4+1518', IMIX],
      [
        '1518+64*2',
        [
          { size: 1518, weight: 1 },
          { size: 64, weight: 2 },
        ],
      ],
    ]);
    assert.equal(sizeMixText(IMIX), '64*7+594*4+1518');
    const remedy = 'write a mix with weights from 1 to 65535, for example 64*7+594*4+1518';
    refuses(parseSizeMix, [
      ['64*0', 3, `weight '0' is out of range; ${remedy}`],
      ['64*7+594*', 9, `weight '' is empty; ${remedy}`],
      ['64+', 3, "frame size '' is empty; write bytes with the 4-byte FCS, 64 to 4194240, for example 1518"],
    ]);
  });

  it('read rates exactly', () => {
    reads(parseRate, [
      ['10G', 10_000_000_000],
      ['14.88M', 14_880_000],
      ['100k', 100_000],
      ['100K', 100_000],
      ['1.1G', 1_100_000_000],
      ['1.005k', 1005],
      ['2.5Gbit/s', 2_500_000_000],
      ['25Gbps', 25_000_000_000],
      ['1e10', 10_000_000_000],
      ['1T', 1_000_000_000_000],
      ['9600', 9600],
      ['.5G', 500_000_000],
      ['max', Infinity],
    ]);
    const remedy = "write bits per second with k, M, G or T, for example 10G, or 'max'";
    refuses(parseRate, [
      ['10Q', 2, `rate '10Q' has the unknown unit 'Q'; ${remedy}`],
      ['10  G', 3, `rate '10  G' has the unknown unit ' G'; ${remedy}`],
      ['10GB/s', 2, `rate '10GB/s' has the unknown unit 'GB/s'; ${remedy}`],
      ['0', 0, `rate '0' is below 1; ${remedy}`],
      ['Max', 0, `rate 'Max' does not begin with a digit; ${remedy}`],
      ['1e999', 0, `rate '1e999' is too large; ${remedy}`],
      ['10Gpps', 2, `rate '10Gpps' has the unknown unit 'Gpps'; ${remedy}`],
    ]);
  });

  it('read a bit rate in every spelling that a person would try', () => {
    const spellings = ['10g', '10 G', '10Gb', '10gb', '10Gbit', '10gbps', '10Gbps', '10Gb/s', '10 Gbit/s', '10gbit/s'];
    for (const text of [...spellings, '10GBit/s', '10Gbits/s', '10 Gbit/sec', '10000Mbps', '10000mbit/s', '10e9bps'])
      assert.equal(parseRate(text), 1e10, text);
  });

  it('read how fast to send: frames, or bits on the wire where the unit says so', () => {
    // 10^10 / (8 × (64 + 20)), as in RFC 2544's tables: 14,880,952.38
    for (const text of ['10gbps', '10Gb/s', '10 Gbit/s', '10000Mbps', '10Gb'])
      assert.equal(Math.floor(parsePace(text, 64)), 14_880_952, text);
    for (const text of ['14.88M', '14.88m', '14.88 Mpps', '14880kpps', '14880000', '14.88Mp/s', '14.88Mpackets/s'])
      assert.equal(parsePace(text, 64), 14_880_000, text);
    assert.equal(parsePace('max', 64), Infinity);
    assert.equal(parsePace('10Gpps', 64), 1e10);
    const remedy = "write frames per second, for example 14.88M, bits per second, for example 10Gbps, or 'max'";
    refuses(
      (text) => parsePace(text, 64),
      [
        ['10G', 0, "frame rate '10G' is more frames than a link carries; write 10Gbps for bits per second"],
        ['10GBps', 2, `rate '10GBps' has the unknown unit 'GBps'; ${remedy}`],
        ['10furlongs', 2, `frame rate '10furlongs' has the unknown unit 'furlongs'; ${remedy}`],
      ],
    );
  });

  it('read frame rates exactly', () => {
    reads(parseFrameRate, [
      ['14.88M', 14_880_000],
      ['14.880952M', 14_880_952],
      ['1Mpps', 1_000_000],
      ['0.5', 0.5],
      ['max', Infinity],
    ]);
    const remedy = "write frames per second with k, M or G, for example 14.88M, or 'max'";
    refuses(parseFrameRate, [
      ['0', 0, `frame rate '0' is below 0.001; ${remedy}`],
      ['14,88M', 2, `frame rate '14,88M' has the unknown unit ',88M'; ${remedy}`],
    ]);
  });

  it('read times as whole nanoseconds', () => {
    reads(parseTime, [
      ['124us', 124_000],
      ['124µs', 124_000],
      ['124μs', 124_000],
      ['80ns', 80],
      ['1.5ms', 1_500_000],
      ['1.1us', 1100],
      ['2s', 2_000_000_000],
      ['.5ms', 500_000],
      ['1m', 60_000_000_000],
      ['0.1min', 6_000_000_000],
      ['1h', 3_600_000_000_000],
      ['0', 0],
      ['0s', 0],
    ]);
    const remedy = 'write a number with ns, us, ms, s, m or h, for example 124us';
    refuses(parseTime, [
      ['124', 3, `time '124' has no unit; ${remedy}`],
      ['1.5ns', 0, `time '1.5ns' is not a whole number of nanoseconds; ${remedy}`],
      ['1d', 1, `time '1d' has the unknown unit 'd'; ${remedy}`],
      ['.', 0, `time '.' does not begin with a digit; ${remedy}`],
      ['9007200s', 0, `time '9007200s' is out of range; ${remedy}`],
    ]);
  });

  it('read seconds and milliseconds where a bare number is one', () => {
    for (const parse of [parseSeconds, parseDuration])
      reads(parse, [
        ['10', 10],
        ['.5', 0.5],
        ['500ms', 0.5],
        ['1 m', 60],
        ['1.5h', 5400],
      ]);
    assert.equal(parseSeconds('0'), 0);
    reads(parseMilliseconds, [
      ['0', 0],
      ['250', 0.25],
      ['1s', 1],
    ]);
    const remedy = 'write seconds, or a number with ns, us, ms, s, m or h, for example 10, 0.5, 500ms or 1m';
    refuses(parseDuration, [
      ['0', 0, `time '0' is not above 0; ${remedy}`],
      ['-1', 0, `time '-1' does not begin with a digit; ${remedy}`],
    ]);
  });

  it('hold numbers to a range', () => {
    assert.equal(within(BURST)('65536'), 65_536);
    refuses(within(BURST), [
      ['65537', 0, "burst '65537' is out of range; write a whole number from 1 to 65536"],
      ['0', 0, "burst '0' is out of range; write a whole number from 1 to 65536"],
    ]);
    assert.deepEqual(
      [1, 65_536, 0, 65_537, 1.5, NaN, '8', undefined].map((value) => isWithin(BURST, value)),
      [true, true, false, false, false, false, false, false],
    );
  });

  it('read counts', () => {
    reads(parseCount, [
      ['0', 0],
      ['1000', 1000],
      ['10M', 10_000_000],
      ['1.5k', 1500],
      ['9007199254740991', 9007199254740991],
    ]);
    const remedy = 'write a whole number, if you like with k, M or G, for example 1000 or 10M';
    refuses(parseCount, [
      ['1.5', 0, `count '1.5' is not a whole number; ${remedy}`],
      ['9007199254740992', 0, `count '9007199254740992' is out of range; ${remedy}`],
    ]);
    refuses(
      (text) => parseCountWithin(text, 2, 8),
      [['9', 0, "number '9' is out of range; write a whole number from 2 to 8"]],
    );
  });

  it('read shares', () => {
    reads(parsePercent, [
      ['50%', 0.5],
      ['0%', 0],
      ['100%', 1],
      ['0.1%', 0.001],
    ]);
    reads(parseShare, [
      ['1%', 0.01],
      ['0.01', 0.01],
      ['1', 1],
    ]);
    refuses(parsePercent, [
      ['50', 2, "percentage '50' has no unit; write a number from 0 to 100 with %, for example 50%"],
      ['101%', 0, "percentage '101%' is above 100%; write a number from 0 to 100 with %, for example 50%"],
    ]);
    refuses(parseShare, [
      ['50', 0, "share '50' is above 100%; write a percentage or a number from 0 to 1, for example 1% or 0.01"],
    ]);
  });

  it('never throw anything but UsageError, with an index inside the text', () => {
    const parsers = [parseFrameSize, parseSizes, parseSizeMix, parseRate, parseFrameRate, parseTime, parseCount];
    const near = fc.string({ unit: fc.constantFrom(...'0123456789.,+-*%eEkKMGTnuµmsbitp/ '.split('')), maxLength: 12 });
    for (const parse of [...parsers, parsePercent, parseShare, parseSeconds, (text: string) => parsePace(text, 64)]) {
      fc.assert(
        fc.property(fc.oneof(fc.string({ unit: 'binary' }), near), (text) => {
          try {
            parse(text);
          } catch (error) {
            assert.ok(error instanceof UsageError);
            assert.ok(error.at >= 0 && error.at <= text.length);
            assert.doesNotMatch(error.message, /\n/);
          }
        }),
      );
    }
  });

  it('move the decimal point without rounding', () => {
    fc.assert(
      fc.property(fc.nat(999_999), fc.nat(999_999), (whole, part) => {
        const text = `${whole}.${String(part).padStart(6, '0')}`;
        assert.equal(
          parseFrameRate(`${text}G`.replace(/^0\.0+G$/, '1G')),
          whole + part === 0 ? 1e9 : whole * 1e9 + part * 1e3,
        );
        assert.equal(parseTime(`${text}ms`), whole * 1e6 + part);
      }),
    );
  });
});

describe('exact texts', () => {
  it('are short', () => {
    assert.equal(rateText(1e10), '10G');
    assert.equal(rateText(14_880_000), '14.88M');
    assert.equal(rateText(100_000), '100k');
    assert.equal(rateText(999), '999');
    assert.equal(rateText(Infinity), 'max');
    assert.equal(timeText(0), '0');
    assert.equal(timeText(124_000), '124us');
    assert.equal(timeText(1_500_000), '1.5ms');
    assert.equal(timeText(1), '1ns');
    assert.equal(timeText(100_000_000), '100ms');
    assert.equal(shareText(0.5), '50%');
    assert.equal(shareText(0.07), '7%');
    assert.equal(shareText(1e-7), '1e-7');
  });

  it('are read back as the same number', () => {
    fc.assert(fc.property(fc.double({ min: 1, max: 1e15, noNaN: true }), (n) => parseRate(rateText(n)) === n));
    fc.assert(fc.property(fc.maxSafeNat(), (n) => parseTime(timeText(n)) === n));
    fc.assert(fc.property(fc.double({ min: 0, max: 1, noNaN: true }), (n) => parseShare(shareText(n)) === n));
  });
});

describe('formatters', () => {
  it('give four significant digits and the fitting unit', () => {
    assert.equal(formatRate(1e10), '10 Gbit/s');
    assert.equal(formatRate(9_871_600_000), '9.872 Gbit/s');
    assert.equal(formatRate(999_960), '1 Mbit/s');
    assert.equal(formatRate(0), '0 bit/s');
    assert.equal(formatRate(Infinity), 'max');
    assert.equal(formatFrameRate(14_880_952), '14.88 Mpps');
    assert.equal(formatFrameRate(0.667), '0.667 pps');
    assert.equal(formatTime(124_000), '124 µs');
    assert.equal(formatTime(80), '80 ns');
    assert.equal(formatTime(1_500_000), '1.5 ms');
    assert.equal(formatTime(90e9), '90 s');
  });

  it('give a table one unit, in which its largest rate is 0.1 or more', () => {
    for (const [most, unit, text] of [
      [14_880_952, 'Mpps', '14.881'],
      [100_000, 'Mpps', '0.100'],
      [99_999, 'kpps', '99.999'],
      [81.3, 'pps', '81.300'],
    ] as const) {
      const column = frameRateColumn(most);
      assert.deepEqual([column.unit, column.text(most)], [unit, text]);
    }
    assert.equal(bitRateColumn(1e11).unit, 'Gbit/s');
    assert.equal(bitRateColumn(Infinity).unit, 'Gbit/s');
    assert.equal(bitRateColumn(1e6).unit, 'Mbit/s');
  });

  it('keep a message on one line, with the caret under the character', () => {
    assert.equal(printable('a\tb\u{2028}'), 'a\\u{09}b\\u{2028}');
    assert.equal(pointAt('a\tb', 2), '  a\\u{09}b\n         ^');
    assert.equal(pointAt('ix0', 3), '  ix0\n     ^');
  });
});

describe('lineRate', () => {
  it('counts preamble, gap and FCS: 10G gives the rates of RFC 2544', () => {
    assert.equal(FCS_BYTES, 4);
    assert.equal(WIRE_OVERHEAD_BYTES, 20);
    const rates = [64, 128, 256, 512, 1024, 1280, 1518].map((size) => Math.floor(lineRate(1e10, size)));
    assert.deepEqual(rates, [14_880_952, 8_445_945, 4_528_985, 2_349_624, 1_197_318, 961_538, 812_743]);
    // RFC 2544, appendix B, states the same for 10 Mbit/s Ethernet.
    assert.equal(Math.floor(lineRate(1e7, 64)), 14_880);
    assert.equal(Math.floor(lineRate(1e7, 1518)), 812);
  });
});
