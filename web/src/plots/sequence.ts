// The time-sequence plot (west97 4.4): sequence numbers over time, as tcptrace draws them.

import { Axis, grouped, roundEnd, seconds, short } from './axis.ts';
import { type Area, type Entry, Plot, type Rows } from './base.ts';
import type { TimeCursor } from './cursor.ts';
import type { Marks, PlotOptions, SequenceData, Spans } from './data.ts';
import { Apart, type Found, bands, extent, firstFrom, inRange, nearest, sorted, steps, strokes } from './geometry.ts';
import { CanvasPen, type Pen } from './pen.ts';
import { LOOKS, type Palette, SPANS, look, marks as drawMarks } from './style.ts';

const KIB = 1024;
const GAP = 26;
const WINDOW = 96;
const FOOT = 46;
/** Minimum height of the main panel of a fitted plot. */
const LEAST = 100;
/** Share of the window's panel in a fitted plot, and its minimum height. */
const [SHARE, LEAST_WINDOW] = [0.21, 52];
/** Maximum distance of a click from its mark, in pixels. */
const REACH = 14;

/** Kinds that the keys `n` and `p` skip; these keys go to losses and retransmissions. */
const PLAIN = new Set(['sent', 'ack', 'window', 'sack', 'cwnd', 'ssthresh']);
/** Kinds that do not extend the vertical axis. */
const UNBOUND = new Set(['window', 'cwnd', 'ssthresh', 'expired', 'sack']);

/** Pen, axes and panels of one drawing. */
interface Frame {
  pen: Pen;
  range: [number, number];
  x: Axis;
  y: Axis;
  area: Area;
  below: Area | null;
}

export class SequencePlot extends Plot {
  #kinds: [string, Marks][] = [];
  #spans: [string, Spans][] = [];
  /** Marks, and above them the cursor: it moves often, without drawing the marks again. */
  readonly #canvas = document.createElement('canvas');
  readonly #above = document.createElement('canvas');
  /** All inputs of the drawn marks, joined. */
  #drawn = '';
  /** How often data or colours were renewed. */
  #edition = 0;
  /** Cached extent of this plot's own data in a range of time. */
  #found: { of: string; range: [number, number]; window: number } | null = null;
  /** All plots with the same vertical scale, including this one. */
  #alike: readonly SequencePlot[] = [this];
  /** The mark that was chosen outside this plot. */
  #marked: Found | null = null;

