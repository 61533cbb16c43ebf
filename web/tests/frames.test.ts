// The cost of a frame of a plot with 68,000 segments, including rasterising. It is measured and printed, but not asserted, since
// machines differ. The number of drawing calls is asserted. `make web-times` measures more frames.

import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import { pathToFileURL } from 'node:url';
import type { Browser, CDPSession, Page } from 'playwright-core';

import { OUT, launch, ready } from './browser.ts';

/** Number of frames in each measurement. */
const FRAMES = Number(process.env.LASTHOP_FRAMES ?? 12);

interface Traced {
  name: string;
  ph: string;
  pid: number;
  tid: number;
  dur?: number;
  tdur?: number;
  args: { name?: string };
}

/** Opens the laboratory with a transfer of 100 MB in each column. */
async function loaded(browser: Browser, columns: number): Promise<Page> {
  const page = await browser.newPage({ viewport: { width: 1400, height: 1000 } });
  await page.goto(pathToFileURL(join(OUT, 'lab.html')).href);
  await ready(page);
  if (columns === 1) await page.locator('.column-head button', { hasText: '×' }).last().click();
  await page.evaluate(() => (window as any).lab.turn('transfer.bytes', '100MB'));
  assert.equal(await page.locator('.column').count(), columns);
  return page;
}

/** Moves the view or the cursor in each of many frames. Returns the duration of each frame, in milliseconds. */
function frames(page: Page, zoom: number | null): Promise<number[]> {
  return page.evaluate(async ([zoom, frames]) => {
    const { cursor } = (window as any).lab;
    const [from, to] = cursor.whole;
    const took: number[] = [];
    let last = 0;
    for (let i = -5; i < frames!; i++) {
      if (zoom === null) cursor.time = from + ((i + 5) / (frames! + 5)) * (to - from);
      else {
        const span = (to - from) / zoom!;
        const start = from + (to - from - span) * (0.2 + 0.005 * ((i + 5) % 100));
        cursor.range = [start, start + span];
      }
      await new Promise(requestAnimationFrame);
      const now = performance.now();
      if (i >= 0) took.push(now - last);
      last = now;
    }
    return took;
  }, [zoom, FRAMES] as const);
}

/** The same, with the CPU time of scripts, of the page's whole thread, and of the compositor. */
async function traced(session: CDPSession, page: Page, zoom: number | null): Promise<string> {
  const events: Traced[] = [];
  const collect = (data: { value: object[] }) => void events.push(...(data.value as Traced[]));
  session.on('Tracing.dataCollected', collect);
  const includedCategories = ['toplevel', 'devtools.timeline', 'disabled-by-default-devtools.timeline.frame', '__metadata'];
  await session.send('Tracing.start', { transferMode: 'ReportEvents', traceConfig: { includedCategories } });
  const took = (await frames(page, zoom)).sort((a, b) => a - b);
  const complete = new Promise((done) => session.once('Tracing.tracingComplete', done));
  await session.send('Tracing.end');
  await complete;
  session.off('Tracing.dataCollected', collect);
  const threads = new Map(events.filter((e) => e.name === 'thread_name').map((e) => [`${e.pid} ${e.tid}`, e.args.name]));
  const spent = (name: string, ...of: string[]) => {
    const all = events.filter((e) => e.ph === 'X' && e.name === name && of.includes(threads.get(`${e.pid} ${e.tid}`) ?? ''));
    return all.reduce((sum, e) => sum + (e.tdur ?? e.dur ?? 0), 0) / 1000 / (FRAMES + 5);
  };
  const task = 'ThreadControllerImpl::RunTask';
  const scripts = spent('FireAnimationFrame', 'CrRendererMain');
  const main = spent(task, 'CrRendererMain');
  const screen = spent(task, 'Compositor', 'VizCompositorThread');
  assert.ok(main > 0 && scripts <= main, 'the trace has the threads of the page');
  const at = (share: number) => took[Math.floor(share * (FRAMES - 1))]!.toFixed(1);
  return (
    `a frame after ${at(0.5)} ms (p95 ${at(0.95)}); of processors ${(main + screen).toFixed(1)} ms: ` +
    `scripts ${scripts.toFixed(1)}, raster and the page's other work ${(main - scripts).toFixed(1)}, screen ${screen.toFixed(1)}`
  );
}

test('frames of 68,000 segments: what they cost, and that little is drawn for them', async (t) => {
  // No frame waits for a screen.
  const browser = await launch('--disable-frame-rate-limit', '--disable-gpu-vsync');
  try {
    for (const columns of [1, 2]) {
      const page = await loaded(browser, columns);
      const marks = await page.evaluate(() => (window as any).lab.columns[0].run.sequence().kinds.sent.t.length);
      assert.ok(marks > 68_000, `${marks} segments`);
      const session = await browser.newBrowserCDPSession();
      for (const zoom of [null, 1.01, 10, 100, 1000]) {
        const action = zoom === null ? 'the cursor moves over all' : `moving the view, ${zoom === 1.01 ? 'nearly all' : `1/${zoom}`}`;
        t.diagnostic(`${columns} x ${marks} segments, ${action}: ${await traced(session, page, zoom)}`);
      }
      await session.detach();
      if (columns === 1) await drawn(page);
      await page.close();
    }
  } finally {
    await browser.close();
  }
});

/** Asserts the number of drawing calls in a frame: each column of pixels is drawn once, and a cursor does not redraw marks. */
async function drawn(page: Page): Promise<void> {
  const calls = await page.evaluate(async () => {
    const plain = CanvasRenderingContext2D.prototype as any;
    let calls = 0;
    for (const name of ['fillRect', 'drawImage', 'fillText', 'lineTo', 'arc', 'stroke', 'fill']) {
      const draw = plain[name];
      plain[name] = function (...words: unknown[]) {
        if ((this as CanvasRenderingContext2D).canvas.closest('.lhp')) calls++;
        return draw.apply(this, words);
      };
    }
    const { cursor } = (window as any).lab;
    const [from, to] = cursor.whole;
    const counted = async (change: () => void) => {
      calls = 0;
      change();
      for (let i = 0; i < 3; i++) await new Promise(requestAnimationFrame);
      return calls;
    };
    return {
      all: await counted(() => (cursor.range = [from, to - 1e-6])),
      cursor: await counted(() => (cursor.time = (from + to) / 2)),
    };
  });
  assert.ok(calls.all > 500 && calls.all < 9_000, `${calls.all} for all marks`);
  assert.ok(calls.cursor > 0 && calls.cursor < 20, `${calls.cursor} for a cursor`);
}
