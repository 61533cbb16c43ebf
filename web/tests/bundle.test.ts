// The script that crates/report embeds is built from the current source.

import assert from 'node:assert/strict';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { build } from 'vite';

const web = fileURLToPath(new URL('..', import.meta.url));

test('the script of reports is the one that `make web-plots` makes', async () => {
  const outDir = await mkdtemp(join(tmpdir(), 'lasthop-plots-'));
  try {
    await build({ root: web, configFile: join(web, 'vite.plots.config.ts'), logLevel: 'error', build: { outDir, emptyOutDir: true } });
    const [made, committed] = await Promise.all([
      readFile(join(outDir, 'plots.js')),
      readFile(join(web, '../crates/report/src/plots.js')),
    ]);
    assert.ok(made.equals(committed), 'crates/report/src/plots.js is older than web/src/plots: run `make web-plots`');
    assert.ok(committed.length < 110_000, `${committed.length} bytes`);
  } finally {
    await rm(outDir, { recursive: true, force: true });
  }
});
