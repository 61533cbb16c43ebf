// The laboratory: a scenario with its sliders, schemes in columns on one channel, and one time for all of them.

import { Engine, Superseded } from '../engine/engine.ts';
import { Refused, type Trouble } from '../engine/envelope.ts';
import { type Shown, read, written } from './address.ts';
import { type Checked, type Choices, type Known, NOTHING } from './answers.ts';
import { Captured } from './captured.ts';
import { Column } from './column.ts';
import { Delays } from './delays.ts';
import { Medium } from './medium.ts';
import { Editor } from './editor.ts';
import { type Numbers, preset, reached } from './lesson.ts';
import { type Lesson, lessons } from './lessons.ts';
import { Player, SPEEDS } from './player.ts';
import { Progress } from './progress.ts';
import type { Recording } from './recording.ts';
import { Together } from './together.ts';

/** Maximum number of columns. */
export const MOST_COLUMNS = 4;

/** Part of a plot's time that is in view while a lesson is watched, in seconds of the clock. */
const IN_VIEW = 20;

/** The steps of a lesson: the question, the runs in motion with numbers so far, then results and explanation. */
export type Phase = 'question' | 'watch' | 'result';

/** How long after a run the state of hosts is requested, in milliseconds: the next move of a slider has precedence. */
const SETTLED = 120;

/** How long a slider must rest before its run begins, if it moved before in this time, in milliseconds. */
const REST = 16;

