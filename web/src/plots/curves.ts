// Curves over time or over the variable of a sweep: drawn by uPlot on the screen, and by a pen in files.

import uPlot from 'uplot';

import { Axis, Decades, grouped, roundEnd, seconds, short } from './axis.ts';
import { type Area, type Entry, Plot, type Rows } from './base.ts';
import type { TimeCursor } from './cursor.ts';
import type { CurveData, PlotOptions } from './data.ts';
import { type Found, inRange, steps } from './geometry.ts';
import type { Pen } from './pen.ts';
import { type Colour, dress, marks, series } from './style.ts';

const FOOT = 46;
const REACH = 20;
const BROKEN: readonly (readonly number[])[] = [[7, 4], [2, 3], [9, 3, 2, 3]];

/** The part of uPlot's style sheet that is used here. */
const RULES = `
.uplot,.uplot *{box-sizing:border-box}
.uplot{width:min-content;line-height:1.5}
.u-wrap{position:relative;user-select:none}
.u-over,.u-under{position:absolute;overflow:hidden}
.uplot canvas{display:block;position:relative;width:100%;height:100%}
.u-axis{position:absolute}
.lhp-line{position:absolute;z-index:1;width:0;pointer-events:none;border-left:1px dashed var(--lh-ink,CanvasText)}
`;

/** Maximum number of means with an interval that get a dot each; more dots would make a thick line. */
const MEANS = 60;

/** Whether the points of a line get a dot each. */
const marked = (data: CurveData) => data.low !== undefined && data.t.length <= MEANS;

/** Maximum number of points without a line that are drawn as rings; more are dots. */
const RINGS = 100;

/** A curve as it is drawn: `x` has the positions on the axis, in decades if the axis is logarithmic. */
interface Drawn {
  data: CurveData;
  x: Float64Array;
  colour: Colour;
  dash: readonly number[];
  rings: boolean;
}

export class CurvePlot extends Plot {
  #curves: Drawn[] = [];
  #decades: Decades | null = null;
  #plot: uPlot | null = null;
  readonly #holder: HTMLElement;
  readonly #line: HTMLElement;
  /** All inputs of the last drawing, joined. */
  #drawn = '';
  #version = 0;
  /** The least and the greatest position of a point. */
  #reach: [number, number] = [0, 0];

  constructor(place: HTMLElement, cursor: TimeCursor, options: PlotOptions = {}) {
    super(place, cursor, options);
    dress(place.ownerDocument, RULES);
    this.#holder = document.createElement('div');
    this.#holder.setAttribute('aria-hidden', 'true');
    this.#line = document.createElement('div');
    this.#line.className = 'lhp-line';
    this.#line.hidden = true;
    this.surface.prepend(this.#holder, this.#line);
  }

  /** Whether the horizontal axis is time. */
  get #isTime(): boolean {
    return (this.options.x ?? 'time (s)') === 'time (s)';
  }