  constructor(place: HTMLElement, cursor: TimeCursor, options: PlotOptions = {}) {
    super(place, cursor, options);
    this.#above.className = 'lhp-above';
    for (const canvas of [this.#canvas, this.#above]) canvas.setAttribute('aria-hidden', 'true');
    this.surface.prepend(this.#canvas, this.#above);
  }

  /** Replaces the data. The view remains, as far as the new data covers it. */
  set(data: SequenceData): void {
    const order = Object.keys(LOOKS);
    const rank = (kind: string) => (order.includes(kind) ? order.indexOf(kind) : order.length);
    const kinds = Object.entries(data.kinds).filter(([, marks]) => marks.t.length > 0);
    kinds.sort(([a], [b]) => rank(a) - rank(b));
    this.#kinds = kinds.map(([kind, marks]) => [kind, sorted(marks)]);
    this.#spans = Object.entries(data.spans ?? {}).filter(([, spans]) => spans.from.length > 0);
    this.chosen = null;
    this.#marked = null;
    this.cursor.reach(data.end);
    this.renewed(data.note);
  }

  /** Sets the vertical scale that fits all of `plots`, which include this one. */
  compare(plots: readonly SequencePlot[]): void {
    this.#alike = plots;
    this.redraw();
  }

  /** Draws a ring around a mark that was chosen outside this plot, and moves it into view; null for none. */
  mark(kind: string | null, index = 0): void {
    const marks = this.#kinds.find(([name]) => name === kind)?.[1];
    const found = marks && index < marks.t.length ? { kind: kind!, index, distance: 0 } : null;
    this.#marked = found;
    if (found) this.show(found, this.timeOf(found));
    else this.redraw();
  }

  /** Number of marks in view, by kind. */
  counts(): Record<string, number> {
    const range = this.cursor.range;
    const [low, high] = this.shownY();
    const counts: Record<string, number> = {};
    for (const [kind, marks] of this.#kinds) {
      const [first, last] = inRange(marks.t, range);
      counts[kind] = last - first;
      if (!this.y || look(kind).below) continue;
      counts[kind] = 0;
      for (let i = first; i < last; i++) {
        if (marks.to[i]! >= low && marks.from[i]! <= high) counts[kind]++;
      }
    }
    return counts;
  }

  // ---- places

  protected area(width: number, above: number): Area & { height: number } {
    const narrow = width < 520;
    const top = above + 20;
    const below = this.#hasWindow() ? GAP + this.#window : 0;
    const { fit, height = narrow ? 240 : 330 } = this.options;
    const bottom = top + (fit && above === 0 ? Math.max(fit - top - below - FOOT, LEAST) : height);
    return {
      left: narrow ? 64 : 72,
      right: width - (narrow ? 16 : 18),
      top,
      bottom,
      height: bottom + below + FOOT,
    };
  }

  /** Height of the window's panel; smaller in a low plot. */
  get #window(): number {
    return Math.min(Math.max((this.options.fit ?? Infinity) * SHARE, LEAST_WINDOW), WINDOW);
  }

  #hasWindow(): boolean {
    return this.#kinds.some(([kind]) => look(kind).below && kind !== 'expired');
  }

  protected shownY(): [number, number] {
    if (this.y) return this.y;
    const ranges = this.#alike.map((plot) => plot.#extent.range);
    return [Math.min(...ranges.map(([low]) => low)), Math.max(...ranges.map(([, high]) => high))];
  }

  /** End of the window's axis. */
  get #windowEnd(): number {
    return roundEnd(Math.max(...this.#alike.map((plot) => plot.#extent.window)));
  }

  /** Extent of this plot's own data on the vertical axes. */
  get #extent(): { range: [number, number]; window: number } {
    const of = `${this.#edition} ${this.cursor.range} ${this.cursor.whole}`;
    if (this.#found?.of !== of) this.#found = { of, range: this.#bounds(), window: this.#highest(this.cursor.range) };
    return this.#found;
  }

  /** The range of the vertical axis for the time in view. */
  #bounds(): [number, number] {
    const bounding = this.#kinds.filter(([kind]) => !UNBOUND.has(kind)).map(([, marks]) => marks);
    const range = this.cursor.range;
    const [low, high] = extent(bounding, range) ?? extent(bounding, this.cursor.whole) ?? [0, KIB];
    const room = Math.max((high - low) * 0.03, 1);
    const whole = this.cursor.whole;
    const all = range[0] === whole[0] && range[1] === whole[1];
    return [all ? Math.min(low, 0) : low - room, high + room];
  }

  #axes(area: Area): { x: Axis; y: Axis } {
    const [low, high] = this.shownY();
    const [from, to] = this.cursor.range;
    return {
      x: new Axis(from, to, area.left, area.right),
      y: new Axis(low, high, area.bottom, area.top),
    };
  }

  // ---- drawing

  protected override renewed(note = ''): void {
    this.#edition++;
    super.renewed(note);
  }

