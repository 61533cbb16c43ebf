// Builds the page three times: as a folder with a service worker, as one file that opens from a disk, and as the file that
// `lasthop lab` serves. Prints their sizes.
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { gzipSync, brotliCompressSync } from 'node:zlib';
import { build } from 'vite';

/** Maximum size of the page, compressed by gzip, which all servers have. The module is packed already. */
const MOST = 915_000;

const here = dirname(fileURLToPath(import.meta.url));
const out = resolve(process.argv[2] ?? join(here, '../target/web'));
const wasm = process.env.LASTHOP_MODULE;
if (!wasm) throw new Error('LASTHOP_MODULE must name the module; `make web` does');
const imports = WebAssembly.Module.imports(new WebAssembly.Module(readFileSync(wasm)));
if (imports.length > 0) throw new Error(`the module imports ${imports.map((it) => it.name)}, but the page gives it no functions`);
process.chdir(here);
mkdirSync(out, { recursive: true });

// ---- the module, packed as src/engine/compile.ts unpacks it

const packed = join(out, 'lasthop.lzma');
writeFileSync(packed, lzma(wasm));
process.env.LASTHOP_PACKED = packed;

/** A file packed by LZMA. `xz` writes an unknown size into the header; this writes the size. */
function lzma(file) {
  const bytes = readFileSync(file);
  let all;
  try {
    all = execFileSync('xz', ['--format=lzma', '--lzma1=preset=9e,dict=4MiB,pb=0', '--stdout'], { input: bytes, maxBuffer: 2 ** 30 });
  } catch (error) {
    throw new Error(`the module is packed by \`xz\`, which \`make setup\` installs: ${error.message}`);
  }
  all.writeBigUInt64LE(BigInt(bytes.length), 5);
  return all;
}

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

// ---- one file: with the module in it, or for the program that serves it and answers itself

async function onePage(form, module) {
  const built = join(out, form);
  process.env.LASTHOP_FORM = form;
  process.env.LASTHOP_WEB_OUT = built;
  await build({ logLevel: 'warn' });
  let html = readFileSync(join(built, 'index.html'), 'utf8');
  const hash = (text) => `'sha256-${createHash('sha256').update(text).digest('base64')}'`;
  let [style, script] = ['', ''];
  html = html.replace(/\s*<link rel="stylesheet"[^>]*href="\.\/([^"]+)"[^>]*>/, (_, file) => {
    style = readFileSync(join(built, file), 'utf8').trim();
    return `\n<style>${style}</style>`;
  });
  html = html.replace(/\s*<script type="module"[^>]*src="\.\/([^"]+)"[^>]*><\/script>/, (_, file) => {
    script = readFileSync(join(built, file), 'utf8').replaceAll('</script', '<\\/script').trim();
    return '';
  });
  const served = module === null;
  const policy = served
    ? `default-src 'none'; script-src ${hash(script)}; style-src ${hash(style)}; img-src blob: data:; connect-src 'self'`
    : `default-src 'none'; script-src ${hash(script)} 'wasm-unsafe-eval'; style-src ${hash(style)}; worker-src blob:; img-src blob: data:`;
  html = html.replace(/(<meta http-equiv="Content-Security-Policy" content=")[^"]*/, `$1${policy}; base-uri 'none'; form-action 'none'`);
  if (served) {
    html = html.replace('<meta name="color-scheme"', '<meta name="lasthop-served">\n<meta name="color-scheme"');
    html = html.replace(/ <span class="in-page">[^<]*<\/span>/, '');
  }
  // The module goes before the script, which is at the end of the body.
  const inside = served ? '' : `<script type="application/octet-stream" id="lasthop-module">${module}</script>\n`;
  html = html.replace('</body>', () => `${inside}<script type="module">${script}</script>\n</body>`);
  if (!html.includes(policy) || !script || !style) throw new Error('pack.mjs does not find the policy, style or script in index.html: adapt one to the other');
  rmSync(built, { recursive: true });
  return html;
}

writeFileSync(join(out, 'served.html'), await onePage('served', null));
writeFileSync(join(out, 'lab.html'), await onePage('single', readFileSync(packed, 'base64')));

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
const single = gzipSync(file, { level: 9 }).length;
console.log(`folder:   ${folder}: ${kb(gzip)} by gzip, ${kb(brotli)} by brotli`);
console.log(`one file: ${join(out, 'lab.html')}: ${kb(file.length)}, ${kb(single)} by gzip`);
if (Math.max(gzip, single) > MOST) {
  console.error(`the page is larger than ${kb(MOST)}`);
  process.exit(1);
}
