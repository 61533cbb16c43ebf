// The data of plots. The arrays of one interface have equal lengths and are sorted by time.

/** Marks of one kind in a time-sequence plot. */
export interface Marks {
  /** When, in seconds. */
  t: Float64Array;
  /** First byte; for an ACK or a window its previous value. */
  from: Float64Array;
  /** One past the last byte. */
  to: Float64Array;
  /** Number of the packet or event in the source of the data. */
  packet?: Float64Array;
}

/** Intervals of time: stalls, a bad channel, no cell. */
export interface Spans {
  /** When each begins, in seconds. */
  from: Float64Array;
  /** When each ends, in seconds. */
  to: Float64Array;
  /** The label above each, if they have names. */
  names?: string[];
}

/**
 * A flow. `style.ts` defines a look for these `kinds`: sent, fast, timeout, eln, probe, local, retransmitted, lost,
 * dropped, ack, sack, window (the receiver's, as the highest byte that it allows), cwnd, ssthresh (both use `to`, in a panel
 * below) and expired (uses `t` only). Others are drawn as squares.
 */
export interface SequenceData {
  kinds: Record<string, Marks>;
  /** stall, bad, nocell, cell. */
  spans?: Record<string, Spans>;
  /** End of the time axis, in seconds. */
  end: number;
  /** A note below the plot, such as which marks were left out. */
  note?: string;
}

/** A curve. A NaN leaves a gap. */
export interface CurveData {
  name: string;
  unit: string;
  /** Seconds, or values of the horizontal axis. */
  t: Float64Array;
  y: Float64Array;
  /** The 95 % interval. */
  low?: Float64Array;
  high?: Float64Array;
  /** Each value holds until the next one. */
  step?: boolean;
  /** Points without a line. */
  dots?: boolean;
  /** Whether the curve is computed, not measured: it is muted and dashed. */
  theory?: boolean;
}

/** Options of a plot. */
export interface PlotOptions {
  /** Heading; also the accessible name. */
  title?: string;
  /** Height of the main panel in CSS pixels. */
  height?: number;
  /** Height of the whole surface in CSS pixels; overrides `height`. */
  fit?: number;
  /** Title of the horizontal axis with its unit: `time (s)`. */
  x?: string;
  /** Name of downloads, without ending. */
  file?: string;
  /** Whether buttons are above the plot; true by default. */
  tools?: boolean;
  /** Whether a table of the marks in view is below the plot; true by default. */
  table?: boolean;
  /** Whether the horizontal axis is logarithmic, with a position for zero. */
  log?: boolean;
}
