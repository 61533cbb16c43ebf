// The simulator as a WebAssembly module: bytes in, bytes out, without imports.

interface Exports {
  memory: WebAssembly.Memory;
  lasthop_room(len: number): number;
  lasthop_answer(): number;
  lasthop_answered(): number;
}

/** An instance of the module. */
export class Module {
  readonly #module: WebAssembly.Module;
  #exports: Exports;

  constructor(module: WebAssembly.Module) {
    this.#module = module;
    this.#exports = this.#begin();
  }

  #begin(): Exports {
    return new WebAssembly.Instance(this.#module, {}).exports as unknown as Exports;
  }

  /** Answers a question. After a trap the next question gets a new instance. */
  answer(question: Uint8Array): ArrayBuffer {
    try {
      const at = this.#exports.lasthop_room(question.length);
      new Uint8Array(this.#exports.memory.buffer, at, question.length).set(question);
      const len = this.#exports.lasthop_answer();
      const from = this.#exports.lasthop_answered();
      return this.#exports.memory.buffer.slice(from, from + len) as ArrayBuffer;
    } catch (error) {
      this.#exports = this.#begin();
      throw error;
    }
  }

  /** Memory of the instance, in bytes. */
  get bytes(): number {
    return this.#exports.memory.buffer.byteLength;
  }
}
