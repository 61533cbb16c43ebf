// The controls: scenario, seed, sliders and text.

import { html, nothing, type TemplateResult } from 'lit';

import type { Lab } from './app.ts';
import { STEPS, type Slider, placed, setting, valueAt, written } from './numbers.ts';

/** Number of sliders that are shown at first. */
const FEW = 5;

/** The controls of the run: scenario, seed, numbers and text. */
export function bench(lab: Lab): TemplateResult {
  const custom = lab.shown.text !== undefined && !lab.lesson?.text;
  const known = lab.known.scenarios.find((it) => it.name === lab.shown.name);
  return html`<section class="bench" aria-label="Scenario">
    <h2>Scenario</h2>
    <div class="choice">
      <label class="wide">
        <span class="unseen">Scenario</span>
        <select id="scenario" @change=${(event: Event) => lab.choose((event.target as HTMLSelectElement).value)}>
          ${custom || !known ? html`<option selected value=${lab.shown.name}>${lab.shown.name}${custom ? ' (changed)' : ''}</option>` : nothing}
          ${lab.files.map((it) => html`<option value=${it.name} ?selected=${!custom && it.name === lab.shown.name}>${it.name} (file)</option>`)}
          ${lab.known.scenarios.map((it) => html`<option value=${it.name} ?selected=${!custom && it.name === lab.shown.name}>${it.name}</option>`)}
        </select>
      </label>
      <label>
        Seed
        <input id="seed" type="number" min="0" step="1" .value=${String(lab.shown.seed ?? lab.checked?.first_seed ?? 1)}
          @change=${(event: Event) => lab.seed(event.target as HTMLInputElement)} />
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
    </div>
    ${lab.lesson || !known ? nothing : html`<p class="summary">${known.summary}</p>`} ${wrong(lab)} ${sliders(lab)}
    <details class="text">
      <summary>Text of the scenario</summary>
      ${lab.editor.element}
    </details>
    <p><button @click=${() => lab.link()}>Copy link</button></p>
  </section>`;
}

function sliders(lab: Lab): TemplateResult {
  const all = lab.checked?.sliders ?? [];
  const few = important(all);
  const seen = all.filter((slider) => lab.all || few.includes(slider) || slider.key in lab.shown.set);
  const changed = Object.keys(lab.changes).length > 0;
  return html`<details class="settings" ?open=${lab.wide}><summary>Numbers</summary><div class="sliders" role="group" aria-label="Numbers of the scenario">
    ${seen.map((slider) => sliderOf(lab, slider))}
    <p class="row">
      ${all.length > seen.length || lab.all
        ? html`<button class="quiet" aria-expanded=${lab.all} @click=${() => { lab.all = !lab.all; lab.update(); }}>${lab.all ? 'Fewer numbers' : `All ${all.length} numbers`}</button>`
        : nothing}
      ${changed ? html`<button class="quiet" @click=${() => lab.unset()}>Reset numbers</button>` : nothing}
    </p>
  </div></details>`;
}

/** Keys by their effect on a path: losses, then rate, delay, buffers and queues. The last hop comes before others. */
const KINDS = [/errors|loss/, /\.rate$/, /\.delay$/, /buffer/, /queue/];

/** The sliders that are shown first: one of each kind, then a second one of each kind. */
function important(all: readonly Slider[]): Slider[] {
  const first = all.filter((slider) => slider.first);
  const ofKind = KINDS.map((kind) => first.filter(({ key }) => kind.test(key)).reverse());
  const rounds = Math.max(...ofKind.map((of) => of.length), 0);
  const ranked = Array.from({ length: rounds }, (_, i) => ofKind.flatMap((of) => of[i] ?? [])).flat();
  const chosen = new Set([...ranked, ...first].slice(0, FEW));
  return all.filter((slider) => chosen.has(slider));
}

/** The error of the scenario, or its warnings. */
function wrong(lab: Lab): TemplateResult | typeof nothing {
  const troubles = lab.trouble ? [lab.trouble] : (lab.checked?.warnings ?? []);
  if (troubles.length === 0) return nothing;
  return html`<div class="wrong" role="alert">
    ${troubles.map(
      (it) => html`<p>
        ${it === lab.trouble ? html`<strong>Wrong:</strong>` : html`<strong>Note:</strong>`}
        ${it.source === 'file' && it.line ? html`<button class="place" @click=${() => lab.editor.go(it)}>line ${it.line}, column ${it.column}</button>` : nothing}
        ${it.message}.
        <span class="help">${it.help}</span>
      </p>`,
    )}
  </div>`;
}

/** The slider of a number. */
function sliderOf(lab: Lab, slider: Slider): TemplateResult {
  const turned = (event: Event) => {
    const place = Number((event.target as HTMLInputElement).value);
    void lab.turn(slider.key, written(slider.unit, valueAt(slider, place)));
    lab.update();
  };
  const id = `slider-${slider.key.replaceAll('.', '-')}`;
  const text = setting(slider, lab.shown.set[slider.key]);
  return html`<div class="slider" title=${slider.what}>
    <label for=${id}>${slider.of}: ${slider.name}</label>
    <output for=${id}>${text}</output>
    <input id=${id} data-key=${slider.key} type="range" min=${slider.zero ? 0 : 1} max=${STEPS} step="1"
      .value=${String(placed(slider, slider.value))} aria-valuetext=${text} aria-description=${slider.what} @input=${turned} />
  </div>`;
}