/** The page. */
export class Lab extends Player {
  readonly engine = new Engine();
  readonly root: HTMLElement;
  readonly lessons: Lesson[] = lessons();
  known: Known = NOTHING;
  checked: Checked | null = null;
  choices: Choices = { schemes: [], own: [] };
  trouble: Trouble | null = null;
  /** Milliseconds from the slider's move to the pictures of the last run. */
  took = 0;
  /** Runs since the page was opened. */
  runs = 0;
  readonly editor = new Editor('Scenario in TOML');
  readonly captured = new Captured(this.engine, () => this.update());
  readonly together = new Together();
  readonly delays = new Delays();
  readonly medium = new Medium();
  readonly progress = new Progress();
  /** The state of the page, as the address holds it. */
  shown: Shown = { name: 'quickstart', set: {}, schemes: [], runs: 1 };
  /** The current lesson, and the index of the predicted choice. */
  lesson: Lesson | null = null;
  predicted: number | null = null;
  /** The index of the selected choice, before it becomes the prediction. */
  chosen: number | null = null;
  /** The runs of the lesson as it opens, by scheme: its claims are about them. */
  ownRuns = new Map<string, Recording>();
  phase: Phase = 'result';
  /** Lesson and scenario of the last address that was written or read. */
  #entry: string | null = null;
  #hash = '';
  #timer = 0;
  /** Whether all numbers have a slider, not only the most important ones. */
  all = false;
  #lane = 0;
  #turn = 0;
  /** When a slider last moved, in milliseconds. */
  #turned = -Infinity;
  /** The text to which `choices` belong. */
  #chosenFor: string | null = null;
  #ready: () => void = () => {};
  /** Resolves when the first run is shown. */
  readonly ready = new Promise<void>((done) => (this.#ready = done));
  /** The user's files, if the program serves the page. */
  files: { name: string; text: string }[] = [];
  readonly #render: (lab: Lab) => void;

  /** Fills `root`; `render` draws the page, except for its plots. */
  constructor(root: HTMLElement, render: (lab: Lab) => void) {
    super();
    this.root = root;
    this.#render = render;
    this.editor.onchange = (text) => {
      this.shown.text = text;
      this.shown.set = {};
      this.rerun(250);
    };
    this.cursor.subscribe(() => {
      // A pointer that leaves a plot leaves the cursor at the player's time.
      if (this.cursor.time === null && this.time > 0) this.cursor.time = this.time;
      this.moved();
    });
    addEventListener('hashchange', () => void this.#arrive());
    addEventListener('resize', () => this.#fit());
    addEventListener('dragover', (event) => event.preventDefault());
    addEventListener('drop', (event) => {
      event.preventDefault();
      const file = event.dataTransfer?.files[0];
      if (file) void this.#dropped(file);
    });
  }

  /** Loads scenarios and schemes, reads the address, and runs. */
  async begin(): Promise<void> {
    this.update();
    await this.#askProgram();
    const { json } = await this.engine.ask('check', { ask: 'known' });
    this.known = json as unknown as Known;
    this.editor.schema = this.known.schema;
    await this.#arrive();
  }

  /** Loads the user's files from the program, if a program serves the page. */
  async #askProgram(): Promise<void> {
    if (!document.querySelector('meta[name="lasthop-served"]')) return;
    try {
      this.engine.native = 'ask';
      const response = await fetch('scenarios.json');
      this.files = await response.json();
    } catch {
      this.message = 'The program that serves this page does not answer: check that `lasthop lab` is still running.';
    }
  }

  /** Shows the state of the address; the first scenario if it holds none. */
  async #arrive(): Promise<void> {
    const { hash } = location;
    const it = await read(hash);
    // A later step through the history calls this method again.
    if (location.hash !== hash) return;
    this.#hash = hash;
    // The text of a lesson, or of a file of the program's directory, is not in the address.
    const lesson = it?.text === undefined ? this.lessons.find((lesson) => lesson.id === it?.lesson) : undefined;
    const text = it && (it.text ?? lesson?.text ?? this.#textOf(it.name));
    if (!it || text === '') {
      const wrong = location.hash.length > 1;
      if (!wrong || this.columns.length === 0) void this.choose('quickstart');
      if (it) this.message = `This link names the scenario "${it.name}", which is not built in and not in the directory.`;
      else this.message = wrong ? 'This link is damaged: no scenario can be read from it. Copy the whole link, or ask its sender for it again.' : '';
      this.update();
      return;
    }
    const unknown = it.text === undefined && it.lesson !== undefined && !lesson;
    this.message = unknown ? `This link names the lesson "${it.lesson}", which this version does not have.` : '';
    this.#take(lesson ?? null);
    const own = lesson?.text ?? this.files.find((file) => file.name === it.name)?.text;
    this.shown = it.text === undefined && own !== undefined ? { ...it, text: own } : it;
    this.#entry = this.#place;
    this.editor.text = text!;
    this.time = it.at ?? 0;
    await this.rerun(0);
    if (it.view) this.cursor.range = it.view;
    if (this.time > 0) this.go(this.time);
    else if (!this.lesson) this.start();
  }

  /** Whether the controls are at the left, where nothing needs to be folded. */
  readonly wide = innerWidth >= 1000;

  /** Makes `lesson` the current one, with nothing predicted. */
  #take(lesson: Lesson | null): void {
    [this.lesson, this.predicted, this.chosen, this.phase] = [lesson, null, null, lesson ? 'question' : 'result'];
    this.ownRuns.clear();
    this.pause();
  }

  #textOf(name: string): string {
    const own = this.files.find((file) => file.name === name);
    return own?.text ?? this.known.scenarios.find((it) => it.name === name)?.text ?? '';
  }

  /** Chooses a scenario by its name. */
  async choose(name: string): Promise<void> {
    this.#take(null);
    this.message = '';
    this.shown = { name, set: {}, schemes: [], runs: 1 };
    if (this.files.some((file) => file.name === name)) this.shown.text = this.#textOf(name);
    this.editor.text = this.#textOf(name);
    this.time = 0;
    await this.rerun(0);
    this.start();
  }

  /** Starts a lesson. */
  learn(id: string): Promise<void> {
    const lesson = this.lessons.find((lesson) => lesson.id === id);
    if (!lesson) return Promise.resolve();
    this.#take(lesson);
    this.message = '';
    this.root.querySelector('.panel')?.scrollTo(0, 0);
    scrollTo(0, 0);
    const set = preset(lesson);
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

  /** Selects a choice of the question; the prediction is made by `predict`. */
  consider(choice: number): void {
    this.chosen = choice;
    this.update();
  }

  /** Makes the selected choice the prediction, and starts the runs. */
  predict(): void {
    if (this.chosen === null) return;
    this.predicted = this.chosen;
    if (this.lesson) this.progress.note(this.lesson.id, { predicted: this.predicted });
    this.watch();
  }

  /** Starts the runs of the lesson; numbers are those so far. */
  watch(): void {
    const { start, speed } = this.lesson!;
    this.phase = 'watch';
    this.speed = SPEEDS.indexOf(speed);
    this.update();
    this.#fit();
    const [, end] = this.cursor.whole;
    this.go(start);
    this.cursor.range = [this.time, Math.min(this.time + IN_VIEW * speed, end)];
    this.start();
    this.#focus('[data-result]');
  }

  /** Shows the results of the lesson, and compares them with the prediction. */
  conclude(): void {
    this.pause();
    this.phase = 'result';
    this.cursor.range = this.cursor.whole;
    this.update();
    this.#fit();
    this.#focus('.answer, [data-next]');
  }

  /** Moves the focus, and the page if that part is out of sight: the button that was pressed is gone. */
  #focus(selector: string): void {
    this.root.querySelector<HTMLElement>(selector)?.focus();
  }

  get hidden(): boolean {
    return this.phase === 'question';
  }

  /** Settings of sliders that differ from those of the lesson. */
  get changes(): Record<string, string> {
    const own = this.lesson ? preset(this.lesson) : {};
    return Object.fromEntries(Object.entries(this.shown.set).filter(([key, value]) => own[key] !== value));
  }

  /** Whether the page shows the lesson's own scenario, unchanged. */
  get #isOwn(): boolean {
    return Object.keys(this.changes).length === 0 && (this.shown.text ?? '') === (this.lesson?.text ?? '');
  }

