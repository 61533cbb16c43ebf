// The path as a picture: stages in a row, the packets between them, what the base station keeps, and who died of what.

import type { Recording } from './recording.ts';
import { type Deaths, LOOKS, type Ways, first, travel } from './travel.ts';

/** What stands at a time; crates/web/src/look.rs tells it. */
export interface Standing {
  t: number;
  /** `kept` is there for what may keep packets: an agent, and the link layer of a base station. */
  stages: { stage: number; name: string; holds: number; agent?: { flows: number }; kept?: Kept[] | null }[];
  senders: (Record<string, any> | null)[];
}

interface Kept {
  flow: string;
  from: number | null;
  to: number | null;
  attempts: number;
}

const HEIGHT = 150;
/** Height of the line on which packets travel to the right, and of that to the left. */
const RIGHT = 66;
const LEFT = 88;
/** How long a death is shown, as a share of what is in view. */
const SHOWN = 0.012;
/** A link is so many times as long as a host is wide. */
const LINK = 2.4;

/** One column's picture of the path. */
export class PathView {
  readonly element = document.createElement('div');
  readonly #canvas = document.createElement('canvas');
  readonly #words = document.createElement('p');
  readonly #context: CanvasRenderingContext2D;
  #run: Recording | null = null;
  #ways: Ways | null = null;
  #deaths: Deaths | null = null;
  #standing: Standing | null = null;
  #time = 0;
  #span = 1;
  #edges: number[] = [0];

  constructor(label: string) {
    this.element.className = 'path';
    this.#canvas.setAttribute('role', 'img');
    this.#canvas.setAttribute('aria-label', label);
    this.#words.className = 'path-words';
    this.element.append(this.#canvas, this.#words);
    this.#context = this.#canvas.getContext('2d')!;
    new ResizeObserver(() => this.draw()).observe(this.element);
    matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => this.draw());
  }

  set label(label: string) {
    this.#canvas.setAttribute('aria-label', label);
  }

