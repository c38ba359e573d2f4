/** Numbers as people read them. */

/** At most `digits` significant digits, without exponent for everyday magnitudes, thousands grouped by commas. */
export function formatNumber(value: number, digits = 4): string {
  if (!Number.isFinite(value)) return value > 0 ? '∞' : value < 0 ? '−∞' : '–';
  if (value === 0) return '0';
  const rounded = Number(value.toPrecision(digits));
  const size = Math.abs(rounded);
  if (size < 1e-4 || size >= 1e9) return rounded.toExponential().replace('e+', 'e').replaceAll('-', '−');
  const [whole, fraction] = String(rounded).split('.');
  const grouped = size >= 10_000 ? whole.replace(/\B(?=(\d{3})+$)/g, ',') : whole;
  return `${grouped}${fraction ? `.${fraction}` : ''}`.replace('-', '−');
}

/** A share as a signed percentage: −0.1843 is −18.4 %. */
export function formatChange(share: number): string {
  if (Number.isNaN(share)) return '–';
  if (!Number.isFinite(share)) return share > 0 ? '+∞ %' : '−∞ %';
  const percent = share * 100;
  const digits = Math.abs(percent) >= 100 || Math.abs(percent) < 99 ? 1 : 2;
  const text = Math.abs(percent).toFixed(Math.abs(percent) >= 1000 ? 0 : digits);
  const sign = Number(text) === 0 ? '' : percent > 0 ? '+' : '−';
  return `${sign}${text.replace(/^100\.0+$/, '100')} %`;
}

/** A difference with its sign. */
export function formatDifference(value: number): string {
  return value > 0 ? `+${formatNumber(value, 3)}` : formatNumber(value, 3);
}

/** A share, 0 to 1, as an unsigned percentage. */
export function formatShare(share: number): string {
  return `${formatNumber(share * 100, 3)} %`;
}

/** A p-value: small ones as a bound. */
export function formatP(p: number): string {
  return p < 0.0001 ? '< 0.0001' : formatNumber(p, 2);
}

/** "1 file", "2 files". */
export function countText(count: number, what: string): string {
  return `${count} ${what}${count === 1 ? '' : 's'}`;
}
