// Converts the data that crates/report/src/data/embed.rs writes into a page to the data of plots.

import type { CurveData, Marks, SequenceData, Spans } from './data.ts';
import type { Column } from './unpack.ts';

/** A time-sequence plot. */
export interface Sequence {
  form: 'sequence';
  title: string;
  flow: string;
  end: number;
  every: number;
  cells: string[];
  columns: Column[];
  data: string;
}

/** Curves in one panel or several. */
export interface Panels {
  form: 'chart';
  title: string;
  x: string;
  log: boolean;
  end: number | null;
  every: number;
  panels: { y: string; curves: [name: string, pen: string][] }[];
  columns: Column[];
  data: string;
}

export type Columns = Map<string, Float64Array>;

const NONE = new Float64Array();

/** Kinds of transmissions and losses, which have the same three columns. */
const SENT = ['sent', 'fast', 'timeout', 'eln', 'probe', 'local', 'retransmitted', 'lost'];

/** The data of a time-sequence plot. */
export function sequence(columns: Columns, { end, every, cells }: Sequence): SequenceData {
  const of = (name: string) => columns.get(name) ?? NONE;
  const kinds: Record<string, Marks> = {};
  for (const kind of SENT) {
    const from = of(`${kind}.from`);
    const length = of(`${kind}.length`);
    kinds[kind] = { t: of(`${kind}.t`), from, to: from.map((byte, i) => byte + length[i]!) };
  }
  const acked = of('ack.to');
  kinds.ack = { t: of('ack.t'), from: acked.map((_, i) => acked[i - 1] ?? 0), to: acked };
  const windows = of('windows.t');
  const zero = new Float64Array(windows.length);
  kinds.cwnd = { t: windows, from: zero, to: of('windows.cwnd') };
  kinds.ssthresh = { t: windows, from: zero, to: of('windows.ssthresh') };
  const expired = of('expired.t');
  const none = new Float64Array(expired.length);
  kinds.expired = { t: expired, from: none, to: none };
  const spans: Record<string, Spans> = {};
  for (const kind of ['stall', 'bad']) {
    spans[kind] = { from: of(`${kind}.from`), to: of(`${kind}.to`) };
  }
  if (cells.length > 0) {
    const [from, to] = [of('cell.from'), of('cell.to')];
    spans.cell = { from, to, names: cells };
    spans.nocell = between(from, to);
    spans.stall = without(spans.stall!, spans.nocell);
  }
  return { kinds, spans, end, note: thinned(every) };
}

/** The intervals between stays in cells. */
function between(from: Float64Array, to: Float64Array): Spans {
  const gaps = Array.from(from.keys()).filter((i) => i > 0 && from[i]! > to[i - 1]!);
  return { from: Float64Array.from(gaps, (i) => to[i - 1]!), to: Float64Array.from(gaps, (i) => from[i]!) };
}

/** Spans without their parts in gaps, since gaps have their own colour. */
function without(spans: Spans, gaps: Spans): Spans {
  const pieces: [number, number][] = [];
  spans.from.forEach((from, i) => {
    const end = spans.to[i]!;
    gaps.from.forEach((gap, k) => {
      const back = gaps.to[k]!;
      if (back <= from || gap >= end) return;
      if (gap > from) pieces.push([from, gap]);
      from = back;
    });
    if (end > from) pieces.push([from, end]);
  });
  return { from: Float64Array.from(pieces, ([a]) => a), to: Float64Array.from(pieces, ([, b]) => b) };
}

function thinned(every: number): string {
  if (every <= 1) return '';
  return (
    `To keep the page small, one of ${every} first transmissions, ACKs and windows is here; ` +
    'losses and retransmissions are all here. The files next to the page have all of them.'
  );
}

/** The curves of a panel. */
export function curves(columns: Columns, chart: Panels, panel: number): CurveData[] {
  const { y: unit, curves: all } = chart.panels[panel]!;
  return all.map(([name, pen], k) => {
    const of = (field: string) => columns.get(`${panel}.${k}.${field}`);
    const [t, y, spread] = [of('x') ?? NONE, of('y') ?? NONE, of('spread')];
    return {
      name,
      unit,
      t,
      y,
      ...(spread && {
        low: y.map((value, i) => Math.max(value - spread[i]!, Math.min(value, 0))),
        high: y.map((value, i) => value + spread[i]!),
      }),
      step: pen === 'steps',
      dots: pen === 'dots' || pen === 'points',
      theory: pen === 'dashes',
    };
  });
}
