// The binary format of questions and answers, as in crates/web/src/envelope.rs.

export type Column = Float64Array | Uint32Array | Uint16Array | Uint8Array;

/** An answer: its JSON, and its columns by name. */
export interface Answer {
  json: Record<string, any>;
  columns: Map<string, Column>;
}

/** An error or a warning of the engine. */
export interface Trouble {
  message: string;
  help: string;
  code?: string;
  label?: string;
  source?: 'file' | 'set' | 'scheme' | 'points';
  line?: number;
  column?: number;
  /** The place in the text, in UTF-16 code units. */
  start?: number;
  end?: number;
}

/** The engine answered with an error. */
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
  const json = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 4, length)));
  if (json.error) throw new Refused(json.error);
  const start = 4 + length;
  const columns = new Map<string, Column>();
  for (const { name, of, at, len } of json.columns ?? []) {
    const from = start + at;
    if (of === 'f64') columns.set(name, new Float64Array(buffer, from, len));
    else if (of === 'u32') columns.set(name, new Uint32Array(buffer, from, len));
    else if (of === 'u16') columns.set(name, new Uint16Array(buffer, from, len));
    else columns.set(name, new Uint8Array(buffer, from, len));
  }
  return { json, columns };
}
