// A capture that is dropped on the page: what `lasthop analyze` says of it. Nothing leaves the page.

import { type TemplateResult, html, nothing } from 'lit';

import { type Engine, Superseded } from '../engine/engine.ts';
import { Refused, type Trouble } from '../engine/envelope.ts';
import { SequencePlot, TimeCursor } from '../plots/index.ts';
import { packed } from './recording.ts';

interface Told {
  title: string;
  facts: [string, string][];
  end: number;
}

/** The section about a capture. */
export class Captured {
  readonly #engine: Engine;
  readonly #changed: () => void;
  #trouble: Trouble | null = null;
  #heading: string[] = [];
  #file = '';
  #transfers: { told: Told; place: HTMLElement }[] = [];
  #left = 0;
  #plots: SequencePlot[] = [];

  constructor(engine: Engine, changed: () => void) {
    this.#engine = engine;
    this.#changed = changed;
  }

  /** Analyses a file. */
  async analyse(name: string, bytes: Uint8Array): Promise<void> {
    this.#plots.forEach((plot) => plot.destroy());
    [this.#plots, this.#transfers, this.#heading, this.#trouble, this.#left] = [[], [], [], null, 0];
    this.#file = name;
    try {
      const { told, columns } = await this.#engine.ask('capture', { ask: 'capture', name }, bytes);
      this.#heading = told.heading;
      this.#left = told.transfers - told.told.length;
      this.#transfers = told.told.map((it: Told) => ({ told: it, place: document.createElement('div') }));
      this.#changed();
      this.#transfers.forEach(({ told: it, place }, i) => {
        const plot = new SequencePlot(place, new TimeCursor([0, Math.max(it.end, 1e-6)]), {
          title: `Time and sequence, ${it.title}`,
          file: `transfer-${i + 1}`,
        });
        plot.set(packed(columns, i, it.end));
        this.#plots.push(plot);
      });
    } catch (error) {
      if (error instanceof Superseded) return;
      this.#trouble = error instanceof Refused ? error.trouble : { message: String(error), help: '' };
    }
    this.#changed();
  }

  view(): TemplateResult {
    const chosen = async (event: Event) => {
      const file = (event.target as HTMLInputElement).files?.[0];
      if (file) await this.analyse(file.name, new Uint8Array(await file.arrayBuffer()));
    };
    return html`<section class="capture" aria-label="Capture">
      <h2>A capture of your own</h2>
      <p>
        Drop a pcap or pcapng on the page, or choose one: what happened to TCP in it, and why. It is read here and goes nowhere.
      </p>
      <label class="file">Capture <input id="capture" type="file" accept=".pcap,.pcapng,.cap" @change=${chosen} /></label>
      ${this.#trouble ? html`<div class="wrong" role="alert"><p>${this.#trouble.message}. <span class="help">${this.#trouble.help}</span></p></div>` : nothing}
      ${this.#heading.length > 0 ? html`<h3>${this.#file}</h3>` : nothing}
      ${this.#heading.map((line) => html`<p>${line}</p>`)}
      ${this.#left > 0 ? html`<p>The ${this.#transfers.length} largest transfers; ${this.#left} more are in the file.</p>` : nothing}
      ${this.#transfers.map(
        ({ told, place }) => html`<section class="transfer" aria-label=${told.title}>
          <h3>${told.title}</h3>
          <table>
            <tbody>
              ${told.facts.map(([name, value]) => html`<tr><th scope="row">${name}</th><td>${value}</td></tr>`)}
            </tbody>
          </table>
          ${place}
        </section>`,
      )}
    </section>`;
  }
}
