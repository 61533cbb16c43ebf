// The common part of plots: heading, buttons, status, table and downloads. It follows the cursor and the range.

import type { PlotOptions } from './data.ts';
import type { Found } from './geometry.ts';
import { within, zoomed } from './geometry.ts';
import { attributes, make, save } from './dom.ts';
import { type Entry, drawSample, placed, sample } from './legend.ts';
import { CanvasPen, type Pen, SvgPen } from './pen.ts';
import { type Palette, dress, palette } from './style.ts';
import { CLOSER, KEYS, type Touched, listen } from './touch.ts';
import { seconds } from './axis.ts';
import type { TimeCursor } from './cursor.ts';

/** The view: a range of seconds, and a range of the vertical axis. Without `y` the vertical axis follows the data. */
export interface View {
  t: [number, number];
  y?: [number, number];
}

/** The table of the marks in view. */
export interface Rows {
  columns: readonly string[];
  rows: Iterable<readonly (string | number)[]>;
}

/** Edges of the panels, in CSS pixels. */
export interface Area {
  left: number;
  right: number;
  top: number;
  bottom: number;
}

/** Maximum number of rows that the page lists; the CSV has all. */
const LISTED = 200;
/** How long after the last change status and table are updated, in milliseconds. */
const SETTLED = 200;
/** Minimum width of a saved picture, in CSS pixels. */
const SAVED_WIDTH = 760;

export type { Entry } from './legend.ts';

let plots = 0;

/** The part of a plot that does not depend on the kind of data. */
export abstract class Plot implements Touched {
  /** A mark was chosen, by a click, a tap or Enter. */
  onpick?: (kind: string, index: number) => void;
  /** A time without a mark was clicked, in seconds. */
  onseek?: (time: number) => void;

  protected readonly root: HTMLElement;
  protected readonly surface: HTMLElement;
  protected readonly options: PlotOptions;
  protected readonly cursor: TimeCursor;
  protected colours: Palette;
  /** The range of the vertical axis, if the user chose one. */
  protected y: [number, number] | null = null;
  /** The mark at the cursor. */
  protected chosen: Found | null = null;

  readonly #legend: HTMLElement;
  readonly #status: HTMLElement;
  readonly #note: HTMLElement;
  readonly #tip: HTMLElement;
  readonly #table: HTMLTableElement | null = null;
  readonly #details: HTMLDetailsElement | null = null;
  readonly #ended: (() => void)[] = [];
  /** The range for which the status describes a mark; for other ranges it summarises the view. */
  #statusRange = '';
  #frame = 0;
  #timer = 0;

