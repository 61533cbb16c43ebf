// The parts of plots that need no page: geometry, axes, cursor, and the decoding of packed columns.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { deflateRawSync } from 'node:zlib';

import { Axis, Decades, grouped, roundEnd, short } from '../src/plots/axis.ts';
import { TimeCursor } from '../src/plots/cursor.ts';
import type { Marks } from '../src/plots/data.ts';
import { sequence } from '../src/plots/embedded.ts';
import { Apart, bands, extent, inRange, nearest, sorted, steps, strokes, within, zoomed } from '../src/plots/geometry.ts';
import { SvgPen } from '../src/plots/pen.ts';
import { unpack } from '../src/plots/unpack.ts';

const numbers = (...all: number[]) => Float64Array.from(all);

/** Packets of 1000 bytes at these times. */
function packets(...t: number[]): Marks {
  return { t: numbers(...t), from: numbers(...t.map((_, i) => i * 1000)), to: numbers(...t.map((_, i) => (i + 1) * 1000)) };
}

test('ticks are at round numbers, as in the pictures of reports', () => {
  const labels = (low: number, high: number) => new Axis(low, high, 0, 1).ticks(5).map(([, label]) => label);
  assert.deepEqual(labels(0, 12.7), ['0', '2', '4', '6', '8', '10', '12']);
  assert.deepEqual(labels(0, 1), ['0.0', '0.2', '0.4', '0.6', '0.8', '1.0']);
  assert.equal(labels(NaN, NaN).length, 6);
  assert.deepEqual([roundEnd(199.9), roundEnd(240), roundEnd(0)], [250, 250, 1]);
  assert.deepEqual([grouped('-1234567.8'), grouped('-0.00'), short(199.917), short(0.0000039)], [
    '\u22121\u2009234\u2009567.8', '0.00', '199.9', '3.90e\u22126',
  ]);
});

test('zero has a position on a logarithmic axis, and positions map back to values', () => {
  const decades = Decades.of([0, 0.1, 1, 10]);
  assert.deepEqual([0, 0.05, 0.1, 1, 10].map((v) => decades.of(v)), [-1, -0.5, 0, 1, 2]);
  for (const value of [0, 0.05, 0.1, 3, 10]) assert.ok(Math.abs(decades.value(decades.of(value)) - value) < 1e-12);
  const labels = decades.ticks(-1, 2).map(([, label]) => label);
  assert.deepEqual(labels, ['0', '0.1', '0.2', '0.5', '1', '2', '5', '10']);
  assert.equal(decades.ticks(1.1, 1.15).length, 3, 'also between two round numbers');
});

test('a range has the marks that a linear search finds', () => {
  const t = Float64Array.from({ length: 500 }, (_, i) => Math.floor(i / 3) * 0.5);
  for (const range of [[0, 0], [0.2, 0.3], [1, 1], [-5, 900], [83, 83], [84, 90]] as [number, number][]) {
    const wanted = [...t.keys()].filter((i) => t[i]! >= range[0] && t[i]! <= range[1]);
    const [first, last] = inRange(t, range);
    assert.equal(last - first, wanted.length, String(range));
    if (wanted.length) assert.equal(first, wanted[0]);
  }
});

test('marks out of order are put in order and keep their number', () => {
  const { t, from, packet } = sorted({ t: numbers(2, 1, 3), from: numbers(20, 10, 30), to: numbers(21, 11, 31) });
  assert.deepEqual([[...t], [...from], [...packet!]], [[1, 2, 3], [10, 20, 30], [1, 0, 2]]);
});

test('zoom keeps what is under the pointer, and nothing leaves the whole', () => {
  const [from, to] = zoomed([0, 10], [0, 10], 0.5, 2.5, 1e-9);
  assert.deepEqual([from, to], [1.25, 6.25]);
  assert.equal((2.5 - from) / (to - from), 0.25);
  assert.deepEqual(zoomed([4, 6], [0, 10], 100, 5, 1e-9), [0, 10]);
  const [a, b] = zoomed([4, 6], [0, 10], 1e-12, 5, 0.001);
  assert.ok(Math.abs(b - a - 0.001) < 1e-9);
  assert.deepEqual(within([-3, 2], [0, 10]), [0, 5]);
  assert.deepEqual(within([8, 13], [0, 10]), [5, 10]);
});

