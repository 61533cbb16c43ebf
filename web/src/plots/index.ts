// Interactive plots: zoom, pan, a common cursor, downloads, keyboard, and a table for users of screen readers.

export type { CurveData, Marks, PlotOptions, SequenceData, Spans } from './data.ts';
export { TimeCursor } from './cursor.ts';

export type { View } from './base.ts';
export { SequencePlot } from './sequence.ts';
export { CurvePlot } from './curves.ts';
