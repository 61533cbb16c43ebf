// A browser for tests (Debian's Chromium), which the caller closes, and a server for the page's folder.

import { createServer, type Server } from 'node:http';
import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import assert from 'node:assert/strict';
import { extname, join, normalize } from 'node:path';
import { after, before } from 'node:test';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { type Browser, type BrowserContext, type Page, chromium } from 'playwright-core';

export const OUT = process.env.LASTHOP_WEB ?? fileURLToPath(new URL('../../target/web', import.meta.url));
/** The page under test. LASTHOP_LAB has the address of `lasthop lab`, to test the page that it serves. */
export const LAB = process.env.LASTHOP_LAB ?? pathToFileURL(join(OUT, 'lab.html')).href;
const FLAGS = [
  '--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking',
  '--disable-component-update', '--disable-sync',
];
/** The first has no windows, and needs a third less processor time. */
const PLACES = [
  process.env.LASTHOP_CHROMIUM, '/usr/bin/chromium-headless-shell', '/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome',
];

export function launch(...flags: string[]): Promise<Browser> {
  const executablePath = PLACES.find((place) => place && existsSync(place));
  if (!executablePath) throw new Error('no Chromium: install it with `make setup`, or set LASTHOP_CHROMIUM to its path');
  return chromium.launch({ executablePath, args: [...FLAGS, ...flags], timeout: 60_000 });
}

/** Requests of a page to other origins, and its errors. */
export interface PageLog {
  elsewhere: string[];
  errors: string[];
}

/** A new page with a log of what it must not do. */
export async function newPage(context: BrowserContext, own: string): Promise<{ page: Page; log: PageLog }> {
  const log: PageLog = { elsewhere: [], errors: [] };
  context.on('request', (request) => {
    const url = request.url();
    if (!url.startsWith(own) && !/^(blob|data):/.test(url)) log.elsewhere.push(url);
  });
  const page = await context.newPage();
  page.on('pageerror', (error) => log.errors.push(String(error)));
  page.on('console', (message) => {
    if (message.type() === 'error') log.errors.push(message.text());
  });
  page.setDefaultTimeout(60_000);
  return { page, log };
}

/** Waits until the first run is shown. */
export async function ready(page: Page): Promise<void> {
  await page.waitForFunction(() => 'lab' in window);
  await page.evaluate(() => (window as any).lab.ready);
}

const TYPES: Record<string, string> = {
  '.html': 'text/html; charset=utf-8', '.js': 'text/javascript', '.css': 'text/css', '.wasm': 'application/wasm',
};

/** Serves a folder on loopback, with the policy that docs/how-to/lab.md recommends. */
export async function serve(folder: string): Promise<{ server: Server; url: string }> {
  const server = createServer(async (request, response) => {
    const path = normalize(decodeURIComponent(new URL(request.url!, 'http://x').pathname));
    const file = join(folder, path.endsWith('/') ? `${path}index.html` : path);
    try {
      if (!file.startsWith(folder)) throw new Error('outside');
      const bytes = await readFile(file);
      response.writeHead(200, {
        'content-type': TYPES[extname(file)] ?? 'application/octet-stream',
        'content-security-policy': "default-src 'self'; script-src 'self' 'wasm-unsafe-eval'; img-src 'self' blob: data:",
      });
      response.end(bytes);
    } catch {
      response.writeHead(404).end();
    }
  });
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
  const address = server.address();
  if (typeof address !== 'object' || !address) throw new Error('no address');
  return { server, url: `http://127.0.0.1:${address.port}/` };
}

/** The laboratory for a file of tests: starts browser and server before its tests, and stops them after the last one. */
export function laboratory() {
  let browser: Browser;
  let server: Server;
  let own = process.env.LASTHOP_LAB ?? '';
  before(async () => {
    browser = await launch();
    if (!own) ({ server, url: own } = await serve(join(OUT, 'folder')));
  });
  after(async () => {
    await browser?.close();
    server?.close();
  });
  /** Opens the page in a new context, where it moves only on demand, and runs `go`. Fails if the page sent requests to other origins, or had errors. */
  async function opened(go: (page: Page) => Promise<void>, options: object = {}, at = own): Promise<void> {
    const context = await browser.newContext({ viewport: { width: 1400, height: 1000 }, serviceWorkers: 'block', reducedMotion: 'reduce', ...options });
    const { page, log } = await newPage(context, at.startsWith('file:') ? at.split('#')[0]! : own);
    try {
      await page.goto(at);
      await ready(page);
      await go(page);
      assert.deepEqual(log.elsewhere, [], 'the page sent requests to other origins');
      assert.deepEqual(log.errors, [], 'the page had errors');
    } finally {
      await context.close();
    }
  }
  return { opened, url: () => own };
}
