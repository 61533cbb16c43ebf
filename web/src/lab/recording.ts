// A run: all its events by index, and the data of its plots.

import type { Answer, Column } from '../engine/envelope.ts';
import type { Marks, SequenceData, Spans } from '../plots/index.ts';

/** Meaning of an event's code. */
export interface Code {
  event: string;
  cause: string;
  what: string;
  source: string;
  loss: boolean;
}

export interface Stage {
  name: string;
  role: string;
}

export interface Scalar {
  name: string;
  unit: string;
  value: number;
}

/** A kind of event to jump to. */
export type Goal = 'loss' | 'timeout' | 'local' | 'event';

/** A run. */
export class Recording {
  /** The JSON of the answer: everything except the columns. */
  readonly summary: Record<string, any>;
  readonly took: number;
  readonly codes: Code[];
  readonly stages: Stage[];
  readonly t: Float64Array;
  readonly from: Float64Array;
  readonly to: Float64Array;
  readonly packet: Uint32Array;
  readonly code: Uint16Array;
  readonly stage: Uint16Array;
  readonly flow: Uint16Array;
  readonly side: Uint8Array;
  readonly #columns: Map<string, Column>;

  constructor(answer: Answer & { took: number }) {
    const column = <T extends Column>(name: string) => answer.columns.get(name) as T;
    this.summary = answer.json;
    this.took = answer.took;
    this.codes = answer.json.codes;
    this.stages = answer.json.stages;
    this.t = column('event.t');
    this.from = column('event.from');
    this.to = column('event.to');
    this.packet = column('event.packet');
    this.code = column('event.code');
    this.stage = column('event.stage');
    this.flow = column('event.flow');
    this.side = column('event.side');
    this.#columns = answer.columns;
  }

  get end(): number {
    return this.summary.end;
  }

  get digest(): string {
    return this.summary.digest;
  }

  /** A number of the run by its name. */
  scalar(name: string): number | undefined {
    return this.summary.scalars.find((scalar: Scalar) => scalar.name === name)?.value;
  }

  /** The unit of a number of the run. */
  unit(name: string): string | undefined {
    return this.summary.scalars.find((scalar: Scalar) => scalar.name === name)?.unit;
  }

  /** The counts of this run until `time`, of those that its results have. */
  until(time: number): Scalar[] {
    const counts: Record<string, number> = { timeouts: 0, fast_retransmits: 0, host_retransmissions: 0, local_retransmissions: 0 };
    const end = this.at(time + 1e-12);
    for (let i = 0; i < end; i++) {
      const { event, cause } = this.of(i);
      if (event === 'tcp-timeout') counts.timeouts! += 1;
      else if (event === 'tcp-fast-retransmit') counts.fast_retransmits! += 1;
      if (event !== 'originated' || !(this.to[i]! > this.from[i]!)) continue;
      // Like the results: a FIN that is sent again is no data.
      if (AGAIN.has(cause) && cause !== 'window-probe') counts.host_retransmissions! += 1;
      else if (LOCAL.has(cause)) counts.local_retransmissions! += 1;
    }
    return this.summary.scalars.filter(({ name }: Scalar) => name in counts).map((it: Scalar) => ({ ...it, value: counts[it.name]! }));
  }

  /** The series of flow `i`. */
  sequence(i = 0): SequenceData {
    // Short transfers have no series: show their packets.
    if (this.summary.series.length === 0) return this.#packets();
    return packed(this.#columns, i, this.summary.end, this.summary.cut ? 'The run was cut off here.' : undefined);
  }

  /** Data and losses of all flows, each counted from its first byte. */
  #packets(): SequenceData {
    const found: Record<string, number[]> = {};
    for (let i = 0; i < this.t.length; i++) {
      const { event, cause, loss } = this.of(i);
      if (!(this.to[i]! > this.from[i]!)) continue;
      if (event === 'originated' && cause === 'data') (found.sent ??= []).push(i);
      else if (event === 'originated' && KINDS[cause]) (found[KINDS[cause]] ??= []).push(i);
      else if (loss) (found.lost ??= []).push(i);
    }
    const taken = (all: Float64Array, from: number[]) => Float64Array.from(from, (i) => all[i]!);
    const marks = (from: number[]): Marks => ({ t: taken(this.t, from), from: taken(this.from, from), to: taken(this.to, from) });
    const kinds = Object.fromEntries(Object.entries(found).map(([kind, from]) => [kind, marks(from)]));
    return { kinds, end: this.summary.end, note: 'Short transfers, each counted from its first byte.' };
  }

