// What plots are drawn from. Arrays of one thing have one length and stand in the order of time.

/** Marks of one kind in a time-sequence plot. */
export interface Marks {
  /** When, in seconds. */
  t: Float64Array;
  /** First byte; of an ACK or of a window, where it was before. */
  from: Float64Array;
  /** One past the last byte. */
  to: Float64Array;
  /** Number of the packet or event, for who made the data. */
  packet?: Float64Array;
}

/** Stretches of time: stalls, a bad channel, no cell. */
export interface Spans {
  /** When each begins, in seconds. */
  from: Float64Array;
  /** When each ends, in seconds. */
  to: Float64Array;
  /** What stands above each, if it has a name. */
  names?: string[];
}

/**
 * A flow. `kinds` that have a look of their own stand in `style.ts`: sent, fast, timeout, eln, probe, local, retransmitted, lost,
 * dropped, ack, sack, window (the receiver's, as the highest byte it allows), cwnd, ssthresh (both by `to`, in a panel below)
 * and expired (by `t` alone). Others are drawn as squares.
 */
export interface SequenceData {
  kinds: Record<string, Marks>;
  /** stall, bad, nocell, cell. */
  spans?: Record<string, Spans>;
  /** Where the time axis ends, in seconds. */
  end: number;
  /** Of every so many marks of a kind one is here; what is missing is told by `note`. */
  note?: string;
}

/** A curve. Values that are no numbers leave a gap. */
export interface CurveData {
  name: string;
  unit: string;
  /** Seconds, or what the horizontal axis shows. */
  t: Float64Array;
  y: Float64Array;
  /** The 95 % interval. */
  low?: Float64Array;
  high?: Float64Array;
  /** Each value holds until the next one. */
  step?: boolean;
  /** Points without a line. */
  dots?: boolean;
  /** Reckoned, not measured: muted and broken. */
  theory?: boolean;
}

/** What a plot is told beside its data. */
export interface PlotOptions {
  /** Heading; also the accessible name. */
  title?: string;
  /** Least height in CSS pixels. */
  height?: number;
  /** Height of the whole surface in CSS pixels, in place of `height`. */
  fit?: number;
  /** Title of the horizontal axis with its unit: `time (s)`. */
  x?: string;
  /** Name of downloads, without ending. */
  file?: string;
  /** Buttons above the plot. On unless said otherwise. */
  tools?: boolean;
  /** The table of what is in view. On unless said otherwise. */
  table?: boolean;
  /** By decades, with a place for zero. */
  log?: boolean;
}