test('strokes that touch on one column become one, others stay', () => {
  const drawn: number[][] = [];
  const marks = packets(...Array.from({ length: 1000 }, (_, i) => i * 0.001));
  strokes(marks, [0, 1000], (t) => t * 10, (byte) => 1000 - byte / 1000, (...stroke) => drawn.push(stroke));
  assert.ok(drawn.length <= 21, `${drawn.length} strokes on 10 pixels`);
  // Together they cover every byte.
  assert.equal(Math.min(...drawn.map(([, top]) => top!)), 0);
  assert.equal(Math.max(...drawn.map(([, , bottom]) => bottom!)), 1000);
  drawn.length = 0;
  strokes(marks, [0, 1000], (t) => t * 5000, (byte) => 1000 - byte / 1000, (...stroke) => drawn.push(stroke));
  assert.equal(drawn.length, 1000, 'closer, each packet is seen');
});

test('a staircase keeps the highest and the lowest of each column', () => {
  const t = Float64Array.from({ length: 10_000 }, (_, i) => i / 10_000);
  const value = t.map((_, i) => (i === 5003 ? 99 : i === 5004 ? -99 : i % 7));
  const drawn: [number, number][] = [];
  steps(t, value, [0, t.length], (at) => at * 100, (v) => v, (x, y) => drawn.push([x, y]));
  const heights = drawn.map(([, y]) => y);
  assert.ok(drawn.length <= 4 * 200 && heights.includes(99) && heights.includes(-99));
  assert.deepEqual(drawn.at(-1)![1], value.at(-1));
  // A value that holds is drawn from before the range.
  drawn.length = 0;
  steps(numbers(0, 10), numbers(5, 6), [1, 1], (at) => at, (v) => v, (x, y) => drawn.push([x, y]));
  assert.deepEqual(drawn, [[0, 5], [10, 6]]);
});

test('the nearest mark is the one that a linear search finds, if it is near enough', () => {
  const marks = packets(...Array.from({ length: 300 }, (_, i) => i + (i % 5) * 0.1));
  const [x, y] = [new Axis(0, 300, 0, 600), new Axis(0, 300_000, 300, 0)];
  for (let k = 0; k < 200; k++) {
    const at: [number, number] = [(k * 37) % 600, (k * 53) % 300];
    const far = (i: number) => {
      const [top, bottom] = [y.at(marks.to[i]!), y.at(marks.from[i]!)];
      return Math.hypot(x.at(marks.t[i]!) - at[0], Math.max(top - at[1], at[1] - bottom, 0));
    };
    const least = Math.min(...[...marks.t.keys()].map(far));
    const found = nearest([['sent', marks]], x, y, at, 14);
    if (least > 14) assert.equal(found, null);
    else assert.ok(Math.abs(found!.distance - least) < 1e-9 && Math.abs(far(found!.index) - least) < 1e-9);
  }
  const on = nearest([['sent', marks], ['lost', marks]], x, y, [x.at(7.2), y.at(7500)], 5);
  assert.deepEqual([on!.kind, on!.index], ['lost', 7], 'of two at one place the one on top');
});

test('points on a pixel that is taken are left out', () => {
  const apart = new Apart();
  assert.deepEqual([apart.fresh(10, 10), apart.fresh(10.1, 10.1), apart.fresh(12, 10)], [true, false, true]);
});

