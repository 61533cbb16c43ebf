// Plots that one can touch: zoom, pan, one cursor, downloads, keyboard, and a table for who does not see them.

export type { CurveData, Marks, PlotOptions, SequenceData, Spans } from './data.ts';
export { TimeCursor } from './cursor.ts';

export type { View } from './base.ts';
export { SequencePlot } from './sequence.ts';
export { CurvePlot } from './curves.ts';
