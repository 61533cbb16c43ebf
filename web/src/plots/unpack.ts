// Reads what crates/report/src/data packs into a page: columns of numbers, by their differences, compressed, in base64.

/** Name, how many numbers, and by what whole numbers are divided; 0 where numbers stand as they are. */
export type Column = [name: string, length: number, scale: number];

/** The columns by their names. */
export async function unpack(columns: Column[], data: string): Promise<Map<string, Float64Array>> {
  const packed = Uint8Array.from(atob(data), (c) => c.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream('deflate-raw'));
  const bytes = new Uint8Array(await new Response(stream).arrayBuffer());
  const found = new Map<string, Float64Array>();
  let at = 0;
  for (const [name, length, scale] of columns) {
    const values = new Float64Array(length);
    if (scale === 0) {
      at = readPlain(bytes, at, values);
    } else {
      at = readWhole(bytes, at, values, scale);
    }
    found.set(name, values);
  }
  return found;
}

/** Bytes of the same weight stand together. */
function readPlain(bytes: Uint8Array, at: number, values: Float64Array): number {
  const { length } = values;
  const view = new DataView(new ArrayBuffer(8));
  for (let i = 0; i < length; i++) {
    for (let weight = 0; weight < 8; weight++) view.setUint8(weight, bytes[at + weight * length + i]!);
    values[i] = view.getFloat64(0, true);
  }
  return at + 8 * length;
}

/** Seven bits a byte, the least first; the lowest bit is the sign. Beyond 32 bits only doubles are exact. */
function readWhole(bytes: Uint8Array, at: number, values: Float64Array, scale: number): number {
  let last = 0;
  for (let i = 0; i < values.length; i++) {
    let value = 0;
    let weight = 1;
    let byte: number;
    do {
      byte = bytes[at++]!;
      value += (byte & 0x7f) * weight;
      weight *= 128;
    } while (byte & 0x80);
    // Twice the value, or twice the distance below zero less one.
    last += value % 2 === 0 ? value / 2 : -(value + 1) / 2;
    values[i] = last / scale;
  }
  return at;
}