  /** The code of event `i`. */
  of(i: number): Code {
    return this.codes[this.code[i]!]!;
  }

  /** Index of the first event at `time` or later. */
  at(time: number): number {
    let [low, high] = [0, this.t.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.t[middle]! < time) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  /** Whether event `i` matches `goal`. */
  is(i: number, goal: Goal): boolean {
    const code = this.of(i);
    if (goal === 'loss') return code.loss;
    if (goal === 'timeout') return code.event === 'tcp-timeout' || code.event === 'split-timeout';
    if (goal === 'local') return LOCAL.has(code.cause) && code.event !== 'dropped';
    return true;
  }

  /** Index of the next event after `i` that matches `goal`, or of the last one before it; -1 if there is none. */
  next(i: number, goal: Goal, by: 1 | -1 = 1): number {
    for (let j = i + by; j >= 0 && j < this.t.length; j += by) {
      if (this.is(j, goal)) return j;
    }
    return -1;
  }

  /** Index of the event of a mark in the plot; -1 if that event was not recorded. */
  ofMark(kind: string, t: number, from: number, to: number): number {
    const wanted = (i: number) => {
      const { event } = this.of(i);
      if (kind === 'expired') return event === 'tcp-timeout';
      if (kind === 'ack') return event === 'tcp-acked' || event.startsWith('tcp-');
      if (kind === 'cwnd' || kind === 'ssthresh') return event.startsWith('tcp-');
      const same = this.from[i] === from && this.to[i] === to;
      if (kind === 'lost') return same && (event === 'damaged' || event === 'dropped');
      return same && event === 'originated';
    };
    for (let i = this.at(t); i < this.t.length && this.t[i] === t; i++) if (wanted(i)) return i;
    return -1;
  }
}

/** Kinds of marks by the causes of packets. */
const KINDS: Record<string, string> = {
  'fast-retransmit': 'fast', 'timeout-retransmit': 'timeout', 'eln-retransmit': 'eln', 'tail-loss-probe': 'probe',
  'local-dup-ack': 'local', 'local-timeout': 'local', 'local-persist': 'local', 'local-burst-check': 'local',
};

/** Causes of retransmissions by hosts. */
export const AGAIN = new Set(['fast-retransmit', 'timeout-retransmit', 'eln-retransmit', 'tail-loss-probe', 'window-probe']);

const LOCAL = new Set([
  'local-dup-ack', 'local-timeout', 'local-persist', 'local-burst-check', 'handoff-repeated', 'link-nack', 'link-timeout', 'link-window-full',
]);

/** The series of flow `i` of an answer. */
export function packed(columns: Map<string, Column>, i: number, end: number, note?: string): SequenceData {
  const kinds: Record<string, Marks> = {};
  const spans: Record<string, Spans> = {};
  for (const [name, column] of columns) {
    const [group, number, kind, part] = name.split('.') as [string, string, string, string];
    if (number !== String(i)) continue;
    if (group === 'flow') {
      kinds[kind] ??= { t: column as Float64Array, from: column as Float64Array, to: column as Float64Array };
      kinds[kind][part as 't' | 'from' | 'to'] = column as Float64Array;
    } else if (group === 'span') {
      spans[kind] ??= { from: column as Float64Array, to: column as Float64Array };
      spans[kind][part as 'from' | 'to'] = column as Float64Array;
    }
  }
  return { kinds, spans, end, ...(note ? { note } : {}) };
}
