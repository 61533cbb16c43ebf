// Progress in the lessons: predictions and reached goals. Stored only in the browser.

/** The stored progress of a lesson. */
export interface Step {
  /** Index of the choice that was predicted. */
  predicted?: number;
  /** Whether the goal of "try yourself" was reached. */
  reached?: boolean;
}

const KEY = 'lasthop-lessons';

/** Progress by the lesson's id. If the browser refuses storage, it is lost with the page. */
export class Progress {
  #steps = new Map<string, Step>();

  constructor() {
    try {
      const stored: unknown = JSON.parse(localStorage.getItem(KEY) ?? '{}');
      for (const [id, step] of Object.entries(stored as object)) this.#steps.set(id, sound(step));
    } catch {
      this.#steps.clear();
    }
  }

  of(id: string): Step {
    return this.#steps.get(id) ?? {};
  }

  note(id: string, step: Step): void {
    this.#steps.set(id, { ...this.of(id), ...step });
    try {
      localStorage.setItem(KEY, JSON.stringify(Object.fromEntries(this.#steps)));
    } catch {
      // Storage may be off or full; the page works without it.
    }
  }
}

/** Drops invalid parts: every page of the same origin can write to the storage. */
function sound(it: unknown): Step {
  if (typeof it !== 'object' || it === null) return {};
  const { predicted, reached } = it as Record<string, unknown>;
  return {
    ...(Number.isSafeInteger(predicted) ? { predicted: predicted as number } : {}),
    ...(reached === true ? { reached } : {}),
  };
}
