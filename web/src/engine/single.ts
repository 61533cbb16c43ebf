// Where worker and module come from when the page is one file: from the file itself.

import Inline from './worker.ts?worker&inline';

export function newWorker(): Worker {
  return new Inline();
}

export async function theModule(): Promise<WebAssembly.Module> {
  const text = document.getElementById('lasthop-module')!.textContent!.trim();
  const packed = Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
  const plain = new Blob([packed]).stream().pipeThrough(new DecompressionStream('gzip'));
  return WebAssembly.compile(await new Response(plain).arrayBuffer());
}
