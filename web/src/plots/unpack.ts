// Decodes the columns that crates/report/src/data embeds in a page: base64, then DEFLATE, then differences of numbers.

/** Name, number of values, and divisor of the stored integers; a divisor of 0 means that the values are doubles. */
export type Column = [name: string, length: number, scale: number];

/** Decodes `data`, which has all `columns` in order. Returns the values by column name. */
export async function unpack(columns: Column[], data: string): Promise<Map<string, Float64Array>> {
  const packed = Uint8Array.from(atob(data), (c) => c.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream('deflate-raw'));
  const bytes = new Uint8Array(await new Response(stream).arrayBuffer());
  const found = new Map<string, Float64Array>();
  let at = 0;
  for (const [name, length, scale] of columns) {
    const values = new Float64Array(length);
    if (scale === 0) {
      at = readDoubles(bytes, at, values);
    } else {
      at = readIntegers(bytes, at, values, scale);
    }
    found.set(name, values);
  }
  return found;
}

/** Doubles, stored by significance: first the lowest byte of all values, then the next one. */
function readDoubles(bytes: Uint8Array, at: number, values: Float64Array): number {
  const { length } = values;
  const view = new DataView(new ArrayBuffer(8));
  for (let i = 0; i < length; i++) {
    for (let weight = 0; weight < 8; weight++) view.setUint8(weight, bytes[at + weight * length + i]!);
    values[i] = view.getFloat64(0, true);
  }
  return at + 8 * length;
}

/**
 * Differences in variable-length encoding: seven bits per byte, the lowest first; the lowest bit of a difference is its
 * sign. The arithmetic uses doubles, since integer operators are limited to 32 bits.
 */
function readIntegers(bytes: Uint8Array, at: number, values: Float64Array, scale: number): number {
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
    // Zigzag encoding: 2n for n >= 0, and -2n - 1 for n < 0.
    last += value % 2 === 0 ? value / 2 : -(value + 1) / 2;
    values[i] = last / scale;
  }
  return at;
}