test('a band of several spans has the length of all of them', () => {
  const stalls = { from: numbers(1, 2, 3.04, 8), to: numbers(2, 3.04, 4, 8.5) };
  const lengths = (range: [number, number], pixels: number, merge = true) =>
    bands(stalls, range, (t) => ((t - range[0]) / (range[1] - range[0])) * pixels, merge).map(({ length }) => length.toFixed(2));
  assert.deepEqual(lengths([0, 10], 500), ['3.00', '0.50']);
  assert.deepEqual(lengths([0, 10], 500, false), ['1.00', '1.04', '0.96', '0.50']);
  // Gaps that can be seen part bands.
  stalls.from[1] = 2.1;
  assert.deepEqual(lengths([0, 10], 4), ['2.90', '0.50']);
  assert.deepEqual(lengths([0, 10], 500), ['1.00', '1.90', '0.50']);
  assert.deepEqual(lengths([2.5, 3], 500), ['0.94'], 'the part out of view counts');
});

test('the ends of what is in view', () => {
  assert.deepEqual(extent([packets(0, 1, 2, 3)], [1, 2]), [1000, 3000]);
  assert.equal(extent([packets(0, 1)], [5, 6]), null);
});

test('plots of one page share range and cursor', () => {
  const cursor = new TimeCursor();
  let notified = 0;
  const end = cursor.subscribe(() => notified++);
  cursor.reach(0.5);
  assert.deepEqual(cursor.range, [0, 0.5], 'the first plot sets the length');
  cursor.reach(8);
  assert.deepEqual([cursor.whole, cursor.range], [[0, 8], [0, 8]]);
  cursor.range = [2, 3];
  cursor.reach(9);
  assert.deepEqual(cursor.range, [2, 3], 'the chosen view remains');
  cursor.range = [3, 2];
  cursor.range = [NaN, 2];
  assert.deepEqual(cursor.range, [2, 3]);
  cursor.time = 2.5;
  assert.equal(notified, 5);
  end();
  cursor.time = null;
  assert.equal(notified, 5);
});

test('columns come back as they were packed', async () => {
  const bytes: number[] = [];
  const whole = (value: bigint) => {
    let rest = value >= 0n ? value * 2n : -value * 2n - 1n;
    for (; rest >= 128n; rest >>= 7n) bytes.push(Number(rest & 127n) | 128);
    bytes.push(Number(rest));
  };
  const times = [0n, 5n, 1_000_000_007n, 2_251_799_813_685_248n, 3n];
  let last = 0n;
  for (const time of times) {
    whole(time - last);
    last = time;
  }
  const plain = [Math.PI, -0.5, 1e300];
  const raw = plain.map((value) => new Uint8Array(Float64Array.of(value).buffer));
  for (let weight = 0; weight < 8; weight++) raw.forEach((value) => bytes.push(value[weight]!));
  const data = deflateRawSync(Uint8Array.from(bytes)).toString('base64');
  const found = await unpack([['t', 5, 1e9], ['y', 3, 0]], data);
  assert.deepEqual([...found.get('t')!], times.map((time) => Number(time) / 1e9));
  assert.deepEqual([...found.get('y')!], plain);
});

test('stalls leave out the time without a cell', () => {
  const columns = new Map([
    ['stall.from', numbers(7.5)], ['stall.to', numbers(9)],
    ['cell.from', numbers(0, 8.5)], ['cell.to', numbers(8, 20)],
  ]);
  const embedded = { form: 'sequence', title: '', flow: '', end: 20, every: 4, cells: ['a', 'b'], columns: [], data: '' } as const;
  const { spans, note } = sequence(columns, { ...embedded, cells: [...embedded.cells], columns: [] });
  assert.deepEqual([[...spans!.stall!.from], [...spans!.stall!.to]], [[7.5, 8.5], [8, 9]]);
  assert.deepEqual([...spans!.nocell!.from], [8]);
  assert.match(note!, /one of 4/);
});

test('no text becomes markup in a file', () => {
  const pen = new SvgPen(10, 10);
  pen.text({ colour: '#000000', size: 12 }, 0, 0, '<script>\u001b');
  assert.match(pen.finish('"><x', '#ffffff'), /&lt;script&gt;\ufffd/);
  assert.ok(!pen.finish('"><x', '#ffffff').includes('<x'));
});
