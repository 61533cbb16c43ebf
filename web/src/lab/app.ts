// The laboratory: a scenario, what can be turned at it, schemes in columns on one channel, and one time for all of them.

import { html, nothing, render, type TemplateResult } from 'lit';

import { Engine, Superseded } from '../engine/engine.ts';
import { Refused, type Trouble } from '../engine/envelope.ts';
import { type CurveData, CurvePlot, TimeCursor } from '../plots/index.ts';
import { type Shown, read, written } from './address.ts';
import { Captured } from './captured.ts';
import { Column } from './column.ts';
import { Editor } from './editor.ts';
import { type Lesson, lessons } from './lessons.ts';
import { inline, markdown } from './markdown.ts';
import { STEPS, type Slider, clock, placed, shown, valueAt, written as quantity } from './numbers.ts';
import type { Goal } from './recording.ts';

/** How long a slider must rest before its run begins, in milliseconds. */
const REST = 16;
/** Seconds of the run in a second of the clock. */
const SPEEDS = [0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1, 3];
const MOST_COLUMNS = 4;

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
  readonly #editor = new Editor('Scenario in TOML');
  readonly #captured = new Captured(this.engine, () => this.update());
  readonly #bandPlace = document.createElement('div');
  #band: CurvePlot | null = null;
  #bandWords = '';
  #shown: Shown = { name: 'quickstart', set: {}, schemes: [], runs: 1 };
  #lesson: Lesson | null = null;
  #predicted: number | null = null;
  #time = 0;
  #speed = 4;
  #playing = false;
  #last = 0;
  #timer = 0;
  #all = false;
  #lane = 0;
  #frame = 0;
  #turn = 0;
  /** The text that the choices are of. */
  #chosenFor: string | null = null;
  #ready: () => void = () => {};
  /** The first run is shown. */
  readonly ready = new Promise<void>((done) => (this.#ready = done));
  /** Own files, where the program serves the page. */
  #files: { name: string; text: string }[] = [];
  #message = '';

  constructor(root: HTMLElement) {
    this.root = root;
    this.#editor.onchange = (text) => {
      this.#shown.text = text;
      this.#shown.set = {};
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
    this.#editor.schema = this.known.schema;
    if (!(await this.#arrive())) this.choose('quickstart');
  }

  /** The program that serves the page, if it is one. */
  async #askProgram(): Promise<void> {
    if (!document.querySelector('meta[name="lasthop-served"]')) return;
    try {
      this.engine.native = 'ask';
      const response = await fetch('scenarios.json');
      this.#files = await response.json();
    } catch {
      this.#message = 'The program that serves this page does not answer; is it still running?';
    }
  }

  async #arrive(): Promise<boolean> {
    const it = await read(location.hash);
    if (!it) return false;
    // A lesson's own text is not in the address.
    const lesson = it.text === undefined ? this.lessons.find((lesson) => lesson.id === it.lesson) : undefined;
    [this.#lesson, this.#predicted] = [lesson ?? null, null];
    this.#shown = lesson?.text ? { ...it, text: lesson.text } : it;
    this.#editor.text = this.#shown.text ?? this.#textOf(it.name);
    this.#time = it.at ?? 0;
    await this.rerun(0);
    if (it.view) this.cursor.range = it.view;
    if (it.at !== undefined) this.go(it.at);
    return true;
  }

  #textOf(name: string): string {
    const own = this.#files.find((file) => file.name === name);
    return own?.text ?? this.known.scenarios.find((it) => it.name === name)?.text ?? '';
  }

  // ---- what is chosen

  /** Chooses a scenario by its name. */
  choose(name: string): Promise<void> {
    this.#lesson = null;
    this.#shown = { name, set: {}, schemes: [], runs: 1 };
    if (this.#files.some((file) => file.name === name)) this.#shown.text = this.#textOf(name);
    this.#editor.text = this.#textOf(name);
    this.#time = 0;
    return this.rerun(0);
  }

  /** Takes up a lesson. */
  learn(id: string): Promise<void> {
    const lesson = this.lessons.find((lesson) => lesson.id === id);
    if (!lesson) return Promise.resolve();
    this.#lesson = lesson;
    this.#predicted = null;
    const set = Object.fromEntries(lesson.set.map((set) => set.split(/=(.*)/s).slice(0, 2) as [string, string]));
    this.#shown = {
      name: lesson.scenario,
      ...(lesson.text ? { text: lesson.text } : {}),
      set,
      schemes: [...lesson.schemes],
      ...(lesson.seed !== undefined ? { seed: lesson.seed } : {}),
      runs: lesson.runs,
      lesson: id,
    };
    this.#editor.text = lesson.text ?? this.#textOf(lesson.scenario);
    this.#time = 0;
    return this.rerun(0);
  }

  /** Predicts in a lesson. */
  predict(choice: number): void {
    this.#predicted = choice;
    this.update();
  }

  /** Turns a slider. */
  turn(key: string, value: string): Promise<void> {
    this.#shown.set[key] = value;
    return this.rerun(REST);
  }

  #scheme(i: number, scheme: string): void {
    this.#shown.schemes = this.columns.map((column) => column.scheme);
    this.#shown.schemes[i] = scheme;
    void this.rerun(0);
  }

  #add(): void {
    const used = this.columns.map((column) => column.scheme);
    const next = this.choices.schemes.find((name) => !used.includes(name));
    if (next) this.#shown.schemes = [...used, next];
    void this.rerun(0);
  }

  #remove(i: number): void {
    this.#shown.schemes = this.columns.map((column) => column.scheme).filter((_, j) => j !== i);
    void this.rerun(0);
  }

  // ---- running

  /** What all questions about the present scenario have in common. */
  get scene(): Record<string, unknown> {
    return {
      text: this.#shown.text ?? this.#textOf(this.#shown.name),
      name: this.#shown.name.replace(/\.toml$/, ''),
      set: Object.entries(this.#shown.set).map(([key, value]) => `${key}=${value}`),
      ...(this.#shown.seed !== undefined ? { seed: this.#shown.seed } : {}),
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
      this.#editor.underline([], this.checked.warnings);
      this.update();
      const all = await (running ?? this.#runs(scene));
      if (turn !== this.#turn || !all.some(Boolean)) return;
    } catch (error) {
      if (error instanceof Superseded || turn !== this.#turn) return;
      this.trouble = error instanceof Refused ? error.trouble : { message: String(error), help: '' };
      this.#editor.underline([this.trouble], []);
      if (this.trouble.source === 'file') this.#editor.element.closest('details')!.open = true;
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
    this.#time = Math.min(this.#time, end);
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
    let wanted = this.#shown.schemes.filter((name) => schemes.includes(name));
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
    this.#shown.schemes = wanted;
  }

  /** Several seeds as a band. */
  async #together(turn: number, scene: Record<string, unknown>): Promise<void> {
    const { runs } = this.#shown;
    if (runs < 2) {
      this.#band?.destroy();
      this.#band = null;
      this.#bandWords = '';
      return;
    }
    const curves: CurveData[] = [];
    const words: string[] = [];
    for (const column of this.columns) {
      const scheme = column.scheme === 'as-is' ? null : column.scheme;
      try {
        const { told, columns } = await this.engine.ask(column.lane, { ask: 'band', ...scene, scheme, runs });
        const part = (name: string) => columns.get(name) as Float64Array;
        curves.push({ name: column.scheme, unit: 'B', t: part('t'), y: part('mean'), low: part('low'), high: part('high') });
        const rate = told.scalars.find((scalar: any) => scalar.name === 'throughput');
        if (rate) words.push(`${column.scheme}: ${shown(rate.mean, 'B/s')} (${shown(rate.low, 'B/s')} to ${shown(rate.high, 'B/s')})`);
      } catch {
        continue;
      }
      if (turn !== this.#turn) return;
    }
    this.#band ??= new CurvePlot(this.#bandPlace, this.cursor, {
      title: 'Acknowledged by then, mean of all seeds and its 95 % interval',
      file: 'lasthop-seeds',
      height: 220,
    });
    this.#band.set(curves);
    this.#bandWords = words.join('; ');
    this.update();
  }

  // ---- time

  /** Puts the player at a time. */
  go(time: number): void {
    const [from, to] = this.cursor.whole;
    this.#time = Math.min(Math.max(time, from), to);
    this.cursor.time = this.#time;
    for (const column of this.columns) void column.look(this.#time);
    this.#moved();
    this.update();
  }

  #moved(): void {
    const [from, to] = this.cursor.range;
    for (const column of this.columns) column.path.show(this.#time, to - from);
  }

  play(): void {
    this.#playing = !this.#playing;
    this.#last = performance.now();
    if (this.#playing) {
      if (this.#time >= this.cursor.whole[1]) this.#time = this.cursor.range[0];
      this.#frame = requestAnimationFrame(() => this.#tick());
    } else cancelAnimationFrame(this.#frame);
    this.update();
  }

  #tick(): void {
    const now = performance.now();
    const passed = ((now - this.#last) / 1000) * SPEEDS[this.#speed]!;
    this.#last = now;
    const end = this.cursor.whole[1];
    const time = Math.min(this.#time + passed, end);
    const [from, to] = this.cursor.range;
    // What is in view follows the player.
    if (time > to && this.#time <= to) this.cursor.range = [time, Math.min(time + (to - from), end)];
    this.#playing = this.#playing && time < end;
    this.go(time);
    if (this.#playing) this.#frame = requestAnimationFrame(() => this.#tick());
  }

  /** Goes to the next event of a kind in any column. */
  jump(goal: Goal, by: 1 | -1 = 1): void {
    let best: { column: Column; event: number; t: number } | null = null;
    for (const column of this.columns) {
      const event = column.next(this.#time, goal, by);
      if (event < 0) continue;
      const t = column.run!.t[event]!;
      if (!best || (by > 0 ? t < best.t : t > best.t)) best = { column, event, t };
    }
    const words = { loss: 'loss', timeout: 'time-out', local: 'local retransmission', event: 'event' }[goal];
    this.#message = best ? '' : `There is no ${words} ${by > 0 ? 'after' : 'before'} ${clock(this.#time)}.`;
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
      this.#shown = { name: file.name, text: await file.text(), set: {}, schemes: [], runs: 1 };
      this.#lesson = null;
      this.#editor.text = this.#shown.text!;
      await this.rerun(0);
    } else await this.#captured.analyse(file.name, new Uint8Array(await file.arrayBuffer()));
  }

  async #write(): Promise<void> {
    const [from, to] = this.cursor.range;
    const [whole, end] = this.cursor.whole;
    const { view: _, at: __, text, ...rest } = this.#shown;
    const it: Shown = {
      ...rest,
      ...(text !== undefined && text !== this.#lesson?.text ? { text } : {}),
      ...(from > whole || to < end ? { view: [from, to] } : {}),
      ...(this.#time > 0 ? { at: this.#time } : {}),
    };
    history.replaceState(null, '', `#${await written(it)}`);
  }

  async #link(): Promise<void> {
    await this.#write();
    try {
      await navigator.clipboard.writeText(location.href);
      this.#message = 'The link is copied: it holds scenario, seed and view.';
    } catch {
      this.#message = 'The address of this page is the link: it holds scenario, seed and view.';
    }
    this.update();
  }

  async #save(column: Column, form: string): Promise<void> {
    const stem = `lasthop-${this.checked?.name ?? 'run'}-${column.scheme}`;
    if (form === 'png') save(`${stem}.png`, (await column.png())!);
    else if (form === 'svg') save(`${stem}.svg`, new Blob([column.svg], { type: 'image/svg+xml' }));
    else if (form === 'toml') save(`${stem}.toml`, new Blob([this.#changedText()], { type: 'application/toml' }));
    else {
      const files = await column.file(form as 'csv' | 'pcapng');
      for (const { name, bytes } of files) save(name, new Blob([bytes as Uint8Array<ArrayBuffer>]));
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
    render(this.#page(), this.root);
  }

  #page(): TemplateResult {
    return html`
      <header>
        <h1>lasthop laboratory</h1>
        <p class="what">What a wireless last hop does to TCP, packet by packet. ${this.engine.native ? '' : 'Everything is computed in this page.'}</p>
      </header>
      <main>
        ${this.#lessonList()} ${this.#lesson ? this.#lessonText(this.#lesson) : nothing} ${this.#bench()}
        ${this.#player()}
        <div class="columns" data-count=${this.columns.length}>${this.columns.map((column, i) => this.#column(column, i))}</div>
        <section class="seeds" aria-label="Several seeds" ?hidden=${this.#shown.runs < 2}>
          ${this.#bandPlace}
          <p class="band-words">${this.#bandWords}</p>
        </section>
        ${this.#captured.view()}
      </main>
      <footer>
        <p>
          lasthop ${this.known.version}. Picture ${Math.round(this.took)} ms after the last change.
          ${this.engine.native ? 'Runs are made natively, by the program that serves this page.' : nothing}
        </p>
      </footer>
    `;
  }

  #lessonList(): TemplateResult {
    return html`<nav aria-label="Lessons">
      <h2>Lessons</h2>
      <ol class="lessons">
        ${this.lessons.map(
          (lesson) => html`<li>
            <button data-lesson=${lesson.id} aria-pressed=${this.#lesson === lesson} @click=${() => this.learn(lesson.id)}>
              ${lesson.title}
            </button>
          </li>`,
        )}
      </ol>
    </nav>`;
  }

  #lessonText(lesson: Lesson): TemplateResult {
    const predicted = this.#predicted;
    const number = (scheme: string, name: string) => this.columns.find((c) => c.scheme === scheme)?.run?.scalar(name);
    const right = predicted !== null && lesson.choices[predicted]?.right;
    return html`<article class="lesson" aria-label=${lesson.title}>
      <h2>${lesson.title}</h2>
      ${markdown(lesson.before)}
      <fieldset>
        <legend>${inline(lesson.question)}</legend>
        ${lesson.choices.map(
          (choice, i) => html`<label>
            <input type="radio" name="prediction" .checked=${predicted === i} @change=${() => this.predict(i)} />
            ${inline(choice.text)}
          </label>`,
        )}
      </fieldset>
      ${predicted === null
        ? html`<p class="hint">Predict first; then the run is explained.</p>`
        : html`<div class="answer" role="status">
            <p><strong>${right ? 'So it is.' : 'It is otherwise.'}</strong></p>
            ${markdown(lesson.after)}
            ${lesson.claims.length === 0
              ? nothing
              : html`<p>Held against the runs below:</p>
                  <ul class="claims">
                    ${lesson.claims.map(
                      (claim) => html`<li data-holds=${claim.holds(number)}>
                        <code>${claim.text}</code>: ${claim.holds(number) ? 'holds' : 'does not hold in these runs'}
                      </li>`,
                    )}
                  </ul>`}
          </div>`}
    </article>`;
  }

  #bench(): TemplateResult {
    const sliders = this.checked?.sliders ?? [];
    const seen = sliders.filter((slider) => this.#all || slider.first || slider.key in this.#shown.set);
    const custom = this.#shown.text !== undefined && !this.#lesson?.text;
    return html`<section class="bench" aria-label="Scenario">
      <h2>Scenario</h2>
      <div class="choice">
        <label>
          Scenario
          <select id="scenario" @change=${(event: Event) => this.choose((event.target as HTMLSelectElement).value)}>
            ${custom || !this.known.scenarios.some((it) => it.name === this.#shown.name)
              ? html`<option selected value=${this.#shown.name}>${this.#shown.name}${custom ? ' (changed)' : ''}</option>`
              : nothing}
            ${this.#files.map((it) => html`<option value=${it.name} ?selected=${!custom && it.name === this.#shown.name}>${it.name} (file)</option>`)}
            ${this.known.scenarios.map((it) => html`<option value=${it.name} ?selected=${!custom && it.name === this.#shown.name}>${it.name}</option>`)}
          </select>
        </label>
        <label>
          Seed
          <input id="seed" type="number" min="0" step="1" .value=${String(this.#shown.seed ?? this.checked?.first_seed ?? 1)}
            @change=${(event: Event) => {
              const seed = Math.round(Number((event.target as HTMLInputElement).value));
              if (Number.isSafeInteger(seed) && seed >= 0) this.#shown.seed = seed;
              void this.rerun(0);
            }} />
        </label>
        <label>
          Seeds together
          <select id="runs" @change=${(event: Event) => {
            this.#shown.runs = Number((event.target as HTMLSelectElement).value);
            void this.rerun(0);
          }}>
            ${[1, 5, 10, 20, 50].map((n) => html`<option value=${n} ?selected=${n === this.#shown.runs}>${n}</option>`)}
          </select>
        </label>
        <button @click=${() => this.#link()}>Copy link</button>
      </div>
      <p class="summary">${this.known.scenarios.find((it) => it.name === this.#shown.name)?.summary ?? ''}</p>
      <p class="message" role="status">${this.#message}</p>
      ${this.#wrong()}
      <div class="bench-parts">
        <details class="text">
          <summary>Text of the scenario</summary>
          ${this.#editor.element}
        </details>
        <div class="sliders" role="group" aria-label="Numbers of the scenario">
          ${seen.map((slider) => this.#slider(slider))}
          ${sliders.length > seen.length || this.#all
            ? html`<button @click=${() => { this.#all = !this.#all; this.update(); }}>${this.#all ? 'Fewer' : `All ${sliders.length} numbers`}</button>`
            : nothing}
          ${Object.keys(this.#shown.set).length > 0
            ? html`<button @click=${() => { this.#shown.set = {}; void this.rerun(0); }}>As it was</button>`
            : nothing}
        </div>
      </div>
    </section>`;
  }

  #wrong(): TemplateResult | typeof nothing {
    const told = [...(this.trouble ? [this.trouble] : []), ...(this.trouble ? [] : (this.checked?.warnings ?? []))];
    if (told.length === 0) return nothing;
    return html`<div class="wrong" role="alert">
      ${told.map(
        (it) => html`<p>
          ${it === this.trouble ? html`<strong>Wrong:</strong>` : html`<strong>Note:</strong>`}
          ${it.source === 'file' && it.line ? html`<button class="place" @click=${() => this.#editor.go(it)}>line ${it.line}, column ${it.column}</button>` : nothing}
          ${it.message}.
          <span class="help">${it.help}</span>
        </p>`,
      )}
    </div>`;
  }

  #slider(slider: Slider): TemplateResult {
    const set = this.#shown.set[slider.key];
    const value = slider.value;
    const turned = (event: Event) => {
      const place = Number((event.target as HTMLInputElement).value);
      void this.turn(slider.key, quantity(slider.unit, valueAt(slider, place)));
      this.update();
    };
    const id = `slider-${slider.key.replaceAll('.', '-')}`;
    const text = set ?? quantity(slider.unit, value);
    return html`<div class="slider" title=${slider.what}>
      <label for=${id}>${slider.of}: ${slider.name}</label>
      <output for=${id}>${text}</output>
      <input id=${id} data-key=${slider.key} type="range" min=${slider.zero ? 0 : 1} max=${STEPS} step="1"
        .value=${String(placed(slider, value))} aria-valuetext=${text} aria-description=${slider.what} @input=${turned} />
    </div>`;
  }

  #player(): TemplateResult {
    const [from, to] = this.cursor.whole;
    const jumps: [Goal, string, string][] = [
      ['loss', 'loss', 'l'],
      ['timeout', 'time-out', 't'],
      ['local', 'local retransmission', 'r'],
    ];
    return html`<section class="player" aria-label="Time">
      <button class="play" aria-pressed=${this.#playing} @click=${() => this.play()}>${this.#playing ? 'Pause' : 'Play'}</button>
      <button @click=${() => this.jump('event', -1)} aria-label="Step back">◂</button>
      <button @click=${() => this.jump('event')} aria-label="Step">▸</button>
      <label>
        Speed
        <select @change=${(event: Event) => (this.#speed = Number((event.target as HTMLSelectElement).value))}>
          ${SPEEDS.map((speed, i) => html`<option value=${i} ?selected=${i === this.#speed}>${speed} of real time</option>`)}
        </select>
      </label>
      <span class="jumps">
        Next
        ${jumps.map(
          ([goal, words, key]) =>
            html`<button data-jump=${goal} aria-keyshortcuts=${key} @click=${(event: MouseEvent) => this.jump(goal, event.shiftKey ? -1 : 1)}>${words}</button>`,
        )}
      </span>
      <label class="at">
        <span class="time">${clock(this.#time)}</span>
        <input type="range" aria-label="Time of the run" min=${from} max=${to} step="any" .value=${String(this.#time)}
          aria-valuetext=${clock(this.#time)} @input=${(event: Event) => this.go(Number((event.target as HTMLInputElement).value))} />
      </label>
    </section>`;
  }

  #column(column: Column, i: number): TemplateResult {
    const words = this.known.schemes.find((it) => it.name === column.scheme);
    const forms = ['png', 'svg', 'csv', 'pcapng', 'toml'];
    const { run, trouble } = column;
    const sender = column.standing?.senders[0];
    return html`<section class="column" aria-label=${`Scheme ${column.scheme}`} aria-busy=${column.busy}>
      <div class="column-head">
        <label>
          Scheme
          <select data-column=${i} @change=${(event: Event) => this.#scheme(i, (event.target as HTMLSelectElement).value)}>
            ${this.choices.schemes.map((name) => html`<option value=${name} ?selected=${name === column.scheme}>${name}</option>`)}
          </select>
        </label>
        ${i === this.columns.length - 1 && this.columns.length < MOST_COLUMNS ? html`<button @click=${() => this.#add()}>Add a scheme</button>` : nothing}
        ${this.columns.length > 1 ? html`<button aria-label=${`Take ${column.scheme} away`} @click=${() => this.#remove(i)}>×</button>` : nothing}
      </div>
      <p class="scheme-what">${column.scheme === 'as-is' ? 'the scenario as it is' : (words?.what ?? 'of the scenario itself')}</p>
      ${trouble ? html`<div class="wrong" role="alert"><p>${trouble.message}. <span class="help">${trouble.help}</span></p></div>` : nothing}
      ${column.numbers()}
      ${column.path.element}
      <p class="sender">
        ${sender ? `cwnd ${sender.cwnd} bytes, ssthresh ${sender.ssthresh > 1e9 ? 'none yet' : sender.ssthresh}, ${sender.snd_nxt - sender.snd_una} bytes in flight, round trip ${shown(sender.srtt / 1e9, 's')}, time-out ${shown(sender.rto / 1e9, 's')}` : ''}
      </p>
      ${column.plotPlace} ${column.detail()}
      <p class="run-words">
        ${run ? html`${run.told.events.toLocaleString('en')} events${run.told.cut ? ', then cut off' : ''}, in ${Math.round(run.took)} ms; digest <code>${run.digest}</code>` : ''}
      </p>
      <p class="downloads">
        Save
        ${forms.map((form) => html`<button data-save=${form} aria-label=${`Save ${column.scheme} as ${form.toUpperCase()}`} @click=${() => this.#save(column, form)}>${form.toUpperCase()}</button>`)}
      </p>
    </section>`;
  }
}

/** Hands a file to whoever sits before the page. */
function save(name: string, blob: Blob): void {
  const link = document.createElement('a');
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}
