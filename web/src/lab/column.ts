// One scheme: its run, its plot, its path, and the picked event.

import { type TemplateResult, html } from 'lit';

import { type Ask, type Engine, Superseded } from '../engine/engine.ts';
import { Refused, type Trouble } from '../engine/envelope.ts';
import { SequencePlot, type TimeCursor } from '../plots/index.ts';
import { clock, shown } from './numbers.ts';
import { PathView, type Standing } from './path.ts';
import { type Goal, Recording, type Scalar } from './recording.ts';

/** Numbers that are shown above each plot, if the run has them. */
const HEADLINE: [string, string][] = [
  ['throughput', 'throughput'],
  ['transfer_time', 'transfer time'],
  ['timeouts', 'timeouts'],
  ['fast_retransmits', 'fast retransmits'],
  ['stall_time', 'time stalled'],
  ['delay_mean', 'mean delay'],
  ['host_retransmissions', 'resent by host'],
  ['local_retransmissions', 'resent locally'],
  ['link_retransmissions', 'resent by link'],
  ['wireless_goodput', 'radio goodput'],
  ['collisions', 'collisions'],
  ['short_transfers', 'short transfers'],
  ['short_time_mean', 'mean time of one'],
  ['mean_power', 'mean power'],
];

/** The words for a number of a run. */
export const headline = (name: string) => HEADLINE.find(([key]) => key === name)?.[1] ?? name.replaceAll('_', ' ');

/** Numbers that only long transfers have. */
const LONG = new Set(['throughput', 'transfer_time', 'stall_time', 'delay_mean', 'timeouts', 'fast_retransmits', 'host_retransmissions']);

/** From this width on, in pixels, the controls are at the left and the plot ends with the window. */
const WIDE = 1000;
/** Bounds of a plot's height on a wide page, and its height on others, in pixels. */
const [LEAST, MOST, NARROW] = [250, 620, 340];

/** Height from which a plot leaves room for its legend, and the space around the legend, in pixels. */
const [LARGE, SPACE] = [330, 10];

/** The picked event. */
export interface Picked {
  index: number;
  /** Its description, from crates/web/src/event.rs. */
  event: Record<string, any>;
}

/** One column of the laboratory. */
export class Column {
  readonly lane: string;
  scheme: string;
  run: Recording | null = null;
  trouble: Trouble | null = null;
  picked: Picked | null = null;
  busy = false;
  standing: Standing | null = null;
  /** A time of the plot was clicked, in seconds. */
  onseek: (time: number) => void = () => {};
  readonly plotPlace = document.createElement('div');
  readonly path: PathView;
  readonly #engine: Engine;
  readonly #changed: () => void;
  #plot: SequencePlot | null = null;
  /** Scenario, settings, seed and scheme of the current run. */
  #scene: Record<string, unknown> = {};
  #looking = false;
  #wanted: number | null = null;

  constructor(engine: Engine, lane: string, scheme: string, changed: () => void) {
    this.#engine = engine;
    this.lane = lane;
    this.scheme = scheme;
    this.#changed = changed;
    this.path = new PathView('');
    this.plotPlace.className = 'plot';
  }

