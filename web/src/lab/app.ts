// The laboratory: a scenario, what can be turned at it, schemes in columns on one channel, and one time for all of them.

import { render } from 'lit';

import { Engine, Superseded } from '../engine/engine.ts';
import { Refused, type Trouble } from '../engine/envelope.ts';
import { save } from '../plots/dom.ts';
import { type CurveData, CurvePlot, TimeCursor } from '../plots/index.ts';
import { type Shown, read, written } from './address.ts';
import { Captured } from './captured.ts';
import { Column } from './column.ts';
import { Editor } from './editor.ts';
import { type Lesson, lessons } from './lessons.ts';
import { type Slider, clock, shown } from './numbers.ts';
import { MOST_COLUMNS, SPEEDS, page } from './page.ts';
import type { Goal } from './recording.ts';

/** How long a slider must rest before its run begins, in milliseconds. */
const REST = 16;

interface Known {
  version: string;
  scenarios: { name: string; summary: string; text: string }[];
  schemes: { name: string; family: string; what: string; change: string[] }[];
  schema: unknown;
}

interface Checked {
  name: string;
  first_seed: number;
  warnings: Trouble[];
  sliders: Slider[];
}

/** The schemes that apply: all, and those of the scenario's own axis. */
interface Choices {
  schemes: string[];
  own: string[];
}

const NOTHING: Known = { version: '', scenarios: [], schemes: [], schema: null };

