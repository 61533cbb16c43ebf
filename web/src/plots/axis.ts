// From values to places, with ticks at round numbers. The same rules as crates/report/src/plot/axis.rs and number.rs.

/** One axis: values `low` to `high`, spread evenly over places `from` to `to`. */
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

  /** Where `value` stands. */
  at(value: number): number {
    return this.from + (value - this.low) * this.#scale;
  }

  /** What stands at the place `at`. */
  value(at: number): number {
    return this.low + (at - this.from) / this.#scale;
  }

  /** Ticks at round numbers, about `wanted` of them, with labels. */
  ticks(wanted: number): [number, string][] {
    return evenTicks(this.low, this.high, wanted);
  }
}

/** Values by decades from `least`; below it they are even, so that zero has a place, a decade left of it. */
export class Decades {
  readonly least: number;

  constructor(least: number) {
    this.least = least;
  }

  /** For these values: from the least above zero. */
  static of(values: Iterable<number>): Decades {
    let least = Infinity;
    for (const value of values) if (value > 0 && value < least) least = value;
    return new Decades(Number.isFinite(least) ? least : 1);
  }

  /** The number of decades, and the part of one below the least. */
  of(value: number): number {
    return value <= this.least ? value / this.least - 1 : Math.log10(value / this.least);
  }

  /** The value again. */
  value(decades: number): number {
    return decades <= 0 ? (decades + 1) * this.least : this.least * 10 ** decades;
  }

  /** Ticks within a range of decades. */
  ticks(low: number, high: number): [number, string][] {
    const all: [number, string][] = [[0, '0'], ...decadeTicks(this.least, this.value(high) * 1.001)];
    const placed = all.map(([value, label]): [number, string] => [this.of(value), label]);
    const shown = placed.filter(([at]) => at >= low - 1e-9 && at <= high + 1e-9);
    if (shown.length >= 2) return shown;
    // Within a step there are only numbers that are not round.
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
  // Few decades leave room for 2 and 5 between the powers of ten.
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

/** The end of an axis from zero that leaves a little room above `high` and is a round number. */
export function roundEnd(high: number): number {
  if (!(high > 0) || !Number.isFinite(high)) return 1;
  const step = roundStep(high / 5);
  return Math.ceil((high * 1.04) / step) * step;
}

/** Thin spaces between groups of three digits from ten thousand on, and a true minus sign. */
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

/** A time in seconds, with as many decimals as tell neighbours apart where `span` seconds are shown. */
export function seconds(value: number, span: number): string {
  const decimals = Math.min(Math.max(3 - Math.floor(Math.log10(Math.max(span, 1e-9))), 1), 9);
  return grouped(value.toFixed(decimals));
}
