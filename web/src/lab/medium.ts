// Frames on the medium over time, for lessons about radio links.

import type { TimeCursor } from '../plots/index.ts';
import { palette, series } from '../plots/style.ts';
import type { Column } from './column.ts';
import type { Recording } from './recording.ts';

/** Seconds in view: a few of the longest aggregates. */
const VIEW = 0.04;
/** Heights of a row, of a frame, and of the space for times, in CSS pixels. */
const ROW = 44;
const FRAME = 12;
const FOOT = 24;
const LEFT = 110;
const WIDTH = 900;

/** A transmission. */
export interface Frame {
  from: number;
  to: number;
  /** 0 is the base station. */
  station: number;
  failed: boolean;
}

/** A row of frames for each column, in the part of the time that has the cursor. */
export class Medium {
  readonly place = document.createElement('div');
  #rows: { name: string; frames: Frame[] }[] = [];
  #cursor: TimeCursor | null = null;
  #leave: (() => void) | null = null;

  /** Draws the frames of all columns, or removes the picture if it is not `wanted`. */
  show(columns: readonly Column[], cursor: TimeCursor, wanted: boolean): void {
    this.#leave?.();
    this.#leave = null;
    this.place.replaceChildren();
    if (!wanted) return;
    this.#rows = columns.flatMap(({ scheme, run }) => (run ? [{ name: scheme, frames: frames(run) }] : []));
    this.#cursor = cursor;
    const heading = document.createElement('h3');
    heading.textContent = 'Frames on the medium';
    const words = document.createElement('p');
    const stations = Math.max(0, ...this.#rows.flatMap((row) => row.frames.map(({ station }) => station)));
    const names = Array.from({ length: stations + 1 }, (_, i) => (i === 0 ? 'base station' : `station ${i}`));
    for (const [i, name] of [...names, 'failed, to be repeated'].entries()) {
      const sign = document.createElement('span');
      sign.textContent = '\u25a0 ';
      sign.style.color = palette(document.body)[i > stations ? 'red' : series(i).colour];
      words.append(sign, `${name}  `);
    }
    const canvas = document.createElement('canvas');
    canvas.setAttribute('role', 'img');
    canvas.setAttribute('aria-label', `Frames on the medium in ${VIEW * 1e3} ms, a row for each column, coloured by station`);
    this.place.append(heading, words, canvas);
    this.#leave = cursor.subscribe(() => this.#draw(canvas));
    this.#draw(canvas);
  }

  #draw(canvas: HTMLCanvasElement): void {
    const [scale, height] = [devicePixelRatio || 1, this.#rows.length * ROW + FOOT];
    [canvas.width, canvas.height] = [WIDTH * scale, height * scale];
    canvas.style.maxWidth = '100%';
    canvas.style.width = `${WIDTH}px`;
    const pen = canvas.getContext('2d');
    if (!pen) return;
    const colours = palette(canvas);
    pen.scale(scale, scale);
    pen.font = '12px sans-serif';
    const begin = Math.floor((this.#cursor?.time ?? 0) / VIEW) * VIEW;
    const x = (time: number) => LEFT + ((time - begin) / VIEW) * (WIDTH - LEFT);
    this.#rows.forEach(({ name, frames }, row) => {
      const base = (row + 1) * ROW;
      pen.fillStyle = colours.ink;
      pen.fillText(name, 0, base - 6);
      pen.fillStyle = colours.grid;
      pen.fillRect(LEFT, base, WIDTH - LEFT, 1);
      for (const { from, to, station, failed } of frames) {
        if (to < begin || from > begin + VIEW) continue;
        pen.fillStyle = failed ? colours.red : colours[series(station).colour];
        const left = Math.max(x(from), LEFT);
        pen.fillRect(left, base - FRAME * (1 + Math.min(station, 2)), Math.max(x(to) - left, 0.7), FRAME - 1);
      }
    });
    const now = this.#cursor?.time;
    pen.fillStyle = colours.ink;
    if (now !== null && now !== undefined) pen.fillRect(x(now), 0, 1, height - FOOT);
    for (let i = 0; i <= 4; i++) {
      const at = begin + (VIEW * i) / 4;
      pen.textAlign = i === 4 ? 'right' : 'left';
      pen.fillText(`${at.toFixed(2)} s`, x(at), height - 6);
    }
    pen.textAlign = 'left';
  }
}

/** The transmissions of a run. */
export function frames(run: Recording): Frame[] {
  const all: Frame[] = [];
  for (let i = 0; i < run.t.length; i++) {
    const { event, cause } = run.of(i);
    if (!event.startsWith('air-')) continue;
    const [to, failed] = [run.t[i]!, cause === 'damaged' || cause === 'collided'];
    all.push({ from: to - run.to[i]!, to, station: run.from[i]! - 1, failed });
  }
  return all;
}
