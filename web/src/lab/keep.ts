// Saves the content of a column as a file.

import { save } from '../plots/dom.ts';
import type { Lab } from './app.ts';
import type { Column } from './column.ts';

/** Saves the content of a column. `form` is png, svg, toml, csv or pcapng. */
export async function keep(lab: Lab, column: Column, form: string): Promise<void> {
  const stem = `lasthop-${lab.checked?.name ?? 'run'}-${column.scheme}`;
  if (form === 'png') save((await column.png())!, `${stem}.png`);
  else if (form === 'svg') save(new Blob([column.svg], { type: 'image/svg+xml' }), `${stem}.svg`);
  else if (form === 'toml') save(new Blob([changedText(lab)], { type: 'application/toml' }), `${stem}.toml`);
  else {
    const files = await column.file(form as 'csv' | 'pcapng');
    for (const { name, bytes } of files) save(new Blob([bytes as Uint8Array<ArrayBuffer>]), name);
  }
}

/** The scenario, after a comment with the command that repeats the run with the settings of the sliders. */
function changedText(lab: Lab): string {
  const { text, set } = lab.scene as { text: string; set: string[] };
  if (set.length === 0) return text;
  const words = set.map((set) => ` --set ${set}`).join('');
  return `# Made in the laboratory with${words}\n# lasthop run THIS.toml${words}\n${text}`;
}
