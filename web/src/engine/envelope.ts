// How questions and answers are put into bytes; crates/web/src/envelope.rs has the other side.

export type Column = Float64Array | Uint32Array | Uint16Array | Uint8Array;

/** An answer: what its JSON says, and its columns by name. */
export interface Answer {
  told: Record<string, any>;
  columns: Map<string, Column>;
}

/** What is wrong, as the engine tells it. */
export interface Trouble {
  message: string;
  help: string;
  code?: string;
  label?: string;
  source?: 'file' | 'set' | 'scheme' | 'points';
  line?: number;
  column?: number;
  /** Where in the text, counted as a page counts. */
  start?: number;
  end?: number;
}

/** The engine's answer is that something is wrong. */
export class Refused extends Error {
  readonly trouble: Trouble;

  constructor(trouble: Trouble) {
    super(trouble.message);
    this.trouble = trouble;
  }
}

/** A question as bytes. */
export function question(json: object, bytes: Uint8Array = new Uint8Array()): Uint8Array<ArrayBuffer> {
  const text = new TextEncoder().encode(JSON.stringify(json));
  const all = new Uint8Array(4 + text.length + bytes.length);
  new DataView(all.buffer).setUint32(0, text.length, true);
  all.set(text, 4);
  all.set(bytes, 4 + text.length);
  return all;
}

/** Opens an answer. Its columns are views of `buffer`. */
export function open(buffer: ArrayBuffer): Answer {
  const length = new DataView(buffer).getUint32(0, true);
  const told = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 4, length)));
  if (told.error) throw new Refused(told.error);
  const start = 4 + length;
  const columns = new Map<string, Column>();
  for (const { name, of, at, len } of told.columns ?? []) {
    const from = start + at;
    if (of === 'f64') columns.set(name, new Float64Array(buffer, from, len));
    else if (of === 'u32') columns.set(name, new Uint32Array(buffer, from, len));
    else if (of === 'u16') columns.set(name, new Uint16Array(buffer, from, len));
    else columns.set(name, new Uint8Array(buffer, from, len));
  }
  return { told, columns };
}
