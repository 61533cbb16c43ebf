// Which marks are in view or under a pixel, and how marks that share a pixel are merged.

import type { Marks, Spans } from './data.ts';

/** The first index with a time of at least `time`. */
export function firstFrom(t: Float64Array, time: number): number {
  let [low, high] = [0, t.length];
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (t[middle]! < time) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** The first index within a range of time, ends included, and the index after the last one. */
export function inRange(t: Float64Array, [from, to]: readonly [number, number]): [number, number] {
  const first = firstFrom(t, from);
  let last = firstFrom(t, to);
  while (last < t.length && t[last] === to) last++;
  return [first, last];
}

/** The marks sorted by time; the same object if they are sorted already. */
export function sorted(marks: Marks): Marks {
  const { t } = marks;
  let is = true;
  for (let i = 1; i < t.length && is; i++) is = t[i]! >= t[i - 1]!;
  if (is) return marks;
  const order = Array.from(t.keys()).sort((a, b) => t[a]! - t[b]!);
  const taken = (all: Float64Array) => Float64Array.from(order, (i) => all[i]!);
  const { packet } = marks;
  const rest = { t: taken(t), from: taken(marks.from), to: taken(marks.to) };
  // Marks without numbers are numbered by their index before sorting.
  return { ...rest, packet: packet ? taken(packet) : Float64Array.from(order) };
}

/** A range zoomed by `factor` (below 1: closer) around `centre`, within `whole` and no narrower than `least`. */
export function zoomed(
  [from, to]: readonly [number, number],
  whole: readonly [number, number],
  factor: number,
  centre: number,
  least: number,
): [number, number] {
  const most = whole[1] - whole[0];
  const span = Math.min(Math.max((to - from) * factor, Math.min(least, most)), most);
  const share = to > from ? (centre - from) / (to - from) : 0.5;
  return within([centre - share * span, centre + (1 - share) * span], whole);
}

/** A range moved so that it lies in `whole`. */
export function within(
  [from, to]: readonly [number, number],
  whole: readonly [number, number],
): [number, number] {
  const span = to - from;
  if (span >= whole[1] - whole[0]) return [whole[0], whole[1]];
  if (from < whole[0]) return [whole[0], whole[0] + span];
  if (to > whole[1]) return [whole[1] - span, whole[1]];
  return [from, to];
}

/** Above this number of strokes, half a pixel makes no visible difference. */
const MANY = 2000;

/** Seconds in one pixel; `x` is linear. */
function perPixel(t: Float64Array, [first, last]: readonly [number, number], x: (t: number) => number): number {
  const [from, to] = [t[first]!, t[last - 1]!];
  const pixels = x(to) - x(from);
  return pixels > 0 ? (to - from) / pixels : Infinity;
}

/**
 * Vertical strokes at `x(t)` from `y(from)` to `y(to)`; neighbours on one column, of a pixel or half of one, that touch become one.
 * `write` gets the column, the top and the bottom. Both axes are linear: times and bytes are compared directly, and only drawn
 * strokes are converted to pixels.
 */
export function strokes(
  { t, from, to }: Marks,
  [first, last]: readonly [number, number],
  x: (t: number) => number,
  y: (byte: number) => number,
  write: (x: number, top: number, bottom: number) => void,
): void {
  if (first >= last) return;
  const column = (last - first > MANY ? 1 : 0.5) * perPixel(t, [first, last], x);
  const pixel = 1 / Math.abs(y(1) - y(0));
  let at = t[first]!;
  let high = to[first]!;
  let low = from[first]!;
  for (let i = first + 1; i < last; i++) {
    const [above, below] = [to[i]!, from[i]!];
    if (t[i]! - at < column && below <= high + pixel && above >= low - pixel) {
      if (above > high) high = above;
      if (below < low) low = below;
    } else {
      write(x(at), y(high), y(low));
      at = t[i]!;
      high = above;
      low = below;
    }
  }
  write(x(at), y(high), y(low));
}

/**
 * A staircase that holds each value until the next. It begins at the value before the range, and of each half column of
 * pixels only the first, lowest, highest and last value survive. `x` is linear.
 */
export function steps(
  t: Float64Array,
  value: Float64Array,
  [first, last]: readonly [number, number],
  x: (t: number) => number,
  y: (value: number) => number,
  write: (x: number, y: number) => void,
): void {
  let i = Math.max(first - 1, 0);
  const end = Math.min(last + 1, t.length);
  if (i >= end) return;
  const pixel = perPixel(t, [i, end], x);
  while (i < end) {
    const at = x(t[i]!);
    // The time at which the next half column begins.
    const edge = pixel === Infinity ? Infinity : t[i]! + ((Math.floor(at * 2) + 1) / 2 - at) * pixel;
    const opening = value[i]!;
    let [low, high, close, n] = [opening, opening, opening, 1];
    for (i++; i < end && t[i]! < edge; i++, n++) {
      close = value[i]!;
      if (close < low) low = close;
      if (close > high) high = close;
    }
    write(at, y(opening));
    if (n > 1) {
      const right = x(t[i - 1]!);
      const [one, other] = close >= opening ? [low, high] : [high, low];
      if (one !== opening) write(right, y(one));
      if (other !== close && other !== one) write(right, y(other));
      if (close !== opening || n > 2) write(right, y(close));
    }
  }
}

/** Above this number of points, each needs more room: overlapping points cannot be distinguished anyway. */
const CROWD = 400;
const ROOM = 1 / 1.4;
const ROOM_IN_CROWD = 4;

/** Filters points: drops those at an occupied position. */
export class Apart {
  readonly #taken = new Set<number>();
  readonly #cells: number;

  /** `points` is their total number. */
  constructor(points = 0) {
    this.#cells = 1 / (points > CROWD ? ROOM_IN_CROWD : ROOM);
  }

  /** Whether the position was free; occupies it. */
  fresh(x: number, y: number): boolean {
    // Pixels of a screen fit into 16 bits each way.
    const key = (Math.round(x * this.#cells) + 32768) * 65536 + Math.round(y * this.#cells) + 32768;
    if (this.#taken.has(key)) return false;
    this.#taken.add(key);
    return true;
  }
}

/** A mark of a kind. */
export interface Found {
  kind: string;
  index: number;
  /** Distance in pixels. */
  distance: number;
}

/**
 * The mark nearest to a pixel, within `reach` pixels. `kinds` are sorted by the order of drawing: of two at the same
 * distance the one on top is found.
 */
export function nearest(
  kinds: readonly (readonly [string, Marks])[],
  x: { at(t: number): number; value(at: number): number },
  y: { at(byte: number): number },
  [px, py]: readonly [number, number],
  reach: number,
): Found | null {
  let best: Found | null = null;
  for (const [kind, { t, from, to }] of kinds) {
    const [first, last] = inRange(t, [x.value(px - reach), x.value(px + reach)]);
    for (let i = first; i < last; i++) {
      const [top, bottom] = [y.at(to[i]!), y.at(from[i]!)];
      const aside = x.at(t[i]!) - px;
      const away = py < top ? top - py : py > bottom ? py - bottom : 0;
      const distance = Math.hypot(aside, away);
      if (distance <= reach && (best === null || distance <= best.distance)) {
        best = { kind, index: i, distance };
      }
    }
  }
  return best;
}

/** Number of marks in a block whose least and greatest values are cached. */
const BLOCK = 512;

interface Blocks {
  low: Float64Array;
  high: Float64Array;
}

const known = new WeakMap<Marks, Blocks>();

/** Least `from` and greatest `to` of each block; computed once. */
function blocks(marks: Marks): Blocks {
  const found = known.get(marks);
  if (found) return found;
  const { from, to } = marks;
  const n = Math.ceil(from.length / BLOCK);
  const made = { low: new Float64Array(n).fill(Infinity), high: new Float64Array(n).fill(-Infinity) };
  for (let i = 0; i < from.length; i++) {
    const block = Math.floor(i / BLOCK);
    if (from[i]! < made.low[block]!) made.low[block] = from[i]!;
    if (to[i]! > made.high[block]!) made.high[block] = to[i]!;
  }
  known.set(marks, made);
  return made;
}

/** Least `from` and greatest `to` of the marks in a range of time; null without marks. */
export function extent(
  all: Iterable<Marks>,
  range: readonly [number, number],
): [number, number] | null {
  let [low, high] = [Infinity, -Infinity];
  for (const marks of all) {
    const { t, from, to } = marks;
    const [first, last] = inRange(t, range);
    const whole = blocks(marks);
    for (let i = first; i < last; ) {
      const block = i / BLOCK;
      if (Number.isInteger(block) && i + BLOCK <= last) {
        if (whole.low[block]! < low) low = whole.low[block]!;
        if (whole.high[block]! > high) high = whole.high[block]!;
        i += BLOCK;
      } else {
        if (from[i]! < low) low = from[i]!;
        if (to[i]! > high) high = to[i]!;
        i++;
      }
    }
  }
  return high >= low ? [low, high] : null;
}

/** Spans that are drawn as one band. */
export interface Band {
  /** In pixels. */
  left: number;
  right: number;
  /** Index of the first span. */
  first: number;
  /** Total length of the spans in seconds, including parts out of view. */
  length: number;
}

/** The bands of a range of time. With `merge`, spans closer than half a pixel become one band. */
export function bands(
  { from, to }: Spans,
  range: readonly [number, number],
  x: (t: number) => number,
  merge: boolean,
): Band[] {
  const found: Band[] = [];
  for (let i = 0; i < from.length; i++) {
    if (to[i]! <= range[0] || from[i]! >= range[1]) continue;
    const left = x(Math.max(from[i]!, range[0]));
    const right = Math.max(x(Math.min(to[i]!, range[1])), left + 0.6);
    const length = to[i]! - from[i]!;
    const last = found.at(-1);
    if (merge && last && left - last.right < 0.5) {
      last.right = Math.max(last.right, right);
      last.length += length;
    } else found.push({ left, right, first: i, length });
  }
  return found;
}
