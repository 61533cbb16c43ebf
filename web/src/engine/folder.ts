// Where worker and module come from when the page is a folder on a web server.

import url from '#module?url';

export function newWorker(): Worker {
  return new Worker(new URL('./worker.ts', import.meta.url), { type: 'module' });
}

export async function theModule(): Promise<WebAssembly.Module> {
  return WebAssembly.compileStreaming(fetch(url));
}
