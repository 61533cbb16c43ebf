// Where worker and module come from when the page is one file: from the file itself.

import { unpacked } from './unpacked.ts';
import Inline from './worker.ts?worker&inline';

export function newWorker(): Worker {
  return new Inline();
}

export function theModule(): Promise<WebAssembly.Module> {
  return unpacked(newWorker(), document.getElementById('lasthop-module')!.textContent!.trim());
}
