// The laboratory in a browser. Needs the output of `make web`.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath, pathToFileURL } from 'node:url';
import type { Page } from 'playwright-core';

import { OUT, laboratory, ready } from './browser.ts';

const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
const here = (path: string) => fileURLToPath(new URL(path, import.meta.url));

const { opened, url } = laboratory();

const digests = (page: Page) => page.locator('.run-words code').allTextContents();

test('the folder opens, runs two schemes and shows them', async () => {
  await opened(async (page) => {
    assert.equal(await page.locator('.column').count(), 2);
    const found = await digests(page);
    assert.equal(found.length, 2);
    assert.notEqual(found[0], found[1]);
    assert.ok(Number.parseFloat((await page.locator('[data-number=throughput]').first().textContent())!) > 0);
  });
});

test('one file opens from a disk, and runs the same', async (t) => {
  let same: string[] = [];
  await opened(async (page) => void (same = await digests(page)));
  const file = pathToFileURL(join(OUT, 'lab.html')).href;
  await opened(async (page) => {
    assert.deepEqual(await digests(page), same);
    const paint = await page.evaluate(() => performance.getEntriesByName('first-contentful-paint')[0]!.startTime);
    t.diagnostic(`first paint from a disk after ${paint.toFixed(0)} ms`);
    // A later choice works as well: the worker comes from the file.
    await page.evaluate(() => (window as any).lab.choose('west97-lan'));
    assert.notDeepEqual(await digests(page), same);
  }, {}, file);
});

test('once loaded it opens without network', async () => {
  await opened(async (page) => {
    await page.evaluate(() => navigator.serviceWorker.ready);
    await page.context().setOffline(true);
    await page.reload();
    await ready(page);
    assert.equal(await page.locator('.column').count(), 2);
    await page.context().setOffline(false);
  }, { serviceWorkers: 'allow' });
});

test('the page that `lasthop lab` serves is that of its source', () => {
  const [committed, built] = [here('../../crates/cli/src/cmd/lab/page.html'), join(OUT, 'served.html')];
  assert.ok(readFileSync(committed).equals(readFileSync(built)), 'page.html is older than web/src: run `make web-served`');
});

test('digests are those of native runs', async () => {
  // A test of crates/web compares the same file with native runs.
  const expected: { scenario: string; scheme: string | null; seed: number; digest: string }[] =
    JSON.parse(readFileSync(here('digests.json'), 'utf8'));
  assert.ok(expected.length > 10);
  await opened(async (page) => {
    const found = await page.evaluate(async (expected) => {
      const { lab } = window as any;
      const all = [];
      for (const { scenario, scheme, seed } of expected) {
        const { text } = lab.known.scenarios.find((it: any) => it.name === scenario);
        const { json } = await lab.engine.ask('test', { ask: 'run', text, name: scenario, scheme, seed });
        all.push({ scenario, scheme, seed, digest: json.digest });
      }
      return all;
    }, expected);
    assert.deepEqual(found, expected);
  });
});

test('a slider runs again, and the newest move wins', async (t) => {
  await opened(async (page) => {
    const slider = page.locator('input[data-key="path.3.errors.mean"]');
    const before = await digests(page);
    const times: number[] = [];
    for (let i = 0; i < 15; i++) {
      const turns = await page.evaluate(() => (window as any).lab.runs);
      await slider.press(i % 2 ? 'PageDown' : 'PageUp');
      await page.waitForFunction((turns) => (window as any).lab.runs > turns, turns);
      await page.waitForTimeout(50);
      times.push(await page.evaluate(() => (window as any).lab.took));
    }
    times.sort((a, b) => a - b);
    t.diagnostic(`slider to picture, 2 MB, two schemes: median ${times[7]!.toFixed(0)} ms`);
    assert.notDeepEqual(await digests(page), before);
    // After many moves at once the last one is shown.
    await page.evaluate(async () => {
      const { lab } = window as any;
      for (const mean of ['16KiB', '32KiB', '128KiB']) void lab.turn('path.3.errors.mean', mean);
      await lab.turn('path.3.errors.mean', '256KiB');
    });
    assert.match((await page.locator('output[for="slider-path-3-errors-mean"]').textContent())!, /256 KiB/);
    const fresh = await page.evaluate(async () => {
      const { lab } = window as any;
      return (await lab.engine.ask('test', { ask: 'run', ...lab.scene, scheme: null })).json.digest;
    });
    assert.equal((await digests(page))[0], fresh);
  });
});

