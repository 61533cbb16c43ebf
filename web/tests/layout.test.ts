// Layout of the laboratory: which parts are visible together, which parts move, and the units of sizes.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Page } from 'playwright-core';

import { laboratory } from './browser.ts';

const { opened } = laboratory();

/** Top, right and bottom of all elements of a kind that are in the page. */
const boxes = (page: Page, selector: string) =>
  page.locator(selector).evaluateAll((all) => all.map((it) => it.getBoundingClientRect()).map(({ top, left, right, bottom }) => ({ top, left, right, bottom })));

for (const [width, height] of [[1440, 900], [1280, 720]] as const) {
  test(`controls, path, explanation and plots are visible together, ${width} x ${height}`, async () => {
    await opened(async (page) => {
      await page.locator('[data-jump=timeout]').click();
      await page.locator('.detail', { hasText: 'tcp-timeout' }).waitFor();
      await page.waitForTimeout(400);
      for (const part of ['#scenario', '.player', '.path canvas', '.explain', '.column .lhp-surface']) {
        for (const box of await boxes(page, part)) {
          assert.ok(box.top >= 0 && box.bottom <= height + 1 && box.right <= width, `${part}: ${JSON.stringify(box)}`);
        }
      }
      assert.equal((await boxes(page, '.sliders .slider')).filter(({ bottom }) => bottom <= height).length, 5);
      // Next to each other, on one time axis.
      const [one, two] = await boxes(page, '.column .lhp-surface');
      assert.ok(Math.abs(one!.top - two!.top) < 1 && one!.right <= two!.left);
      await page.mouse.wheel(0, 600);
      await page.waitForTimeout(200);
      assert.ok((await boxes(page, '.player'))[0]!.top >= 0, 'the bar of time stays');
    }, { viewport: { width, height } });
  });
}

for (const [width, height] of [[360, 740], [768, 1024], [1280, 720], [1920, 1080]] as const) {
  test(`the time and the key to the signs stay in view, ${width} x ${height}`, async () => {
    await opened(async (page) => {
      for (const go of ['.path', '.explain', '.lhp-surface', '.column-foot']) {
        await page.evaluate((go) => {
          const all = document.querySelectorAll(`.columns ${go}`);
          all[all.length - 1]!.scrollIntoView({ block: 'end' });
        }, go);
        const [[bar], [signs]] = [await boxes(page, '.player .bar'), await boxes(page, '.results .signs')];
        assert.ok(bar!.top >= 0 && signs!.top >= bar!.bottom - 1, `${go}: ${JSON.stringify([bar, signs])}`);
        assert.ok(signs!.bottom - bar!.top < 0.25 * height && signs!.bottom <= height && signs!.right <= width, `${go}: ${JSON.stringify(signs)}`);
      }
    }, { viewport: { width, height } });
  });
}

test('packets move at once, until the user chooses a time', async () => {
  const time = (page: Page) => page.evaluate(() => (window as any).lab.time as number);
  const picture = (page: Page, of: string) => page.locator(of).first().evaluate((it) => (it as HTMLCanvasElement).toDataURL());
  await opened(async (page) => {
    await page.waitForFunction(() => (window as any).lab.time > 0.03);
    await page.locator('[data-jump=loss]').click();
    const jumped = await time(page);
    await page.waitForTimeout(200);
    assert.equal(await time(page), jumped);
    await page.evaluate(() => (window as any).lab.learn('loss'));
    const before = await picture(page, '.preview canvas');
    await page.waitForFunction(() => document.querySelector<HTMLCanvasElement>('.preview canvas')!.width > 300);
    await page.waitForTimeout(600);
    assert.notEqual(await picture(page, '.preview canvas'), before, 'the path of the lesson moves');
    assert.equal(await time(page), 0);
    await page.locator('.lesson input[type=radio]').first().check();
    await page.locator('[data-commit]').click();
    await page.waitForFunction(() => (window as any).lab.time > 0.03);
    await page.locator('[data-result]').click();
    assert.equal(await page.locator('button.play').textContent(), 'Play', 'the result is at rest');
  }, { reducedMotion: 'no-preference' });
});

test('four columns are in one row at 1440 pixels', async () => {
  await opened(async (page) => {
    await page.evaluate(async () => {
      const { lab } = window as any;
      lab.shown.schemes = ['as-is', ...lab.choices.schemes.filter((name: string) => name !== 'as-is').slice(0, 3)];
      await lab.rerun(0);
    });
    const columns = await boxes(page, '.column');
    assert.equal(columns.length, 4);
    assert.equal(new Set(columns.map(({ top }) => Math.round(top))).size, 1, JSON.stringify(columns));
    assert.ok(columns.every(({ left, right }, i) => left >= 0 && right <= 1440 && (i === 0 || left >= columns[i - 1]!.right)));
    for (const part of ['.column-head', '.numbers', '.explain', '.column .lhp-surface']) {
      const inside = (await boxes(page, part)).every(({ right }, i) => right <= columns[i]!.right + 1);
      assert.ok(inside, `${part} leaves its column`);
    }
  }, { viewport: { width: 1440, height: 900 } });
});

