// A lesson in the panel: question and prediction, explanation with its claims, a task, and the way to the next one.

import { html, nothing, type TemplateResult } from 'lit';

import type { Lab } from './app.ts';
import { headline } from './column.ts';
import { type Claim, type Lesson, type Numbers, type Result, type Task } from './lesson.ts';
import { inline, markdown } from './markdown.ts';
import { shown } from './numbers.ts';

/** The numbers of the lesson's own runs, whatever the page shows since. */
const ownNumbers = (lab: Lab): Numbers => (scheme, name) => lab.ownRuns.get(scheme)?.scalar(name);

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
  const { predicted, phase } = lab;
  const judged = phase === 'result' ? predicted : null;
  return html`<article class="lesson" aria-label=${lesson.title}>
    <p class="hint">Lesson ${index + 1} of ${lab.lessons.length}</p>
    <h2>${lesson.title}</h2>
    ${markdown(lesson.before)}
    <fieldset>
      <legend>${inline(lesson.question)}</legend>
      ${lesson.choices.map((choice, i) => {
        const mark = judged === null ? '' : choice.right ? 'right' : judged === i ? 'wrong' : '';
        return html`<label class=${mark}>
          <input type="radio" name="prediction" .checked=${(predicted ?? lab.chosen) === i} ?disabled=${phase !== 'question'}
            @change=${() => lab.consider(i)} />
          <span>
            ${inline(choice.text)}
            ${mark ? html`<strong class="mark">${mark === 'right' ? '✓ right' : '✗ your prediction'}</strong>` : nothing}
          </span>
        </label>`;
      })}
    </fieldset>
    ${judged !== null ? answer(lab, lesson) : nothing}
    ${phase === 'question'
      ? html`<p class="row">
          <button class="main" data-commit ?disabled=${lab.chosen === null} @click=${() => lab.predict()}>Predict and show the runs</button>
          <button class="quiet" @click=${() => lab.watch()}>Show without predicting</button>
        </p>`
      : nothing}
    ${phase === 'result' && predicted === null ? onward(lab, index) : nothing}
  </article>`;
}

/** The explanation of the runs, after the prediction. */
function answer(lab: Lab, lesson: Lesson): TemplateResult {
  const right = lesson.choices[lab.predicted!]?.right;
  return html`<div class="answer" tabindex="-1">
    <p role="status"><strong>${right ? 'Right.' : 'Not quite.'}</strong></p>
    ${markdown(lesson.after)}
    ${lesson.claims.length === 0
      ? nothing
      : html`<p>Checked against the runs of this lesson:</p>
          <ul class="claims">
            ${lesson.claims.map((claim) => claimed(lab, claim))}
          </ul>`}
    ${lesson.task ? task(lab, lesson.task) : nothing} ${onward(lab, lab.lessons.indexOf(lesson))}
  </div>`;
}

function claimed(lab: Lab, claim: Claim): TemplateResult {
  const holds = claim.holds(ownNumbers(lab));
  return html`<li data-holds=${holds} title=${claim.text}>
    <span aria-hidden="true">${holds ? '✓' : '✗'}</span> ${sentence(claim, ownUnit(lab, claim))}${measured(claim, ownNumbers(lab), ownUnit(lab, claim))}
    <span class="unseen">${holds ? 'holds' : 'does not hold'}</span>
  </li>`;
}

/** The unit of the left result of a claim. */
function ownUnit(lab: Lab, claim: Claim): string {
  const runs = [...lab.columns.map((column) => column.run), ...lab.ownRuns.values()];
  return runs.map((run) => run?.unit(claim.left.name)).find((unit) => unit !== undefined) ?? '';
}

/** A claim as a sentence: "throughput of sack: more than 1.2 times that of as-is". */
export function sentence({ left, sign, factor, right }: Claim, unit: string): TemplateResult {
  const one = (result: Result) => (result.scheme === 'any' ? html`any scheme` : html`<code>${result.scheme}</code>`);
  const subject = html`${headline(left.name)} of ${one(left)}`;
  if (left.name === 'complete') return html`${one(left)}: the transfer ${factor === 0 ? 'does not end' : 'ends'}`;
  if (!right) return html`${subject}: ${factor === 0 && sign === '=' ? 'none' : html`${COMPARED[sign]} ${shown(factor, unit)}`}`;
  const that = left.name === right.name ? html`that of ${one(right)}` : html`${headline(right.name)} of ${one(right)}`;
  const times = factor === 1 ? '' : `${factor} times `;
  return html`${subject}: ${COMPARED[sign]} ${times}${that}`;
}

const COMPARED = { '<': 'less than', '=': 'the same as', '>': 'more than' };

/** The left side of a claim, and its bound if that is a measured one. */
function measured(claim: Claim, number: Numbers, unit: string): string {
  const [left, bound] = claim.sides(number);
  if (left === undefined || claim.left.name === 'complete') return '';
  return claim.right && bound !== undefined ? ` (${shown(left, unit)}; bound ${shown(bound, unit)})` : ` (${shown(left, unit)})`;
}

/** The task, and whether the runs on the page reach its goals. */
function task(lab: Lab, it: Task): TemplateResult {
  const done = lab.taskReached;
  return html`<section class="task" aria-label="Try yourself" data-reached=${done}>
    <h3>Try yourself</h3>
    ${markdown(it.text)}
    <div role="status">
      <ul class="goals">${it.goals.map((goal) => html`<li title=${goal.text}>${sentence(goal, ownUnit(lab, goal))}${measured(goal, lab.numbers, ownUnit(lab, goal))}</li>`)}</ul>
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
