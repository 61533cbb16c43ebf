// The lessons: a question, a prediction, then the run. Each is a file of web/lessons.

/** What a lesson claims of its run: a number of a scheme beside another one, or beside a number. */
export interface Claim {
  text: string;
  /** Whether it holds, given the numbers of each scheme. */
  holds: (number: (scheme: string, name: string) => number | undefined) => boolean;
}

export interface Lesson {
  id: string;
  title: string;
  scenario: string;
  /** A text of its own, in place of a built-in scenario. */
  text?: string;
  set: string[];
  schemes: string[];
  seed?: number;
  runs: number;
  claims: Claim[];
  /** What is told before the question. */
  before: string;
  question: string;
  choices: { text: string; right: boolean }[];
  /** What is told once somebody has predicted. */
  after: string;
}

/** Reads the file of a lesson. */
export function lesson(id: string, file: string): Lesson {
  const [, head, body] = /^---\n([\s\S]*?)\n---\n([\s\S]*)$/.exec(file) ?? [];
  if (head === undefined || body === undefined) throw new Error(`${id}: no head`);
  const fields = new Map<string, string[]>();
  for (const line of head.split('\n')) {
    const [, key, value] = /^(\w+):\s*(.*)$/.exec(line) ?? [];
    if (!key) throw new Error(`${id}: ${line}`);
    fields.set(key, [...(fields.get(key) ?? []), value!.trim()]);
  }
  const one = (key: string) => fields.get(key)?.[0];
  const [before, rest = ''] = body.split(/^## Question$/m);
  const [asked, after = ''] = rest.split(/^## What the run shows$/m);
  const own = /```toml\n([\s\S]*?)```/.exec(before!);
  const choices = [...asked!.matchAll(/^- \[([ x])\] (.*(?:\n {2,}.*)*)$/gm)];
  const seed = one('seed');
  return {
    id,
    title: one('title') ?? id,
    scenario: one('scenario') ?? id,
    ...(own ? { text: own[1]! } : {}),
    set: fields.get('set') ?? [],
    schemes: (one('schemes') ?? 'as-is').split(',').map((s) => s.trim()),
    ...(seed ? { seed: Number(seed) } : {}),
    runs: Number(one('runs') ?? 1),
    claims: (fields.get('claim') ?? []).map(claim),
    before: before!.replace(/```toml\n[\s\S]*?```\n?/, '').trim(),
    question: asked!.split(/^- \[/m)[0]!.trim(),
    choices: choices.map(([, mark, text]) => ({ text: text!.replace(/\s+/g, ' '), right: mark === 'x' })),
    after: after.trim(),
  };
}

/** `scheme.number > 0`, `a.number < 0.5 * b.number`. */
function claim(text: string): Claim {
  const form = /^([\w+-]+)\.(\w+)\s*([<>=])\s*(?:([\d.]+)\s*\*\s*)?(?:([\w+-]+)\.(\w+)|([\d.]+))$/;
  const [, scheme, name, sign, factor, other, otherName, bare] = form.exec(text) ?? [];
  if (!scheme) throw new Error(`a claim that says nothing: ${text}`);
  return {
    text,
    holds: (number) => {
      const left = number(scheme, name!);
      const right = other ? number(other, otherName!) : Number(bare);
      if (left === undefined || right === undefined) return false;
      const bound = right * Number(factor ?? 1);
      return sign === '>' ? left > bound : sign === '<' ? left < bound : left === bound;
    },
  };
}
