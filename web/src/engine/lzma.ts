// Unpacks LZMA, which makes the module 28 % smaller than gzip does. `xz --format=lzma` packs it, and pack.mjs writes its size
// into the header. Names are those of the LZMA specification of 7-Zip.

/** Size of a piece, in bytes: several are compiled while the next ones are unpacked. */
const PIECE = 1 << 17;

/** States, and the first one after a match. */
const [STATES, MATCHED] = [12, 7];
/** Contexts of a length: two choices, 16 times 8 short ones, 16 times 8 middle ones, 256 long ones. */
const [LENGTH_MIDDLE, LENGTH_LONG, LENGTHS] = [2 + 128, 2 + 256, 2 + 512];

// Where each table begins among all probabilities.
const IS_MATCH = 0;
const IS_REP = IS_MATCH + STATES * 16;
const IS_REP_0 = IS_REP + STATES;
const IS_REP_1 = IS_REP_0 + STATES;
const IS_REP_2 = IS_REP_1 + STATES;
const IS_REP_0_LONG = IS_REP_2 + STATES;
const SLOTS = IS_REP_0_LONG + STATES * 16;
const SPECIAL = SLOTS + 4 * 64;
const ALIGN = SPECIAL + 128;
const MATCH_LENGTH = ALIGN + 16;
const REP_LENGTH = MATCH_LENGTH + LENGTHS;
const LITERALS = REP_LENGTH + LENGTHS;

