// What is in view, what lies under a pixel, and how marks that share a pixel become one.

import type { Marks } from './data.ts';

/** The first index whose time is not before `time`. */
export function firstFrom(t: Float64Array, time: number): number {
  let [low, high] = [0, t.length];
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (t[middle]! < time) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** The indices, from and to, of what lies in a range of time, its ends included. */
export function inRange(t: Float64Array, [from, to]: readonly [number, number]): [number, number] {
  const first = firstFrom(t, from);
  let last = firstFrom(t, to);
  while (last < t.length && t[last] === to) last++;
  return [first, last];
}

/** Marks in the order of time; themselves if they are. */
export function sorted(marks: Marks): Marks {
  const { t } = marks;
  let is = true;
  for (let i = 1; i < t.length && is; i++) is = t[i]! >= t[i - 1]!;
  if (is) return marks;
  const order = Array.from(t.keys()).sort((a, b) => t[a]! - t[b]!);
  const taken = (all: Float64Array) => Float64Array.from(order, (i) => all[i]!);
  const { packet } = marks;
  const rest = { t: taken(t), from: taken(marks.from), to: taken(marks.to) };
  // Without a number of its own, a mark keeps the one that it had where it came from.
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

/**
 * Vertical strokes at `x(t)` from `y(from)` to `y(to)`; neighbours on one column of pixels that touch become one.
 * `write` gets the column, the top and the bottom.
 */
export function strokes(
  { t, from, to }: Marks,
  [first, last]: readonly [number, number],
  x: (t: number) => number,
  y: (byte: number) => number,
  write: (x: number, top: number, bottom: number) => void,
): void {
  if (first >= last) return;
  let at = x(t[first]!);
  let top = y(to[first]!);
  let bottom = y(from[first]!);
  for (let i = first + 1; i < last; i++) {
    const column = x(t[i]!);
    const above = y(to[i]!);
    const below = y(from[i]!);
    if (column - at < 0.5 && below >= top - 1 && above <= bottom + 1) {
      if (above < top) top = above;
      if (below > bottom) bottom = below;
    } else {
      write(at, top, bottom);
      at = column;
      top = above;
      bottom = below;
    }
  }
  write(at, top, bottom);
}

/**
 * A staircase that holds each value until the next. It begins at the value before the range, and of each half column of
 * pixels only the first, lowest, highest and last value survive.
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
  while (i < end) {
    const at = x(t[i]!);
    const column = Math.floor(at * 2);
    const opening = value[i]!;
    let [low, high, close, n, right] = [opening, opening, opening, 1, at];
    for (i++; i < end; i++, n++) {
      const next = x(t[i]!);
      if (Math.floor(next * 2) !== column) break;
      close = value[i]!;
      right = next;
      if (close < low) low = close;
      if (close > high) high = close;
    }
    write(at, y(opening));
    if (n > 1) {
      const [one, other] = close >= opening ? [low, high] : [high, low];
      if (one !== opening) write(right, y(one));
      if (other !== close && other !== one) write(right, y(other));
      if (close !== opening || n > 2) write(right, y(close));
    }
  }
}

/** Points one by one, without those that fall on a pixel already taken. */
export class Apart {
  readonly #taken = new Set<number>();

  /** Whether nothing has been there yet. */
  fresh(x: number, y: number): boolean {
    // Pixels of a screen fit into 16 bits each way.
    const key = (Math.round(x * 1.4) + 32768) * 65536 + Math.round(y * 1.4) + 32768;
    if (this.#taken.has(key)) return false;
    this.#taken.add(key);
    return true;
  }
}

/** A mark of a kind. */
export interface Found {
  kind: string;
  index: number;
  /** How far it is, in pixels. */
  distance: number;
}

/**
 * The mark nearest to a pixel, within `reach` pixels. `kinds` stand in the order in which they are drawn: of two at the same
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

/** Least `from` and greatest `to` of what lies in a range of time; null if nothing does. */
export function extent(
  all: Iterable<Marks>,
  range: readonly [number, number],
): [number, number] | null {
  let [low, high] = [Infinity, -Infinity];
  for (const { t, from, to } of all) {
    const [first, last] = inRange(t, range);
    for (let i = first; i < last; i++) {
      if (from[i]! < low) low = from[i]!;
      if (to[i]! > high) high = to[i]!;
    }
  }
  return high >= low ? [low, high] : null;
}