test('a label of a stall gives the length of the band that it names', async () => {
  await opened(async (page) => {
    const { svg, range, stalls } = await page.evaluate(() => {
      const { lab } = window as any;
      const [{ run, svg }] = lab.columns;
      const { from, to } = run.sequence().spans.stall;
      return { svg: svg as string, range: lab.cursor.range as [number, number], stalls: [...from].map((t: number, i: number) => [t, to[i]]) };
    });
    // The bands are the last path with the colour of stalls, after the legend; the axis has the pixels of a second.
    const [, path] = [...svg.matchAll(/<path d="((?:M[\d.]+ [\d.]+h[\d.]+v[\d.]+h-[\d.]+z)+)" fill="#f0ead6"/g)].at(-1)!;
    const bars = [...path!.matchAll(/M([\d.]+) ([\d.]+)h([\d.]+)v/g)].map(([, x, y, w]) => ({ x: Number(x), y: Number(y), w: Number(w) }));
    const panel = bars.filter(({ y }) => y === bars[0]!.y);
    const lines = [...svg.matchAll(/M([\d.]+) ([\d.]+)L([\d.]+) \2(?=M)/g)];
    const second = Math.max(...lines.map(([, left, , right]) => Number(right) - Number(left))) / (range[1] - range[0]);
    const labels = [...svg.matchAll(/<text x="([\d.]+)"[^>]*>([\d.]+) s<\/text>/g)];
    assert.ok(labels.length > 3 && panel.length < stalls.length, `${labels.length} labels, ${panel.length} bands of ${stalls.length} stalls`);
    for (const [, x, length] of labels) {
      const band = panel.find((it) => Math.abs(it.x + it.w / 2 - Number(x)) < 0.2)!;
      // A gap within a band is below half a pixel.
      assert.ok(Math.abs(band.w / second - Number(length)) < 0.05 + 0.6 / second, `${length} s at a band of ${band.w / second} s`);
    }
  });
});

test('a single move of a slider begins its run at once, and the path is drawn once in a frame', async () => {
  await opened(async (page) => {
    const found = await page.evaluate(async () => {
      const { lab } = window as any;
      const frame = () => new Promise(requestAnimationFrame);
      const runs: number[] = [];
      const { ask } = lab.engine;
      let asked = 0;
      lab.engine.ask = (...words: any[]) => {
        if (words[1].ask === 'run') asked++;
        return ask.apply(lab.engine, words);
      };
      const slider = document.querySelector<HTMLInputElement>('.sliders input')!;
      const move = (value: number) => {
        slider.value = String(value);
        slider.dispatchEvent(new InputEvent('input', { bubbles: true }));
        runs.push(asked);
      };
      move(40);
      move(41);
      await lab.rerun(0);
      await frame();
      const pictures = new Set([...document.querySelectorAll('.path canvas')]);
      const { clearRect } = CanvasRenderingContext2D.prototype;
      let drawn = 0;
      CanvasRenderingContext2D.prototype.clearRect = function (...words) {
        if (pictures.has(this.canvas)) drawn++;
        clearRect.apply(this, words);
      };
      for (let i = 1; i <= 5; i++) lab.go(i / 10);
      await frame();
      return { runs, drawn, pictures: pictures.size };
    });
    assert.equal(found.pictures, 2);
    assert.deepEqual(found.runs, [2, 2], 'one run in each column, before the slider rests');
    assert.equal(found.drawn, 2, 'one drawing of each path for five changes');
  });
});

test('time: jumps, steps, the cache, an event in full', async () => {
  await opened(async (page) => {
    const time = () => page.locator('.player .time').textContent();
    await page.locator('[data-jump=loss]').click();
    await page.locator('.detail').first().waitFor();
    const first = await time();
    assert.match((await page.locator('.path-words').allTextContents()).join(' '), /Lost at/);
    await page.locator('[data-jump=loss]').click();
    await page.waitForFunction((first) => document.querySelector('.player .time')?.textContent !== first, first);
    await page.locator('[data-jump=timeout]').click();
    await page.locator('.detail', { hasText: 'tcp-timeout' }).waitFor();
    assert.match((await page.locator('.detail').first().textContent())!, /RFC 6298/);
    await page.locator('[data-jump=local]').click();
    await page.locator('.detail', { hasText: 'Balakrishnan' }).waitFor();
    const cached = await page.waitForFunction(() => {
      const column = (window as any).lab.columns[1];
      return column.standing?.stages.flatMap((stage: any) => stage.kept ?? []).length;
    });
    assert.ok((await cached.jsonValue()) > 0, 'the base station caches packets at its own retransmission');
    const before = await time();
    await page.locator('button.play').click();
    await page.waitForFunction((before) => document.querySelector('.player .time')?.textContent !== before, before);
    await page.locator('button.play').click();
  });
});

