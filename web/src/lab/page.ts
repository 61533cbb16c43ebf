// What the page shows around its plots: a template for each part, made anew after each change.

import { html, nothing, type TemplateResult } from 'lit';

import type { Lab } from './app.ts';
import type { Column } from './column.ts';
import type { Lesson } from './lessons.ts';
import { inline, markdown } from './markdown.ts';
import { STEPS, type Slider, clock, placed, shown, valueAt, written as quantity } from './numbers.ts';
import type { Goal } from './recording.ts';

/** Seconds of the run in a second of the clock. */
export const SPEEDS = [0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1, 3];
export const MOST_COLUMNS = 4;

/** The whole page; plots draw themselves. */
export function page(lab: Lab): TemplateResult {
  return html`
    <header>
      <h1>lasthop laboratory</h1>
      <p class="what">What a wireless last hop does to TCP, packet by packet. ${lab.engine.native ? '' : 'Everything is computed in this page.'}</p>
    </header>
    <main>
      ${lessonList(lab)} ${lab.lesson ? lessonText(lab, lab.lesson) : nothing} ${bench(lab)}
      ${player(lab)}
      <div class="columns" data-count=${lab.columns.length}>${lab.columns.map((column, i) => columnOf(lab, column, i))}</div>
      <section class="seeds" aria-label="Several seeds" ?hidden=${lab.shown.runs < 2}>
        ${lab.bandPlace}
        <p class="band-words">${lab.bandWords}</p>
      </section>
      ${lab.captured.view()}
    </main>
    <footer>
      <p>
        lasthop ${lab.known.version}. Picture ${Math.round(lab.took)} ms after the last change.
        ${lab.engine.native ? 'Runs are made natively, by the program that serves this page.' : nothing}
      </p>
    </footer>
  `;
}

/** The lessons to choose from. */
function lessonList(lab: Lab): TemplateResult {
  return html`<nav aria-label="Lessons">
    <h2>Lessons</h2>
    <ol class="lessons">
      ${lab.lessons.map(
        (lesson) => html`<li>
          <button data-lesson=${lesson.id} aria-pressed=${lab.lesson === lesson} @click=${() => lab.learn(lesson.id)}>
            ${lesson.title}
          </button>
        </li>`,
      )}
    </ol>
  </nav>`;
}

