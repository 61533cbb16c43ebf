// Runs several seeds of each column and draws their mean with its 95 % confidence interval.

import type { Engine } from '../engine/engine.ts';
import { type CurveData, CurvePlot, type TimeCursor } from '../plots/index.ts';
import type { Column } from './column.ts';
import { KIB, shown } from './numbers.ts';

export class Together {
  readonly place = document.createElement('div');
  words = '';
  #plot: CurvePlot | null = null;

  /** Draws the band of `runs` seeds for each column. Stops as soon as `current` returns false. */
  async show(
    engine: Engine,
    columns: readonly Column[],
    scene: Record<string, unknown>,
    runs: number,
    cursor: TimeCursor,
    current: () => boolean,
  ): Promise<void> {
    if (runs < 2) {
      this.#plot?.destroy();
      this.#plot = null;
      this.words = '';
      return;
    }
    const curves: CurveData[] = [];
    const words: string[] = [];
    for (const column of columns) {
      const scheme = column.scheme === 'as-is' ? null : column.scheme;
      try {
        const { json, columns: parts } = await engine.ask(column.lane, { ask: 'band', ...scene, scheme, runs });
        const part = (name: string) => parts.get(name) as Float64Array;
        const kib = (name: string) => part(name).map((bytes) => bytes / KIB);
        curves.push({ name: column.scheme, unit: 'KiB', t: part('t'), y: kib('mean'), low: kib('low'), high: kib('high') });
        const rate = json.scalars.find((scalar: any) => scalar.name === 'throughput');
        if (rate) words.push(`${column.scheme}: ${shown(rate.mean, 'B/s')} (${shown(rate.low, 'B/s')} to ${shown(rate.high, 'B/s')})`);
      } catch {
        continue;
      }
      if (!current()) return;
    }
    this.#plot ??= new CurvePlot(this.place, cursor, {
      title: 'Acknowledged by then, mean of all seeds and its 95 % interval',
      file: 'lasthop-seeds',
      height: 220,
    });
    this.#plot.set(curves);
    this.words = words.join('; ');
  }
}
