// The bar with the player's controls, its keys, and the legend of the path.

import { html, type TemplateResult } from 'lit';

import type { Lab } from './app.ts';
import { clock } from './numbers.ts';
import { SPEEDS } from './player.ts';
import type { Goal } from './recording.ts';

const JUMPS: [Goal, string, string][] = [
  ['loss', 'loss', 'l'],
  ['timeout', 'timeout', 't'],
  ['local', 'local retransmission', 'r'],
];

/** Legend of the path: colour, sign, words. */
const SIGNS: [string, string, string][] = [
  ['data', '■', 'data'],
  ['again', '■', 'retransmitted'],
  ['local', '◆', 'retransmitted locally'],
  ['ack', '●', 'ACK'],
  ['lost', '□', 'will be lost'],
  ['lost', '✕', 'lost'],
];

/** The player's controls. */
export function player(lab: Lab): TemplateResult {
  const [from, to] = lab.cursor.whole;
  const run = lab.columns.some((column) => column.run);
  return html`<section class="player" aria-label="Time" ?inert=${!run}>
    <div class="bar">
      <button @click=${() => lab.jump('event', -1)} aria-label="Step back" title="Step back (,)">◂</button>
      <button class="play main" aria-pressed=${lab.playing} @click=${() => lab.play()}>${lab.playing ? 'Pause' : 'Play'}</button>
      <button @click=${() => lab.jump('event')} aria-label="Step" title="Step (.)">▸</button>
    <label class="at">
      <span class="time">${clock(lab.time)}</span>
      <input type="range" aria-label="Time of the run" min=${from} max=${to} step="any" .value=${String(lab.time)}
        aria-valuetext=${clock(lab.time)} @input=${(event: Event) => lab.seek(Number((event.target as HTMLInputElement).value))} />
    </label>
    </div>
    <div class="more">
    <span class="row jumps">
      Next
      ${JUMPS.map(
        ([goal, words, key]) =>
          html`<button data-jump=${goal} aria-keyshortcuts=${key} title="${words} (${key}); with Shift the one before"
            @click=${(event: MouseEvent) => lab.jump(goal, event.shiftKey ? -1 : 1)}>${words}</button>`,
      )}
    </span>
    <label class="speed">
      Speed
      <select title="Seconds of the run in a second" @change=${(event: Event) => (lab.speed = Number((event.target as HTMLSelectElement).value))}>
        ${SPEEDS.map((speed, i) => html`<option value=${i} ?selected=${i === lab.speed}>${speed} ×</option>`)}
      </select>
    </label>
    <label class="motion"><input type="checkbox" .checked=${!lab.still} @change=${() => lab.move(lab.still)} /> Motion</label>
    </div>
  </section>`;
}

/** The legend of the path. */
export function signs(): TemplateResult {
  return html`<ul class="signs" aria-label="Signs on the path">
    ${SIGNS.map(([colour, sign, words]) => html`<li><span class=${colour} aria-hidden="true">${sign}</span> ${words}</li>`)}
  </ul>`;
}

/** Handles keys of the page while no field has the focus. */
export function key(lab: Lab, event: KeyboardEvent): void {
  const on = event.target as HTMLElement;
  if (event.ctrlKey || event.metaKey || event.altKey || lab.hidden) return;
  if (on.closest('input, textarea, select, button, [role=application], summary')) return;
  const by = event.shiftKey ? -1 : 1;
  const keys: Record<string, () => void> = {
    ' ': () => lab.play(),
    '.': () => lab.jump('event'),
    ',': () => lab.jump('event', -1),
    l: () => lab.jump('loss', by),
    t: () => lab.jump('timeout', by),
    r: () => lab.jump('local', by),
  };
  const act = keys[event.key.length === 1 ? event.key.toLowerCase() : event.key];
  if (!act) return;
  event.preventDefault();
  act();
}