/** A lesson: its question, and once one has predicted its answer. */
function lessonText(lab: Lab, lesson: Lesson): TemplateResult {
  const predicted = lab.predicted;
  const number = (scheme: string, name: string) => lab.columns.find((c) => c.scheme === scheme)?.run?.scalar(name);
  const right = predicted !== null && lesson.choices[predicted]?.right;
  return html`<article class="lesson" aria-label=${lesson.title}>
    <h2>${lesson.title}</h2>
    ${markdown(lesson.before)}
    <fieldset>
      <legend>${inline(lesson.question)}</legend>
      ${lesson.choices.map(
        (choice, i) => html`<label>
          <input type="radio" name="prediction" .checked=${predicted === i} @change=${() => lab.predict(i)} />
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

/** What is run: scenario, seed, text and numbers. */
function bench(lab: Lab): TemplateResult {
  const sliders = lab.checked?.sliders ?? [];
  const seen = sliders.filter((slider) => lab.all || slider.first || slider.key in lab.shown.set);
  const custom = lab.shown.text !== undefined && !lab.lesson?.text;
  return html`<section class="bench" aria-label="Scenario">
    <h2>Scenario</h2>
    <div class="choice">
      <label>
        Scenario
        <select id="scenario" @change=${(event: Event) => lab.choose((event.target as HTMLSelectElement).value)}>
          ${custom || !lab.known.scenarios.some((it) => it.name === lab.shown.name)
            ? html`<option selected value=${lab.shown.name}>${lab.shown.name}${custom ? ' (changed)' : ''}</option>`
            : nothing}
          ${lab.files.map((it) => html`<option value=${it.name} ?selected=${!custom && it.name === lab.shown.name}>${it.name} (file)</option>`)}
          ${lab.known.scenarios.map((it) => html`<option value=${it.name} ?selected=${!custom && it.name === lab.shown.name}>${it.name}</option>`)}
        </select>
      </label>
      <label>
        Seed
        <input id="seed" type="number" min="0" step="1" .value=${String(lab.shown.seed ?? lab.checked?.first_seed ?? 1)}
          @change=${(event: Event) => {
            const seed = Math.round(Number((event.target as HTMLInputElement).value));
            if (Number.isSafeInteger(seed) && seed >= 0) lab.shown.seed = seed;
            void lab.rerun(0);
          }} />
      </label>
      <label>
        Seeds together
        <select id="runs" @change=${(event: Event) => {
          lab.shown.runs = Number((event.target as HTMLSelectElement).value);
          void lab.rerun(0);
        }}>
          ${[1, 5, 10, 20, 50].map((n) => html`<option value=${n} ?selected=${n === lab.shown.runs}>${n}</option>`)}
        </select>
      </label>
      <button @click=${() => lab.link()}>Copy link</button>
    </div>
    <p class="summary">${lab.known.scenarios.find((it) => it.name === lab.shown.name)?.summary ?? ''}</p>
    <p class="message" role="status">${lab.message}</p>
    ${wrong(lab)}
    <div class="bench-parts">
      <details class="text">
        <summary>Text of the scenario</summary>
        ${lab.editor.element}
      </details>
      <div class="sliders" role="group" aria-label="Numbers of the scenario">
        ${seen.map((slider) => sliderOf(lab, slider))}
        ${sliders.length > seen.length || lab.all
          ? html`<button @click=${() => { lab.all = !lab.all; lab.update(); }}>${lab.all ? 'Fewer' : `All ${sliders.length} numbers`}</button>`
          : nothing}
        ${Object.keys(lab.shown.set).length > 0
          ? html`<button @click=${() => { lab.shown.set = {}; void lab.rerun(0); }}>As it was</button>`
          : nothing}
      </div>
    </div>
  </section>`;
}

/** What is wrong with the scenario, or worth a note. */
function wrong(lab: Lab): TemplateResult | typeof nothing {
  const told = [...(lab.trouble ? [lab.trouble] : []), ...(lab.trouble ? [] : (lab.checked?.warnings ?? []))];
  if (told.length === 0) return nothing;
  return html`<div class="wrong" role="alert">
    ${told.map(
      (it) => html`<p>
        ${it === lab.trouble ? html`<strong>Wrong:</strong>` : html`<strong>Note:</strong>`}
        ${it.source === 'file' && it.line ? html`<button class="place" @click=${() => lab.editor.go(it)}>line ${it.line}, column ${it.column}</button>` : nothing}
        ${it.message}.
        <span class="help">${it.help}</span>
      </p>`,
    )}
  </div>`;
}

/** A number of the scenario. */
function sliderOf(lab: Lab, slider: Slider): TemplateResult {
  const set = lab.shown.set[slider.key];
  const value = slider.value;
  const turned = (event: Event) => {
    const place = Number((event.target as HTMLInputElement).value);
    void lab.turn(slider.key, quantity(slider.unit, valueAt(slider, place)));
    lab.update();
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

/** What moves the time. */
function player(lab: Lab): TemplateResult {
  const [from, to] = lab.cursor.whole;
  const jumps: [Goal, string, string][] = [
    ['loss', 'loss', 'l'],
    ['timeout', 'time-out', 't'],
    ['local', 'local retransmission', 'r'],
  ];
  return html`<section class="player" aria-label="Time">
    <button class="play" aria-pressed=${lab.playing} @click=${() => lab.play()}>${lab.playing ? 'Pause' : 'Play'}</button>
    <button @click=${() => lab.jump('event', -1)} aria-label="Step back">◂</button>
    <button @click=${() => lab.jump('event')} aria-label="Step">▸</button>
    <label>
      Speed
      <select @change=${(event: Event) => (lab.speed = Number((event.target as HTMLSelectElement).value))}>
        ${SPEEDS.map((speed, i) => html`<option value=${i} ?selected=${i === lab.speed}>${speed} of real time</option>`)}
      </select>
    </label>
    <span class="jumps">
      Next
      ${jumps.map(
        ([goal, words, key]) =>
          html`<button data-jump=${goal} aria-keyshortcuts=${key} @click=${(event: MouseEvent) => lab.jump(goal, event.shiftKey ? -1 : 1)}>${words}</button>`,
      )}
    </span>
    <label class="at">
      <span class="time">${clock(lab.time)}</span>
      <input type="range" aria-label="Time of the run" min=${from} max=${to} step="any" .value=${String(lab.time)}
        aria-valuetext=${clock(lab.time)} @input=${(event: Event) => lab.go(Number((event.target as HTMLInputElement).value))} />
    </label>
  </section>`;
}

/** One scheme: its numbers, path and plot. */
function columnOf(lab: Lab, column: Column, i: number): TemplateResult {
  const words = lab.known.schemes.find((it) => it.name === column.scheme);
  const forms = ['png', 'svg', 'csv', 'pcapng', 'toml'];
  const { run, trouble } = column;
  const sender = column.standing?.senders[0];
  return html`<section class="column" aria-label=${`Scheme ${column.scheme}`} aria-busy=${column.busy}>
    <div class="column-head">
      <label>
        Scheme
        <select data-column=${i} @change=${(event: Event) => lab.scheme(i, (event.target as HTMLSelectElement).value)}>
          ${lab.choices.schemes.map((name) => html`<option value=${name} ?selected=${name === column.scheme}>${name}</option>`)}
        </select>
      </label>
      ${i === lab.columns.length - 1 && lab.columns.length < MOST_COLUMNS ? html`<button @click=${() => lab.add()}>Add a scheme</button>` : nothing}
      ${lab.columns.length > 1 ? html`<button aria-label=${`Take ${column.scheme} away`} @click=${() => lab.remove(i)}>×</button>` : nothing}
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
      ${forms.map((form) => html`<button data-save=${form} aria-label=${`Save ${column.scheme} as ${form.toUpperCase()}`} @click=${() => lab.save(column, form)}>${form.toUpperCase()}</button>`)}
    </p>
  </section>`;
}
