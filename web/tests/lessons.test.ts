// Lessons in a browser: results wait for the prediction, claims and tasks are compared with the runs, and navigation works.

import assert from 'node:assert/strict';
import { readFileSync, readdirSync } from 'node:fs';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import type { Page } from 'playwright-core';

import { type Lesson, lesson } from '../src/lab/lesson.ts';
import { laboratory } from './browser.ts';

const { opened, url } = laboratory();
const folder = fileURLToPath(new URL('../lessons/', import.meta.url));
const files = readdirSync(folder).filter((file) => file.endsWith('.md'));
files.sort((a, b) => Number.parseInt(a) - Number.parseInt(b));
const lessons: Lesson[] = files.map((file) => lesson(file.replace(/^\d+-|\.md$/g, ''), readFileSync(folder + file, 'utf8')));

const learn = (page: Page, id: string) => page.evaluate((id) => (window as any).lab.learn(id), id);
const choices = (page: Page) => page.locator('.lesson input[type=radio]');
/** Selects choice `i` and commits it. */
const predict = async (page: Page, i: number) => {
  await choices(page).nth(i).check();
  assert.equal(await page.locator('.answer').count(), 0, 'a selected choice is not yet a prediction');
  await page.locator('[data-commit]').click();
  assert.equal(await page.locator('.answer, .mark, [data-number=throughput]').count(), 0, 'the result comes after the runs');
  await page.locator('[data-result]').click();
};

test('every lesson: a prediction, claims that hold in the runs that it shows, and a task that only its solution reaches', async () => {
  assert.ok(lessons.length >= 8 && lessons.some(({ task }) => task));
  await opened(async (page) => {
    for (const { id, schemes, choices: all, claims, watch, plot, task } of lessons) {
      assert.match(watch, /^\S.*[.?]$/, `${id}: a sentence says what to watch`);
      assert.ok(claims.length > 0 && all.filter((choice) => choice.right).length === 1, id);
      await learn(page, id);
      assert.equal(await page.locator('.answer').count(), 0, `${id}: the answer comes after the prediction`);
      for (const part of ['.results', '.player', '.column', '.capture']) {
        assert.ok(!(await page.locator(part).first().isVisible()), `${id}: ${part} comes after the prediction`);
      }
      assert.ok(await page.locator('.preview canvas').isVisible(), `${id}: the path is shown before the prediction`);
      const counted = await page.evaluate(() => (window as any).lab.columns.flatMap(({ run }: any) =>
        run.until(run.end).map(({ name, value }: any) => [name, value, run.scalar(name)])));
      for (const [name, value, result] of counted) assert.equal(value, result, `${id}: ${name} so far, at the end`);
      const shown = await page.locator('.column select').evaluateAll((all) => all.map((it) => (it as HTMLSelectElement).value));
      assert.deepEqual(shown, schemes, id);
      await predict(page, all.findIndex((choice) => choice.right));
      assert.equal(await page.locator('.answer strong').first().textContent(), 'Right.');
      assert.ok(await page.locator('.column canvas').first().isVisible(), `${id}: the runs are shown`);
      const held = await page.locator('.claims li').evaluateAll((all) =>
        all.map((it) => `${(it as HTMLElement).dataset.holds} ${it.textContent}`),
      );
      assert.equal(held.length, claims.length, id);
      for (const claim of held) assert.match(claim, /^true/, `${id}: ${claim}`);
      for (const kind of ['delays', 'medium']) {
        assert.equal(await page.locator(`.${kind} canvas`).first().isVisible(), plot === kind, `${id}: a plot of ${kind}`);
      }
      if (!task) continue;
      const { goals, solution, fixed } = task;
      assert.ok(goals.length > 0 && solution.length > 0, id);
      assert.equal(await page.locator('.task').getAttribute('data-reached'), 'false', `${id}: reached before anything is done`);
      for (const step of solution) {
        const [key, value] = step.split(/=(.*)/s) as [string, string];
        assert.ok(!fixed.some((it) => key.endsWith(it)), `${id}: ${key} is fixed`);
        await page.evaluate(async ({ key, value }) => {
          const { lab } = window as any;
          if (key === 'scheme') lab.shown.schemes[0] = value;
          else lab.shown.set[key] = value;
          await lab.rerun(0);
        }, { key, value });
      }
      if (!task.edit) {
        const sliders = await page.evaluate(() => (window as any).lab.checked.sliders.map((slider: any) => slider.key));
        for (const step of solution) assert.ok(step.startsWith('scheme=') || sliders.includes(step.split('=')[0]), `${id}: ${step} has no slider`);
      }
      assert.equal(await page.locator('.task').getAttribute('data-reached'), 'true', `${id}: ${solution.join(', ')} reaches it`);
      assert.match((await page.locator('.task [role=status]').textContent())!, /Reached/);
      const still = await page.locator('.claims li').evaluateAll((all) => all.map((it) => (it as HTMLElement).dataset.holds));
      assert.ok(still.every((it) => it === 'true'), `${id}: the claims are about the runs of the lesson, not those of the solution`);
    }
  });
});

