// Maps values to positions, with ticks at round numbers. The rules are those of crates/report/src/plot/axis.rs and number.rs.

/** A linear axis: values `low` to `high` at positions `from` to `to`. */
export class Axis {
  readonly low: number;
  readonly high: number;
  readonly from: number;
  readonly to: number;
  readonly #scale: number;

  constructor(low: number, high: number, from: number, to: number) {
    if (!Number.isFinite(low)) low = 0;
    if (!(high > low) || !Number.isFinite(high)) high = low + 1;
    this.low = low;
    this.high = high;
    this.from = from;
    this.to = to;
    this.#scale = (to - from) / (high - low);
  }

  /** The position of `value`. */
  at(value: number): number {
    return this.from + (value - this.low) * this.#scale;
  }

  /** The value at position `at`. */
  value(at: number): number {
    return this.low + (at - this.from) / this.#scale;
  }

  /** Ticks at round numbers, about `wanted` of them, with labels. */
  ticks(wanted: number): [number, string][] {
    return evenTicks(this.low, this.high, wanted);
  }
}

/** A logarithmic scale from `least` on. Below `least` it is linear: zero is one decade to the left. */
export class Decades {
  readonly least: number;

  constructor(least: number) {
    this.least = least;
  }

  /** The scale for these values; `least` is the smallest one above zero. */
  static of(values: Iterable<number>): Decades {
    let least = Infinity;
    for (const value of values) if (value > 0 && value < least) least = value;
    return new Decades(Number.isFinite(least) ? least : 1);
  }

  /** Decades above `least`; from -1 to 0 below it. */
  of(value: number): number {
    return value <= this.least ? value / this.least - 1 : Math.log10(value / this.least);
  }

  /** The value at a number of decades; the inverse of `of`. */
  value(decades: number): number {
    return decades <= 0 ? (decades + 1) * this.least : this.least * 10 ** decades;
  }

  /** Ticks within a range of decades. */
  ticks(low: number, high: number): [number, string][] {
    const all: [number, string][] = [[0, '0'], ...decadeTicks(this.least, this.value(high) * 1.001)];
    const placed = all.map(([value, label]): [number, string] => [this.of(value), label]);
    const shown = placed.filter(([at]) => at >= low - 1e-9 && at <= high + 1e-9);
    if (shown.length >= 2) return shown;
    // The range is within one step, so it contains no round number.
    return [0.1, 0.5, 0.9].map((share) => {
      const at = low + share * (high - low);
      return [at, short(this.value(at))];
    });
  }
}

function evenTicks(low: number, high: number, wanted: number): [number, string][] {
  const step = roundStep((high - low) / Math.max(wanted, 1));
  const decimals = Math.min(Math.max(-Math.floor(Math.log10(step) + 1e-9), 0), 9);
  const ticks: [number, string][] = [];
  const last = Math.floor(high / step + 1e-9);
  for (let i = Math.ceil(low / step - 1e-9); i <= last; i++) {
    ticks.push([i * step, grouped((i * step).toFixed(decimals))]);
  }
  return ticks;
}

function decadeTicks(low: number, high: number): [number, string][] {
  const [first, last] = [Math.floor(Math.log10(low)), Math.ceil(Math.log10(high))];
  // With few decades there is room for 2 and 5 between the powers of ten.
  const steps = last - first <= 3 ? [1, 2, 5] : [1];
  const ticks: [number, string][] = [];
  for (let power = first; power <= last; power++) {
    for (const step of steps) {
      const value = Number(`${step}e${power}`);
      if (value >= low * 0.999 && value <= high * 1.001) ticks.push([value, decadeLabel(value)]);
    }
  }
  return ticks;
}

function decadeLabel(value: number): string {
  if (value >= 1e-3 && value < 1e5) {
    const decimals = Math.min(Math.max(-Math.floor(Math.log10(value) + 1e-9), 0), 3);
    return grouped(value.toFixed(decimals));
  }
  return value.toExponential().replace('e+', 'e').replaceAll('-', '\u2212');
}

/** The nearest of 1, 2, 5 times a power of ten, by ratio. */
export function roundStep(rough: number): number {
  const size = Math.max(rough, 1e-12);
  const power = 10 ** Math.floor(Math.log10(size));
  const ratio = size / power;
  // The borders are the geometric means of neighbours.
  const step = ratio <= 1.414 ? 1 : ratio <= 3.162 ? 2 : ratio <= 7.071 ? 5 : 10;
  return step * power;
}

/** The end of an axis from zero: a round number with a little room above `high`. */
export function roundEnd(high: number): number {
  if (!(high > 0) || !Number.isFinite(high)) return 1;
  const step = roundStep(high / 5);
  return Math.ceil((high * 1.04) / step) * step;
}

/** Formats a number with thin spaces between groups of three digits from ten thousand on, and with a true minus sign. */
export function grouped(number: string): string {
  const negative = number.startsWith('-');
  const digits = negative ? number.slice(1) : number;
  const [whole = '', rest] = digits.split('.');
  const parted = whole.length > 4 ? whole.replace(/\B(?=(\d{3})+$)/g, '\u2009') : whole;
  const sign = negative && /[1-9]/.test(digits) ? '\u2212' : '';
  return sign + parted + (rest === undefined ? '' : `.${rest}`);
}

/** About three significant digits; whole numbers stay whole. */
export function short(value: number): string {
  const size = Math.abs(value);
  if (!Number.isFinite(value)) return '–';
  if (Number.isInteger(value) && size < 1e15) return grouped(value.toFixed(0));
  if (size < 0.001) return value.toExponential(2).replace('-', '\u2212');
  const decimals = size >= 1000 ? 0 : size >= 100 ? 1 : size >= 1 ? 2 : size >= 0.1 ? 3 : 4;
  return grouped(value.toFixed(decimals));
}

/** A time in seconds, with enough decimals to distinguish neighbouring marks while `span` seconds are shown. */
export function seconds(value: number, span: number): string {
  const decimals = Math.min(Math.max(3 - Math.floor(Math.log10(Math.max(span, 1e-9))), 1), 9);
  return grouped(value.toFixed(decimals));
}
