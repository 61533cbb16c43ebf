// Reports of every kind in a browser, opened from files: plots are interactive and show the data, no page sends requests to other
// origins, and axe finds no violations.

import assert from 'node:assert/strict';
import { mkdir, readFile, readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import type { Browser, Page } from 'playwright-core';

import { launch } from './browser.ts';
import { PAGES, PICTURES, inPage, make, scroll } from './made.ts';
import { violations, watch } from './pages.ts';

/** Directory for pictures of all pages, if set. */
const shots = process.env.LASTHOP_SHOTS;

let dir: string;
let browser: Browser;

before(async () => {
  dir = await make();
  browser = await launch();
  if (shots) await mkdir(shots, { recursive: true });
});

after(async () => {
  await browser?.close();
  if (dir) await rm(dir, { recursive: true, force: true });
});

/** Opens a page of a report; its figures become live when they are visible. */
async function open(file: string, width: number, colorScheme: 'light' | 'dark' = 'light') {
  const context = await browser.newContext({ viewport: { width, height: 900 }, colorScheme, acceptDownloads: true });
  const page = await context.newPage();
  const wrong = watch(page);
  await page.goto(`file://${join(dir, file)}`);
  return { page, wrong, close: () => context.close() };
}

interface Mark {
  at: number;
  kind: string;
  from: number;
  to: number;
}

const WORDS: Record<string, string> = {
  first: 'data',
  fast: 'fast retransmission',
  timeout: 'retransmission after timeout',
  eln: 'retransmission after loss notice',
  probe: 'tail loss probe',
  local: 'local retransmission',
  again: 'retransmission',
};

/** The data that the program wrote next to the page. */
async function truth(): Promise<{ marks: Mark[]; bad: [number, number][]; end: number }> {
  const [cell] = await readdir(join(dir, 'run/trace'));
  const series = JSON.parse(await readFile(join(dir, `run/trace/${cell}/sequence-1.json`), 'utf8'));
  const marks: Mark[] = [];
  for (const { at_s, start, end, kind } of series.sent) marks.push({ at: at_s, kind: WORDS[kind]!, from: start, to: end });
  for (const { at_s, start, end } of series.lost) marks.push({ at: at_s, kind: 'lost', from: start, to: end });
  const bad = series.bad.map(({ from_s, to_s }: { from_s: number; to_s: number }) => [from_s, to_s]);
  return { marks, bad, end: series.end_s };
}

/** The counts in the line below a plot, by kind. */
async function counts(page: Page): Promise<Record<string, number>> {
  const text = (await page.locator('.lhp-status').first().textContent())!.replaceAll('\u2009', '');
  const [, words = ''] = text.split(' s: ');
  return Object.fromEntries([...words.matchAll(/([^,]+?) (\d+)(?:, |$)/g)].map(([, kind, n]) => [kind!, Number(n)]));
}

/** The marks in view, from the saved CSV. */
async function saved(page: Page): Promise<Mark[]> {
  const [download] = await Promise.all([
    page.waitForEvent('download'),
    page.getByRole('button', { name: 'CSV of the view' }).first().click(),
  ]);
  assert.match(download.suggestedFilename(), /\.csv$/);
  const text = await readFile((await download.path())!, 'utf8');
  return text.trim().split('\n').slice(1).map((line) => {
    const [at, kind, from, to] = line.split(',');
    return { at: Number(at), kind: kind!, from: Number(from), to: Number(to) };
  });
}

const settled = (page: Page) => page.waitForTimeout(350);

test('zooming into a bad period shows each of its losses, and they are those of the run', async () => {
  const { marks, bad } = await truth();
  const lossesIn = ([from, to]: [number, number]) => marks.filter((m) => m.kind === 'lost' && m.at >= from && m.at <= to);
  const band = bad.reduce((a, b) => (lossesIn(a).length >= lossesIn(b).length ? a : b));
  assert.ok(lossesIn(band).length >= 100, `${lossesIn(band).length} losses in the worst period`);

  const { page, wrong, close } = await open('run/report.html', 1100);
  await scroll(page);
  const surface = page.locator('.lhp-surface').first();
  const all = await counts(page);
  assert.equal(all.lost, marks.filter((m) => m.kind === 'lost').length);

  // Go to the first loss of the band by keys, then zoom in at that position.
  await surface.focus();
  const status = page.locator('.lhp-status').first();
  const first = lossesIn(band)[0]!;
  for (let i = 0; i < 200; i++) {
    await page.keyboard.press('n');
    if ((await status.textContent())!.startsWith(`lost, ${first.at.toFixed(2)}`)) break;
  }
  for (let i = 0; i < 8; i++) await page.keyboard.press('+');
  await settled(page);
  for (const closer of [0, 3, 3]) {
    // A button that was clicked has the focus.
    await surface.focus();
    for (let i = 0; i < closer; i++) await page.keyboard.press('+');
    await settled(page);
    const shown = await saved(page);
    const range = [shown[0]!.at, shown.at(-1)!.at] as const;
    const counted = await counts(page);
    for (const kind of ['data', 'lost', 'fast retransmission']) {
      const wanted = marks.filter((m) => m.kind === kind && m.at >= range[0] && m.at <= range[1]);
      const found = shown.filter((m) => m.kind === kind);
      assert.deepEqual(found, wanted, `${kind} from ${range.join(' to ')}`);
      assert.equal(counted[kind] ?? 0, wanted.length, kind);
    }
    assert.ok(shown.some((m) => m.kind === 'lost'));
  }
  // Now a single loss has several columns of pixels.
  const few = await counts(page);
  assert.ok(few.lost! > 0 && few.lost! < 60, JSON.stringify(few));
  if (shots) await page.screenshot({ path: join(shots, 'zoomed.png') });
  assert.deepEqual(wrong, []);
  await close();
});

test('a pick finds the mark that is there', async () => {
  const { marks } = await truth();
  const { page, wrong, close } = await open('run/report.html', 1100);
  await scroll(page);
  const surface = page.locator('.lhp-surface').first();
  await surface.focus();
  await page.keyboard.press('n');
  for (let i = 0; i < 12; i++) await page.keyboard.press('+');
  await settled(page);
  // Moves the pointer over the whole plot and collects the texts of the box.
  const tips = await surface.evaluate((surface) => {
    const tip = surface.querySelector<HTMLElement>('.lhp-tip')!;
    const { left, top } = surface.getBoundingClientRect();
    const all: string[] = [];
    for (let x = 80; x < 1000; x += 4) {
      for (let y = 24; y < 350; y += 12) {
        const at = { clientX: left + x, clientY: top + y, pointerType: 'mouse', bubbles: true };
        surface.dispatchEvent(new PointerEvent('pointermove', at));
        if (!tip.hidden) all.push(tip.textContent!);
      }
    }
    return all;
  });
  const found = new Map<string, Mark>();
  for (const text of tips) {
    const [kind, at, bytes] = text.replaceAll('\u2009', '').split('\n');
    const [, from, to] = /bytes (\d+) to (\d+)/.exec(bytes ?? '') ?? [];
    if (from) found.set(text, { kind: kind!, at: Number.parseFloat(at!), from: Number(from), to: Number(to) });
  }
  assert.ok(found.size > 3, `${found.size} marks`);
  for (const pick of found.values()) {
    const same = (m: Mark) => m.kind === pick.kind && m.from === pick.from && m.to === pick.to && Math.abs(m.at - pick.at) < 1e-3;
    assert.ok(marks.some(same), JSON.stringify(pick));
  }
  // The table has the marks in view.
  await page.getByText('Table of the view').first().click();
  await settled(page);
  const rows = page.locator('.lhp-table tbody').first().locator('tr');
  const listed = await rows.count();
  assert.ok(listed > 0 && listed <= 200);
  assert.deepEqual(wrong, []);
  await close();
});

test('a link to an event leads to its part of the plot', async () => {
  const { page, wrong, close } = await open('run/report.html', 1100);
  const links = page.locator('a[data-from]');
  assert.ok((await links.count()) > 0, 'whole windows are lost: there are stalls');
  for (const link of await links.all()) {
    // A link is reachable by keyboard, even if its plot was not visible before.
    await link.focus();
    await page.keyboard.press('Enter');
    const plot = page.locator(`figure[id="${(await link.getAttribute('href'))!.slice(1)}"]`);
    await plot.locator('.lhp-live').waitFor();
    await settled(page);
    const [, text] = /at ([\d.]+) s/.exec((await link.textContent())!)!;
    const words = (await plot.locator('.lhp-status').textContent())!.replaceAll('\u2009', '');
    const [, from, to] = /^([\d.]+) to ([\d.]+) s/.exec(words)!;
    assert.ok(Number(from) <= Number(text) + 0.01 && Number(text) <= Number(to) + 0.01, `${text}: ${words}`);
    const shown = Number(await link.getAttribute('data-to')) - Number(await link.getAttribute('data-from'));
    assert.ok(Math.abs(Number(to) - Number(from) - shown) < 0.1 * shown + 0.02, words);
    assert.ok(await plot.evaluate((figure) => figure.getBoundingClientRect().top < innerHeight), 'it is visible');
  }
  assert.deepEqual(wrong, []);
  await close();
});

test('pictures can be saved, and a mouse drags, boxes and resets', async () => {
  const { page, wrong, close } = await open('run/report.html', 1100);
  await scroll(page);
  const status = page.locator('.lhp-status').first();
  const whole = await status.textContent();
  const surface = page.locator('.lhp-surface').first();
  await surface.scrollIntoViewIfNeeded();
  const box = (await surface.boundingBox())!;
  const at = (x: number, y: number) => page.mouse.move(box.x + x, box.y + y, { steps: 3 });
  await at(300, 100);
  await page.keyboard.down('Shift');
  await page.mouse.down();
  await at(420, 300);
  await page.mouse.up();
  await page.keyboard.up('Shift');
  await settled(page);
  const boxed = await status.textContent();
  assert.notEqual(boxed, whole);
  await at(300, 100);
  await page.mouse.down();
  await at(200, 100);
  await page.mouse.up();
  await settled(page);
  assert.notEqual(await status.textContent(), boxed);
  for (const [name, begins] of [['PNG', '\x89PNG'], ['SVG', '<svg']] as const) {
    const [download] = await Promise.all([
      page.waitForEvent('download'),
      page.getByRole('button', { name: `${name} of the view` }).first().click(),
    ]);
    const bytes = await readFile((await download.path())!, 'latin1');
    assert.ok(bytes.startsWith(begins), name);
  }
  await page.getByRole('button', { name: 'All: show the whole' }).first().click();
  await page.mouse.move(0, 0);
  await settled(page);
  assert.equal(await status.textContent(), whole);
  assert.deepEqual(wrong, []);
  await close();
});

test('on a phone two fingers zoom and one moves', async () => {
  const viewport = { width: 360, height: 800 };
  const context = await browser.newContext({ viewport, hasTouch: true, isMobile: true });
  const page = await context.newPage();
  await page.goto(`file://${join(dir, 'run/report.html')}`);
  await scroll(page);
  const surface = page.locator('.lhp-surface').first();
  await surface.scrollIntoViewIfNeeded();
  await settled(page);
  const status = page.locator('.lhp-status').first();
  const range = async () => {
    const [, from, to] = /([\d.]+) to ([\d.]+) s/.exec((await status.textContent())!)!;
    return [Number(from), Number(to)] as const;
  };
  const whole = await range();
  const { x, y } = (await surface.boundingBox())!;
  const session = await context.newCDPSession(page);
  const touch = (type: 'touchStart' | 'touchMove' | 'touchEnd', ...at: number[]) => {
    const touchPoints = at.map((px, id) => ({ x: x + px, y: y + 100, id }));
    return session.send('Input.dispatchTouchEvent', { type, touchPoints });
  };
  await touch('touchStart', 130, 170);
  for (let i = 1; i <= 6; i++) await touch('touchMove', 130 - 10 * i, 170 + 10 * i);
  await touch('touchEnd');
  await settled(page);
  const closer = await range();
  assert.ok(closer[1] - closer[0] < (whole[1] - whole[0]) / 2, `${closer}`);
  await touch('touchStart', 200);
  for (let i = 1; i <= 6; i++) await touch('touchMove', 200 - 10 * i);
  await touch('touchEnd');
  await settled(page);
  assert.ok((await range())[0] > closer[0], 'later');
  await context.close();
});

test('a page that may run no script shows its pictures, and so does paper', async () => {
  const context = await browser.newContext({ javaScriptEnabled: false });
  const page = await context.newPage();
  await page.goto(`file://${join(dir, 'run/report.html')}`);
  assert.ok(await page.locator('figure svg').first().isVisible());
  assert.equal(await page.locator('.lhp').count(), 0);
  await context.close();
  const { page: live, close } = await open('run/report.html', 1100);
  await scroll(live);
  const still = live.locator('figure > .scroll').first();
  assert.ok(await still.isHidden());
  await live.emulateMedia({ media: 'print' });
  assert.ok((await still.isVisible()) && (await live.locator('.lhp').first().isHidden()));
  await close();
});

for (const [, file] of PAGES) {
  test(`${file}: axe finds nothing, no page is wider than its screen or sends requests`, async () => {
    const looks = shots
      ? ([360, 800, 1600].flatMap((width) => [[width, 'light'], [width, 'dark']]) as [number, 'light' | 'dark'][])
      : ([[360, 'dark'], [800, 'light']] as const);
    for (const [width, scheme] of looks) {
      const { page, wrong, close } = await open(file, width, scheme);
      await scroll(page);
      assert.deepEqual(await violations(page), [], `${width} pixels, ${scheme}`);
      const beyond = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
      assert.ok(beyond <= 0, `${beyond} pixels too wide at ${width}`);
      assert.deepEqual(wrong, []);
      const name = `${file.replace('/report', '').replaceAll('/', '-').replace('.html', '')}-${width}-${scheme}.png`;
      if (shots) await page.screenshot({ path: join(shots, name), fullPage: true });
      await close();
    }
  });
}

for (const [kind, file] of PICTURES) {
  test(`${file}: axe finds nothing in the picture, light and dark`, async () => {
    const svg = await readFile(join(dir, file), 'utf8');
    for (const colorScheme of ['light', 'dark'] as const) {
      const context = await browser.newContext({ viewport: { width: 1200, height: 800 }, colorScheme });
      const page = await context.newPage();
      await page.setContent(inPage(kind, svg));
      assert.match((await page.locator('svg').getAttribute('aria-label')) ?? '', /\w/, 'it has a name');
      assert.deepEqual(await violations(page), [], colorScheme);
      await context.close();
    }
  });
}