test('a task is not reached where a fixed key was turned, or the text was changed', async () => {
  await opened(async (page) => {
    await learn(page, 'bufferbloat');
    await predict(page, 0);
    const turned = (key: string, value: string) => page.evaluate(({ key, value }) => (window as any).lab.turn(key, value), { key, value });
    const state = () => page.locator('.task').getAttribute('data-reached');
    await turned('path.1.link.queue', '10p');
    assert.equal(await state(), 'true');
    await turned('path.1.link.delay', '1ms');
    assert.equal(await state(), 'false');
    await page.evaluate(async () => {
      const { lab } = window as any;
      lab.shown.set = {};
      lab.shown.text = lab.lesson.text.replaceAll('"1000p"', '"10p"');
      await lab.rerun(0);
    });
    assert.equal(await state(), 'false');
  });
});

test('a wrong prediction marks the right choice; the next lesson follows; progress stays', async () => {
  const [{ id, choices: all }, next] = lessons as [Lesson, Lesson];
  await opened(async (page) => {
    await learn(page, id);
    const wrong = all.findIndex((choice) => !choice.right);
    await predict(page, wrong);
    assert.equal(await page.locator('.answer strong').first().textContent(), 'Not quite.');
    const marked = await page.locator('.lesson label').evaluateAll((all) => all.map((it) => it.querySelector('.mark')?.textContent ?? ''));
    assert.deepEqual(marked, all.map((choice, i) => (choice.right ? '✓ right' : i === wrong ? '✗ your prediction' : '')));
    await page.locator('[data-next]').click();
    await page.locator('.lesson h2', { hasText: next.title }).waitFor();
    assert.ok(!(await page.locator('.results').isVisible()), 'its results wait again');
    await page.getByRole('button', { name: 'Show without predicting' }).click();
    assert.ok(await page.locator('.results').isVisible());
    assert.equal(await page.locator('.answer').count(), 0, 'nothing is judged without a prediction');
    await page.reload();
    await page.waitForFunction(() => 'lab' in window);
    await page.evaluate(() => (window as any).lab.ready);
    assert.match((await page.locator('.lesson-list summary').textContent())!, /1 of/);
  });
});

test('Back leads to the lesson and to the scenario before', async () => {
  await opened(async (page) => {
    const [one, two] = lessons as [Lesson, Lesson];
    const heading = () => page.locator('.lesson h2');
    let last = '';
    const written = async () => {
      await page.waitForFunction((last) => location.hash !== last, last);
      last = await page.evaluate(() => location.hash);
    };
    await written();
    await page.evaluate(() => (window as any).lab.choose('rivals'));
    await written();
    await learn(page, one.id);
    await written();
    // A moved slider adds no entry to the history.
    await page.evaluate(() => (window as any).lab.turn('path.1.link.delay', '40ms'));
    await written();
    await learn(page, two.id);
    await written();
    await page.goBack();
    await heading().filter({ hasText: one.title }).waitFor();
    assert.equal(await page.evaluate(() => (window as any).lab.shown.set['path.1.link.delay']), '40ms');
    await page.goBack();
    await page.waitForFunction(() => (document.querySelector('#scenario') as HTMLSelectElement).value === 'rivals');
    assert.equal(await heading().count(), 0);
    await page.goForward();
    await heading().filter({ hasText: one.title }).waitFor();
    await page.goBack();
    await page.goBack();
    await page.waitForFunction(() => (document.querySelector('#scenario') as HTMLSelectElement).value === 'quickstart');
  });
});