  /** Runs; returns false if a newer run superseded this one. */
  async go(common: Record<string, unknown>, cursor: TimeCursor): Promise<boolean> {
    const scene = { ...common, scheme: this.scheme === 'as-is' ? null : this.scheme };
    this.busy = true;
    try {
      const run = new Recording(await this.#engine.ask(this.lane, { ask: 'run', ...scene } as Ask));
      this.#scene = scene;
      [this.run, this.trouble, this.picked, this.standing] = [run, null, null, null];
      this.path.picked = null;
      this.path.label = `The path under ${this.scheme}`;
      this.path.set(run);
      this.#draw(cursor);
    } catch (error) {
      if (error instanceof Superseded) return false;
      this.trouble = error instanceof Refused ? error.trouble : { message: String(error), help: '' };
    }
    this.busy = false;
    return true;
  }

  #draw(cursor: TimeCursor): void {
    const run = this.run!;
    if (!this.#plot) {
      this.#plot = new SequencePlot(this.plotPlace, cursor, {
        title: `Time and sequence, ${this.scheme}`,
        file: `lasthop-${this.scheme}`,
        height: 300,
      });
      this.#plot.onpick = (kind, index) => this.#mark(kind, index);
      this.#plot.onseek = (time) => this.onseek(time);
    }
    this.#plot.set(run.sequence());
  }

  /** The height that a plot has below path and explanation, in pixels; null if the column is hidden. */
  room(): number | null {
    if (innerWidth < WIDE) return NARROW;
    if (this.plotPlace.offsetParent === null) return null;
    const top = this.plotPlace.getBoundingClientRect().top + scrollY;
    const legends = this.plotPlace.closest('.columns')!.querySelectorAll('.lhp-legend');
    const legend = Math.max(...[...legends].map((it) => it.clientHeight), 0);
    const room = innerHeight - top;
    // The legend below the plot is also in the window, if the plot remains large.
    return Math.min(Math.max(room - legend - SPACE >= LARGE ? room - legend - SPACE : room, LEAST), MOST);
  }

  /** Gives all plots of `columns` one vertical scale. */
  static compare(columns: readonly Column[]): void {
    const plots = columns.flatMap((column) => column.#plot ?? []);
    for (const plot of plots) plot.compare(plots);
  }

  /** Makes the plot as high as `height`, in pixels. */
  fit(height: number): void {
    this.#plot?.fit(height);
  }

  #mark(kind: string, index: number): void {
    const marks = this.run?.sequence().kinds[kind];
    if (!marks) return;
    const event = this.run!.ofMark(kind, marks.t[index]!, marks.from[index]!, marks.to[index]!);
    if (event >= 0) void this.pick(event);
  }

  /** Picks an event and loads its description. */
  async pick(index: number): Promise<void> {
    try {
      const answer = await this.#engine.ask(this.lane, { ask: 'event', index, ...this.#scene });
      this.picked = { index, event: answer.json };
      this.path.picked = index;
    } catch (error) {
      if (error instanceof Superseded) return;
      this.trouble = error instanceof Refused ? error.trouble : { message: String(error), help: '' };
    }
    this.#changed();
  }

  /** Clears the picked event. */
  unpick(): void {
    this.picked = null;
    this.path.picked = null;
  }

  /** Requests the state of hosts and base stations at a time; of several waiting times only the newest. */
  async look(at: number): Promise<void> {
    this.#wanted = at;
    if (this.#looking || !this.run) return;
    this.#looking = true;
    while (this.#wanted !== null) {
      const time: number = this.#wanted;
      this.#wanted = null;
      try {
        const answer = await this.#engine.ask(this.lane, { ask: 'look', at: time, ...this.#scene });
        this.standing = answer.json as unknown as Standing;
        this.path.stand(this.standing);
      } catch {
        // A newer run replaced this one and draws its own picture.
      }
    }
    this.#looking = false;
    this.#changed();
  }

  /** Index of the first event after `time` that matches `goal`, or of the last one before it; -1 if there is none. */
  next(time: number, goal: Goal, by: 1 | -1): number {
    if (!this.run) return -1;
    let i = this.run.at(time);
    while (by > 0 && i < this.run.t.length && this.run.t[i]! <= time) i++;
    return this.run.next(by > 0 ? i - 1 : i, goal, by);
  }

  /** The run as files. */
  async file(form: 'csv' | 'pcapng'): Promise<{ name: string; bytes: Uint8Array }[]> {
    const { json, columns } = await this.#engine.ask(this.lane, { ask: 'file', form, ...this.#scene });
    const bytes = [...columns.values()] as Uint8Array[];
    return json.names.map((name: string, i: number) => ({ name: `${this.scheme}-${name}`, bytes: bytes[i]! }));
  }

  get svg(): string {
    return this.#plot?.svg() ?? '';
  }

  png(): Promise<Blob> | null {
    return this.#plot?.png() ?? null;
  }

  /** The numbers above the plot: those counted until a time, or the results at the end. */
  numbers(until: number | null): TemplateResult {
    const results: Scalar[] = (until === null ? this.run?.summary.scalars : this.run?.until(until)) ?? [];
    const scalars = new Map(results.map((scalar) => [scalar.name, scalar]));
    const short = this.run?.summary.series.length === 0;
    const found = HEADLINE.filter(([name]) => scalars.has(name) && !(short && LONG.has(name)));
    return html`<dl class="numbers" aria-label=${until === null ? 'Results at the end of the run' : 'Counted so far'}>
      <div class="when"><dt>${until === null ? 'at the end:' : 'so far:'}</dt></div>
      ${found.map(([name, words]) => {
        const { value, unit } = scalars.get(name)!;
        return html`<div><dt>${words}</dt><dd data-number=${name}>${shown(value, unit)}</dd></div>`;
      })}
    </dl>`;
  }

  /** The explanation of the picked event, shown below the path. */
  explained(): TemplateResult {
    if (!this.picked) {
      return html`<div class="explain"><p class="hint">Jump to an event, or click a mark of the plot: its explanation appears here.</p></div>`;
    }
    const { event, index } = this.picked;
    const { bytes, acked, tcb, sack } = event;
    const rows: [string, string][] = event.fields.filter(([name]: [string]) => name !== 'time_s');
    if (bytes) rows.push(['bytes of the stream', `${bytes[0]} to ${bytes[1]}`]);
    if (acked !== null && acked !== undefined) rows.push(['acknowledges up to byte', String(acked)]);
    if (sack?.length) rows.push(['SACK blocks', sack.map(([a, b]: [number, number]) => `${a}–${b}`).join(', ')]);
    if (tcb) {
      for (const name of ['cwnd', 'ssthresh', 'snd_una', 'snd_nxt', 'dupacks', 'backoff']) rows.push([name, String(tcb[name])]);
      for (const name of ['srtt', 'rto']) rows.push([name, shown(tcb[name] / 1e9, 's')]);
    }
    return html`<div class="explain">
      <section class="detail" aria-label=${`Event ${index} of ${this.scheme}`}>
        <p><strong>${clock(event.t)}</strong> ${event.what}</p>
        ${event.source ? html`<p class="source">${cited(event.source)}</p>` : ''}
        <details>
          <summary>Event ${index} in full</summary>
          <table>
            <tbody>
              ${rows.map(([name, value]) => html`<tr><th scope="row">${name}</th><td>${value}</td></tr>`)}
            </tbody>
          </table>
        </details>
      </section>
    </div>`;
  }

  destroy(): void {
    this.#plot?.destroy();
  }
}

const PAPERS: Record<string, string> = {
  west97: 'West and Vaidya 1997',
  balakrishnan97: 'Balakrishnan and others 1997',
  parsa98: 'Parsa and Garcia-Luna-Aceves 1998',
  bakshi96: 'Bakshi and others 1996',
  agarwal00: 'Agarwal 2000',
};

/** The citation of a source such as `west97#2.6`. */
export function cited(source: string): string {
  const [name, section] = source.split('#') as [string, string];
  const title = PAPERS[name] ?? name.replace(/^rfc/, 'RFC ');
  return `${title}, section ${section}`;
}
