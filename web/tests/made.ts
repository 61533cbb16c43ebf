// Pages of every kind, written by the program: for the tests of reports and for their pictures.

import { execFile } from 'node:child_process';
import { mkdtemp, readdir, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import type { Page } from 'playwright-core';

const root = fileURLToPath(new URL('../..', import.meta.url));
const target = resolve(root, process.env.CARGO_TARGET_DIR ?? 'target');
/** The program; `make web-test` builds it. */
const lasthop = process.env.LASTHOP ?? join(target, 'debug/lasthop');

/** A channel that turns bad for about 120 ms, with up to 300 packets in the queue: whole windows are lost. */
const BURST = `
name = "burst"
runs = 1
transfer = { from = "fixed", to = "mobile", bytes = "8MB" }
[host.fixed]
preset = "linux"
tcp = "sack"
[host.mobile]
preset = "linux"
[[path]]
link = { rate = "100mbit", delay = "5ms" }
[[path]]
radio = { rate = "20mbit", delay = "5ms", queue = "300p" }
errors = { model = "two-state", good = "1s", bad = "120ms", ber-good = 0, ber-bad = 1e-2 }
`;

/** Two hosts with batteries at a radio with medium access. */
const HOPS = `
horizon = "4s"
runs = 2
transfer = { from = "sender", to = "receiver", bytes = "unlimited" }
[host.receiver]
side = "left"
preset = "linux-2.2"
[host.sender]
side = "right"
preset = "linux-2.2"
[[path]]
radio = { rate = "11mbit", delay = "1us", queue = "100p" }
mac = "dcf"
`;

/** Pages by their kind, in the directory that `make` returns. */
export const PAGES: readonly (readonly [kind: string, file: string])[] = [
  ['run', 'run/report.html'],
  ['sweep', 'sweep/report.html'],
  ['handoff', 'handoff/report.html'],
  ['overlay', 'overlay.html'],
  ['compare', 'compare/report.html'],
  ['advise', 'advise/report.html'],
  ['energy', 'energy/report.html'],
  ['reproduce', 'out/reproduce/report.html'],
  ['explain', 'explain/report.html'],
  ['analyze', 'analyze/report.html'],
];

/** Pictures that commands write without a page, by their kind. */
export const PICTURES: readonly (readonly [kind: string, file: string])[] = [
  ['battery', 'battery/battery.svg'],
  ['trace', 'trace.svg'],
];

/** A page that contains only a picture. */
export function inPage(title: string, svg: string): string {
  return (
    `<!doctype html><html lang="en"><head><meta charset="utf-8"><title>${title}</title><meta name="color-scheme" content="light dark">` +
    `<meta name="viewport" content="width=device-width"></head><body><main><h1>${title}</h1>${svg.replace(/^<\?xml.*?\?>/, '')}</main>`
  );
}

/** Makes pages of every kind in a new directory. */
export async function make(): Promise<string> {
  await stat(lasthop).catch(() => {
    throw new Error(`${lasthop} does not exist: run cargo build, or set LASTHOP to the path of the program`);
  });
  const dir = await mkdtemp(join(tmpdir(), 'lasthop-reports-'));
  const run = async (...words: string[]) => {
    const done = promisify(execFile)(lasthop, words, { cwd: dir, env: { ...process.env, NO_COLOR: '1' } });
    await done.catch((error: { code?: number | string; stderr?: string }) => {
      // Exit code 1 means advice without effect, or a failed claim; the page exists all the same.
      if (error.code !== 1) throw new Error(`lasthop ${words.join(' ')}: ${error.code} ${error.stderr ?? ''}`);
    });
  };
  await writeFile(join(dir, 'burst.toml'), BURST);
  await writeFile(join(dir, 'hops.toml'), HOPS);
  await run('run', 'burst.toml', '-o', 'run');
  const [cell] = await readdir(join(dir, 'run/trace'));
  const few = ['--set', 'transfer.bytes=200KB'];
  await Promise.all([
    run('run', 'quickstart', '-n', '3', '--vary', 'errors.mean=16KiB,64KiB', '--vary', 'agent=none,snoop', ...few, '-o', 'sweep'),
    run('run', 'handoff-wavelan', '-n', '1', '--set', 'handoff.gap=500ms', '--set', 'horizon=20s', '-o', 'handoff'),
    run('run', 'burst.toml', '--set', 'link.rate=50mbit', '-o', 'other'),
    run('compare', 'quickstart', '--schemes', 'snoop,sack', '-n', '2', '--errors', '0,1%,5%', ...few, '-o', 'compare'),
    run('advise', '--rate', '2mbit', '-n', '3', '--quick', '-o', 'advise'),
    run('energy', 'hops.toml', '-n', '2', '-o', 'energy'),
    run('reproduce', 'W-T1', 'W-F10', '--seeds', '1'),
    run('explain', 'W-F10', '--sets', '40', '--seeds', '1', '--again', '0', '-o', 'explain'),
    run('analyze', `run/trace/${cell}/link.pcapng`, `run/trace/${cell}/radio.pcapng`, '-o', 'analyze'),
    run('battery', '-n', '2', '-o', 'battery'),
    run('trace', 'show', join(root, 'scenarios/lte.down'), '--svg', 'trace.svg'),
  ]);
  await run('report', 'run', 'other', '-o', 'overlay.html');
  return dir;
}

/** Scrolls to every figure, so that its plot becomes live. */
export async function scroll(page: Page): Promise<void> {
  for (const figure of await page.locator('figure').all()) await figure.scrollIntoViewIfNeeded();
  const waiting = 'figure:has(script[data-group]):not(:has(.lhp))';
  await page.waitForFunction((waiting) => !document.querySelector(waiting), waiting);
  await page.evaluate(() => scrollTo(0, 0));
}
