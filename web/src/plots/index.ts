// Plots that one can touch: zoom, pan, one cursor, downloads, keyboard, and a table for who does not see them.

import type { CurveData, PlotOptions, SequenceData } from './data.ts';
import type { TimeCursor } from './cursor.ts';

export type { CurveData, Marks, PlotOptions, SequenceData, Spans } from './data.ts';
export { TimeCursor } from './cursor.ts';

/** What is shown: seconds, and values of the vertical axis; without `y` it follows the data. */
export interface View {
  t: [number, number];
  y?: [number, number];
}

export declare class SequencePlot {
  constructor(place: HTMLElement, cursor: TimeCursor, options?: PlotOptions);
  /** Draws `data` from now on; what is in view stays. */
  set(data: SequenceData): void;
  /** A mark was chosen, by a click, a tap or Enter. */
  onpick?: (kind: string, index: number) => void;
  /** Shows the mark that somebody chose elsewhere; null for none. */
  mark(kind: string | null, index?: number): void;
  view: View;
  reset(): void;
  png(): Promise<Blob>;
  svg(): string;
  csv(): string;
  destroy(): void;
}

export declare class CurvePlot {
  constructor(place: HTMLElement, cursor: TimeCursor, options?: PlotOptions);
  set(curves: CurveData[]): void;
  view: View;
  reset(): void;
  png(): Promise<Blob>;
  svg(): string;
  csv(): string;
  destroy(): void;
}
