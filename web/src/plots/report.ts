// The script of reports: replaces the picture of each figure with an interactive plot, if the page has the figure's data. On
// paper the picture is printed.

import { type Panels, type Sequence, curves, sequence } from './embedded.ts';
import { CurvePlot, SequencePlot, TimeCursor } from './index.ts';
import { dress } from './style.ts';
import { unpack } from './unpack.ts';

/** Cursors that plots share, by section and group. */
const cursors = new Map<string, TimeCursor>();

function cursor(group: string): TimeCursor {
  const found = cursors.get(group) ?? new TimeCursor();
  cursors.set(group, found);
  return found;
}

/** The plots of figures. A figure with damaged data keeps its picture. */
const live = new Map<Element, Promise<SequencePlot | null>>();

function enlivened(figure: Element): Promise<SequencePlot | null> {
  const script = figure.querySelector<HTMLScriptElement>('script[data-group]');
  if (!script) return Promise.resolve(null);
  const found = live.get(figure) ?? enliven(figure as HTMLElement, script).catch((error) => (console.error(error), null));
  live.set(figure, found);
  return found;
}

/** Returns the time-sequence plot of the figure, if it is one. */
async function enliven(figure: HTMLElement, script: HTMLScriptElement): Promise<SequencePlot | null> {
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
    return plot;
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
  return null;
}

dress(document, '@media screen{.lhp-still{display:none}}@media print{.lhp-live{display:none}}');
// Figures become live only near the visible part of the page, so a page with many figures opens quickly.
const seen = new IntersectionObserver(
  (entries) => {
    for (const { isIntersecting, target } of entries) {
      if (!isIntersecting) continue;
      seen.unobserve(target);
      void enlivened(target);
    }
  },
  { rootMargin: '400px' },
);
for (const figure of document.querySelectorAll('figure:has(script[data-group])')) seen.observe(figure);

// A link to an event shows its part of the plot. The browser scrolls to the figure.
for (const link of document.querySelectorAll<HTMLAnchorElement>('a[data-from]')) {
  link.addEventListener('click', async () => {
    const figure = document.getElementById(link.hash.slice(1));
    const plot = figure && (await enlivened(figure));
    if (plot) plot.view = { t: [Number(link.dataset.from), Number(link.dataset.to)] };
    // Figures above it may have become live in the meantime, which changes their height.
    figure?.scrollIntoView();
  });
}
