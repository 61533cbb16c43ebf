// The path as a picture: stages in a row, the packets between them, the base station's cache, and the losses with their causes.

import type { Recording } from './recording.ts';
import { type Deaths, LOOKS as SIGNS, type Ways, first, travel } from './travel.ts';

/** State of stages and senders at a time, from crates/web/src/look.rs. */
export interface Standing {
  t: number;
  /** `kept` exists for stages that can cache packets: agents, and the link layer of a base station. */
  stages: { stage: number; name: string; holds: number; agent?: { flows: number }; kept?: CachedPacket[] | null }[];
  senders: (Record<string, any> | null)[];
}

/** A cached packet. */
interface CachedPacket {
  flow: string;
  from: number | null;
  to: number | null;
  attempts: number;
}

const HEIGHT = 138;
/** The share of a link that is drawn as its queue. */
const QUEUE = 0.4;
/** Bytes of a full segment. */
const FULL = 1460;
/** Names of packets, in the order of `LOOKS`. */
const NAMES = ['data', 'retransmitted', 'retransmitted locally', 'ACK', 'notice'];
/** Vertical positions of packets to the right, and of packets to the left, in pixels. */
const RIGHT = 58;
const LEFT = 80;
/** Space between two captions, in pixels. */
const BETWEEN = 8;
/** How long a loss is shown, as a share of the time in view. */
const SHOWN = 0.012;
/** Length of a link, in widths of a host. */
const LINK = 2.4;

/** One column's picture of the path. */
export class PathView {
  readonly element = document.createElement('div');
  readonly scale: number;
  readonly #canvas = document.createElement('canvas');
  readonly #words = document.createElement('p');
  readonly #tip = document.createElement('div');
  #seen: { x: number; y: number; way: number }[] = [];
  #picked: number | null = null;
  readonly #context: CanvasRenderingContext2D;
  #run: Recording | null = null;
  #ways: Ways | null = null;
  #deaths: Deaths | null = null;
  #standing: Standing | null = null;
  #time = 0;
  #span = 1;
  /** The requested frame in which the picture is drawn; 0 if there is none. */
  #frame = 0;
  #edges: number[] = [0];
  /** The stage of the first sender, whose window is drawn; -1 if there is none. */
  #sender = -1;

  /** Lengths are multiplied by `scale`. */
  constructor(label: string, scale = 1) {
    this.scale = scale;
    this.element.className = 'path';
    this.#canvas.style.height = `${HEIGHT * scale}px`;
    this.#canvas.setAttribute('role', 'img');
    this.#canvas.setAttribute('aria-label', label);
    this.#words.className = 'path-words';
    this.#tip.className = 'path-tip';
    this.#tip.hidden = true;
    this.element.append(this.#canvas, this.#words, this.#tip);
    this.#canvas.addEventListener('pointermove', (event) => this.#hover(event));
    this.#canvas.addEventListener('pointerleave', () => this.#hover(null));
    this.#context = this.#canvas.getContext('2d')!;
    new ResizeObserver(() => this.#draw()).observe(this.element);
    matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => this.#draw());
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
    const sent = run.t.findIndex((_, i) => run.of(i).event === 'originated' && run.of(i).cause === 'data');
    this.#sender = sent < 0 ? -1 : run.stage[sent]!;
    this.#standing = null;
    this.#redraw();
  }

  /** The event whose stage gets a ring; null for none. */
  set picked(event: number | null) {
    this.#picked = event;
    this.#redraw();
  }

  /** Shows the path at a time; the plots show `span` seconds. */
  show(time: number, span: number): void {
    [this.#time, this.#span] = [time, span];
    this.#redraw();
  }

  /** Sets the state that is drawn: caches of base stations, and fill levels of queues. */
  stand(standing: Standing): void {
    this.#standing = standing;
    this.#redraw();
  }

  /** Draws at the next frame: several changes between two frames are drawn once. */
  #redraw(): void {
    this.#frame ||= requestAnimationFrame(() => {
      this.#frame = 0;
      this.#draw();
    });
  }

  /** The horizontal position of a place on the path, in pixels. */
  #x(place: number, width: number): number {
    const at = place + 0.5;
    const stage = Math.min(Math.max(Math.floor(at), 0), this.#edges.length - 2);
    const [a, b] = [this.#edges[stage]!, this.#edges[stage + 1]!];
    const all = this.#edges.at(-1)!;
    return 8 + ((a + (at - stage) * (b - a)) / all) * (width - 16);
  }

  #draw(): void {
    const run = this.#run;
    const width = this.element.clientWidth / this.scale;
    if (!run || width === 0) return;
    const scale = devicePixelRatio * this.scale;
    this.#canvas.width = Math.round(width * scale);
    this.#canvas.height = Math.round(HEIGHT * scale);
    const pen = this.#context;
    pen.setTransform(scale, 0, 0, scale, 0, 0);
    pen.clearRect(0, 0, width, HEIGHT);
    const style = getComputedStyle(this.element);
    const colour = (name: string) => style.getPropertyValue(`--${name}`).trim() || '#888';
    this.#stages(pen, width, run, colour);
    this.#packets(pen, width, run, colour);
    this.#dead(pen, width, run, colour);
    this.#ring(pen, width, run, colour);
    this.#say(run);
  }

