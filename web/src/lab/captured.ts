// The analysis of a capture that is dropped on the page, as of `lasthop analyze`. Its data never leave the page.

import { type TemplateResult, html, nothing } from 'lit';

import { type Engine, Superseded } from '../engine/engine.ts';
import { Refused, type Trouble } from '../engine/envelope.ts';
import { SequencePlot, TimeCursor } from '../plots/index.ts';
import { packed } from './recording.ts';

/** A transfer of the capture, as crates/web/src/capture.rs describes it. */
interface Transfer {
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
  #transfers: { transfer: Transfer; place: HTMLElement }[] = [];
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
      const { json, columns } = await this.#engine.ask('capture', { ask: 'capture', name }, bytes);
      this.#heading = json.heading;
      this.#left = json.transfers - json.described.length;
      this.#transfers = json.described.map((transfer: Transfer) => ({ transfer, place: document.createElement('div') }));
      this.#changed();
      this.#transfers.forEach(({ transfer, place }, i) => {
        const plot = new SequencePlot(place, new TimeCursor([0, Math.max(transfer.end, 1e-6)]), {
          title: `Time and sequence, ${transfer.title}`,
          file: `transfer-${i + 1}`,
        });
        plot.set(packed(columns, i, transfer.end));
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
      <h2>Your own capture</h2>
      <p>
        Drop a pcap or pcapng file on the page, or choose one, to see what happened to its TCP connections, and why. The file stays in this page.
      </p>
      <label class="file">Capture <input id="capture" type="file" accept=".pcap,.pcapng,.cap" @change=${chosen} /></label>
      ${this.#trouble ? html`<div class="wrong" role="alert"><p>${this.#trouble.message}. <span class="help">${this.#trouble.help}</span></p></div>` : nothing}
      ${this.#heading.length > 0 ? html`<h3>${this.#file}</h3>` : nothing}
      ${this.#heading.map((line) => html`<p>${line}</p>`)}
      ${this.#left > 0 ? html`<p>The ${this.#transfers.length} largest transfers; ${this.#left} more are in the file.</p>` : nothing}
      ${this.#transfers.map(
        ({ transfer, place }) => html`<section class="transfer" aria-label=${transfer.title}>
          <h3>${transfer.title}</h3>
          <table>
            <tbody>
              ${transfer.facts.map(([name, value]) => html`<tr><th scope="row">${name}</th><td>${value}</td></tr>`)}
            </tbody>
          </table>
          ${place}
        </section>`,
      )}
    </section>`;
  }
}
