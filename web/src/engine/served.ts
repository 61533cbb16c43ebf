// For a page that `lasthop lab` serves: the program answers, so there is no module.

export function newWorker(): Worker {
  throw new Error('the program answers');
}

export function theModule(): Promise<WebAssembly.Module> {
  return new Promise(() => {});
}
