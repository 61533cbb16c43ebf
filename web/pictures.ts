// Draws the pictures of docs/how-to/lab.md from the page that `make web` built: `make web-pictures`.

import { mkdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

import { LAB, launch, ready } from './tests/browser.ts';

const place = fileURLToPath(new URL('../docs/pictures/lab/', import.meta.url));
mkdirSync(place, { recursive: true });
const browser = await launch();
try {
  for (const scheme of ['light', 'dark'] as const) {
    const context = await browser.newContext({ viewport: { width: 1440, height: 900 }, colorScheme: scheme, reducedMotion: 'reduce' });
    const page = await context.newPage();
    await page.goto(LAB);
    await ready(page);
    if (scheme === 'dark') {
      await page.evaluate(() => (window as any).lab.learn('snoop'));
      await page.locator('.lesson input[type=radio]').nth(2).check();
      await page.locator('[data-commit]').click();
      await page.locator('[data-result]').click();
    }
    await page.evaluate(() => ((window as any).lab.cursor.range = [0, 6]));
    for (let i = 0; i < 3; i++) await page.locator('[data-jump=local]').click();
    await page.locator('.detail').first().waitFor();
    await page.waitForTimeout(1000);
    const file = join(place, `${scheme}.png`);
    await page.screenshot({ path: file });
    console.log(`${file}: ${Math.round(statSync(file).size / 1000)} kB`);
  }
} finally {
  await browser.close();
}
