// Round-trip times of the columns' segments over time, for lessons about queues.

import { type CurveData, CurvePlot, type SequenceData, type TimeCursor } from '../plots/index.ts';
import type { Column } from './column.ts';

export class Delays {
  readonly place = document.createElement('div');
  #plot: CurvePlot | null = null;

  /** Draws the round-trip times of all columns on one scale, or removes the plot if it is not `wanted`. */
  show(columns: readonly Column[], cursor: TimeCursor, wanted: boolean): void {
    if (!wanted) {
      this.#plot?.destroy();
      this.#plot = null;
      return;
    }
    this.#plot ??= new CurvePlot(this.place, cursor, { title: 'Round-trip time of each segment', file: 'lasthop-round-trips', height: 160 });
    this.#plot.set(columns.flatMap((column) => (column.run ? [{ name: column.scheme, unit: 'ms', ...roundTrips(column.run.sequence()) }] : [])));
  }
}

/**
 * Milliseconds from the first transmission of each segment to the ACK that covers it, by the time of the ACK. Segments that were
 * retransmitted have no sample (Karn's rule).
 */
export function roundTrips({ kinds }: SequenceData): Pick<CurveData, 't' | 'y'> {
  const { sent, ack, ...others } = kinds;
  const again = new Set<number>();
  for (const kind of RETRANSMITTED) for (const from of others[kind]?.from ?? []) again.add(from);
  const [t, y]: [number[], number[]] = [[], []];
  let i = 0;
  if (sent && ack) {
    for (let j = 0; j < sent.t.length; j++) {
      while (i < ack.t.length && (ack.to[i]! < sent.to[j]! || ack.t[i]! < sent.t[j]!)) i++;
      if (i === ack.t.length) break;
      if (again.has(sent.from[j]!)) continue;
      t.push(ack.t[i]!);
      y.push((ack.t[i]! - sent.t[j]!) * 1e3);
    }
  }
  return { t: Float64Array.from(t), y: Float64Array.from(y) };
}

const RETRANSMITTED = ['fast', 'timeout', 'eln', 'probe', 'local', 'retransmitted'];
