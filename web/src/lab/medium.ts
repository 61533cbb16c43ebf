// Frames on the medium over time, for lessons about radio links.

import { type CurveData, CurvePlot, type TimeCursor } from '../plots/index.ts';
import type { Column } from './column.ts';
import type { Recording } from './recording.ts';

/** Height of a station's line above that of the one before, in rows. */
const APART = 0.12;
const FAILED = 'failed: repeated later';

export class Medium {
  readonly place = document.createElement('div');
  #plot: CurvePlot | null = null;

  /** Draws the frames of all columns, a row for each, or removes the plot if it is not `wanted`. */
  show(columns: readonly Column[], cursor: TimeCursor, wanted: boolean): void {
    if (!wanted) {
      this.#plot?.destroy();
      this.#plot = null;
      return;
    }
    this.#plot ??= new CurvePlot(this.place, cursor, {
      title: 'Frames on the medium: a row for each column, colours by station',
      file: 'lasthop-medium',
      height: 60 + 60 * columns.length,
    });
    this.#plot.set(frames(columns.flatMap((column) => (column.run ? [column.run] : []))));
  }
}

/** A curve for each station, with a line from the begin to the end of each frame, and one for failed frames. */
export function frames(runs: readonly Recording[]): CurveData[] {
  const all = new Map<string, { t: number; y: number }[]>();
  runs.forEach((run, row) => {
    for (let i = 0; i < run.t.length; i++) {
      const { event, cause } = run.of(i);
      if (!event.startsWith('air-')) continue;
      const [station, airtime] = [run.from[i]! - 1, run.to[i]!];
      const failed = cause === 'damaged' || cause === 'collided';
      const name = failed ? FAILED : station === 0 ? 'access point' : `station ${station}`;
      const [end, y] = [run.t[i]!, row + 1 + APART * station];
      const points = all.get(name) ?? [];
      points.push({ t: end - airtime, y }, { t: end, y }, { t: end, y: Number.NaN });
      all.set(name, points);
    }
  });
  const last = ([name]: [string, unknown]) => (name === FAILED ? 1 : 0);
  return [...all]
    .sort((a, b) => last(a) - last(b) || a[0].localeCompare(b[0]))
    .map(([name, points]) => {
      points.sort((a, b) => a.t - b.t);
      return { name, unit: 'row', t: Float64Array.from(points, ({ t }) => t), y: Float64Array.from(points, ({ y }) => y) };
    });
}