  #stages(pen: CanvasRenderingContext2D, width: number, run: Recording, colour: (n: string) => string): void {
    pen.font = '12px system-ui, sans-serif';
    pen.textAlign = 'center';
    // A name that would touch the one before is drawn a line higher; if that line is also occupied, the name is cut.
    const free = [-Infinity, -Infinity];
    const captions: Caption[] = [];
    const name = (text: string, centre: number, room: number) => {
      const half = pen.measureText(clipped(pen, text, room)).width / 2;
      // Names of the first and the last host may be wider than the host, but stay in the picture.
      const middle = Math.min(Math.max(centre, half), width - half);
      const begins = middle - half;
      const found = free.findIndex((end) => begins > end + 3);
      const line = found >= 0 ? found : free[0]! <= free[1]! ? 0 : 1;
      const shown = clipped(pen, text, found >= 0 ? room : Math.max(2 * (middle - free[line]! - 3), 0));
      pen.fillText(shown, middle, 26 - 16 * line);
      free[line] = middle + pen.measureText(shown).width / 2;
    };
    const hasBases = run.stages.some(({ role }) => role === 'base');
    run.stages.forEach((stage, i) => {
      // Access links of single hosts come after all others; the picture has no room for them.
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
        // The queue of the direction to the right.
        const front = this.#x(i - 0.5 + QUEUE, width);
        pen.strokeStyle = colour('rule');
        pen.strokeRect(left + 2, RIGHT - 8, front - left - 2, 16);
        pen.strokeStyle = colour('line');
        name(stage.name, middle, right - left);
        const holds = this.#standing?.stages[i]?.holds;
        const cached = this.#standing?.stages[i]?.kept;
        const inCache = cached ? `, ${cached.length} cached` : '';
        if (holds !== undefined) captions.push({ middle, texts: [`${holds} inside${inCache}`, `${holds}${inCache}`, ''] });
        if (cached) this.#row(pen, left, right, cached, colour);
      } else {
        device(pen, stage.role === 'agent' && hasBases ? 'cabinet' : stage.role, i > 0, left + 1, right - 1, colour);
        pen.fillStyle = colour('ink');
        name(stage.name, middle, (right - left) * 2.6);
        const cached = this.#standing?.stages[i]?.kept;
        if (cached) captions.push(this.#cache(pen, left, right, cached, colour));
        else if (i === this.#sender) captions.push(this.#window(pen, left, right, colour));
      }
    });
    pen.fillStyle = colour('muted');
    caption(pen, captions);
  }

