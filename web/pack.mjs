// Builds the page twice: as a folder with a service worker, and as one file that opens from a disk. Says how large they are.
import { createHash } from 'node:crypto';
import { mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { gzipSync, brotliCompressSync } from 'node:zlib';
import { build } from 'vite';

/** No more may be sent for the whole page, compressed. */
const MOST = 900_000;

const here = dirname(fileURLToPath(import.meta.url));
const out = resolve(process.argv[2] ?? join(here, '../target/web'));
const wasm = process.env.LASTHOP_MODULE;
if (!wasm) throw new Error('LASTHOP_MODULE must name the module; `make web` does');
process.chdir(here);
mkdirSync(out, { recursive: true });

// ---- the folder

const folder = join(out, 'folder');
process.env.LASTHOP_WEB_OUT = folder;
await build({ logLevel: 'warn' });
const files = readdirSync(folder, { recursive: true, withFileTypes: true })
  .filter((entry) => entry.isFile())
  .map((entry) => join(entry.parentPath, entry.name).slice(folder.length + 1))
  .sort();
const all = createHash('sha256');
for (const file of files) all.update(readFileSync(join(folder, file)));
const worker = readFileSync('sw.js', 'utf8')
  .replace('%NAME%', `lasthop-${all.digest('hex').slice(0, 16)}`)
  .replace("['%FILES%']", JSON.stringify(['./', ...files]));
writeFileSync(join(folder, 'sw.js'), worker);

// ---- one file

const single = join(out, 'single');
process.env.LASTHOP_SINGLE = '1';
process.env.LASTHOP_WEB_OUT = single;
await build({ logLevel: 'warn' });
let html = readFileSync(join(single, 'index.html'), 'utf8');
const hashes = { script: [], style: [] };
const inline = (kind, text) => {
  hashes[kind].push(`'sha256-${createHash('sha256').update(text).digest('base64')}'`);
  return text;
};
html = html.replace(/\s*<link rel="stylesheet"[^>]*href="\.\/([^"]+)"[^>]*>/, (_, file) => {
  return `\n<style>${inline('style', readFileSync(join(single, file), 'utf8').trim())}</style>`;
});
// The module goes before the script, which stands at the end of the body: a script of a page runs when all of it is there.
const packed = gzipSync(readFileSync(wasm), { level: 9 }).toString('base64');
let script = '';
html = html.replace(/\s*<script type="module"[^>]*src="\.\/([^"]+)"[^>]*><\/script>/, (_, file) => {
  script = readFileSync(join(single, file), 'utf8').replaceAll('</script', '<\\/script');
  return '';
});
html = html.replace('</body>', () =>
  `<script type="application/octet-stream" id="lasthop-module">${packed}</script>\n` +
  `<script type="module">${inline('script', script)}</script>\n</body>`,
);
const policy = `default-src 'none'; script-src ${hashes.script.join(' ')} 'wasm-unsafe-eval'; style-src ${hashes.style.join(' ')}; ` +
  "worker-src blob: data:; img-src blob: data:; connect-src 'none'; base-uri 'none'; form-action 'none'";
html = html.replace(/(<meta http-equiv="Content-Security-Policy" content=")[^"]*/, `$1${policy}`);
if (!html.includes(policy) || !script) throw new Error('index.html is not as pack.mjs knows it');
writeFileSync(join(out, 'lab.html'), html);
rmSync(single, { recursive: true });

// ---- their sizes

const kb = (bytes) => `${Math.round(bytes / 1000)} kB`;
let gzip = 0;
let brotli = 0;
for (const file of [...files, 'sw.js']) {
  const bytes = readFileSync(join(folder, file));
  gzip += gzipSync(bytes, { level: 9 }).length;
  brotli += brotliCompressSync(bytes).length;
}
const file = readFileSync(join(out, 'lab.html'));
console.log(`folder:   ${folder}: ${kb(gzip)} by gzip, ${kb(brotli)} by brotli`);
console.log(`one file: ${join(out, 'lab.html')}: ${kb(file.length)}, ${kb(gzipSync(file, { level: 9 }).length)} by gzip`);
if (gzip > MOST) {
  console.error(`the page is larger than ${kb(MOST)}`);
  process.exit(1);
}
