// Compiles the module of the page. It is compressed by LZMA, which makes it 28 % smaller than gzip does.

import { decompress } from 'lzma1';

/** Compiles the module that `packed` contains, a buffer or text in base64. */
export function compile(packed: ArrayBuffer | string): Promise<WebAssembly.Module> {
  const module = decompress(typeof packed === 'string' ? bytes(packed) : new Uint8Array(packed));
  return WebAssembly.compile(module as Uint8Array<ArrayBuffer>);
}

/** The bytes of a text in base64. */
function bytes(text: string): Uint8Array {
  // The first is faster, but not in all browsers yet.
  const { fromBase64 } = Uint8Array as { fromBase64?: (text: string) => Uint8Array };
  return fromBase64 ? fromBase64.call(Uint8Array, text) : Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
}
