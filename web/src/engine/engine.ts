// Answers the page's questions: by workers with the module, or by the program that serves the page.

import { newWorker, theModule } from '#platform';
import { type Answer, Refused, open, question } from './envelope.ts';

/** A newer question replaced this one. */
export class Superseded extends Error {}

/** A question to the engine; crates/web/src/ask.rs reads it. */
export type Ask = { ask: string } & Record<string, unknown>;

interface Waiting {
  ask: Uint8Array<ArrayBuffer>;
  done: (answer: Answer & { took: number }) => void;
  failed: (error: Error) => void;
}

/** How long the current question may keep running once a newer one waits, in milliseconds. */
const PATIENCE = 120;

/** Answers questions one after the other, on its own worker. A new question replaces a waiting one of the same name. */
class Lane {
  #worker: Worker | null = null;
  readonly #module: Promise<WebAssembly.Module>;
  #running: (Waiting & { id: number; name: string; timer: number }) | null = null;
  readonly #waiting = new Map<string, Waiting>();
  #id = 0;
  bytes = 0;

  constructor(module: Promise<WebAssembly.Module>) {
    this.#module = module;
  }

  ask(name: string, waiting: Waiting): void {
    this.#waiting.get(name)?.failed(new Superseded());
    this.#waiting.delete(name);
    this.#waiting.set(name, waiting);
    if (!this.#running) this.#next();
    else if (this.#running.name === name && !this.#running.timer) {
      // The running question is superseded. If it takes too long, its worker is replaced.
      this.#running.timer = window.setTimeout(() => this.#drop(), PATIENCE);
    }
  }

  #drop(): void {
    this.#worker?.terminate();
    this.#worker = null;
    this.#running?.failed(new Superseded());
    this.#running = null;
    this.#next();
  }

  #next(): void {
    const [first] = this.#waiting;
    if (!first) return;
    const [name, waiting] = first;
    this.#waiting.delete(name);
    const id = ++this.#id;
    this.#running = { ...waiting, id, name, timer: 0 };
    const worker = (this.#worker ??= this.#begin());
    // The worker starts while the module is unpacked.
    this.#module.then(
      () => worker.postMessage({ id, question: waiting.ask }),
      (error) => this.#receive({ id, failed: String(error) }),
    );
  }

  #begin(): Worker {
    const worker = newWorker();
    worker.onmessage = ({ data }) => this.#receive(data);
    worker.onerror = (event) => this.#receive({ id: this.#id, failed: event.message });
    void this.#module.then((module) => worker.postMessage({ module }), () => {});
    return worker;
  }

  #receive(data: { id: number; answer?: ArrayBuffer; failed?: string; took?: number; bytes?: number }): void {
    const running = this.#running;
    if (!running || running.id !== data.id) return;
    clearTimeout(running.timer);
    this.#running = null;
    this.bytes = data.bytes ?? this.bytes;
    try {
      if (!data.answer) throw fault(data.failed ?? 'no answer');
      running.done({ ...open(data.answer), took: data.took ?? 0 });
    } catch (error) {
      running.failed(error as Error);
    }
    this.#next();
  }

  /** Stops the running question and drops the waiting ones. */
  end(): void {
    this.#worker?.terminate();
    this.#worker = null;
    this.#running = null;
    this.#waiting.clear();
  }
}

function fault(reason: string): Refused {
  return new Refused({
    message: `The simulator stopped: ${reason}`,
    help: 'The page still works. The scenario may need more memory than a page has: make it smaller, or use `lasthop run`.',
  });
}

/** Sends questions to workers, or to the program that serves the page. */
export class Engine {
  readonly #lanes = new Map<string, Lane>();
  readonly #module: Promise<WebAssembly.Module>;
  /** URL at which the program answers; null if workers answer. */
  native: string | null = null;

  constructor() {
    this.#module = theModule();
  }

  /** Asks on a lane. A later question of the same name on that lane replaces this one. */
  async ask(lane: string, request: Ask, bytes?: Uint8Array): Promise<Answer & { took: number }> {
    const ask = question(request, bytes);
    if (this.native) return this.#natively(this.native, ask);
    let own = this.#lanes.get(lane);
    if (!own) this.#lanes.set(lane, (own = new Lane(this.#module)));
    return new Promise((done, failed) => own.ask(request.ask, { ask, done, failed }));
  }

  async #natively(url: string, ask: Uint8Array<ArrayBuffer>): Promise<Answer & { took: number }> {
    const began = performance.now();
    const response = await fetch(url, { method: 'POST', body: ask });
    if (!response.ok) throw fault(`${response.status} ${response.statusText}`);
    return { ...open(await response.arrayBuffer()), took: performance.now() - began };
  }

  /** Ends all lanes whose names are not in `lanes`. */
  keep(lanes: Set<string>): void {
    for (const [name, lane] of this.#lanes) {
      if (lanes.has(name)) continue;
      lane.end();
      this.#lanes.delete(name);
    }
  }

  /** Memory of all modules, in bytes. */
  get bytes(): number {
    return [...this.#lanes.values()].reduce((all, lane) => all + lane.bytes, 0);
  }
}