test('the address holds scenario, seed and settings of sliders', async () => {
  let address = '';
  let same: string[] = [];
  await opened(async (page) => {
    await page.evaluate(() => (window as any).lab.choose('rivals'));
    await page.locator('#seed').fill('7');
    await page.locator('#seed').press('Enter');
    await page.evaluate(() => (window as any).lab.turn('path.1.link.delay', '40ms'));
    await page.waitForFunction(() => location.hash.length > 10);
    await page.waitForTimeout(100);
    [address, same] = [page.url(), await digests(page)];
  });
  await opened(async (page) => assert.deepEqual(await digests(page), same), {}, address);
  await opened(async (page) => assert.equal(await page.locator('.column').count(), 2), {}, `${url()}#z=AAAA`);
  // A lesson with its own text is found again.
  await opened(async (page) => {
    await page.evaluate(() => (window as any).lab.learn('timer'));
    await page.waitForTimeout(200);
    address = page.url();
  });
  await opened(async (page) => assert.match((await page.locator('.lesson h2').textContent())!, /coarse timer/), {}, address);
});

test('errors are shown in place, and the page continues to work', async () => {
  await opened(async (page) => {
    await page.locator('details.text summary').click();
    const field = page.locator('.editor textarea');
    const text = await field.inputValue();
    await field.fill(text.replace('delay = "5ms"', 'dealy = "5ms"'));
    await page.locator('.bench [role=alert]', { hasText: 'dealy' }).waitFor();
    assert.match((await page.locator('.bench [role=alert]').textContent())!, /did you mean `delay`/);
    assert.equal(await page.locator('.editor mark.wrong').textContent(), 'dealy');
    assert.equal(await page.locator('.column').count(), 2, 'the last good run stays');
    await field.fill(text);
    await page.locator('.bench [role=alert]').waitFor({ state: 'detached' });
    // Completion of keys.
    await field.fill(`${text}\n[host.other]\nrec`);
    await page.locator('.completions li', { hasText: 'recv-buffer' }).waitFor();
  });
});

test('several seeds together, and saved files', async () => {
  await opened(async (page) => {
    await page.locator('#runs').selectOption('5');
    await page.locator('.band-words', { hasText: 'snoop' }).waitFor();
    for (const form of ['png', 'svg', 'csv', 'pcapng', 'toml']) {
      const download = page.waitForEvent('download');
      await page.locator(`[data-save=${form}]`).first().click();
      const file = await (await download).path();
      assert.ok(readFileSync(file).length > 100, form);
    }
  });
});

test('a capture is analysed in the page', async () => {
  await opened(async (page) => {
    const download = page.waitForEvent('download');
    await page.locator('[data-save=pcapng]').first().click();
    await page.locator('#capture').setInputFiles(await (await download).path());
    await page.locator('.transfer').first().waitFor();
    assert.match((await page.locator('.transfer').first().textContent())!, /verdict/);
    await page.locator('#capture').setInputFiles({ name: 'bad.pcap', mimeType: 'application/octet-stream', buffer: Buffer.from('nonsense') });
    await page.locator('.capture .wrong').waitFor();
  });
});

for (const [width, scheme] of [[360, 'light'], [360, 'dark'], [1400, 'light'], [1400, 'dark']] as const) {
  test(`axe finds no violation, ${width} pixels, ${scheme}`, async () => {
    await opened(async (page) => {
      await page.evaluate(() => (window as any).lab.learn('loss'));
      await page.locator('.lesson input[type=radio]').first().check();
      await page.locator('[data-commit]').click();
      await page.locator('[data-result]').click();
      await page.locator('[data-jump=timeout]').click();
      await page.locator('.detail').first().waitFor();
      await page.locator('details.text summary').click();
      // The debugger evaluates it, to which the policy of the page does not apply.
      await page.evaluate(axe);
      const { violations } = await page.evaluate(() => (window as any).axe.run());
      const found = violations.map((v: any) => `${v.id}: ${v.nodes.map((n: any) => n.html.slice(0, 160)).slice(0, 3).join(' | ')}`);
      assert.deepEqual(found, []);
      const over = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
      assert.ok(over <= 0, `the page is ${over} pixels too wide`);
    }, { viewport: { width, height: 800 }, colorScheme: scheme, reducedMotion: 'reduce' });
  });
}