/** The page. */
export class Lab {
  readonly engine = new Engine();
  readonly root: HTMLElement;
  readonly lessons: Lesson[] = lessons();
  readonly cursor = new TimeCursor([0, 1]);
  columns: Column[] = [];
  known: Known = NOTHING;
  checked: Checked | null = null;
  choices: Choices = { schemes: [], own: [] };
  trouble: Trouble | null = null;
  /** Milliseconds from the slider's move to the pictures of the last run. */
  took = 0;
  /** Runs made since the page was opened. */
  runs = 0;
  readonly editor = new Editor('Scenario in TOML');
  readonly captured = new Captured(this.engine, () => this.update());
  /** Where the band of several seeds is drawn, and what is said of it. */
  readonly bandPlace = document.createElement('div');
  #band: CurvePlot | null = null;
  bandWords = '';
  /** What is shown: all that the address holds. */
  shown: Shown = { name: 'quickstart', set: {}, schemes: [], runs: 1 };
  /** The lesson that was taken up, and what was predicted in it. */
  lesson: Lesson | null = null;
  predicted: number | null = null;
  /** Where the player stands, in seconds of the run, and how fast it goes. */
  time = 0;
  speed = 4;
  playing = false;
  #last = 0;
  #timer = 0;
  /** Whether all numbers have a slider, and not only the most telling ones. */
  all = false;
  #lane = 0;
  #frame = 0;
  #turn = 0;
  /** The text that the choices are of. */
  #chosenFor: string | null = null;
  #ready: () => void = () => {};
  /** The first run is shown. */
  readonly ready = new Promise<void>((done) => (this.#ready = done));
  /** Own files, where the program serves the page. */
  files: { name: string; text: string }[] = [];
  /** What was said last. */
  message = '';

  constructor(root: HTMLElement) {
    this.root = root;
    this.editor.onchange = (text) => {
      this.shown.text = text;
      this.shown.set = {};
      this.rerun(250);
    };
    this.cursor.subscribe(() => this.#moved());
    addEventListener('hashchange', () => void this.#arrive());
    addEventListener('keydown', (event) => this.#key(event));
    addEventListener('dragover', (event) => event.preventDefault());
    addEventListener('drop', (event) => {
      event.preventDefault();
      const file = event.dataTransfer?.files[0];
      if (file) void this.#dropped(file);
    });
  }

  /** Begins: asks what there is, reads the address, runs. */
  async begin(): Promise<void> {
    this.update();
    await this.#askProgram();
    const { told } = await this.engine.ask('check', { ask: 'known' });
    this.known = told as unknown as Known;
    this.editor.schema = this.known.schema;
    if (!(await this.#arrive())) this.choose('quickstart');
  }

  /** The program that serves the page, if it is one. */
  async #askProgram(): Promise<void> {
    if (!document.querySelector('meta[name="lasthop-served"]')) return;
    try {
      this.engine.native = 'ask';
      const response = await fetch('scenarios.json');
      this.files = await response.json();
    } catch {
      this.message = 'The program that serves this page does not answer; is it still running?';
    }
  }

  async #arrive(): Promise<boolean> {
    const it = await read(location.hash);
    if (!it) return false;
    // A lesson's own text is not in the address.
    const lesson = it.text === undefined ? this.lessons.find((lesson) => lesson.id === it.lesson) : undefined;
    [this.lesson, this.predicted] = [lesson ?? null, null];
    this.shown = lesson?.text ? { ...it, text: lesson.text } : it;
    this.editor.text = this.shown.text ?? this.#textOf(it.name);
    this.time = it.at ?? 0;
    await this.rerun(0);
    if (it.view) this.cursor.range = it.view;
    if (it.at !== undefined) this.go(it.at);
    return true;
  }

  #textOf(name: string): string {
    const own = this.files.find((file) => file.name === name);
    return own?.text ?? this.known.scenarios.find((it) => it.name === name)?.text ?? '';
  }

  // ---- what is chosen

  /** Chooses a scenario by its name. */
  choose(name: string): Promise<void> {
    this.lesson = null;
    this.shown = { name, set: {}, schemes: [], runs: 1 };
    if (this.files.some((file) => file.name === name)) this.shown.text = this.#textOf(name);
    this.editor.text = this.#textOf(name);
    this.time = 0;
    return this.rerun(0);
  }

  /** Takes up a lesson. */
  learn(id: string): Promise<void> {
    const lesson = this.lessons.find((lesson) => lesson.id === id);
    if (!lesson) return Promise.resolve();
    this.lesson = lesson;
    this.predicted = null;
    const set = Object.fromEntries(lesson.set.map((set) => set.split(/=(.*)/s).slice(0, 2) as [string, string]));
    this.shown = {
      name: lesson.scenario,
      ...(lesson.text ? { text: lesson.text } : {}),
      set,
      schemes: [...lesson.schemes],
      ...(lesson.seed !== undefined ? { seed: lesson.seed } : {}),
      runs: lesson.runs,
      lesson: id,
    };
    this.editor.text = lesson.text ?? this.#textOf(lesson.scenario);
    this.time = 0;
    return this.rerun(0);
  }

  /** Predicts in a lesson. */
  predict(choice: number): void {
    this.predicted = choice;
    this.update();
  }

  /** Turns a slider. */
  turn(key: string, value: string): Promise<void> {
    this.shown.set[key] = value;
    return this.rerun(REST);
  }

  /** Shows another scheme in column `i`. */
  scheme(i: number, scheme: string): void {
    this.shown.schemes = this.columns.map((column) => column.scheme);
    this.shown.schemes[i] = scheme;
    void this.rerun(0);
  }

  /** Adds a column with a scheme that is not shown yet. */
  add(): void {
    const used = this.columns.map((column) => column.scheme);
    const next = this.choices.schemes.find((name) => !used.includes(name));
    if (next) this.shown.schemes = [...used, next];
    void this.rerun(0);
  }

  /** Takes column `i` away. */
  remove(i: number): void {
    this.shown.schemes = this.columns.map((column) => column.scheme).filter((_, j) => j !== i);
    void this.rerun(0);
  }

  // ---- running

  /** What all questions about the present scenario have in common. */
  get scene(): Record<string, unknown> {
    return {
      text: this.shown.text ?? this.#textOf(this.shown.name),
      name: this.shown.name.replace(/\.toml$/, ''),
      set: Object.entries(this.shown.set).map(([key, value]) => `${key}=${value}`),
      ...(this.shown.seed !== undefined ? { seed: this.shown.seed } : {}),
    };
  }

  /** Checks and runs after a rest; of several calls the last one counts. */
  rerun(rest: number): Promise<void> {
    clearTimeout(this.#timer);
    const turn = ++this.#turn;
    const began = performance.now();
    return new Promise((done) => {
      const go = () => void this.#run(turn, began).then(done);
      if (rest === 0) go();
      else this.#timer = window.setTimeout(go, rest);
    });
  }

  async #run(turn: number, began: number): Promise<void> {
    const scene = this.scene;
    const text = String(scene.text);
    try {
      // Numbers alone change no scheme: then columns run while the text is checked.
      const known = this.#chosenFor === text && this.columns.length > 0;
      const checking = this.engine.ask('check', { ask: 'check', ...scene });
      const choosing = known ? null : this.engine.ask('check', { ask: 'choices', ...scene });
      choosing?.catch(() => {});
      let running: Promise<boolean[]> | null = null;
      if (known) {
        this.#arrange();
        running = this.#runs(scene);
      }
      this.checked = (await checking).told as unknown as Checked;
      if (turn !== this.#turn) return;
      if (choosing) {
        this.choices = (await choosing).told as unknown as Choices;
        if (turn !== this.#turn) return;
        this.#chosenFor = text;
        this.#arrange();
      }
      this.trouble = null;
      this.editor.underline([], this.checked.warnings);
      this.update();
      const all = await (running ?? this.#runs(scene));
      if (turn !== this.#turn || !all.some(Boolean)) return;
    } catch (error) {
      if (error instanceof Superseded || turn !== this.#turn) return;
      this.trouble = error instanceof Refused ? error.trouble : { message: String(error), help: '' };
      this.editor.underline([this.trouble], []);
      if (this.trouble.source === 'file') this.editor.element.closest('details')!.open = true;
      // What is wrong is said once.
      for (const column of this.columns) column.trouble = null;
      this.update();
      this.#ready();
      return;
    }
    this.runs += 1;
    // The plots share one time: that of the longest run.
    const end = Math.max(...this.columns.map((column) => column.run?.end ?? 0), 1e-6);
    this.cursor.whole = [0, end];
    this.time = Math.min(this.time, end);
    this.#moved();
    this.update();
    await new Promise(requestAnimationFrame);
    this.took = performance.now() - began;
    this.update();
    this.#ready();
    void this.#write();
    await this.#together(turn, scene);
  }

  #runs(scene: Record<string, unknown>): Promise<boolean[]> {
    return Promise.all(this.columns.map((column) => column.go(scene, this.cursor)));
  }

  /** As many columns as there are schemes to show. */
  #arrange(): void {
    const { schemes, own } = this.choices;
    let wanted = this.shown.schemes.filter((name) => schemes.includes(name));
    if (wanted.length === 0) {
      const first = own.length > 1 ? own.slice(0, 2) : ['as-is', ...schemes.filter((name) => name !== 'as-is').slice(0, 1)];
      wanted = first.includes('as-is') && schemes.includes('snoop') ? ['as-is', 'snoop'] : first;
    }
    wanted = [...new Set(wanted)].slice(0, MOST_COLUMNS);
    const before = this.columns;
    this.columns = wanted.map((scheme) => {
      const found = before.find((column) => column.scheme === scheme);
      return found ?? new Column(this.engine, `run${++this.#lane}`, scheme, () => this.update());
    });
    for (const column of before) if (!this.columns.includes(column)) column.destroy();
    this.engine.keep(new Set(['check', 'capture', ...this.columns.map((column) => column.lane)]));
    this.shown.schemes = wanted;
  }

  /** Several seeds as a band. */
  async #together(turn: number, scene: Record<string, unknown>): Promise<void> {
    const { runs } = this.shown;
    if (runs < 2) {
      this.#band?.destroy();
      this.#band = null;
      this.bandWords = '';
      return;
    }
    const curves: CurveData[] = [];
    const words: string[] = [];
    for (const column of this.columns) {
      const scheme = column.scheme === 'as-is' ? null : column.scheme;
      try {
        const { told, columns } = await this.engine.ask(column.lane, { ask: 'band', ...scene, scheme, runs });
        const part = (name: string) => columns.get(name) as Float64Array;
        const kb = (name: string) => part(name).map((bytes) => bytes / 1024);
        curves.push({ name: column.scheme, unit: 'KB', t: part('t'), y: kb('mean'), low: kb('low'), high: kb('high') });
        const rate = told.scalars.find((scalar: any) => scalar.name === 'throughput');
        if (rate) words.push(`${column.scheme}: ${shown(rate.mean, 'B/s')} (${shown(rate.low, 'B/s')} to ${shown(rate.high, 'B/s')})`);
      } catch {
        continue;
      }
      if (turn !== this.#turn) return;
    }
    this.#band ??= new CurvePlot(this.bandPlace, this.cursor, {
      title: 'Acknowledged by then, mean of all seeds and its 95 % interval',
      file: 'lasthop-seeds',
      height: 220,
    });
    this.#band.set(curves);
    this.bandWords = words.join('; ');
    this.update();
  }

  // ---- time

  /** Puts the player at a time. */
  go(time: number): void {
    const [from, to] = this.cursor.whole;
    this.time = Math.min(Math.max(time, from), to);
    this.cursor.time = this.time;
    for (const column of this.columns) void column.look(this.time);
    this.#moved();
    this.update();
  }

  #moved(): void {
    const [from, to] = this.cursor.range;
    for (const column of this.columns) column.path.show(this.time, to - from);
  }

  play(): void {
    this.playing = !this.playing;
    this.#last = performance.now();
    if (this.playing) {
      if (this.time >= this.cursor.whole[1]) this.time = this.cursor.range[0];
      this.#frame = requestAnimationFrame(() => this.#tick());
    } else cancelAnimationFrame(this.#frame);
    this.update();
  }

  #tick(): void {
    const now = performance.now();
    const passed = ((now - this.#last) / 1000) * SPEEDS[this.speed]!;
    this.#last = now;
    const end = this.cursor.whole[1];
    const time = Math.min(this.time + passed, end);
    const [from, to] = this.cursor.range;
    // What is in view follows the player.
    if (time > to && this.time <= to) this.cursor.range = [time, Math.min(time + (to - from), end)];
    this.playing = this.playing && time < end;
    this.go(time);
    if (this.playing) this.#frame = requestAnimationFrame(() => this.#tick());
  }

  /** Goes to the next event of a kind in any column. */
  jump(goal: Goal, by: 1 | -1 = 1): void {
    let best: { column: Column; event: number; t: number } | null = null;
    for (const column of this.columns) {
      const event = column.next(this.time, goal, by);
      if (event < 0) continue;
      const t = column.run!.t[event]!;
      if (!best || (by > 0 ? t < best.t : t > best.t)) best = { column, event, t };
    }
    const words = { loss: 'loss', timeout: 'time-out', local: 'local retransmission', event: 'event' }[goal];
    this.message = best ? '' : `There is no ${words} ${by > 0 ? 'after' : 'before'} ${clock(this.time)}.`;
    if (best) {
      const [from, to] = this.cursor.range;
      const half = (to - from) / 2;
      if (best.t < from || best.t > to) this.cursor.range = [best.t - half, best.t + half];
      this.go(best.t);
      // In the other columns that of the same instant, if there is one.
      for (const column of this.columns) {
        const event = column === best.column ? best.event : column.next(best.t - by * 1e-12, goal, by);
        if (event >= 0 && column.run!.t[event] === best.t) void column.pick(event);
        else column.picked = null;
      }
    }
    this.update();
  }

  #key(event: KeyboardEvent): void {
    const on = event.target as HTMLElement;
    if (event.ctrlKey || event.metaKey || event.altKey || on.closest('input, textarea, select, button, [role=application], summary')) return;
    const by = event.shiftKey ? -1 : 1;
    const keys: Record<string, () => void> = {
      ' ': () => this.play(),
      '.': () => this.jump('event'),
      ',': () => this.jump('event', -1),
      l: () => this.jump('loss', by),
      t: () => this.jump('timeout', by),
      r: () => this.jump('local', by),
    };
    const act = keys[event.key.length === 1 ? event.key.toLowerCase() : event.key];
    if (!act) return;
    event.preventDefault();
    act();
  }

  // ---- in and out

  async #dropped(file: File): Promise<void> {
    const name = file.name.toLowerCase();
    if (name.endsWith('.toml')) {
      this.shown = { name: file.name, text: await file.text(), set: {}, schemes: [], runs: 1 };
      this.lesson = null;
      this.editor.text = this.shown.text!;
      await this.rerun(0);
    } else await this.captured.analyse(file.name, new Uint8Array(await file.arrayBuffer()));
  }

  async #write(): Promise<void> {
    const [from, to] = this.cursor.range;
    const [whole, end] = this.cursor.whole;
    const { view: _, at: __, text, ...rest } = this.shown;
    const it: Shown = {
      ...rest,
      ...(text !== undefined && text !== this.lesson?.text ? { text } : {}),
      ...(from > whole || to < end ? { view: [from, to] } : {}),
      ...(this.time > 0 ? { at: this.time } : {}),
    };
    history.replaceState(null, '', `#${await written(it)}`);
  }

  /** Puts the address of what is shown on the clipboard. */
  async link(): Promise<void> {
    await this.#write();
    try {
      await navigator.clipboard.writeText(location.href);
      this.message = 'The link is copied: it holds scenario, seed and view.';
    } catch {
      this.message = 'The address of this page is the link: it holds scenario, seed and view.';
    }
    this.update();
  }

  /** Hands out what a column shows, in one of the forms. */
  async save(column: Column, form: string): Promise<void> {
    const stem = `lasthop-${this.checked?.name ?? 'run'}-${column.scheme}`;
    if (form === 'png') save((await column.png())!, `${stem}.png`);
    else if (form === 'svg') save(new Blob([column.svg], { type: 'image/svg+xml' }), `${stem}.svg`);
    else if (form === 'toml') save(new Blob([this.#changedText()], { type: 'application/toml' }), `${stem}.toml`);
    else {
      const files = await column.file(form as 'csv' | 'pcapng');
      for (const { name, bytes } of files) save(new Blob([bytes as Uint8Array<ArrayBuffer>]), name);
    }
  }

  /** The scenario, with what was turned at told above it: a command makes the same run. */
  #changedText(): string {
    const { text, set } = this.scene as { text: string; set: string[] };
    if (set.length === 0) return text;
    const words = set.map((set) => ` --set ${set}`).join('');
    return `# Made in the laboratory with${words}\n# lasthop run THIS.toml${words}\n${text}`;
  }

  // ---- the page

  /** Draws what is not drawn by plots. */
  update(): void {
    render(page(this), this.root);
  }
}
