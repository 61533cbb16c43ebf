import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { defineConfig } from 'vite';

// The page, as a folder for a web server or, with LASTHOP_SINGLE, as what `pack.mjs` makes one file of.
const single = Boolean(process.env.LASTHOP_SINGLE);
const here = (path: string) => resolve(import.meta.dirname, path);
const licence = (name: string) => readFileSync(here(`node_modules/${name}/LICENSE`), 'utf8').trim();
const banner =
  '/*! lasthop, MIT OR Apache-2.0. ' +
  `Holds uPlot:\n${licence('uplot')}\nand Lit:\n${licence('lit')}\n*/`;

export default defineConfig({
  base: './',
  resolve: {
    alias: {
      '#platform': here(single ? 'src/engine/single.ts' : 'src/engine/folder.ts'),
      '#offline': here(single ? 'src/engine/none.ts' : 'src/engine/offline.ts'),
      '#module': process.env.LASTHOP_MODULE ?? here('../target/wasm32-unknown-unknown/web/lasthop_web.wasm'),
    },
  },
  build: {
    target: 'es2023',
    outDir: process.env.LASTHOP_WEB_OUT ?? here(single ? '../target/web/single' : '../target/web/folder'),
    emptyOutDir: true,
    assetsInlineLimit: 0,
    cssCodeSplit: false,
    modulePreload: { polyfill: false },
    chunkSizeWarningLimit: 1000,
    rolldownOptions: { output: { postBanner: (chunk: { isEntry: boolean }) => (chunk.isEntry ? banner : '') } },
  },
  worker: { format: 'es' },
});
