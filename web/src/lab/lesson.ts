// The lessons: a question, a prediction, then the run. Each is a file of web/lessons.

/** A result of a scheme's run. */
export interface Result {
  scheme: string;
  name: string;
}

/** A claim of a lesson about its runs: compares a result of a scheme with another result, or with a constant. */
export interface Claim {
  text: string;
  left: Result;
  sign: '<' | '=' | '>';
  /** The bound is this factor times `right`, or the factor alone. */
  factor: number;
  right: Result | null;
  /** Whether it holds for these results. */
  holds: (number: Numbers) => boolean;
  /** The left result, and the bound to which the claim compares it. */
  sides: (number: Numbers) => [number | undefined, number | undefined];
}

/** Returns a result of a scheme's run by its name. */
export type Numbers = (scheme: string, name: string) => number | undefined;

/** A task to solve with sliders and schemes after the explanation. */
export interface Task {
  text: string;
  /** All of them must hold in one column; `any` is the scheme of that column. */
  goals: Claim[];
  /** Keys, or their last parts, that must keep the lesson's values. */
  fixed: string[];
  /** Whether the text of the scenario may be edited, since the key of the solution has no slider. */
  edit: boolean;
  /** One solution: `KEY=VALUE` or `scheme=NAME`. Tests use it; the page does not show it. */
  solution: string[];
}

export interface Lesson {
  id: string;
  title: string;
  scenario: string;
  /** The lesson's own scenario, instead of a built-in one. */
  text?: string;
  set: string[];
  schemes: string[];
  seed?: number;
  runs: number;
  claims: Claim[];
  /** What to watch in the runs, in one sentence. */
  watch: string;
  /** Time at which the runs start, in seconds, and their speed, one of `SPEEDS`. */
  start: number;
  speed: number;
  /** The plot below the columns: round-trip times, or frames on the medium. */
  plot: 'delays' | 'medium' | null;
  /** The text before the question. */
  before: string;
  question: string;
  choices: { text: string; right: boolean }[];
  /** The explanation after the prediction. */
  after: string;
  task?: Task;
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
  const [question, explanation = ''] = rest.split(/^## What the run shows$/m);
  const [after, task] = explanation.split(/^## Try yourself$/m) as [string, string?];
  const own = /```toml\n([\s\S]*?)```/.exec(before!);
  const choices = [...question!.matchAll(/^- \[([ x])\] (.*(?:\n {2,}.*)*)$/gm)];
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
    watch: one('watch') ?? '',
    start: Number(one('start') ?? 0),
    speed: Number(one('speed') ?? 0.1),
    plot: (['delays', 'medium'] as const).find((plot) => plot === one('plot')) ?? null,
    before: before!.replace(/```toml\n[\s\S]*?```\n?/, '').trim(),
    question: question!.split(/^- \[/m)[0]!.trim(),
    choices: choices.map(([, mark, text]) => ({ text: text!.replace(/\s+/g, ' '), right: mark === 'x' })),
    after: after.trim(),
    ...(task
      ? {
          task: {
            text: task.trim(),
            goals: (fields.get('goal') ?? []).map(claim),
            fixed: fields.get('fixed') ?? [],
            edit: one('edit') === 'text',
            solution: fields.get('solution') ?? [],
          },
        }
      : {}),
  };
}

/** Whether a column reaches the goals of a task. `set` has the changed settings; `changed` is true for a changed text. */
export function reached(task: Task, columns: readonly string[], number: Numbers, set: Record<string, string>, changed: boolean): boolean {
  const allowed = (task.edit || !changed) && !task.fixed.some((fixed) => Object.keys(set).some((key) => key === fixed || key.endsWith(`.${fixed}`)));
  const reaches = (column: string) => task.goals.every((goal) => goal.holds((scheme, name) => number(scheme === 'any' ? column : scheme, name)));
  return allowed && task.goals.length > 0 && columns.some(reaches);
}

/** Parses a claim such as `scheme.number > 0` or `a.number < 0.5 * b.number`. */
function claim(text: string): Claim {
  const form = /^([\w+-]+)\.(\w+)\s*([<>=])\s*(?:([\d.]+)\s*\*\s*)?(?:(\d+(?:\.\d+)?)|([\w+-]+)\.(\w+))$/;
  const [, scheme, name, sign, factor, bare, other, otherName] = form.exec(text) ?? [];
  if (!scheme) throw new Error(`claim "${text}": write \`SCHEME.NUMBER > BOUND\`, with one of < = >`);
  const sides = (number: Numbers): [number | undefined, number | undefined] => {
    const right = other ? number(other, otherName!) : Number(bare);
    return [number(scheme, name!), right === undefined ? undefined : right * Number(factor ?? 1)];
  };
  return {
    text,
    left: { scheme, name: name! },
    sign: sign as Claim['sign'],
    factor: Number(bare ?? factor ?? 1),
    right: other ? { scheme: other, name: otherName! } : null,
    sides,
    holds: (number) => {
      const [left, bound] = sides(number);
      if (left === undefined || bound === undefined) return false;
      return sign === '>' ? left > bound : sign === '<' ? left < bound : left === bound;
    },
  };
}

/** The lesson's own settings, before any slider is moved. */
export function preset(lesson: Lesson): Record<string, string> {
  return Object.fromEntries(lesson.set.map((set) => set.split(/=(.*)/s).slice(0, 2) as [string, string]));
}
