// A lesson in the panel: question and prediction, explanation with its claims, a task, and the way to the next one.

import { html, nothing, type TemplateResult } from 'lit';

import type { Lab } from './app.ts';
import { type Claim, type Lesson, type Numbers, type Task, reached } from './lesson.ts';
import { inline, markdown } from './markdown.ts';
import { shown } from './numbers.ts';

/** The numbers of the runs on the page. */
const numbers = (lab: Lab): Numbers => (scheme, name) => lab.columns.find((c) => c.scheme === scheme)?.run?.scalar(name);

/** Whether the text of the scenario differs from that of the lesson. */
const edited = (lab: Lab) => lab.shown.text !== lab.lesson?.text;

/** Whether the runs on the page reach the task of the lesson. */
export function taskReached(lab: Lab, task: Task): boolean {
  const changed = edited(lab);
  return reached(task, lab.columns.map((column) => column.scheme), numbers(lab), lab.changes, changed);
}

/** The lessons to choose from. */
export function lessonList(lab: Lab): TemplateResult {
  const done = lab.lessons.filter(({ id }) => lab.progress.of(id).predicted !== undefined).length;
  const next = lab.lessons.find(({ id }) => lab.progress.of(id).predicted === undefined);
  return html`<nav class="lesson-list" aria-label="Lessons">
    ${lab.lesson || !next
      ? nothing
      : html`<button class="main" data-start @click=${() => lab.learn(next.id)}>${done === 0 ? 'Start with lesson 1' : `Continue: ${next.title}`}</button>`}
    <details>
      <summary>Lessons (${done} of ${lab.lessons.length} done)</summary>
      <ol class="lessons">
        ${lab.lessons.map(({ id, title }) => {
          const step = lab.progress.of(id);
          const state = step.reached ? 'done, goal reached' : step.predicted !== undefined ? 'done' : '';
          return html`<li>
            <button data-lesson=${id} aria-current=${lab.lesson?.id === id ? 'true' : 'false'} @click=${() => lab.learn(id)}>
              ${title} ${state ? html`<span class="state"><span aria-hidden="true">${step.reached ? '✓✓' : '✓'}</span><span class="unseen">${state}</span></span>` : nothing}
            </button>
          </li>`;
        })}
      </ol>
    </details>
  </nav>`;
}

/** The current lesson. */
export function lessonText(lab: Lab, lesson: Lesson): TemplateResult {
  const index = lab.lessons.indexOf(lesson);
  const { predicted } = lab;
  return html`<article class="lesson" aria-label=${lesson.title}>
    <p class="hint">Lesson ${index + 1} of ${lab.lessons.length}</p>
    <h2>${lesson.title}</h2>
    ${markdown(lesson.before)}
    <fieldset>
      <legend>${inline(lesson.question)}</legend>
      ${lesson.choices.map((choice, i) => {
        const mark = predicted === null ? '' : choice.right ? 'right' : predicted === i ? 'wrong' : '';
        return html`<label class=${mark}>
          <input type="radio" name="prediction" .checked=${predicted === i} @change=${() => lab.predict(i)} />
          <span>
            ${inline(choice.text)}
            ${mark ? html`<strong class="mark">${mark === 'right' ? '✓ right' : '✗ your prediction'}</strong>` : nothing}
          </span>
        </label>`;
      })}
    </fieldset>
    ${predicted !== null ? answer(lab, lesson) : nothing}
    ${predicted === null && !lab.revealed
      ? html`<p class="hint">
          Predict first; then the runs are shown and explained. <button class="quiet" @click=${() => lab.reveal()}>Show without predicting</button>
        </p>`
      : nothing}
    ${predicted === null && lab.revealed ? onward(lab, index) : nothing}
  </article>`;
}

/** The explanation of the runs, after the prediction. */
function answer(lab: Lab, lesson: Lesson): TemplateResult {
  const right = lesson.choices[lab.predicted!]?.right;
  const own = Object.keys(lab.changes).length === 0 && !edited(lab);
  return html`<div class="answer">
    <p role="status"><strong>${right ? 'Right.' : 'Not quite.'}</strong></p>
    ${markdown(lesson.after)}
    ${lesson.claims.length === 0
      ? nothing
      : html`<p>${own ? 'Checked against the runs on this page:' : 'You changed the scenario. These claims are about the scenario of the lesson:'}</p>
          <ul class="claims" data-own=${own}>
            ${lesson.claims.map((claim) => claimed(lab, claim))}
          </ul>`}
    ${lesson.task ? task(lab, lesson.task) : nothing} ${onward(lab, lab.lessons.indexOf(lesson))}
  </div>`;
}

function claimed(lab: Lab, claim: Claim): TemplateResult {
  const holds = claim.holds(numbers(lab));
  return html`<li data-holds=${holds}>
    <code>${claim.text}</code>: ${holds ? 'holds' : 'does not hold in these runs'}${measured(lab, claim)}
  </li>`;
}

/** The measured side of a claim, if it names a column of the page, and its bound, as numbers with their unit. */
function measured(lab: Lab, claim: Claim): string {
  const [left, bound] = claim.sides(numbers(lab));
  if (bound === undefined) return '';
  const unit = lab.columns.map((column) => column.run?.unit(claim.name)).find((unit) => unit !== undefined) ?? '';
  const limit = `bound ${shown(bound, unit)}`;
  return left === undefined ? ` (${limit})` : ` (${shown(left, unit)}, ${limit})`;
}

/** The task, and whether the runs on the page reach its goals. */
function task(lab: Lab, it: Task): TemplateResult {
  const done = taskReached(lab, it);
  return html`<section class="task" aria-label="Try yourself" data-reached=${done}>
    <h3>Try yourself</h3>
    ${markdown(it.text)}
    <div role="status">
      <ul class="goals">${it.goals.map((goal) => html`<li><code>${goal.text}</code>${measured(lab, goal)}</li>`)}</ul>
      <strong>${done ? '✓ Reached.' : 'Not reached yet.'}</strong>
    </div>
  </section>`;
}

function onward(lab: Lab, index: number): TemplateResult {
  const next = lab.lessons[index + 1];
  return html`<p class="onward">
    ${next
      ? html`<button class="main" data-next @click=${() => lab.learn(next.id)}>Next lesson: ${next.title}</button>`
      : html`<button class="main" data-next @click=${() => lab.choose('quickstart')}>The last lesson is done: explore on your own</button>`}
  </p>`;
}