test('three lessons by keys alone', async () => {
  await opened(async (page) => {
    const focused = () => page.evaluate(() => document.activeElement?.outerHTML.slice(0, 120) ?? '');
    const tabTo = async (selector: string) => {
      for (let i = 0; i < 80; i++) {
        await page.keyboard.press('Tab');
        if (await page.evaluate((selector) => document.activeElement?.matches(selector), selector)) return;
      }
      assert.fail(`no way by Tab to ${selector}; the focus is at ${await focused()}`);
    };
    await tabTo('[data-start]');
    for (const { title, choices: all } of lessons.slice(0, 3)) {
      await page.keyboard.press('Enter');
      await page.locator('.lesson h2', { hasText: title }).waitFor();
      await tabTo('.lesson input[type=radio]');
      await page.keyboard.press('Space');
      for (let i = all.findIndex((choice) => choice.right); i > 0; i--) await page.keyboard.press('ArrowDown');
      assert.equal(await page.locator('[data-result]').count(), 0, 'arrows select, they do not predict');
      await tabTo('[data-commit]');
      await page.keyboard.press('Enter');
      assert.match(await focused(), /data-result/, 'the way to the result has the focus');
      await page.keyboard.press('Enter');
      assert.equal(await page.locator('.answer strong').first().textContent(), 'Right.');
      assert.match(await focused(), /class="answer"/);
      await tabTo('[data-next]');
    }
    await tabTo('[data-jump=loss]');
    await page.keyboard.press('Enter');
    await page.locator('.detail').first().waitFor();
    await page.keyboard.press('Shift+Tab');
    await page.evaluate(() => (document.activeElement as HTMLElement).blur());
    const before = await page.locator('.player .time').textContent();
    await page.keyboard.press('l');
    await page.waitForFunction((before) => document.querySelector('.player .time')?.textContent !== before, before);
  });
});

test('a damaged link and a seed that is none are answered by a message', async () => {
  await opened(async (page) => {
    assert.match((await page.locator('.message').textContent())!, /link is damaged/);
    assert.equal(await page.locator('.column').count(), 2, 'the first scenario is shown');
    const digests = () => page.locator('.run-words code').allTextContents();
    const before = await digests();
    for (const bad of ['-1', '1.5', '']) {
      await page.locator('#seed').fill(bad);
      await page.locator('#seed').press('Enter');
      await page.locator('.message', { hasText: 'no seed' }).waitFor();
      assert.equal(await page.locator('#seed').inputValue(), '1', 'the field shows the seed of the runs');
    }
    assert.deepEqual(await digests(), before);
    await page.locator('#seed').fill('2');
    await page.locator('#seed').press('Enter');
    await page.waitForFunction((before) => document.querySelector('.run-words code')?.textContent !== before, before[0]);
    assert.equal(await page.locator('.message').textContent(), '');
  }, {}, `${url()}#z=damaged`);
});

test('an address can name a scenario', async () => {
  const shown = (page: Page) => page.evaluate(() => (window as any).lab.shown.name as string);
  await opened(async (page) => {
    assert.equal(await shown(page), 'ebsn');
    assert.equal(await page.locator('.message').textContent(), '');
  }, {}, `${url()}#ebsn`);
  await opened(async (page) => {
    assert.match((await page.locator('.message').textContent())!, /"ebns", which is not built in/);
    assert.equal(await shown(page), 'quickstart');
  }, {}, `${url()}#ebns`);
});