  /** The numbers of the runs on the page. */
  get numbers(): Numbers {
    return (scheme, name) => this.columns.find((c) => c.scheme === scheme)?.run?.scalar(name);
  }

  /** Whether the runs on the page reach the task of the lesson. */
  get taskReached(): boolean {
    const { task, text } = this.lesson ?? {};
    const schemes = this.columns.map((column) => column.scheme);
    return task != null && reached(task, schemes, this.numbers, this.changes, this.shown.text !== text);
  }

  /** Resets all sliders. */
  unset(): void {
    this.shown.set = this.lesson ? preset(this.lesson) : {};
    void this.rerun(0);
  }

  /** Runs with the seed of a field; if it is invalid, shows why and restores the field. */
  seed(field: HTMLInputElement): void {
    const seed = field.value.trim() === '' ? NaN : Number(field.value);
    if (Number.isSafeInteger(seed) && seed >= 0) {
      this.shown.seed = seed;
      this.message = '';
      void this.rerun(0);
      return;
    }
    const written = field.value.trim() === '' ? 'That' : field.value.trim();
    field.value = String(this.shown.seed ?? this.checked?.first_seed ?? 1);
    this.message = `${written} is no seed: a seed is a whole number from 0 to ${Number.MAX_SAFE_INTEGER}. Seed ${field.value} stays.`;
    this.update();
  }