for (const width of [360, 700, 800, 999]) {
  test(`three columns are no wider than a window of ${width} pixels`, async () => {
    await opened(async (page) => {
      await page.evaluate(async () => {
        const { lab } = window as any;
        lab.shown.schemes = lab.choices.schemes.slice(0, 3);
        await lab.rerun(0);
      });
      await page.waitForTimeout(300);
      const columns = await boxes(page, '.column');
      assert.equal(columns.length, 3);
      for (const box of [...columns, ...(await boxes(page, '.column-head > *'))]) assert.ok(box.right <= width, JSON.stringify(box));
    }, { viewport: { width, height: 900 } });
  });
}

test('the layout does not move during jumps from event to event', async () => {
  await opened(async (page) => {
    await page.locator('[data-jump=loss]').click();
    await page.locator('.detail').first().waitFor();
    await page.waitForTimeout(600);
    await page.evaluate(() => {
      (window as any).shift = 0;
      new PerformanceObserver((list) => {
        for (const entry of list.getEntries() as any[]) (window as any).shift += entry.value;
      }).observe({ type: 'layout-shift' });
    });
    for (const goal of ['loss', 'timeout', 'local', 'loss', 'timeout']) {
      // Browsers do not count a shift right after a click, but they count one after a script's call.
      await page.evaluate((goal) => (window as any).lab.jump(goal), goal);
      await page.waitForTimeout(300);
    }
    const shift = await page.evaluate(() => (window as any).shift);
    assert.ok(shift < 0.01, `layout shift ${shift}`);
  }, { viewport: { width: 1440, height: 900 } });
});

test('sizes are in binary units and rates in bits per second', async () => {
  await opened(async (page) => {
    await page.locator('.sliders button', { hasText: 'All' }).click();
    await page.locator('#runs').selectOption('5');
    await page.locator('.band-words', { hasText: 'snoop' }).waitFor();
    const text = await page.evaluate(() => document.body.innerText);
    assert.match(text, /\d KiB/);
    assert.match(text, /\d Mbit\/s/);
    assert.deepEqual(text.match(/\d ?[kKMG]B\b|[Bb]\/s/g) ?? [], []);
  });
});

test('with motion off Play steps from event to event', async () => {
  await opened(async (page) => {
    assert.ok(!(await page.locator('.motion input').isChecked()));
    await page.locator('button.play').click();
    const times: number[] = [];
    for (let i = 0; i < 3; i++) {
      await page.waitForFunction((last) => (window as any).lab.time > last, times.at(-1) ?? 0);
      times.push(await page.evaluate(() => (window as any).lab.time));
    }
    await page.locator('button.play').click();
    const events = await page.evaluate(() => (window as any).lab.columns.flatMap(({ run }: any) => [...run.t.slice(0, 2000)]));
    for (const time of times) assert.ok(events.includes(time), `${time} is the time of an event`);
    await page.locator('.motion input').check();
    await page.locator('button.play').click();
    await page.waitForFunction((last) => (window as any).lab.time > last + 0.05, times.at(-1)!);
  }, { reducedMotion: 'reduce' });
});

test('a click into a plot puts all columns at its time, and the cursor stays there', async () => {
  await opened(async (page) => {
    const surface = page.locator('.column .lhp-surface').nth(1);
    const { width } = (await surface.boundingBox())!;
    // Below the line of data, where there is no mark.
    await surface.click({ position: { x: width * 0.6, y: 200 } });
    await page.mouse.move(5, 500);
    const { time, cursor, times } = await page.evaluate(() => {
      const { lab } = window as any;
      return { time: lab.time, cursor: lab.cursor.time, times: lab.cursor.whole };
    });
    assert.ok(time > 0.4 * times[1] && time < 0.7 * times[1], `${time} of ${times[1]}`);
    assert.equal(cursor, time);
    assert.match((await page.locator('.player .time').textContent())!, new RegExp(`^${Math.floor(time)}\\.`));
  });
});

test('a packet under the pointer has a label', async () => {
  await opened(async (page) => {
    await page.locator('[data-jump=loss]').click();
    const canvas = page.locator('.path canvas').first();
    const { width } = (await canvas.boundingBox())!;
    const seen: string[] = [];
    const labels = [/^data, bytes \d+ to \d+, arrives$/, /lost at /];
    const missing = () => labels.filter((label) => !seen.some((it) => label.test(it)));
    for (let x = 4; x < width && missing().length > 0; x += 6) {
      await canvas.hover({ position: { x, y: 58 } });
      const tip = page.locator('.path-tip').first();
      if (await tip.isVisible()) seen.push((await tip.textContent())!);
    }
    assert.deepEqual(missing(), [], seen.join('; '));
  });
});
