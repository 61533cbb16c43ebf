import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { defineConfig } from 'vite';

// Builds the page as a folder for a web server. With LASTHOP_FORM=single or served, `pack.mjs` makes one file of
// the result: with the module in it, or for `lasthop lab`, which answers itself.
const form = process.env.LASTHOP_FORM ?? 'folder';
const single = form !== 'folder';
const MODULE = '../target/web/lasthop.lzma';
const here = (path: string) => resolve(import.meta.dirname, path);
const licence = (name: string) => readFileSync(here(`node_modules/${name}/LICENSE`), 'utf8').trim();
const banner =
  '/*! lasthop, MIT OR Apache-2.0. ' +
  `Holds uPlot:\n${licence('uplot')}\nand Lit:\n${licence('lit')}\n*/`;

export default defineConfig({
  base: './',
  resolve: {
    alias: [
      { find: /^#platform$/, replacement: here(`src/engine/${form}.ts`) },
      { find: /^#offline$/, replacement: here(single ? 'src/engine/none.ts' : 'src/engine/offline.ts') },
      { find: /^#module/, replacement: process.env.LASTHOP_PACKED ?? here(MODULE) },
    ],
  },
  build: {
    target: 'es2023',
    outDir: process.env.LASTHOP_WEB_OUT ?? here(`../target/web/${form}`),
    emptyOutDir: true,
    assetsInlineLimit: 0,
    cssCodeSplit: false,
    modulePreload: { polyfill: false },
    chunkSizeWarningLimit: 1000,
    rolldownOptions: { output: { postBanner: (chunk: { isEntry: boolean }) => (chunk.isEntry ? banner : '') } },
  },
  // A module worker from a Blob does not start on a page from a disk.
  worker: { format: single ? 'iife' : 'es' },
});