test('ten thousand bad inputs leave the page alive', async (t) => {
  await opened(async (page) => {
    const capture = await page.evaluate(async () => {
      const { lab } = window as any;
      return (await lab.columns[0].file('pcapng')).length;
    });
    assert.ok(capture > 0);
    const counts = await page.evaluate(async () => {
      const { lab } = window as any;
      // A small generator with a fixed seed: xorshift.
      let state = 0x2545f491;
      const draw = (n: number) => {
        state ^= state << 13;
        state ^= state >>> 17;
        state ^= state << 5;
        return (state >>> 0) % n;
      };
      const texts: string[] = lab.known.scenarios.map((it: any) => it.text);
      const signs = ['"', '=', '[', ']', '{', '}', '\n', '-1', '1e309', '0', '99999999999', 'é', '\u0000', '"5ms"', 'radio', 'inf', '.'];
      const mutated = () => {
        let text = texts[draw(texts.length)]!;
        for (let i = draw(4); i >= 0; i--) {
          const at = draw(text.length);
          const length = draw(12);
          const part = draw(3) === 0 ? '' : draw(2) ? signs[draw(signs.length)]! : texts[draw(texts.length)]!.slice(draw(400), 400 + draw(60));
          text = text.slice(0, at) + part + text.slice(at + length);
        }
        return text;
      };
      const capture: Uint8Array = (await lab.columns[0].file('pcapng'))[0].bytes.slice(0, 20000);
      const counts = { answered: 0, refused: 0, stopped: 0 };
      const ask = async (question: object, bytes?: Uint8Array) => {
        try {
          await lab.engine.ask('fuzz', question, bytes);
          counts.answered += 1;
        } catch (error: any) {
          if (!error.trouble) throw error;
          if (/stopped/.test(error.message)) counts.stopped += 1;
          else counts.refused += 1;
        }
      };
      for (let i = 0; i < 7000; i++) await ask({ ask: 'check', text: mutated(), name: 'fuzz', set: [] });
      for (let i = 0; i < 100; i++) {
        const set = ['transfer.bytes=20kB', 'horizon=5s'];
        await ask({ ask: 'run', text: mutated(), name: 'fuzz', set, seed: draw(1000) });
      }
      for (let i = 0; i < 2900; i++) {
        const bytes = capture.slice(0, 24 + draw(capture.length - 24));
        for (let j = draw(30); j >= 0; j--) bytes[draw(bytes.length)] = draw(256);
        await ask({ ask: 'capture', name: 'fuzz' }, bytes);
      }
      return counts;
    });
    t.diagnostic(`${counts.answered} answered, ${counts.refused} refused`);
    assert.equal(counts.stopped, 0, 'the module trapped');
    assert.equal(counts.answered + counts.refused, 10_000);
    await page.evaluate(() => (window as any).lab.choose('rivals'));
    assert.equal(await page.locator('.column').count(), 2);
  });
});

test('two hundred runs, and long ones, stay within memory', async (t) => {
  await opened(async (page) => {
    const bytes = await page.evaluate(async () => {
      const { lab } = window as any;
      for (let i = 0; i < 200; i++) await lab.turn('path.3.errors.mean', `${16 + i}KiB`);
      return { module: lab.engine.bytes, heap: (performance as any).memory.usedJSHeapSize };
    });
    const mb = (n: number) => (n / 1e6).toFixed(0);
    t.diagnostic(`after 200 runs: modules ${mb(bytes.module)} MB, scripts ${mb(bytes.heap)} MB`);
    assert.ok(bytes.module + bytes.heap < 300e6);
    const took = await page.evaluate(async () => {
      const { lab } = window as any;
      await lab.turn('transfer.bytes', '100MB');
      const run = lab.columns[0].run;
      return { ms: run.took, events: run.summary.events, marks: run.sequence().kinds.sent.t.length, heap: (performance as any).memory.usedJSHeapSize };
    });
    t.diagnostic(`100 MB: ${took.events} events and ${took.marks} segments in ${took.ms.toFixed(0)} ms; scripts ${mb(took.heap)} MB`);
  });
});
