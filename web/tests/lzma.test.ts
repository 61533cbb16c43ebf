// What `xz` packs, the page unpacks.

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';

import { unpack } from '../src/engine/lzma.ts';

/** Packs, with the size in the header as pack.mjs writes it. */
function packed(plain: Uint8Array, parameters: string): Uint8Array {
  const all = execFileSync('xz', ['--format=lzma', `--lzma1=preset=9e,dict=1MiB,${parameters}`, '--stdout'], { input: plain, maxBuffer: 2 ** 28 });
  all.writeBigUInt64LE(BigInt(plain.length), 5);
  return all;
}

/** Bytes without a pattern, the same each time. */
function noise(length: number): Uint8Array {
  let state = 1;
  return Uint8Array.from({ length }, () => (state = (Math.imul(state, 1103515245) + 12345) >>> 0) >>> 24);
}

const texts: [string, Uint8Array][] = [
  ['a program', readFileSync(fileURLToPath(import.meta.resolve('axe-core/axe.min.js')))],
  ['noise', noise(300_000)],
  ['zeros', new Uint8Array(400_000)],
  ['repeats far apart', Buffer.concat([noise(200_000), new Uint8Array(70_000), noise(200_000)])],
  ['one byte', Uint8Array.of(7)],
];

for (const parameters of ['pb=0', 'lc=3,lp=0,pb=2', 'lc=0,lp=2,pb=4', 'lc=4,lp=0,pb=1']) {
  test(`pieces of what xz packs with ${parameters}`, () => {
    for (const [name, plain] of texts) {
      const pieces = [...unpack(packed(plain, parameters))];
      assert.ok(Buffer.concat(pieces).equals(plain), name);
      assert.ok(plain.length < 300_000 || pieces.length > 1, `${name}: ${pieces.length} pieces`);
    }
  });
}
