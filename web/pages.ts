// Draws every kind of page at four widths, light and dark, for a review by eye: `make web-pages`. Writes the pages, and a contact
// sheet for each kind.

import { mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import type { Browser, Page } from 'playwright-core';

import { LAB, OUT, launch, ready } from './tests/browser.ts';
import { PAGES, PICTURES, inPage, make, scroll } from './tests/made.ts';

const WIDTHS = [360, 800, 1280, 1600];
const SCHEMES = ['light', 'dark'] as const;
/** Maximum height of a page in a sheet, in its own pixels; its own picture has all of it. */
const HIGHEST = 4000;

/** The kinds to draw, by the beginnings of their names; all if none is given. */
const wanted = process.argv.slice(2);

const place = join(OUT, 'pictures');
if (wanted.length === 0) rmSync(place, { recursive: true, force: true });
mkdirSync(place, { recursive: true });

/** A kind of page, and how to bring it into the state in which it is drawn. */
type Shown = [kind: string, open: (page: Page) => Promise<void>];

/** Draws a kind of page at all widths, light and dark, and its sheet. */
async function draw(browser: Browser, [kind, open]: Shown): Promise<void> {
  const files: string[] = [];
  for (const scheme of SCHEMES) {
    for (const width of WIDTHS) {
      const viewport = { width, height: 900 };
      const page = await browser.newPage({ viewport, colorScheme: scheme, reducedMotion: 'reduce' });
      await open(page);
      await page.waitForTimeout(300);
      const beyond = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
      if (beyond > 0) console.log(`${kind}: ${beyond} pixels wider than ${width}`);
      const file = join(place, `${kind}-${width}-${scheme}.png`);
      await page.screenshot({ path: file, fullPage: true });
      files.push(file);
      await page.close();
    }
  }
  const sheet = await browser.newPage({ viewport: { width: 2100, height: 100 } });
  const image = (file: string, i: number) => {
    const width = WIDTHS[i % WIDTHS.length]!;
    const src = `data:image/png;base64,${readFileSync(file).toString('base64')}`;
    return `<div style="width:${width / 2}px;max-height:${HIGHEST / 2}px;overflow:hidden"><img src="${src}" width="${width / 2}"></div>`;
  };
  const row = (i: number) => files.slice(i, i + WIDTHS.length).map((file, j) => image(file, i + j)).join('');
  const rows = [0, WIDTHS.length].map((i) => `<div style="display:flex;gap:8px;align-items:start;margin:8px">${row(i)}</div>`);
  await sheet.setContent(`<body style="margin:0;background:#888">${rows.join('')}`);
  await sheet.screenshot({ path: join(place, `sheet-${kind}.png`), fullPage: true });
  await sheet.close();
}

const lab = (go: (page: Page) => Promise<unknown>) => async (page: Page) => {
  await page.goto(LAB);
  await ready(page);
  await go(page);
  await page.waitForTimeout(500);
};

// Reports are made only if some of them are drawn.
const dir = wanted.length > 0 && wanted.every((it) => /^(lab|lesson)/.test(it)) ? '' : await make();
const browser = await launch();
try {
  const shown: Shown[] = [
    ...PAGES.map(([kind, file]): Shown => [kind, async (page) => {
      await page.goto(pathToFileURL(join(dir, file)).href);
      await scroll(page);
    }]),
    ...PICTURES.map(([kind, file]): Shown => [kind, (page) => page.setContent(inPage(kind, readFileSync(join(dir, file), 'utf8')))]),
    ['lab', lab((page) => page.locator('[data-jump=loss]').click())],
    ['lab-band', lab(async (page) => {
      await page.locator('#runs').selectOption('5');
      await page.locator('.band-words', { hasText: 'snoop' }).waitFor();
      await page.locator('details.text summary').click();
    })],
    ...readdirSync(fileURLToPath(new URL('./lessons', import.meta.url))).sort((a, b) => Number.parseInt(a) - Number.parseInt(b)).map((file): Shown => {
      const id = file.replace(/^\d+-|\.md$/g, '');
      return [`lesson-${id}`, lab(async (page) => {
        await page.evaluate((id) => (window as any).lab.learn(id), id);
        await page.locator('.lesson input[type=radio]').first().check();
        await page.locator('[data-commit]').click();
        await page.locator('[data-result]').click();
      })];
    }),
  ];
  for (const one of shown) if (wanted.length === 0 || wanted.some((it) => one[0].startsWith(it))) await draw(browser, one);
  writeFileSync(join(place, 'kinds.txt'), shown.map(([kind]) => `${kind}\n`).join(''));
  console.log(`pages of ${wanted.join(', ') || 'every kind'}: ${place}`);
} finally {
  await browser.close();
  if (dir) await rm(dir, { recursive: true, force: true });
}