/** Unpacks a file of `xz --format=lzma` whose header has the size, below 4 GiB, piece by piece. */
export function* unpack(packed: Uint8Array): Generator<Uint8Array<ArrayBuffer>> {
  const properties = packed[0]!;
  const lc = properties % 9;
  const lp = Math.floor(properties / 9) % 5;
  const pb = Math.floor(properties / 45);
  const size = new DataView(packed.buffer, packed.byteOffset).getUint32(5, true);
  const out = new Uint8Array(size);
  const probabilities = new Uint16Array(LITERALS + (0x300 << (lc + lp))).fill(1024);
  // Range and code. Variables of a closure that exceed 31 bits would be allocated anew at each change.
  const coder = Uint32Array.of(0xffffffff, new DataView(packed.buffer, packed.byteOffset).getUint32(14));
  let from = 18;

  function normalize(): void {
    if (coder[0]! >= 0x1000000) return;
    coder[0] = coder[0]! << 8;
    coder[1] = (coder[1]! << 8) | packed[from++]!;
  }

  /** The next bit under probability `i`. */
  function bit(i: number): 0 | 1 {
    const p = probabilities[i]!;
    const bound = Math.imul(coder[0]! >>> 11, p) >>> 0;
    const it = coder[1]! < bound ? 0 : 1;
    if (it === 0) {
      coder[0] = bound;
      probabilities[i] = p + ((2048 - p) >> 5);
    } else {
      coder[0]! -= bound;
      coder[1]! -= bound;
      probabilities[i] = p - (p >> 5);
    }
    normalize();
    return it;
  }

  /** `bits` bits of a tree, the highest first. */
  function tree(at: number, bits: number): number {
    let m = 1;
    for (let i = 0; i < bits; i++) m = (m << 1) | bit(at + m);
    return m - (1 << bits);
  }

  /** `bits` bits of a tree, the lowest first. */
  function reverse(at: number, bits: number): number {
    let [m, all] = [1, 0];
    for (let i = 0; i < bits; i++) {
      const it = bit(at + m);
      m = (m << 1) | it;
      all |= it << i;
    }
    return all;
  }

  /** `bits` bits that are as likely as not. */
  function direct(bits: number): number {
    let all = 0;
    for (let i = 0; i < bits; i++) {
      coder[0]! >>>= 1;
      const one = coder[1]! >= coder[0]!;
      if (one) coder[1]! -= coder[0]!;
      all = (all << 1) | Number(one);
      normalize();
    }
    return all;
  }

  function length(at: number, position: number): number {
    if (bit(at) === 0) return 2 + tree(at + 2 + 8 * position, 3);
    if (bit(at + 1) === 0) return 10 + tree(at + LENGTH_MIDDLE + 8 * position, 3);
    return 18 + tree(at + LENGTH_LONG, 8);
  }

  function distance(length: number): number {
    const slot = tree(SLOTS + 64 * Math.min(length - 2, 3), 6);
    if (slot < 4) return slot;
    const bits = (slot >> 1) - 1;
    const high = (2 | (slot & 1)) << bits;
    if (slot < 14) return high + reverse(SPECIAL + high - slot, bits);
    return high + (direct(bits - 4) << 4) + reverse(ALIGN, 4);
  }

  let state = 0;
  let [rep0, rep1, rep2, rep3] = [0, 0, 0, 0];
  const [positions, literals] = [(1 << pb) - 1, (1 << lp) - 1];
  let at = 0;

  /** Unpacks until `end` at least. */
  function until(end: number): void {
    while (at < end) {
      const position = at & positions;
      if (bit(IS_MATCH + 16 * state + position) === 0) {
        const before = at > 0 ? out[at - 1]! : 0;
        const table = LITERALS + 0x300 * (((at & literals) << lc) + (before >> (8 - lc)));
        let m = 1;
        if (state >= MATCHED) {
          // After a match the byte that would have continued it is a hint, until a bit differs.
          let hint = out[at - rep0 - 1]!;
          while (m < 0x100) {
            const expected = (hint >> 7) & 1;
            hint <<= 1;
            const it = bit(table + ((1 + expected) << 8) + m);
            m = (m << 1) | it;
            if (it !== expected) break;
          }
        }
        while (m < 0x100) m = (m << 1) | bit(table + m);
        out[at++] = m;
        state = state < 4 ? 0 : state < 10 ? state - 3 : state - 6;
        continue;
      }
      let copied: number;
      if (bit(IS_REP + state) === 0) {
        [rep3, rep2, rep1] = [rep2, rep1, rep0];
        copied = length(MATCH_LENGTH, position);
        rep0 = distance(copied);
        state = state < MATCHED ? 7 : 10;
      } else {
        if (bit(IS_REP_0 + state) === 0) {
          if (bit(IS_REP_0_LONG + 16 * state + position) === 0) {
            state = state < MATCHED ? 9 : 11;
            out[at] = out[at - rep0 - 1]!;
            at++;
            continue;
          }
        } else {
          let chosen: number;
          if (bit(IS_REP_1 + state) === 0) chosen = rep1;
          else {
            if (bit(IS_REP_2 + state) === 0) chosen = rep2;
            else [chosen, rep3] = [rep3, rep2];
            rep2 = rep1;
          }
          [rep1, rep0] = [rep0, chosen];
        }
        copied = length(REP_LENGTH, position);
        state = state < MATCHED ? 8 : 11;
      }
      const last = Math.min(at + copied, size);
      for (; at < last; at++) out[at] = out[at - rep0 - 1]!;
    }
  }

  for (let sent = 0; sent < size; sent = at) {
    until(Math.min(sent + PIECE, size));
    yield out.subarray(sent, at);
  }
}

/** Compiles the module that `packed` unpacks to; text is base64. */
export function compile(packed: ArrayBuffer | string): Promise<WebAssembly.Module> {
  const pieces = unpack(typeof packed === 'string' ? bytes(packed) : new Uint8Array(packed));
  const stream = new ReadableStream<Uint8Array<ArrayBuffer>>({
    pull(controller) {
      const { value, done } = pieces.next();
      if (done) controller.close();
      else controller.enqueue(value);
    },
  });
  return WebAssembly.compileStreaming(new Response(stream, { headers: { 'content-type': 'application/wasm' } }));
}

/** The bytes of a text in base64. */
function bytes(text: string): Uint8Array {
  // The first is faster, but not in all browsers yet.
  const { fromBase64 } = Uint8Array as { fromBase64?: (text: string) => Uint8Array };
  return fromBase64 ? fromBase64.call(Uint8Array, text) : Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
}
