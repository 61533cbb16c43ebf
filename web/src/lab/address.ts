// The page's address holds the whole state of the page, so that a link reproduces a result.

/** The state that the address holds. */
export interface Shown {
  /** A built-in scenario, or the name of an own text. */
  name: string;
  /** The text, if it differs from the built-in scenario. */
  text?: string;
  /** Settings of the sliders, by key. */
  set: Record<string, string>;
  schemes: string[];
  seed?: number;
  /** Number of seeds whose mean is shown. */
  runs: number;
  /** The part of the time in view, in seconds. */
  view?: [number, number];
  /** The player's time, in seconds. */
  at?: number;
  lesson?: string;
}

/** Maximum length of the decompressed state in bytes: a forged address must not fill the memory. */
const LONGEST = 4 << 20;

async function through(bytes: BlobPart, by: GenericTransformStream, most = Infinity): Promise<Uint8Array> {
  const reader = new Blob([bytes]).stream().pipeThrough(by as unknown as TransformStream).getReader();
  const parts: Uint8Array[] = [];
  let length = 0;
  for (let part = await reader.read(); !part.done; part = await reader.read()) {
    parts.push(part.value);
    length += part.value.length;
    if (length > most) throw new Error('too long');
  }
  const all = new Uint8Array(length);
  let at = 0;
  for (const part of parts) {
    all.set(part, at);
    at += part.length;
  }
  return all;
}

/** Encodes the state as the part of an address after `#`. */
export async function written(shown: Shown): Promise<string> {
  const bytes = await through(JSON.stringify(shown), new CompressionStream('deflate-raw'));
  let text = '';
  for (const byte of bytes) text += String.fromCharCode(byte);
  return `z=${btoa(text).replaceAll('+', '-').replaceAll('/', '_').replace(/=+$/, '')}`;
}

/** Decodes the part of an address after `#`, a state or the name of a scenario; null if it holds neither. */
export async function read(hash: string): Promise<Shown | null> {
  const match = /^#?z=([\w-]+)$/.exec(hash);
  if (!match) return named(hash);
  try {
    const text = atob(match[1]!.replaceAll('-', '+').replaceAll('_', '/'));
    const bytes = Uint8Array.from(text, (c) => c.charCodeAt(0));
    const plain = await through(bytes, new DecompressionStream('deflate-raw'), LONGEST);
    return sound(JSON.parse(new TextDecoder().decode(plain)));
  } catch {
    return null;
  }
}

/** `#ebsn`: a scenario with its own values. `lasthop lab ebsn` prints such an address. */
function named(hash: string): Shown | null {
  const match = /^#([\w.%-]+)$/.exec(hash);
  if (!match) return null;
  try {
    return { name: decodeURIComponent(match[1]!), set: {}, schemes: [], runs: 1 };
  } catch {
    return null;
  }
}

/** Checks a decoded state: drops invalid parts, or returns null without a name. */
function sound(it: any): Shown | null {
  if (typeof it !== 'object' || it === null || typeof it.name !== 'string') return null;
  const pair = (view: any) =>
    Array.isArray(view) && view.length === 2 && view.every(Number.isFinite) ? (view as [number, number]) : undefined;
  const entries = typeof it.set === 'object' && it.set ? Object.entries(it.set) : [];
  const schemes = Array.isArray(it.schemes) ? it.schemes.filter((s: unknown) => typeof s === 'string') : [];
  return {
    name: it.name,
    ...(typeof it.text === 'string' ? { text: it.text } : {}),
    set: Object.fromEntries(entries.filter(([, value]) => typeof value === 'string')) as Record<string, string>,
    schemes: schemes.slice(0, 4),
    ...(Number.isSafeInteger(it.seed) && it.seed >= 0 ? { seed: it.seed } : {}),
    runs: Number.isSafeInteger(it.runs) ? Math.min(Math.max(it.runs, 1), 50) : 1,
    ...(pair(it.view) ? { view: pair(it.view)! } : {}),
    ...(Number.isFinite(it.at) ? { at: it.at } : {}),
    ...(typeof it.lesson === 'string' ? { lesson: it.lesson } : {}),
  };
}