  protected paint(): void {
    const { width } = this;
    const { height } = this.panels();
    const scale = devicePixelRatio || 1;
    const [w, h] = [Math.round(width * scale), Math.round(height * scale)];
    for (const canvas of [this.#canvas, this.#above]) {
      if (canvas.width === w && canvas.height === h) continue;
      [canvas.width, canvas.height] = [w, h];
      canvas.style.width = `${width}px`;
      canvas.style.height = `${height}px`;
      this.#drawn = '';
    }
    const cleared = (canvas: HTMLCanvasElement) => {
      const context = canvas.getContext('2d')!;
      context.setTransform(scale, 0, 0, scale, 0, 0);
      context.clearRect(0, 0, width, height);
      return new CanvasPen(context);
    };
    const wanted = `${this.#edition} ${this.cursor.range} ${this.cursor.whole} ${this.shownY()} ${this.#windowEnd} ${scale}`;
    if (wanted !== this.#drawn) {
      this.#drawn = wanted;
      this.render(cleared(this.#canvas), width, 0);
    }
    this.#drawCursor(cleared(this.#above));
  }

  protected render(pen: Pen, width: number, above: number): void {
    const area = this.area(width, above);
    const { x, y } = this.#axes(area);
    const below = this.#hasWindow()
      ? { ...area, top: area.bottom + GAP, bottom: area.bottom + GAP + this.#window }
      : null;
    const frame: Frame = { pen, range: this.cursor.range, x, y, area, below };
    this.#drawSpans(frame);
    drawY(frame, y, area, 6, 'sequence', this.colours);
    const { left, right, top, bottom } = area;
    pen.clip(left - 1, top - 1, right - left + 2, bottom - top + 2, () => {
      for (const [kind, marks] of this.#kinds) {
        if (!look(kind).below) this.#drawKind(frame, kind, marks);
      }
    });
    if (below) this.#drawWindow(frame, below);
    const foot = below ? below.bottom : area.bottom;
    this.#drawX(frame, foot, width < 520 ? 5 : 10);
  }

  #drawKind({ pen, range, x, y, area }: Frame, kind: string, marks: Marks): void {
    const { shape, colour: name, dash = [] } = look(kind);
    const colour = this.colours[name];
    const [first, last] = inRange(marks.t, range);
    const at = (t: number) => x.at(t);
    const to = (byte: number) => y.at(byte);
    if (shape === 'stairs') {
      pen.stairs({ colour, width: kind === 'ack' ? 1 : 1.4, dash }, (corner) => {
        let height: number | null = null;
        steps(marks.t, marks.to, [first, last], at, to, (px, py) => {
          corner(px, py);
          height = py;
        });
        if (height !== null) corner(area.right, height);
      });
    } else if (shape === 'stroke') {
      pen.uprights({ colour, width: kind === 'sent' ? 2.2 : 1.6, round: true }, (line) => {
        strokes(marks, [first, last], at, to, line);
      });
    } else {
      const apart = new Apart(last - first);
      const points: [number, number][] = [];
      for (let i = first; i < last; i++) {
        const px = x.at(marks.t[i]!);
        const py = y.at((marks.from[i]! + marks.to[i]!) / 2);
        if (py > area.top - 6 && py < area.bottom + 6 && apart.fresh(px, py)) points.push([px, py]);
      }
      drawMarks(pen, shape, colour, points);
    }
  }

  /** Draws the panel of the window, with the expirations of the timer. */
  #drawWindow(frame: Frame, area: Area): void {
    const { pen, range, x } = frame;
    const y = new Axis(0, this.#windowEnd, area.bottom, area.top);
    drawY(frame, y, area, 3, 'window', this.colours);
    const { left, right, top, bottom } = area;
    pen.clip(left - 1, top - 1, right - left + 2, bottom - top + 2, () => {
      for (const [kind, marks] of this.#kinds) {
        if (!look(kind).below) continue;
        if (kind === 'expired') {
          const [first, last] = inRange(marks.t, range);
          const apart = new Apart(last - first);
          const points: [number, number][] = [];
          for (let i = first; i < last; i++) {
            const px = x.at(marks.t[i]!);
            if (apart.fresh(px, 0)) points.push([px, bottom]);
          }
          drawMarks(pen, 'tick', this.colours[look(kind).colour], points);
        } else {
          // The initial ssthresh is far above the panel: it is drawn at the upper edge.
          this.#drawKind({ ...frame, y: atMost(y, top), area }, kind, marks);
        }
      }
    });
  }

  /** The largest window in a range, including the one in effect at its start. */
  #highest(range: [number, number]): number {
    const all = this.#kinds.filter(([kind]) => kind === 'cwnd').map(([, marks]) => marks);
    const begun = all.map(({ t, to }) => to[firstFrom(t, range[0]) - 1] ?? 0);
    return Math.max(...begun, extent(all, range)?.[1] ?? 0, 0);
  }

  #drawSpans({ pen, range, x, area, below }: Frame): void {
    const areas = below ? [area, below] : [area];
    for (const [kind, spans] of this.#spans) {
      const style = SPANS[kind];
      const { names } = spans;
      let free = -Infinity;
      const shown = bands(spans, range, (t) => x.at(t), style !== undefined);
      if (style) {
        pen.bars(this.colours[style.colour], style.opacity, (bar) => {
          for (const { top, bottom } of areas) {
            for (const { left, right } of shown) bar(left, top, right - left, bottom - top);
          }
        });
      }
      if (kind !== 'stall' && !names) continue;
      for (const { left, right, first, length } of shown) {
        const text = names?.[first] ?? `${length.toFixed(1)} s`;
        const half = pen.width(text, 11.5) / 2 + 2;
        const middle = (left + right) / 2;
        // A label that would touch its neighbour or leave the plot is left out; the band remains.
        const fits = middle - half > Math.max(free, area.left - 14) && middle + half < area.right + 14;
        if (right - left <= 10 || !fits) continue;
        const where = kind === 'stall' ? area.top + 13 : area.top - 6;
        pen.text({ colour: this.colours.ink, size: 11.5, anchor: 'middle' }, middle, where, text);
        free = middle + half;
      }
    }
  }

  #drawX({ pen, x }: Frame, foot: number, wanted: number): void {
    const { axis, muted } = this.colours;
    const ticks = x.ticks(wanted);
    pen.stroke({ colour: axis, width: 1.2 }, (path) => {
      path.move(x.from, foot);
      path.line(x.to, foot);
      for (const [value] of ticks) {
        path.move(x.at(value), foot);
        path.line(x.at(value), foot + 5);
      }
    });
    let free = -Infinity;
    for (const [value, label] of ticks) {
      const half = pen.width(label, 12) / 2 + 3;
      if (x.at(value) - half < free) continue;
      pen.text({ colour: muted, size: 12, anchor: 'middle' }, x.at(value), foot + 19, label);
      free = x.at(value) + half;
    }
    const middle = (x.from + x.to) / 2;
    pen.text({ colour: muted, size: 12.5, anchor: 'middle' }, middle, foot + 38, 'time (s)');
  }