  /** Moves a slider. A single move runs at once; of several moves in quick succession the last one counts. */
  turn(key: string, value: string): Promise<void> {
    this.shown.set[key] = value;
    const before = this.#turned;
    this.#turned = performance.now();
    return this.rerun(this.#turned - before < REST ? REST : 0);
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

  /** Removes column `i`. */
  remove(i: number): void {
    this.shown.schemes = this.columns.map((column) => column.scheme).filter((_, j) => j !== i);
    void this.rerun(0);
  }

  /** The part that all questions about the current scenario have in common. */
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
      // Only numbers changed, so the schemes remain: run the columns while the text is checked.
      const known = this.#chosenFor === text && this.columns.length > 0;
      const checking = this.engine.ask('check', { ask: 'check', ...scene });
      const choosing = known ? null : this.engine.ask('check', { ask: 'choices', ...scene });
      choosing?.catch(() => {});
      let running: Promise<boolean[]> | null = null;
      if (known) {
        this.#arrange();
        running = this.#runs(scene);
      }
      this.checked = (await checking).json as unknown as Checked;
      if (turn !== this.#turn) return;
      if (choosing) {
        this.choices = (await choosing).json as unknown as Choices;
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
      // The error is shown once, not in each column.
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
    Column.compare(this.columns);
    this.moved();
    if (this.lesson && this.#isOwn) {
      for (const { scheme, run } of this.columns) if (run && !this.ownRuns.has(scheme)) this.ownRuns.set(scheme, run);
    }
    const first = this.columns.find((column) => column.run)?.run;
    if (this.hidden && first) {
      this.preview.set(first);
      this.roll();
    }
    this.delays.show(this.columns, this.cursor, this.lesson?.plot === 'delays');
    this.medium.show(this.columns, this.cursor, this.lesson?.plot === 'medium');
    if (this.predicted !== null && this.taskReached) this.progress.note(this.lesson!.id, { reached: true });
    this.update();
    this.#fit();
    await new Promise(requestAnimationFrame);
    this.took = performance.now() - began;
    this.update();
    this.#ready();
    void this.#write();
    window.setTimeout(() => {
      if (turn === this.#turn) for (const column of this.columns) void column.look(this.time);
    }, SETTLED);
    await this.together.show(this.engine, this.columns, scene, this.shown.runs, this.cursor, () => turn === this.#turn);
    if (turn === this.#turn) this.update();
  }

  #runs(scene: Record<string, unknown>): Promise<boolean[]> {
    return Promise.all(this.columns.map((column) => column.go(scene, this.cursor)));
  }

  /** Arranges one column for each scheme to show. */
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
      if (found) return found;
      const column = new Column(this.engine, `run${++this.#lane}`, scheme, () => this.update());
      column.onseek = (time) => this.seek(time);
      return column;
    });
    for (const column of before) if (!this.columns.includes(column)) column.destroy();
    this.engine.keep(new Set(['check', 'capture', ...this.columns.map((column) => column.lane)]));
    this.shown.schemes = wanted;
  }

  async #dropped(file: File): Promise<void> {
    const name = file.name.toLowerCase();
    if (name.endsWith('.toml')) {
      this.#take(null);
      this.shown = { name: file.name, text: await file.text(), set: {}, schemes: [], runs: 1 };
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
    const place = this.#place;
    const hash = `#${await written(it)}`;
    // After a step through the history, or with another scenario, this state is no longer shown.
    if (place !== this.#place || location.hash !== this.#hash) return;
    // Back leads to the previous scenario or lesson, not to each position of a slider.
    if (this.#entry === null || this.#entry === place) history.replaceState(null, '', hash);
    else history.pushState(null, '', hash);
    [this.#entry, this.#hash] = [place, hash];
  }

  /** Lesson and scenario; a change of them adds an entry to the history. */
  get #place(): string {
    return `${this.lesson?.id ?? ''} ${this.shown.name}`;
  }

  /** Copies the address of the page's state to the clipboard. */
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

  // ---- the page

  #fit(): void {
    // Columns share their rows, so all have the room of the first one.
    const room = this.columns[0]?.room();
    if (room) this.columns.forEach((column) => column.fit(room));
  }

  /** Renders the page, except for its plots. */
  update(): void {
    this.#render(this);
  }
}
