// What a report runs: each figure whose numbers the page holds gets a plot that one can touch, in place of its picture. On
// paper the picture stands there.

import { type Panels, type Sequence, curves, sequence } from './embedded.ts';
import { CurvePlot, SequencePlot, TimeCursor } from './index.ts';
import { dress } from './style.ts';
import { unpack } from './unpack.ts';

/** Plots that share their time, by section and group. */
const cursors = new Map<string, TimeCursor>();

function cursor(group: string): TimeCursor {
  const found = cursors.get(group) ?? new TimeCursor();
  cursors.set(group, found);
  return found;
}

async function enliven(figure: HTMLElement, script: HTMLScriptElement): Promise<void> {
  const embedded = JSON.parse(script.textContent ?? '') as Sequence | Panels;
  const columns = await unpack(embedded.columns, embedded.data);
  const place = document.createElement('div');
  place.className = 'lhp-live';
  figure.insertBefore(place, figure.firstChild);
  figure.querySelector('.scroll')?.classList.add('lhp-still');
  const { title } = embedded;
  if (embedded.form === 'sequence') {
    const plot = new SequencePlot(place, cursor(script.dataset.group ?? ''), { title, file: title });
    plot.set(sequence(columns, embedded));
  } else {
    const time = embedded.x === 'time (s)';
    const own = time ? cursor(script.dataset.group ?? '') : new TimeCursor();
    if (embedded.end !== null) own.reach(embedded.end);
    embedded.panels.forEach(({ y }, i) => {
      const several = embedded.panels.length > 1;
      const plot = new CurvePlot(place, own, {
        title: several ? `${title}: ${y}` : title,
        file: several ? `${title}-${i + 1}` : title,
        x: embedded.x,
        log: embedded.log,
        ...(several && { height: 170 }),
      });
      plot.set(curves(columns, embedded, i));
    });
  }
}

dress(document, '@media screen{.lhp-still{display:none}}@media print{.lhp-live{display:none}}');
// A page of many figures is not kept waiting for those that nobody looks at.
const seen = new IntersectionObserver(
  (entries) => {
    for (const { isIntersecting, target } of entries) {
      if (!isIntersecting) continue;
      seen.unobserve(target);
      const script = target.querySelector<HTMLScriptElement>('script[data-group]');
      // Where something is wrong with the numbers, the picture stays.
      if (script) enliven(target as HTMLElement, script).catch((error) => console.error(error));
    }
  },
  { rootMargin: '400px' },
);
for (const figure of document.querySelectorAll('figure:has(script[data-group])')) seen.observe(figure);