  #drawCursor(pen: Pen): void {
    const { area, x, below } = this.#placed();
    const { time } = this.cursor;
    const { ink } = this.colours;
    if (time !== null && time >= x.low && time <= x.high) {
      pen.stroke({ colour: ink, width: 1, dash: [2, 3] }, (path) => {
        path.move(x.at(time), area.top);
        path.line(x.at(time), below?.bottom ?? area.bottom);
      });
    }
    for (const found of [this.chosen, this.#marked]) {
      if (!found || this.#marksOf(found).t.length <= found.index) continue;
      const [px, py] = this.placeOf(found);
      if (px < area.left || px > area.right) continue;
      pen.stroke({ colour: ink, width: 1.6 }, (path) => path.circle(px, py, 7));
    }
  }

  #placed() {
    const area = this.panels();
    const below = this.#hasWindow()
      ? { top: area.bottom + GAP, bottom: area.bottom + GAP + this.#window }
      : null;
    return { area, below, ...this.#axes(area) };
  }

  // ---- marks

  #marksOf({ kind }: Found): Marks {
    const found = this.#kinds.find(([name]) => name === kind);
    return found?.[1] ?? { t: new Float64Array(), from: new Float64Array(), to: new Float64Array() };
  }

  protected timeOf(found: Found): number {
    return this.#marksOf(found).t[found.index]!;
  }

  protected placeOf(found: Found): [number, number] {
    const { x, y, area, below } = this.#placed();
    const { t, from, to } = this.#marksOf(found);
    const { shape, below: isBelow } = look(found.kind);
    const byte = shape === 'stairs' ? to[found.index]! : (from[found.index]! + to[found.index]!) / 2;
    const py = isBelow && below ? below.bottom : Math.min(Math.max(y.at(byte), area.top), area.bottom);
    return [x.at(t[found.index]!), py];
  }

  protected valueAt(py: number): number {
    return this.#placed().y.value(py);
  }

  protected find(at: readonly [number, number]): Found | null {
    const { x, y, area } = this.#placed();
    if (at[1] > area.bottom + REACH || at[0] < area.left - REACH || at[0] > area.right + REACH) return null;
    const above = this.#kinds.filter(([kind]) => !look(kind).below && look(kind).shape !== 'stairs');
    const reach = matchMedia('(pointer: coarse)').matches ? 2 * REACH : REACH;
    return nearest(above, x, y, at, reach) ?? nearest(this.#stairs(), x, y, at, reach / 2);
  }

  /** The corners of ACKs as points. */
  #stairs(): [string, Marks][] {
    const acks = this.#kinds.filter(([kind]) => kind === 'ack');
    return acks.map(([kind, { t, to }]) => [kind, { t, from: to, to }]);
  }

  protected neighbour(by: 1 | -1, interesting: boolean): (Found & { time: number }) | null {
    const range = this.cursor.range;
    const here = this.cursor.time ?? (by > 0 ? range[0] - 1e-12 : range[1] + 1e-12);
    let best: (Found & { time: number }) | null = null;
    for (const [kind, { t }] of this.#kinds) {
      if (interesting ? PLAIN.has(kind) : kind !== 'sent' && PLAIN.has(kind)) continue;
      // Marks of the same time count as one step.
      let i = by > 0 ? inRange(t, [here, here])[1] : inRange(t, [here, here])[0] - 1;
      if (i < 0 || i >= t.length) continue;
      const time = t[i]!;
      if (!best || (time - best.time) * by < 0) best = { kind, index: i, distance: 0, time };
    }
    return best;
  }

  // ---- words

  protected entries(): Entry[] {
    const counted = (kind: string, n: number) => {
      const { words, shape } = look(kind);
      return shape === 'stairs' || kind === 'sent' ? words : `${words} (${short(n)})`;
    };
    const kinds = this.#kinds.map(([kind, { t }]) => {
      const { shape, colour, dash } = look(kind);
      return { shape, colour, words: counted(kind, t.length), ...(dash ? { dash } : {}) };
    });
    const spans = this.#spans.flatMap(([kind, { from }]) => {
      const style = SPANS[kind];
      if (!style) return [];
      const { colour, words, opacity } = style;
      return [{ shape: 'band' as const, colour, opacity, words: `${words} (${short(from.length)})` }];
    });
    return [...kinds, ...spans];
  }

  protected summary(): string {
    const counts = Object.entries(this.counts()).filter(([kind, n]) => {
      return n > 0 && !['cwnd', 'ssthresh', 'window'].includes(kind);
    });
    const words = counts.map(([kind, n]) => `${look(kind).words} ${grouped(String(n))}`);
    return `${this.spanWords()}: ${words.join(', ') || 'nothing'}`;
  }

  protected describe({ kind, index }: Found): string {
    const { t, from, to, packet } = this.#marksOf({ kind, index, distance: 0 });
    const [low, high] = this.cursor.range;
    const [first, last] = [from[index]!, to[index]!];
    const bytes = look(kind).below
      ? kind === 'expired' ? '' : `${grouped(String(last))} bytes`
      : kind === 'ack' ? `up to byte ${grouped(String(last))}`
        : `bytes ${grouped(String(first))} to ${grouped(String(last))} (${short(last - first)})`;
    const number = packet ? `, number ${packet[index]}` : '';
    const lines = [`${look(kind).words}${number}`, `${seconds(t[index]!, high - low)} s`, bytes];
    return lines.filter(Boolean).join('\n');
  }

  protected rows(): Rows {
    const range = this.cursor.range;
    const parts = this.#kinds.map(([kind, marks]) => {
      const [first, last] = inRange(marks.t, range);
      return { kind, marks, at: first, last };
    });
    function* merged(): Generator<(string | number)[]> {
      for (;;) {
        let next: (typeof parts)[number] | null = null;
        for (const part of parts) {
          if (part.at >= part.last) continue;
          if (!next || part.marks.t[part.at]! < next.marks.t[next.at]!) next = part;
        }
        if (!next) return;
        const { t, from, to } = next.marks;
        yield [t[next.at]!, look(next.kind).words, from[next.at]!, to[next.at]!];
        next.at++;
      }
    }
    return { columns: ['time (s)', 'what', 'from byte', 'to byte'], rows: merged() };
  }
}

