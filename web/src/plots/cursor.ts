// One time cursor and one range of time for all plots of a page.

/** What all plots of a page have in common: where the cursor stands, and which part of the time is shown. */
export class TimeCursor {
  #time: number | null = null;
  #range: [number, number];
  #whole: [number, number];
  /** Nobody has said yet how long the time is. */
  #fresh: boolean;
  readonly #heard = new Set<() => void>();

  /** `range` is the whole time, in seconds. */
  constructor(range?: [number, number]) {
    this.#fresh = range === undefined;
    this.#range = range ? [...range] : [0, 1];
    this.#whole = [...this.#range];
  }

  /** Where the cursor stands, in seconds; null if it is nowhere. */
  get time(): number | null {
    return this.#time;
  }

  set time(time: number | null) {
    if (time !== this.#time) {
      this.#time = time;
      this.#tell();
    }
  }

  /** What of the time is shown. */
  get range(): [number, number] {
    return [...this.#range];
  }

  set range([from, to]: [number, number]) {
    if (Number.isFinite(from) && to > from && (from !== this.#range[0] || to !== this.#range[1])) {
      this.#range = [from, to];
      this.#tell();
    }
  }

  /** The whole time; what is shown stays inside. */
  get whole(): [number, number] {
    return [...this.#whole];
  }

  set whole([from, to]: [number, number]) {
    const wasWhole = this.#range[0] === this.#whole[0] && this.#range[1] === this.#whole[1];
    this.#whole = [from, to > from ? to : from + 1];
    const inside = this.#range[0] >= from && this.#range[1] <= to;
    this.#range = wasWhole || !inside ? [...this.#whole] : this.#range;
    this.#tell();
  }

  /** Data ends here: the whole time is what all of them need. */
  reach(end: number): void {
    if (!(end > 0)) return;
    this.whole = [this.#whole[0], this.#fresh ? end : Math.max(end, this.#whole[1])];
    this.#fresh = false;
  }

  /** `fn` is called after each change; the answer ends that. */
  subscribe(fn: () => void): () => void {
    this.#heard.add(fn);
    return () => this.#heard.delete(fn);
  }

  #tell(): void {
    for (const fn of this.#heard) fn();
  }
}