  /** Replaces the curves. */
  set(curves: CurveData[]): void {
    const all = curves.flatMap(({ t }) => [...ends(t)]);
    this.#decades = this.options.log ? Decades.of(curves.flatMap(({ t }) => [...t])) : null;
    const decades = this.#decades;
    let broken = 0;
    this.#curves = curves.map((data, i) => {
      const { colour, dash } = data.theory
        ? { colour: 'muted' as const, dash: BROKEN[broken++ % BROKEN.length]! }
        : series(i);
      const rings = data.dots === true && data.t.length <= RINGS;
      return { data, colour, dash, rings, x: decades ? data.t.map((value) => decades.of(value)) : data.t };
    });
    if (this.#isTime) this.cursor.reach(Math.max(...all, 0));
    else {
      const at = this.#curves.flatMap(({ x }) => [...ends(x)]);
      const [low, high] = [Math.min(...at), Math.max(...at)];
      this.#reach = [low, high];
      const room = (high - low) * 0.02 || 0.5;
      if (low <= high) this.cursor.whole = [low - room, high + room];
    }
    this.#version++;
    this.chosen = null;
    this.renewed();
  }

  override destroy(): void {
    this.#plot?.destroy();
    super.destroy();
  }

  // ---- places

  protected area(width: number, above: number): Area & { height: number } {
    const narrow = width < 520;
    const top = above + 10;
    const bottom = top + (this.options.height ?? (narrow ? 220 : 300));
    return {
      left: narrow ? 64 : 72,
      right: width - (narrow ? 10 : 18),
      top,
      bottom,
      height: bottom + FOOT,
    };
  }

  protected shownY(): [number, number] {
    if (this.y) return this.y;
    let [low, high] = [0, 0];
    for (const { x, data } of this.#curves) {
      const [first, last] = inRange(x, this.cursor.range);
      // In a step curve the value before the range is still visible in it.
      for (let i = Math.max(first - (data.step ? 1 : 0), 0); i < last; i++) {
        const [least, most] = [data.low?.[i] ?? data.y[i]!, data.high?.[i] ?? data.y[i]!];
        if (least < low) low = least;
        if (most > high) high = most;
      }
    }
    return [low < 0 ? -roundEnd(-low) : 0, roundEnd(high)];
  }

  #axes(area: Area): { x: Axis; y: Axis } {
    const [from, to] = this.cursor.range;
    const [low, high] = this.shownY();
    return {
      x: new Axis(from, to, area.left, area.right),
      y: new Axis(low, high, area.bottom, area.top),
    };
  }

  #xTicks(width: number): [number, string][] {
    const [from, to] = this.cursor.range;
    const { left, right } = this.area(width, 0);
    const axis = new Axis(from, to, left, right);
    if (!this.#decades) return axis.ticks(width < 520 ? 4 : 8);
    // On a logarithmic axis some steps are too narrow for a label.
    let free = -Infinity;
    return this.#decades.ticks(from, to).filter(([value, label]) => {
      const half = 4 * label.length + 3;
      const fits = axis.at(value) - half >= free;
      if (fits) free = axis.at(value) + half;
      return fits;
    });
  }

  #yTicks(): [number, string][] {
    const [low, high] = this.shownY();
    return new Axis(low, high, 0, 1).ticks((this.options.height ?? 300) < 200 ? 4 : 6);
  }

  get #unit(): string {
    return this.#curves[0]?.data.unit ?? '';
  }

  // ---- on the screen

  protected paint(): void {
    const area = this.panels();
    const { width } = this;
    const [from, to] = this.cursor.range;
    const drawn = [width, from, to, this.y, this.#version, this.colours.ink].join();
    if (drawn !== this.#drawn) {
      this.#drawn = drawn;
      if (!this.#plot || this.#plot.root.dataset.made !== this.#made()) this.#build(width, area);
      const plot = this.#plot!;
      if (plot.width !== width) plot.setSize({ width, height: area.height });
      plot.batch(() => {
        const [low, high] = this.shownY();
        plot.setScale('x', { min: from, max: to });
        plot.setScale('y', { min: low, max: high });
      });
    }
    const { time } = this.cursor;
    const here = time !== null && time >= from && time <= to;
    this.#line.hidden = !here;
    if (!here) return;
    const { x } = this.#axes(area);
    Object.assign(this.#line.style, {
      left: `${x.at(time)}px`,
      top: `${area.top}px`,
      height: `${area.bottom - area.top}px`,
    });
  }

  /** Inputs of uPlot's construction: if they change, uPlot is built again. */
  #made(): string {
    return `${this.#version} ${this.colours.ink} ${this.width < 520}`;
  }

  #build(width: number, area: Area & { height: number }): void {
    this.#plot?.destroy();
    const { muted, grid, axis } = this.colours;
    const look = {
      font: "12px system-ui,-apple-system,'Segoe UI',Roboto,'DejaVu Sans',sans-serif",
      labelFont: "12.5px system-ui,-apple-system,'Segoe UI',Roboto,'DejaVu Sans',sans-serif",
      stroke: muted,
    };
    const bands: uPlot.Band[] = [];
    const lines: uPlot.Series[] = [{}];
    const tables: uPlot.AlignedData[] = [];
    for (const { data, x, colour, dash, rings } of this.#curves) {
      const stroke = this.colours[colour];
      const dots = data.dots || marked(data);
      const at = lines.length;
      const stepped = uPlot.paths.stepped!({ align: 1 });
      lines.push({
        stroke,
        width: data.theory ? 1.6 : 1.8,
        dash: [...dash],
        ...(data.step ? { paths: stepped } : data.dots ? { paths: () => null } : {}),
        points: rings
          ? { show: true, size: 7, fill: this.colours.paper, stroke, width: 1.6 }
          : { show: dots, size: data.dots ? 4 : 6, fill: stroke, stroke, width: 0 },
      });
      const gaps = (values: Float64Array) => Array.from(values, (v) => (Number.isFinite(v) ? v : null));
      const { low, high } = data;
      if (low && high) {
        // The two lines of a band only define its edges.
        const edge = { width: 0, points: { show: false } };
        lines.push({ ...edge }, { ...edge });
        bands.push({ series: [at + 2, at + 1], fill: faint(stroke) });
        tables.push([x, gaps(data.y), gaps(low), gaps(high)] as uPlot.AlignedData);
      } else tables.push([x, gaps(data.y)] as uPlot.AlignedData);
    }
    const joined = tables.length === 1 ? tables[0]! : tables.length ? uPlot.join(tables) : [[]];
    this.#plot = new uPlot(
      {
        width,
        height: area.height,
        padding: [area.top, width - area.right, 0, 0],
        legend: { show: false },
        cursor: { show: false },
        scales: {
          x: { time: false, auto: false },
          y: { auto: false },
        },
        axes: [
          {
            ...look,
            size: 30,
            label: this.options.x ?? 'time (s)',
            labelSize: FOOT - 30,
            splits: () => this.#xTicks(this.width).map(([value]) => value),
            values: () => this.#xTicks(this.width).map(([, label]) => label),
            grid: { show: false },
            ticks: { stroke: axis, width: 1.2, size: 5 },
            border: { show: true, stroke: axis, width: 1.2 },
          },
          {
            ...look,
            size: area.left - 18,
            label: this.#unit,
            labelSize: 18,
            splits: () => this.#yTicks().map(([value]) => value),
            values: () => this.#yTicks().map(([, label]) => label),
            grid: { stroke: grid, width: 1 },
            ticks: { show: false },
          },
        ],
        series: lines,
        bands,
      },
      joined as uPlot.AlignedData,
      this.#holder,
    );
    this.#plot.root.dataset.made = this.#made();
  }

  // ---- in files

  protected render(pen: Pen, width: number, above: number): void {
    const area = this.area(width, above);
    const { x, y } = this.#axes(area);
    const { grid, axis, muted } = this.colours;
    const ticks = this.#yTicks();
    pen.stroke({ colour: grid, width: 1 }, (path) => {
      for (const [value] of ticks) {
        path.move(area.left, y.at(value));
        path.line(area.right, y.at(value));
      }
    });
    for (const [value, label] of ticks) {
      pen.text({ colour: muted, size: 12, anchor: 'end' }, area.left - 8, y.at(value) + 4, label);
    }
    const middle = (area.top + area.bottom) / 2;
    const upwards = { colour: muted, size: 12.5, anchor: 'middle', upwards: true } as const;
    pen.text(upwards, 14, middle, this.#unit);
    const { left, right, top, bottom } = area;
    pen.clip(left, top - 4, right - left, bottom - top + 8, () => {
      for (const curve of this.#curves) this.#drawBand(pen, curve, x, y);
      for (const curve of this.#curves) this.#drawCurve(pen, curve, x, y);
    });
    pen.stroke({ colour: axis, width: 1.2 }, (path) => {
      path.move(left, bottom);
      path.line(right, bottom);
      for (const [value] of this.#xTicks(width)) {
        path.move(x.at(value), bottom);
        path.line(x.at(value), bottom + 5);
      }
    });
    for (const [value, label] of this.#xTicks(width)) {
      pen.text({ colour: muted, size: 12, anchor: 'middle' }, x.at(value), bottom + 19, label);
    }
    const look = { colour: muted, size: 12.5, anchor: 'middle' } as const;
    pen.text(look, (left + right) / 2, bottom + 38, this.options.x ?? 'time (s)');
  }

  #drawBand(pen: Pen, { data: { low, high }, x: at, colour }: Drawn, x: Axis, y: Axis): void {
    if (!low || !high || at.length === 0) return;
    pen.fill(this.colours[colour], 0.18, (path) => {
      at.forEach((place, i) => path[i === 0 ? 'move' : 'line'](x.at(place), y.at(high[i]!)));
      for (let i = at.length - 1; i >= 0; i--) path.line(x.at(at[i]!), y.at(low[i]!));
      path.close();
    });
  }

  #drawCurve(pen: Pen, { data, x: at, colour, dash, rings }: Drawn, x: Axis, y: Axis): void {
    const stroke = this.colours[colour];
    const [first, last] = inRange(at, this.cursor.range);
    const points: [number, number][] = [];
    for (let i = first; i < last; i++) {
      if (Number.isFinite(data.y[i]!)) points.push([x.at(at[i]!), y.at(data.y[i]!)]);
    }
    if (!data.dots) {
      pen.stroke({ colour: stroke, width: 1.8, dash }, (path) => {
        let height: number | null = null;
        const write = (px: number, py: number) => {
          if (!Number.isFinite(py)) return void (height = null);
          if (height === null) path.move(px, py);
          else {
            if (data.step) path.line(px, height);
            path.line(px, py);
          }
          height = py;
        };
        if (data.step) {
          steps(at, data.y, [first, last], (t) => x.at(t), (v) => y.at(v), write);
          if (height !== null && last < at.length) path.line(x.to, height);
        } else {
          const end = Math.min(last + 1, at.length);
          for (let i = Math.max(first - 1, 0); i < end; i++) write(x.at(at[i]!), y.at(data.y[i]!));
        }
      });
    }
    if (rings) marks(pen, 'ring', stroke, points);
    else if (data.dots || marked(data)) {
      pen.fill(stroke, 1, (path) => points.forEach(([px, py]) => path.circle(px, py, data.dots ? 2 : 3)));
    }
    if (this.chosen?.kind === data.name && this.chosen.index < at.length) {
      marks(pen, 'ring', this.colours.ink, [[x.at(at[this.chosen.index]!), y.at(data.y[this.chosen.index]!)]]);
    }
  }

  // ---- points

  #curve(name: string): Drawn | undefined {
    return this.#curves.find(({ data }) => data.name === name);
  }

  protected timeOf({ kind, index }: Found): number {
    return this.#curve(kind)?.x[index] ?? NaN;
  }

  protected placeOf(found: Found): [number, number] {
    const { x, y } = this.#axes(this.panels());
    return [x.at(this.timeOf(found)), y.at(this.#curve(found.kind)?.data.y[found.index] ?? NaN)];
  }

  protected valueAt(py: number): number {
    return this.#axes(this.panels()).y.value(py);
  }

  protected find(at: readonly [number, number]): Found | null {
    const { x, y } = this.#axes(this.panels());
    let best: Found | null = null;
    for (const { data, x: all } of this.#curves) {
      const [first, last] = inRange(all, [x.value(at[0] - REACH), x.value(at[0] + REACH)]);
      for (let i = first; i < last; i++) {
        const distance = Math.hypot(x.at(all[i]!) - at[0], y.at(data.y[i]!) - at[1]);
        if (distance <= REACH && (!best || distance < best.distance)) {
          best = { kind: data.name, index: i, distance };
        }
      }
    }
    return best;
  }

  protected neighbour(by: 1 | -1): (Found & { time: number }) | null {
    const range = this.cursor.range;
    const here = this.cursor.time ?? (by > 0 ? range[0] - 1e-12 : range[1] + 1e-12);
    let best: (Found & { time: number }) | null = null;
    for (const { data, x } of this.#curves) {
      const [first, last] = inRange(x, [here, here]);
      const i = by > 0 ? last : first - 1;
      const time = x[i];
      if (time === undefined) continue;
      if (!best || (time - best.time) * by < 0) best = { kind: data.name, index: i, distance: 0, time };
    }
    return best;
  }

  // ---- words

  protected entries(): Entry[] {
    return this.#curves.map(({ data, colour, dash }) => {
      const shape = data.dots ? 'ring' : 'stairs';
      return { shape, colour, dash, words: data.low ? `${data.name}, 95 % interval` : data.name };
    });
  }

  #words(at: number): string {
    if (this.#decades) return short(Math.max(this.#decades.value(at), 0));
    const [from, to] = this.cursor.range;
    if (this.#isTime) return `${seconds(at, to - from)} s`;
    // The axis extends a little beyond the points.
    return short(Math.min(Math.max(at, this.#reach[0]), this.#reach[1]));
  }

  protected summary(): string {
    const [from, to] = this.cursor.range;
    const unit = /\(([^)]+)\)/.exec(this.#unit)?.[1] ?? this.#unit;
    const counts = this.#curves.map(({ data, x }) => {
      const [first, last] = inRange(x, this.cursor.range);
      let [low, high] = [Infinity, -Infinity];
      for (let i = first; i < last; i++) {
        low = Math.min(low, data.y[i]!);
        high = Math.max(high, data.y[i]!);
      }
      const spread = last > first ? `, ${short(low)} to ${short(high)} ${unit}` : '';
      return `${data.name} ${grouped(String(last - first))}${spread}`;
    });
    const range = this.#isTime ? this.spanWords() : `${this.#words(from)} to ${this.#words(to)}`;
    return `${range}: ${counts.join('; ') || 'nothing'}`;
  }

  protected describe({ kind, index }: Found): string {
    const curve = this.#curve(kind);
    if (!curve) return '';
    const { y, low, high, unit } = curve.data;
    const band = low && high ? ` (${short(low[index]!)} to ${short(high[index]!)})` : '';
    return `${kind}\n${this.#words(curve.x[index]!)}\n${short(y[index]!)}${band} ${unit}`;
  }

  protected rows(): Rows {
    const curves = this.#curves;
    const range = this.cursor.range;
    function* all(): Generator<(string | number)[]> {
      for (const { data, x } of curves) {
        const [first, last] = inRange(x, range);
        for (let i = first; i < last; i++) {
          yield [data.name, data.t[i]!, data.y[i]!, data.low?.[i] ?? '', data.high?.[i] ?? '', data.unit];
        }
      }
    }
    const x = this.options.x ?? 'time (s)';
    return { columns: ['curve', x, 'value', 'low', 'high', 'unit'], rows: all() };
  }
}

/** First and last value; empty without values. */
function ends(all: Float64Array): number[] {
  return all.length ? [all[0]!, all.at(-1)!] : [];
}

/** A transparent version of a colour, for the area of a band. */
function faint(colour: string): string {
  return /^#[0-9a-f]{6}$/i.test(colour) ? `${colour}2e` : `color-mix(in srgb, ${colour} 18%, transparent)`;
}