/** An axis whose positions are limited to `top`. */
function atMost(axis: Axis, top: number): Axis {
  const bounded = new Axis(axis.low, axis.high, axis.from, axis.to);
  bounded.at = (value) => Math.max(axis.at(value), top);
  return bounded;
}

/** Draws the horizontal grid of a panel with its labels at the left: in KiB, or in MiB for large values. */
function drawY(
  { pen, area }: Frame,
  axis: Axis,
  panel: Area,
  wanted: number,
  title: string,
  { grid, muted }: Palette,
): void {
  const [unit, name] = axis.high < 99_999 * KIB ? [KIB, 'KiB'] : [KIB * KIB, 'MiB'];
  const inUnits = new Axis(axis.low / unit, axis.high / unit, axis.from, axis.to);
  const ticks = inUnits.ticks(wanted);
  pen.stroke({ colour: grid, width: 1 }, (path) => {
    for (const [value] of ticks) {
      path.move(panel.left, inUnits.at(value));
      path.line(panel.right, inUnits.at(value));
    }
  });
  for (const [value, label] of ticks) {
    pen.text({ colour: muted, size: 12, anchor: 'end' }, panel.left - 8, inUnits.at(value) + 4, label);
  }
  const middle = (panel.top + panel.bottom) / 2;
  const look = { colour: muted, size: 12.5, anchor: 'middle', upwards: true } as const;
  pen.text(look, area.left < 70 ? 12 : 16, middle, `${title} (${name})`);
}