  /** Draws the sender's window as an upright bar, filled by the bytes in flight. */
  #window(pen: CanvasRenderingContext2D, left: number, right: number, colour: (n: string) => string): Caption {
    const it = this.#standing?.senders[0];
    if (!it) return { middle: 0, texts: [''] };
    const [cwnd, flight] = [it.cwnd, it.snd_nxt - it.snd_una];
    const high = 42;
    const most = Math.max(cwnd, flight, 1);
    const x = (left + right) / 2 - 7;
    pen.fillStyle = colour('data');
    const filled = (flight / most) * high;
    pen.fillRect(x, 96 - filled, 14, filled);
    pen.strokeStyle = colour('ink');
    const whole = (cwnd / most) * high;
    pen.strokeRect(x, 96 - whole, 14, whole);
    // In segments.
    return { middle: Math.max((left + right) / 2, 26), texts: [`${Math.round(flight / FULL)} of ${Math.round(cwnd / FULL)}`] };
  }

  /** Draws the cache of the base station's link layer: a row of boxes below the direction to the right. */
  #row(pen: CanvasRenderingContext2D, left: number, right: number, cached: CachedPacket[], colour: (n: string) => string): void {
    const data = cached.filter((it) => it.to === null || it.from === null || it.to > it.from);
    const most = Math.max(Math.floor((right - left - 8) / 7), 1);
    data.slice(0, most).forEach((it, i) => {
      pen.fillStyle = colour(it.attempts > 0 ? 'local' : 'data');
      pen.fillRect(left + 5 + i * 7, 92, 5, 5);
    });
  }

  /** Draws the base station's cache: a box for each packet. */
  #cache(pen: CanvasRenderingContext2D, left: number, right: number, cached: CachedPacket[], colour: (n: string) => string): Caption {
    const across = Math.max(Math.floor((right - left - 8) / 7), 1);
    const most = across * 5;
    cached.slice(0, most).forEach((it, i) => {
      pen.fillStyle = colour(it.attempts > 0 ? 'local' : 'data');
      pen.fillRect(left + 5 + (i % across) * 7, 92 - Math.floor(i / across) * 7, 5, 5);
    });
    return { middle: (left + right) / 2, texts: [cached.length > 0 ? `${cached.length} cached` : ''] };
  }

  #packets(pen: CanvasRenderingContext2D, width: number, run: Recording, colour: (n: string) => string): void {
    const ways = this.#ways!;
    const colours = SIGNS.map(colour);
    const [lost, ink, paper] = [colour('lost'), colour('ink'), colour('paper')];
    this.#seen = [];
    const until = first(ways.start, this.#time + 1e-12);
    const queued = new Map<number, number>();
    for (let i = first(ways.start, this.#time - ways.longest); i < until; i++) {
      if (ways.end[i]! <= this.#time) continue;
      const right = ways.to[i]! > ways.from[i]!;
      const by = right ? 1 : -1;
      const y = right ? RIGHT : LEFT;
      // The first part of a link is its queue: packets wait there, the oldest in front.
      const inner = ways.to[i]! - by * (1 - QUEUE);
      const waits = this.#time < ways.leaves[i]! - 1e-9;
      let x: number;
      if (waits) {
        const before = queued.get(ways.to[i]! * by) ?? 0;
        queued.set(ways.to[i]! * by, before + 1);
        const front = this.#x(inner, width);
        const room = Math.abs(front - this.#x(ways.to[i]! - by, width));
        x = front - by * Math.min(3 + before * 4, room);
      } else {
        const share = (this.#time - ways.leaves[i]!) / (ways.end[i]! - ways.leaves[i]! || 1);
        x = this.#x(inner + share * (ways.to[i]! - inner), width);
      }
      const look = ways.look[i]!;
      const origin = ways.origin[i]!;
      const bytes = origin < 0 ? 0 : run.to[origin]! - run.from[origin]!;
      // The width is proportional to the bytes; a full segment has 14 pixels.
      const half = waits ? 1.5 : Math.min(Math.max((bytes / FULL) * 7, 3), 7);
      pen.beginPath();
      // Shapes differ as well as colours: data is square, ACKs are small and round, local retransmissions are diamonds.
      if (look === 3 && !waits) pen.arc(x, y, 3, 0, 2 * Math.PI);
      else if (look === 2 && !waits) {
        pen.moveTo(x - 7, y);
        pen.lineTo(x, y - 6);
        pen.lineTo(x + 7, y);
        pen.lineTo(x, y + 6);
        pen.closePath();
      } else pen.rect(x - half, y - 4.5, 2 * half, 9);
      const doomed = ways.loss[i]! >= 0;
      pen.fillStyle = ways.hurt[i] ? lost : doomed && !waits ? paper : colours[look]!;
      pen.fill();
      pen.lineWidth = doomed ? 2 : 1;
      if (!waits && (doomed || look === 1)) {
        pen.strokeStyle = doomed ? lost : ink;
        pen.stroke();
      }
      pen.lineWidth = 1;
      this.#seen.push({ x, y, way: i });
    }
  }

  /** Draws a ring around the stage of the picked event. */
  #ring(pen: CanvasRenderingContext2D, width: number, run: Recording, colour: (n: string) => string): void {
    const event = this.#picked;
    if (event === null || Math.abs(run.t[event]! - this.#time) > 1e-9) return;
    const stage = run.stage[event]!;
    if (stage >= run.stages.length) return;
    const [left, right] = [this.#x(stage - 0.5, width), this.#x(stage + 0.5, width)];
    pen.strokeStyle = colour('accent');
    pen.lineWidth = 2.5;
    pen.beginPath();
    pen.roundRect(left + 1, 34, right - left - 2, 68, 8);
    pen.stroke();
    pen.lineWidth = 1;
  }

  /** Shows the label of the packet under the pointer. */
  #hover(event: PointerEvent | null): void {
    const run = this.#run;
    const ways = this.#ways;
    const [px, py] = event ? [event.offsetX / this.scale, event.offsetY / this.scale] : [-1e9, 0];
    let best: { x: number; y: number; way: number } | null = null;
    let least = 14;
    for (const it of this.#seen) {
      const far = Math.hypot(it.x - px, it.y - py);
      if (far < least) [best, least] = [it, far];
    }
    this.#tip.hidden = !best || !run || !ways;
    if (!best || !run || !ways) return;
    const origin = ways.origin[best.way]!;
    const loss = ways.loss[best.way]!;
    const bytes = origin >= 0 && run.to[origin]! > run.from[origin]! ? `bytes ${run.from[origin]} to ${run.to[origin]}` : '';
    const fate = loss >= 0 ? `lost at ${run.stages[run.stage[loss]!]?.name}: ${run.of(loss).what}` : 'arrives';
    this.#tip.textContent = [NAMES[ways.look[best.way]!], bytes, fate].filter(Boolean).join(', ');
    const width = this.element.clientWidth;
    this.#tip.style.left = `${Math.min(best.x * this.scale, width - 200)}px`;
    this.#tip.style.top = `${(best.y + 12) * this.scale}px`;
  }

  /** The time since which losses are shown. */
  get #since(): number {
    return this.#time - Math.max(this.#span * SHOWN, 0.02);
  }

  /** Draws crosses where packets were lost. */
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

  /** Writes the place and the cause of the last loss. */
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

/** Draws a device that fills its place: a server's rack at the left, a laptop at the right; between them routers, and base stations with a mast. */
function device(pen: CanvasRenderingContext2D, role: string, far: boolean, left: number, right: number, colour: (n: string) => string): void {
  const [middle, width] = [(left + right) / 2, right - left];
  pen.fillStyle = colour('box');
  pen.strokeStyle = colour('line');
  pen.beginPath();
  if (role === 'host' && far) {
    // The screen, and the keyboard in front of it.
    pen.roundRect(left + 3, 38, width - 6, 50, 4);
    pen.moveTo(left + 3, 90);
    pen.lineTo(right - 3, 90);
    pen.lineTo(right + 1, 100);
    pen.lineTo(left - 1, 100);
    pen.closePath();
    pen.fill();
    pen.stroke();
    pen.fillStyle = colour('paper');
    pen.fillRect(left + 6, 41, width - 12, 44);
    pen.fillStyle = colour('line');
    pen.fillRect(middle - 6, 96, 12, 2);
    return;
  }
  const mast = role === 'base' || role === 'agent';
  const top = mast ? 58 : role === 'host' ? 38 : 50;
  pen.roundRect(left, top, width, 100 - top, role === 'host' ? 3 : 6);
  pen.fill();
  pen.stroke();
  if (role === 'host') {
    // Units of the rack, each with a lamp and a slot.
    for (const y of [40, 46]) {
      pen.strokeRect(left + 3, y, width - 6, 5);
      pen.fillStyle = colour('good');
      pen.fillRect(left + 6, y + 1.5, 2, 2);
      pen.fillStyle = colour('line');
      pen.fillRect(middle, y + 1.5, width / 2 - 8, 1.5);
    }
    return;
  }
  if (!mast) return;
  pen.lineWidth = 1.5;
  pen.beginPath();
  pen.moveTo(middle - 7, 58);
  pen.lineTo(middle, 38);
  pen.lineTo(middle + 7, 58);
  pen.moveTo(middle - 4.5, 51);
  pen.lineTo(middle + 5.5, 55);
  pen.moveTo(middle + 4.5, 51);
  pen.lineTo(middle - 5.5, 55);
  for (const radius of [7, 12]) {
    for (const side of [0, Math.PI]) {
      pen.moveTo(middle + radius * Math.cos(side - 0.7), 39 + radius * Math.sin(side - 0.7));
      pen.arc(middle, 39, radius, side - 0.7, side + 0.7);
    }
  }
  pen.stroke();
  pen.lineWidth = 1;
}

/** Alternative texts below a stage, the preferred one first. */
interface Caption {
  middle: number;
  texts: string[];
}

/** Writes captions, which are ordered from left to right. A caption that would touch a neighbour uses a shorter text. */
function caption(pen: CanvasRenderingContext2D, captions: Caption[]): void {
  const shown = captions.filter(({ texts }) => texts[0] !== '');
  const half = (text: string) => pen.measureText(text).width / 2;
  let free = -Infinity;
  shown.forEach(({ middle, texts }, i) => {
    const next = shown[i + 1];
    const end = next ? next.middle - half(next.texts.at(-1)!) - BETWEEN : Infinity;
    const fits = (text: string) => middle - half(text) >= free && middle + half(text) <= end;
    const text = texts.find(fits) ?? texts.at(-1)!;
    pen.fillText(text, middle, 117);
    free = middle + half(text) + BETWEEN;
  });
}

function clipped(pen: CanvasRenderingContext2D, text: string, width: number): string {
  if (pen.measureText(text).width <= width) return text;
  let cut = text;
  while (cut.length > 1 && pen.measureText(`${cut}…`).width > width) cut = cut.slice(0, -1);
  return `${cut}…`;
}
