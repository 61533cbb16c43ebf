// Unpacks and compiles the module in a worker, so that the page is painted meanwhile.

/** The module that `worker` compiles from `packed`, a buffer or text in base64; then ends the worker. */
export function unpacked(worker: Worker, packed: ArrayBuffer | string): Promise<WebAssembly.Module> {
  return new Promise<WebAssembly.Module>((done, failed) => {
    worker.onmessage = ({ data }) => (data.module ? done(data.module) : failed(new Error(data.failed)));
    worker.onerror = (event) => failed(new Error(event.message));
    worker.postMessage({ packed }, typeof packed === 'string' ? [] : [packed]);
  }).finally(() => worker.terminate());
}
