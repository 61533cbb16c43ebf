// Where worker and module come from when the page is a folder on a web server.

import url from '#module?url';

import { unpacked } from './unpacked.ts';

export function newWorker(): Worker {
  return new Worker(new URL('./worker.ts', import.meta.url), { type: 'module' });
}

export async function theModule(): Promise<WebAssembly.Module> {
  const worker = newWorker();
  const response = await fetch(url);
  if (!response.ok) throw new Error(`${url}: ${response.status} ${response.statusText}`);
  return unpacked(worker, await response.arrayBuffer());
}
