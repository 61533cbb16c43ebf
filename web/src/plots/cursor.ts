// One time cursor and one range of time for all plots of a page.

/** The time of the cursor, and the range of time that is shown. All plots of a page share it. */
export class TimeCursor {
  #time: number | null = null;
  #range: [number, number];
  #whole: [number, number];
  /** Whether the whole time is not known yet. */
  #fresh: boolean;
  readonly #subscribers = new Set<() => void>();

  /** `range` is the whole time, in seconds. */
  constructor(range?: [number, number]) {
    this.#fresh = range === undefined;
    this.#range = range ? [...range] : [0, 1];
    this.#whole = [...this.#range];
  }

  /** The time of the cursor, in seconds; null without a cursor. */
  get time(): number | null {
    return this.#time;
  }

  set time(time: number | null) {
    if (time !== this.#time) {
      this.#time = time;
      this.#notify();
    }
  }

  /** The range of time that is shown, in seconds. */
  get range(): [number, number] {
    return [...this.#range];
  }

  set range([from, to]: [number, number]) {
    if (Number.isFinite(from) && to > from && (from !== this.#range[0] || to !== this.#range[1])) {
      this.#range = [from, to];
      this.#notify();
    }
  }

  /** The whole time, in seconds; the range stays within it. */
  get whole(): [number, number] {
    return [...this.#whole];
  }

  set whole([from, to]: [number, number]) {
    const wasWhole = this.#range[0] === this.#whole[0] && this.#range[1] === this.#whole[1];
    this.#whole = [from, to > from ? to : from + 1];
    const inside = this.#range[0] >= from && this.#range[1] <= to;
    this.#range = wasWhole || !inside ? [...this.#whole] : this.#range;
    this.#notify();
  }

  /** Extends the whole time to `end`, where the data of one plot ends. */
  reach(end: number): void {
    if (!(end > 0)) return;
    this.whole = [this.#whole[0], this.#fresh ? end : Math.max(end, this.#whole[1])];
    this.#fresh = false;
  }

  /** Calls `fn` after each change. Returns a function that ends the subscription. */
  subscribe(fn: () => void): () => void {
    this.#subscribers.add(fn);
    return () => this.#subscribers.delete(fn);
  }

  #notify(): void {
    for (const fn of this.#subscribers) fn();
  }
}