  protected constructor(place: HTMLElement, cursor: TimeCursor, options: PlotOptions) {
    const id = `lhp-${++plots}`;
    this.cursor = cursor;
    this.options = options;
    dress(place.ownerDocument);
    this.root = make('div', 'lhp');
    const title = options.title ?? 'plot';
    const head = make('div', 'lhp-head');
    if (options.title) head.append(make('p', 'lhp-title', options.title));
    if (options.tools !== false) head.append(this.#tools(title));
    this.#legend = make('ul', 'lhp-legend');
    this.surface = make('div', 'lhp-surface');
    this.surface.tabIndex = 0;
    this.#tip = make('div', 'lhp-tip');
    this.#tip.hidden = true;
    this.surface.append(this.#tip);
    this.#status = make('p', 'lhp-status');
    this.#status.id = `${id}-status`;
    const hint = make('p', 'lhp-hint', KEYS);
    hint.id = `${id}-keys`;
    hint.hidden = true;
    this.#note = make('p', 'lhp-note');
    attributes(this.surface, {
      role: 'application',
      'aria-roledescription': 'plot',
      'aria-label': title,
      'aria-describedby': `${this.#status.id} ${hint.id}`,
    });
    attributes(this.#status, { role: 'status' });
    this.root.append(head, this.#legend, this.surface, this.#status, this.#note, hint);
    if (options.table !== false) {
      this.#details = make('details');
      this.#table = make('table');
      const scroll = make('div', 'lhp-table');
      attributes(scroll, { tabindex: '0', role: 'region', 'aria-label': `${title}: table` });
      scroll.append(this.#table);
      this.#details.append(make('summary', '', 'Table of the view'), scroll);
      this.#details.addEventListener('toggle', () => this.#settle());
      this.root.append(this.#details);
    }
    place.append(this.root);
    this.colours = palette(this.root);
    this.#follow(hint);
  }

  // ---- what each kind of plot implements

  /** The edges of the panels in a drawing of this width; heading and legend take `above` pixels. */
  protected abstract area(width: number, above: number): Area & { height: number };
  /** Draws on the surface. */
  protected abstract paint(): void;
  /** Draws panels at `area`, without heading and legend. */
  protected abstract render(pen: Pen, width: number, above: number): void;
  protected abstract entries(): Entry[];
  protected abstract rows(): Rows;
  /** Summarises the view in words. */
  protected abstract summary(): string;
  /** Describes a mark in words. */
  protected abstract describe(found: Found): string;
  /** The mark at a position of the surface; null if there is none. */
  protected abstract find(at: readonly [number, number]): Found | null;
  /** The next or previous mark from the cursor. */
  protected abstract neighbour(by: 1 | -1, interesting: boolean): (Found & { time: number }) | null;
  /** The time of a mark. */
  protected abstract timeOf(found: Found): number;
  /** The position of a mark on the surface. */
  protected abstract placeOf(found: Found): [number, number];
  /** The value at a height of the surface. */
  protected abstract valueAt(py: number): number;
  /** The vertical range that is shown. */
  protected abstract shownY(): [number, number];

  // ---- the interface of all plots

  /** The view. */
  get view(): View {
    return this.y ? { t: this.cursor.range, y: [...this.y] } : { t: this.cursor.range };
  }

  set view(view: View) {
    this.y = view.y ? [...view.y] : null;
    this.cursor.range = within(view.t, this.cursor.whole);
    this.redraw();
  }

  /** Sets the height of the surface, in CSS pixels. The main panel has a minimum height. */
  fit(height: number): void {
    if (this.options.fit === height) return;
    this.options.fit = height;
    this.redraw();
  }

  /** Shows the whole time and all values. */
  reset(): void {
    this.y = null;
    this.chosen = null;
    this.#tip.hidden = true;
    this.cursor.range = this.cursor.whole;
    this.redraw();
  }

  /** The current picture as PNG, with heading and legend, at twice the resolution or more. */
  png(): Promise<Blob> {
    const scale = Math.max(2, devicePixelRatio);
    const canvas = make('canvas');
    const context = canvas.getContext('2d')!;
    const { width, height, above } = this.#paper(new CanvasPen(context));
    [canvas.width, canvas.height] = [width * scale, height * scale];
    context.scale(scale, scale);
    context.fillStyle = this.colours.paper;
    context.fillRect(0, 0, width, height);
    this.#whole(new CanvasPen(context), width, above);
    return new Promise((done, failed) => {
      canvas.toBlob((blob) => (blob ? done(blob) : failed(new Error('no PNG could be made'))));
    });
  }

  /** The current picture as SVG, with heading and legend. */
  svg(): string {
    const { width, height, above } = this.#paper(new SvgPen(1, 1));
    const pen = new SvgPen(width, height);
    this.#whole(pen, width, above);
    return pen.finish(this.options.title ?? 'plot', this.colours.paper);
  }

  /** The marks in view as CSV. */
  csv(): string {
    const { columns, rows } = this.rows();
    const quoted = (cell: string | number) => {
      const text = String(cell);
      return /[",\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
    };
    const lines = [columns.map(quoted).join(',')];
    for (const row of rows) lines.push(row.map(quoted).join(','));
    return `${lines.join('\n')}\n`;
  }

  /** Removes the plot from the page. */
  destroy(): void {
    cancelAnimationFrame(this.#frame);
    clearTimeout(this.#timer);
    this.#ended.forEach((end) => end());
    this.root.remove();
  }

  // ---- gestures

  zoom(factor: number, x?: number): void {
    const { left, right } = this.panels();
    const range = this.cursor.range;
    const share = x === undefined ? 0.5 : Math.min(Math.max((x - left) / (right - left), 0), 1);
    const { time } = this.cursor;
    const seen = x === undefined && time !== null && time >= range[0] && time <= range[1];
    const centre = seen ? time : range[0] + share * (range[1] - range[0]);
    const [from, to] = this.cursor.whole;
    // Times here have a resolution of one nanosecond.
    const least = Math.max((to - from) * 1e-9, 2e-8);
    this.cursor.range = zoomed(range, this.cursor.whole, factor, centre, least);
    if (factor > 1 && this.y) this.y = null;
    this.redraw();
  }

  drag(dx: number, dy: number): void {
    const { left, right, top, bottom } = this.panels();
    const [from, to] = this.cursor.range;
    const by = (-dx / (right - left)) * (to - from);
    this.cursor.range = within([from + by, to + by], this.cursor.whole);
    if (this.y && dy !== 0) {
      const rise = (dy / (bottom - top)) * (this.y[1] - this.y[0]);
      this.y = [this.y[0] + rise, this.y[1] + rise];
    }
    this.redraw();
  }

  pan(share: number): void {
    const [from, to] = this.cursor.range;
    const span = to - from;
    const whole = this.cursor.whole;
    const start =
      share === Infinity ? whole[1] - span : share === -Infinity ? whole[0] : from + share * span;
    this.cursor.range = within([start, start + span], whole);
    this.redraw();
  }

  box(a: readonly [number, number], b: readonly [number, number]): void {
    const times = [this.timeAt(a[0]), this.timeAt(b[0])].sort((x, y) => x - y);
    const values = [this.valueAt(a[1]), this.valueAt(b[1])].sort((x, y) => x - y);
    if (times[1]! > times[0]! && values[1]! > values[0]!) {
      this.view = { t: times as [number, number], y: values as [number, number] };
    }
  }

  hover(at: readonly [number, number] | null): void {
    const { left, right } = this.panels();
    const found = at && this.find(at);
    this.#say(found ? { ...found, at: this.placeOf(found) } : null);
    this.chosen = found;
    this.#statusRange = '';
    const inside = at !== null && at[0] >= left && at[0] <= right;
    this.cursor.time = inside ? (found ? this.timeOf(found) : this.timeAt(at[0])) : null;
    this.redraw();
  }

  pick(at: readonly [number, number]): void {
    this.hover(at);
    const { time } = this.cursor;
    if (this.chosen) this.choose();
    else if (time !== null) this.onseek?.(time);
  }

  choose(): void {
    if (this.chosen) this.onpick?.(this.chosen.kind, this.chosen.index);
  }

  step(by: 1 | -1, interesting: boolean): void {
    const found = this.neighbour(by, interesting);
    if (!found) return;
    this.show(found, found.time);
  }

  /** Puts the cursor on a mark and moves the view so that the mark is visible. */
  protected show(found: Found, time: number): void {
    const [from, to] = this.cursor.range;
    const span = to - from;
    if (time < from || time > to) {
      this.cursor.range = within([time - span / 2, time + span / 2], this.cursor.whole);
    }
    this.chosen = found;
    this.cursor.time = time;
    this.paint();
    this.#say({ ...found, at: this.placeOf(found) });
    this.#status.textContent = this.describe(found).replaceAll('\n', ', ');
    this.#statusRange = String(this.cursor.range);
  }

  // ---- inside

  /** The panels at the current width of the surface. */
  protected panels(): Area & { height: number } {
    return this.area(this.width, 0);
  }

  /** Width of the surface, in CSS pixels. */
  protected get width(): number {
    return Math.max(this.surface.clientWidth, 200);
  }

  protected timeAt(px: number): number {
    const { left, right } = this.panels();
    const [from, to] = this.cursor.range;
    return from + ((px - left) / (right - left)) * (to - from);
  }

  /** Draws at the next frame. */
  protected redraw(): void {
    cancelAnimationFrame(this.#frame);
    this.#frame = requestAnimationFrame(() => {
      this.paint();
      // The box follows its mark.
      if (!this.#tip.hidden) this.#say(this.chosen && { ...this.chosen, at: this.placeOf(this.chosen) });
    });
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#settle(), SETTLED) as unknown as number;
  }

  /** Draws legend, note and marks again after new data or new colours. */
  protected renewed(note = ''): void {
    // The page's colours apply only after the plot was added to the page.
    this.colours = palette(this.root);
    this.#note.textContent = note;
    this.#note.hidden = note === '';
    this.#drawLegend();
    this.redraw();
  }

  /** The range of time in words. */
  protected spanWords(): string {
    const [from, to] = this.cursor.range;
    return `${seconds(from, to - from)} to ${seconds(to, to - from)} s`;
  }

  #tools(title: string): HTMLElement {
    const tools = make('div', 'lhp-tools');
    attributes(tools, { role: 'group', 'aria-label': `${title}: controls` });
    const button = (text: string, label: string, act: () => void) => {
      const made = make('button', '', text);
      attributes(made, { type: 'button', 'aria-label': label, title: label });
      made.addEventListener('click', act);
      tools.append(made);
    };
    button('+', 'Zoom in', () => this.zoom(CLOSER));
    button('−', 'Zoom out', () => this.zoom(1 / CLOSER));
    button('◀', 'Earlier', () => this.pan(-0.4));
    button('▶', 'Later', () => this.pan(0.4));
    button('All', 'All: show the whole', () => this.reset());
    const file = (this.options.file ?? title).replace(/[^\w.=+%-]+/g, '-').slice(0, 100);
    button('PNG', 'PNG of the view', async () => save(await this.png(), `${file}.png`));
    button('SVG', 'SVG of the view', () => {
      save(new Blob([this.svg()], { type: 'image/svg+xml' }), `${file}.svg`);
    });
    button('CSV', 'CSV of the view', () => {
      save(new Blob([this.csv()], { type: 'text/csv' }), `${file}.csv`);
    });
    button('?', 'Keys and gestures', () => {
      const hint = this.root.querySelector<HTMLElement>('.lhp-hint')!;
      hint.hidden = !hint.hidden;
    });
    return tools;
  }

  #follow(hint: HTMLElement): void {
    this.#ended.push(
      this.cursor.subscribe(() => this.redraw()),
      listen(this.surface, this),
    );
    const sizes = new ResizeObserver(() => this.redraw());
    sizes.observe(this.surface);
    const scheme = matchMedia('(prefers-color-scheme: dark)');
    const change = () => this.renewed(this.#note.textContent ?? '');
    scheme.addEventListener('change', change);
    this.#ended.push(
      () => sizes.disconnect(),
      () => scheme.removeEventListener('change', change),
    );
    hint.hidden = true;
  }

  /** Shows the box next to a mark; null hides it. */
  #say(found: (Found & { at: [number, number] }) | null): void {
    const { left, right: end } = this.panels();
    this.#tip.hidden = found === null || found.at[0] < left || found.at[0] > end;
    if (!found || this.#tip.hidden) return;
    this.#tip.textContent = this.describe(found);
    const [x, y] = found.at;
    const style = this.#tip.style;
    const right = x > this.width / 2;
    style.left = right ? '' : `${x + 12}px`;
    style.right = right ? `${this.width - x + 12}px` : '';
    style.top = `${Math.max(y - 30, 0)}px`;
  }

  #settle(): void {
    if (this.#statusRange !== String(this.cursor.range)) this.#status.textContent = this.summary();
    if (!this.#table || !this.#details?.open) return;
    const { columns, rows } = this.rows();
    const shown: (readonly (string | number)[])[] = [];
    let all = 0;
    for (const row of rows) if (++all <= LISTED) shown.push(row);
    const cut = all > LISTED ? `; the first ${LISTED} of ${all}, the CSV has all` : '';
    const caption = make('caption', '', this.summary() + cut);
    const number = (cell: string | number | undefined) => (typeof cell === 'number' ? 'n' : '');
    const row = (tag: 'th' | 'td', cells: readonly (string | number)[]) => {
      const tr = make('tr');
      tr.append(
        ...cells.map((cell, i) => {
          const made = make(tag, number(tag === 'td' ? cell : shown[0]?.[i]), String(cell));
          if (tag === 'th') made.setAttribute('scope', 'col');
          return made;
        }),
      );
      return tr;
    };
    const [thead, tbody] = [make('thead'), make('tbody')];
    thead.append(row('th', columns));
    tbody.append(...shown.map((cells) => row('td', cells)));
    this.#table.replaceChildren(caption, thead, tbody);
  }

  #drawLegend(): void {
    const items = this.entries().map((entry) => {
      const item = make('li');
      item.append(sample(entry, this.colours), make('span', '', entry.words));
      return item;
    });
    this.#legend.replaceChildren(...items);
  }

  /** The size of a saved picture, and the height of its heading and legend. */
  #paper(pen: Pen): { width: number; height: number; above: number } {
    const width = Math.max(this.width, SAVED_WIDTH);
    const above = 40 + 17 * placed(this.entries(), pen, width).lines;
    return { width, above, height: this.area(width, above).height };
  }

  #whole(pen: Pen, width: number, above: number): void {
    const { ink, muted } = this.colours;
    const title = this.options.title ?? '';
    pen.text({ colour: ink, size: 15, bold: true }, 16, 24, title);
    for (const { entry, x, line } of placed(this.entries(), pen, width).all) {
      const y = 48 + 17 * line;
      drawSample(pen, entry, this.colours, x + 7, y - 4);
      pen.text({ colour: muted, size: 12.5 }, x + 19, y, entry.words);
    }
    this.render(pen, width, above);
  }
}