  /** Shows another run. */
  set(run: Recording): void {
    this.#run = run;
    const { ways, deaths } = travel(run);
    [this.#ways, this.#deaths] = [ways, deaths];
    const edges = [0];
    for (const stage of run.stages) {
      edges.push(edges.at(-1)! + (stage.role === 'link' || stage.role === 'radio' ? LINK : 1));
    }
    this.#edges = edges;
    this.#standing = null;
    this.draw();
  }

  /** Shows the path at a time; `span` seconds are in view of the plots. */
  show(time: number, span: number): void {
    [this.#time, this.#span] = [time, span];
    this.draw();
  }

  /** What the base station keeps, and how full queues are. */
  stand(standing: Standing): void {
    this.#standing = standing;
    this.draw();
  }

  /** Where a place of the path is, in pixels. */
  #x(place: number, width: number): number {
    const at = place + 0.5;
    const stage = Math.min(Math.max(Math.floor(at), 0), this.#edges.length - 2);
    const [a, b] = [this.#edges[stage]!, this.#edges[stage + 1]!];
    const all = this.#edges.at(-1)!;
    return 8 + ((a + (at - stage) * (b - a)) / all) * (width - 16);
  }

  draw(): void {
    const run = this.#run;
    const width = this.element.clientWidth;
    if (!run || width === 0) return;
    const scale = devicePixelRatio;
    this.#canvas.width = Math.round(width * scale);
    this.#canvas.height = Math.round(HEIGHT * scale);
    const pen = this.#context;
    pen.setTransform(scale, 0, 0, scale, 0, 0);
    pen.clearRect(0, 0, width, HEIGHT);
    const style = getComputedStyle(this.element);
    const colour = (name: string) => style.getPropertyValue(`--${name}`).trim() || '#888';
    this.#stages(pen, width, run, colour);
    this.#packets(pen, width, colour);
    this.#dead(pen, width, run, colour);
    this.#say(run);
  }

  #stages(pen: CanvasRenderingContext2D, width: number, run: Recording, colour: (n: string) => string): void {
    pen.font = '12px system-ui, sans-serif';
    pen.textAlign = 'center';
    // Names that would touch the one before stand a line higher, and where that is taken too they are cut.
    const free = [-Infinity, -Infinity];
    const name = (text: string, middle: number, room: number) => {
      const begins = middle - pen.measureText(clipped(pen, text, room)).width / 2;
      const found = free.findIndex((end) => begins > end + 3);
      const line = found >= 0 ? found : free[0]! <= free[1]! ? 0 : 1;
      const shown = clipped(pen, text, found >= 0 ? room : Math.max(2 * (middle - free[line]! - 3), 0));
      pen.fillText(shown, middle, 34 - 16 * line);
      free[line] = middle + pen.measureText(shown).width / 2;
    };
    run.stages.forEach((stage, i) => {
      // Links of hosts of their own stand behind all others; the picture has no place for them.
      if (stage.role === 'access') return;
      const [left, right] = [this.#x(i - 0.5, width), this.#x(i + 0.5, width)];
      const middle = (left + right) / 2;
      pen.strokeStyle = colour('line');
      pen.fillStyle = colour('ink');
      if (stage.role === 'link' || stage.role === 'radio') {
        pen.setLineDash(stage.role === 'radio' ? [5, 4] : []);
        for (const y of [RIGHT, LEFT]) {
          pen.beginPath();
          pen.moveTo(left, y);
          pen.lineTo(right, y);
          pen.stroke();
        }
        pen.setLineDash([]);
        name(stage.name, middle, right - left);
        const holds = this.#standing?.stages[i]?.holds;
        pen.fillStyle = colour('muted');
        const kept = this.#standing?.stages[i]?.kept;
        if (holds !== undefined) pen.fillText(kept ? `${holds} inside, keeps ${kept.length}` : `${holds} inside`, middle, 124);
        if (kept) this.#row(pen, left, right, kept, colour);
      } else {
        pen.fillStyle = colour('box');
        pen.beginPath();
        pen.roundRect(left + 1, 46, right - left - 2, 62, 6);
        pen.fill();
        pen.stroke();
        pen.fillStyle = colour('ink');
        name(stage.name, middle, (right - left) * 1.6);
        const kept = this.#standing?.stages[i]?.kept;
        if (kept) this.#cache(pen, left, right, kept, colour);
      }
    });
  }

  /** What the link layer of the base station keeps: a row of boxes below the way to the right. */
  #row(pen: CanvasRenderingContext2D, left: number, right: number, kept: Kept[], colour: (n: string) => string): void {
    const data = kept.filter((it) => it.to === null || it.from === null || it.to > it.from);
    const most = Math.max(Math.floor((right - left - 8) / 7), 1);
    data.slice(0, most).forEach((it, i) => {
      pen.fillStyle = colour(it.attempts > 0 ? 'local' : 'data');
      pen.fillRect(left + 5 + i * 7, 100, 5, 5);
    });
  }

  /** The base station's cache: a box for each packet that it keeps. */
  #cache(pen: CanvasRenderingContext2D, left: number, right: number, kept: Kept[], colour: (n: string) => string): void {
    const across = Math.max(Math.floor((right - left - 8) / 7), 1);
    const most = across * 8;
    kept.slice(0, most).forEach((it, i) => {
      pen.fillStyle = colour(it.attempts > 0 ? 'local' : 'data');
      pen.fillRect(left + 5 + (i % across) * 7, 100 - Math.floor(i / across) * 7, 5, 5);
    });
    pen.fillStyle = colour('muted');
    if (kept.length > 0) pen.fillText(`keeps ${kept.length}`, (left + right) / 2, 124);
  }

  #packets(pen: CanvasRenderingContext2D, width: number, colour: (n: string) => string): void {
    const ways = this.#ways!;
    const colours = LOOKS.map(colour);
    const lost = colour('lost');
    const until = first(ways.start, this.#time + 1e-12);
    for (let i = first(ways.start, this.#time - ways.longest); i < until; i++) {
      if (ways.end[i]! <= this.#time) continue;
      const share = (this.#time - ways.start[i]!) / (ways.end[i]! - ways.start[i]! || 1);
      const right = ways.to[i]! > ways.from[i]!;
      const x = this.#x(ways.from[i]! + share * (ways.to[i]! - ways.from[i]!), width);
      const y = right ? RIGHT : LEFT;
      const look = ways.look[i]!;
      pen.fillStyle = ways.hurt[i] ? lost : colours[look]!;
      // Shapes differ as colours do: data is square, ACKs are small and round, local copies are diamonds.
      pen.beginPath();
      if (look === 3) pen.arc(x, y, 3, 0, 2 * Math.PI);
      else if (look === 2) {
        pen.moveTo(x - 6, y);
        pen.lineTo(x, y - 6);
        pen.lineTo(x + 6, y);
        pen.lineTo(x, y + 6);
      } else pen.rect(x - 5, y - 4, 10, 8);
      pen.fill();
      if (look === 1) {
        pen.strokeStyle = colour('ink');
        pen.strokeRect(x - 5, y - 4, 10, 8);
      }
    }
  }

  /** Since when what happened is shown. */
  get #since(): number {
    return this.#time - Math.max(this.#span * SHOWN, 0.02);
  }

  /** Crosses where packets ended. */
  #dead(pen: CanvasRenderingContext2D, width: number, run: Recording, colour: (n: string) => string): void {
    const deaths = this.#deaths!;
    const until = first(deaths.t, this.#time + 1e-12);
    pen.strokeStyle = colour('lost');
    pen.lineWidth = 2;
    for (let i = first(deaths.t, this.#since); i < until; i++) {
      const event = deaths.event[i]!;
      if (!run.of(event).loss) continue;
      const x = this.#x(deaths.place[i]!, width);
      const y = run.side[event] === 1 ? RIGHT : LEFT;
      pen.beginPath();
      pen.moveTo(x - 6, y - 6);
      pen.lineTo(x + 6, y + 6);
      pen.moveTo(x + 6, y - 6);
      pen.lineTo(x - 6, y + 6);
      pen.stroke();
    }
    pen.lineWidth = 1;
  }

  /** The last loss, in words: where, and of what. */
  #say(run: Recording): void {
    let last = -1;
    for (let i = run.at(this.#time + 1e-9) - 1; i >= 0 && run.t[i]! >= this.#since; i--) {
      if (run.of(i).loss) {
        last = i;
        break;
      }
    }
    const words = last < 0 ? '' : `Lost at ${run.stages[run.stage[last]!]?.name}: ${run.of(last).what}`;
    if (this.#words.textContent !== words) this.#words.textContent = words;
  }
}

function clipped(pen: CanvasRenderingContext2D, text: string, width: number): string {
  if (pen.measureText(text).width <= width) return text;
  let cut = text;
  while (cut.length > 1 && pen.measureText(`${cut}…`).width > width) cut = cut.slice(0, -1);
  return `${cut}…`;
}
