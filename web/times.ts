// Measures how soon pages of the laboratory show something: `make web-times`, or with the addresses of several pages,
// which it visits in turn: `node --import ./tests/typescript.mjs times.ts OLD/lab.html NEW/lab.html`.
//
// - first paint: from the start of the navigation to the first content;
// - first picture: until the plots of the first run are drawn;
// - slider: from the input event of a slider to the frame with the plots of its run, median of `TURNS` moves.

import { resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { Browser } from 'playwright-core';

import { LAB, launch, ready } from './tests/browser.ts';

/** Visits of each page, each in a new browser. */
const VISITS = Number(process.env.VISITS ?? 9);
/** Moves of the slider in a visit. */
const TURNS = 15;

const median = (all: number[]) => all.toSorted((a, b) => a - b)[Math.floor(all.length / 2)]!;

/** One visit, in milliseconds. */
async function visit(browser: Browser, url: string): Promise<Record<string, number>> {
  const page = await browser.newPage({ viewport: { width: 1440, height: 900 } });
  await page.goto(url);
  await ready(page);
  const times = await page.evaluate(async (turns) => {
    const lab = (window as any).lab;
    const picture = performance.now();
    const paint = performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? NaN;
    const slider = document.querySelector<HTMLInputElement>('.sliders input')!;
    const all: number[] = [];
    for (let i = 0; i < turns; i++) {
      await new Promise((done) => setTimeout(done, 150));
      const runs = lab.runs;
      // The same values in each visit.
      slider.value = String(60 + 5 * (i % 7));
      slider.dispatchEvent(new InputEvent('input', { bubbles: true }));
      while (lab.runs === runs || lab.columns.some((column: any) => column.busy)) await new Promise((done) => setTimeout(done, 5));
      await new Promise((done) => setTimeout(done, 60));
      all.push(lab.took);
    }
    return { paint, picture, all };
  }, TURNS);
  await page.close();
  return { 'first paint': times.paint, 'first picture': times.picture, slider: median(times.all) };
}

const urls = process.argv.slice(2).map((it) => (/^[a-z]+:/.test(it) ? it : pathToFileURL(resolve(it)).href));
if (urls.length === 0) urls.push(LAB);
const found = urls.map(() => ({}) as Record<string, number[]>);
for (let i = 0; i < VISITS + 1; i++) {
  for (const [j, url] of urls.entries()) {
    const browser = await launch();
    const times = await visit(browser, url);
    await browser.close();
    // The first visit fills the caches of the disk.
    if (i === 0) continue;
    for (const [name, value] of Object.entries(times)) (found[j]![name] ??= []).push(value);
  }
}
for (const [j, url] of urls.entries()) {
  const figures = Object.entries(found[j]!).map(([name, all]) => {
    const sorted = all.toSorted((a, b) => a - b);
    return `${name} ${median(all).toFixed(0)} ms (${sorted[0]!.toFixed(0)} to ${sorted.at(-1)!.toFixed(0)})`;
  });
  console.log(`${url}, ${VISITS} visits: ${figures.join('; ')}`);
}
