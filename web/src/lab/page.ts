// The page around its plots: a template for each part, rendered again after each change.

import { html, nothing, type TemplateResult } from 'lit';

import { type Lab, MOST_COLUMNS } from './app.ts';
import type { Column } from './column.ts';
import { keep } from './keep.ts';
import type { Lesson } from './lesson.ts';
import { lessonList, lessonText } from './lessonview.ts';
import { shown, sized } from './numbers.ts';
import { bench } from './panel.ts';
import { player, signs } from './transport.ts';

/** The page below its heading, which is in index.html so that browsers show it first; plots draw themselves. */
export function page(lab: Lab): TemplateResult {
  return html`
    <main class="desk">
      <div class="panel">
        ${lessonList(lab)} ${lab.lesson ? lessonText(lab, lab.lesson) : nothing} ${bench(lab)}
      </div>
      <div class="stage">
        <p class="message" role="status">${lab.message}</p>
        ${lab.hidden ? waiting(lab) : nothing}
        <div class="results" ?hidden=${lab.hidden}>
          ${player(lab)} ${signs()} ${lab.lesson ? watched(lab, lab.lesson) : nothing}
          <section class="delays" aria-label="Round-trip times" ?hidden=${lab.lesson?.plot !== 'delays'}>${lab.delays.place}</section>
          <section class="medium" aria-label="Frames on the medium" ?hidden=${lab.lesson?.plot !== 'medium'}>${lab.medium.place}</section>
          ${lab.columns.length === 0 ? empty(lab) : nothing}
          <div class="columns" data-count=${lab.columns.length}>${lab.columns.map((column, i) => columnOf(lab, column, i))}</div>
          <section class="seeds" aria-label="Several seeds" ?hidden=${lab.shown.runs < 2}>
            ${lab.together.place}
            <p class="band-words">${lab.together.words}</p>
          </section>
        </div>
        ${lab.lesson ? nothing : lab.captured.view()}
      </div>
    </main>
    <footer>
      <p>
        lasthop ${lab.known.version}. Picture ${Math.round(lab.took)} ms after the last change.
        ${lab.engine.native ? 'Runs are made natively, by the program that serves this page.' : nothing}
      </p>
    </footer>
  `;
}

/** Shown instead of results that would reveal a lesson's answer: the path in its first seconds, and the columns to come. */
function waiting(lab: Lab): TemplateResult {
  const names = lab.columns.map(({ scheme }) => html`<code>${scheme}</code>`);
  return html`<section class="preview" aria-label="The path of this lesson">
    ${signs()} ${lab.preview.element}
    <p>The path in its first moments, slowed down. Choose an answer to the question; then ${names.length} runs start:
      ${names.map((name, i) => html`${i === 0 ? '' : i === names.length - 1 ? ' and ' : ', '}${name}`)}.</p>
  </section>`;
}

/** One sentence that says what to watch, and the way to the results. */
function watched(lab: Lab, lesson: Lesson): TemplateResult {
  return html`<div class="watch">
    <p>${lesson.watch ? html`<strong>Watch:</strong> ${lesson.watch}` : nothing}</p>
    ${lab.phase === 'watch' ? html`<button class="main" data-result @click=${() => lab.conclude()}>Show the result</button>` : nothing}
  </div>`;
}

/** Shown before the first run. */
function empty(lab: Lab): TemplateResult {
  return html`<div class="waiting" aria-busy=${!lab.trouble}>
    <p>${lab.trouble ? 'No run yet: correct the error in the scenario, which is shown with the controls.' : 'The simulator starts …'}</p>
  </div>`;
}

/** One scheme: its numbers, path and plot. */
function columnOf(lab: Lab, column: Column, i: number): TemplateResult {
  const words = lab.known.schemes.find((it) => it.name === column.scheme);
  const description = column.scheme === 'as-is' ? 'the scenario as it is' : (words?.what ?? '');
  const forms = ['png', 'svg', 'csv', 'pcapng', 'toml'];
  const { run, trouble } = column;
  return html`<section class="column" aria-label=${`Scheme ${column.scheme}`} aria-busy=${column.busy}>
    <div class="column-head">
      <label>
        <span class="unseen">Scheme</span>
        <select data-column=${i} title=${description} @change=${(event: Event) => lab.scheme(i, (event.target as HTMLSelectElement).value)}>
          ${lab.choices.schemes.map((name) => html`<option value=${name} ?selected=${name === column.scheme}>${name}</option>`)}
        </select>
      </label>
      ${lab.columns.length > 1 ? html`<button aria-label=${`Remove ${column.scheme}`} @click=${() => lab.remove(i)}>×</button>` : nothing}
      ${i === lab.columns.length - 1 && lab.columns.length < MOST_COLUMNS
        ? html`<button aria-label="Add a scheme" title="Add a scheme" @click=${() => lab.add()}>+<span class="long"> Add a scheme</span></button>`
        : nothing}
    </div>
    <p class="scheme-what" title=${description}>${description}</p>
    <div class="column-numbers">
      ${trouble ? html`<div class="wrong" role="alert"><p>${trouble.message}. <span class="help">${trouble.help}</span></p></div>` : nothing}
      ${run || trouble ? column.numbers(lab.phase === 'watch' ? lab.time : null) : html`<p class="hint">Running …</p>`}
    </div>
    ${column.path.element}
    <div class="sender-line">${sender(column)}</div>
    <div class="explanation">${column.explained()}</div>
    ${column.plotPlace}
    <div class="column-foot">
      <p class="run-words">
        ${run ? html`${run.summary.events.toLocaleString('en')} events${run.summary.cut ? ', then cut off' : ''}, in ${Math.round(run.took)} ms; digest <code>${run.digest}</code>` : ''}
      </p>
      <p class="downloads">
        Save
        ${forms.map((form) => html`<button data-save=${form} aria-label=${`Save ${column.scheme} as ${form.toUpperCase()}`} @click=${() => keep(lab, column, form)}>${form.toUpperCase()}</button>`)}
      </p>
    </div>
  </section>`;
}

/** The sender's numbers at the player's time. */
function sender(column: Column): TemplateResult {
  const it = column.standing?.senders[0];
  if (!it) return html`<p class="sender"></p>`;
  const threshold = it.ssthresh > 1e9 ? 'none yet' : sized(it.ssthresh);
  // Lines break between numbers only.
  const line = (...numbers: string[]) => numbers.map((it) => it.replaceAll(' ', '\u00a0')).join('\u00a0· ');
  const before = line(`cwnd ${sized(it.cwnd)}`, '');
  const flight = line(`in flight ${sized(it.snd_nxt - it.snd_una)}`, '');
  const after = line(`ssthresh ${threshold}`, `RTT ${it.srtt > 0 ? shown(it.srtt / 1e9, 's') : 'none yet'}`, `RTO ${shown(it.rto / 1e9, 's')}`);
  return html`<p class="sender" title=${before + flight + after}>${before}<span class="flight">${flight}</span>${after}</p>`;
}
