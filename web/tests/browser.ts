// A browser for tests: Debian's Chromium, ended by whoever started it, and a server for the page's folder.

import { createServer, type Server } from 'node:http';
import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import assert from 'node:assert/strict';
import { extname, join, normalize } from 'node:path';
import { after, before } from 'node:test';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { type Browser, type BrowserContext, type Page, chromium } from 'playwright-core';

export const OUT = process.env.LASTHOP_WEB ?? fileURLToPath(new URL('../../target/web', import.meta.url));
/** The page that is drawn: LASTHOP_LAB names that of a program, `lasthop lab`. */
export const LAB = process.env.LASTHOP_LAB ?? pathToFileURL(join(OUT, 'lab.html')).href;
const FLAGS = [
  '--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking',
  '--disable-component-update', '--disable-sync',
];
const PLACES = [process.env.LASTHOP_CHROMIUM, '/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome'];

export function launch(...flags: string[]): Promise<Browser> {
  const executablePath = PLACES.find((place) => place && existsSync(place));
  if (!executablePath) throw new Error('no Chromium; `make setup` installs it, LASTHOP_CHROMIUM names one');
  return chromium.launch({ executablePath, args: [...FLAGS, ...flags], timeout: 60_000 });
}

/** What a page has asked for beyond its own place, and what went wrong in it. */
export interface Heard {
  elsewhere: string[];
  errors: string[];
}

/** A page that notes what it should not do. */
export async function newPage(context: BrowserContext, own: string): Promise<{ page: Page; heard: Heard }> {
  const heard: Heard = { elsewhere: [], errors: [] };
  context.on('request', (request) => {
    const url = request.url();
    if (!url.startsWith(own) && !/^(blob|data):/.test(url)) heard.elsewhere.push(url);
  });
  const page = await context.newPage();
  page.on('pageerror', (error) => heard.errors.push(String(error)));
  page.on('console', (message) => {
    if (message.type() === 'error') heard.errors.push(message.text());
  });
  page.setDefaultTimeout(60_000);
  return { page, heard };
}

/** The first run is shown. */
export async function ready(page: Page): Promise<void> {
  await page.waitForFunction(() => 'lab' in window);
  await page.evaluate(() => (window as any).lab.ready);
}

const TYPES: Record<string, string> = {
  '.html': 'text/html; charset=utf-8', '.js': 'text/javascript', '.css': 'text/css', '.wasm': 'application/wasm',
};

/** Serves a folder on loopback, with the policy that docs/how-to/lab.md advises. */
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

/** The laboratory of a file of tests: its browser and server begin and end with the tests. */
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
  /** The page, ready, in a context of its own; it must not have asked elsewhere, or failed, when `go` is done. */
  async function opened(go: (page: Page) => Promise<void>, options: object = {}, at = own): Promise<void> {
    const context = await browser.newContext({ viewport: { width: 1400, height: 1000 }, serviceWorkers: 'block', ...options });
    const { page, heard } = await newPage(context, at.startsWith('file:') ? at.split('#')[0]! : own);
    try {
      await page.goto(at);
      await ready(page);
      await go(page);
      assert.deepEqual(heard.elsewhere, [], 'the page asked for something elsewhere');
      assert.deepEqual(heard.errors, [], 'something went wrong in the page');
    } finally {
      await context.close();
    }
  }
  return { opened, url: () => own };
}
