// The legend of a plot: in the page, and in saved pictures.

import { type Pen, SvgPen } from './pen.ts';
import { type Colour, type Palette, type Shape, marks } from './style.ts';

/** An entry of a legend. */
export interface Entry {
  shape: Shape;
  colour: Colour;
  words: string;
  dash?: readonly number[];
  /** Opacity of an area. */
  opacity?: number;
}

/** Distributes the entries of a legend over lines. */
export function placed(entries: Entry[], pen: Pen, width: number) {
  const all: { entry: Entry; x: number; line: number }[] = [];
  let [x, line] = [16, 0];
  for (const entry of entries) {
    const needed = 19 + pen.width(entry.words, 12.5) + 18;
    if (x > 16 && x + needed > width - 16) [x, line] = [16, line + 1];
    all.push({ entry, x, line });
    x += needed;
  }
  return { all, lines: entries.length ? line + 1 : 0 };
}

/** Draws the mark of an entry around a point. */
export function drawSample(pen: Pen, entry: Entry, colours: Palette, x: number, y: number): void {
  const colour = colours[entry.colour];
  if (entry.shape === 'stairs') {
    pen.stroke({ colour, width: 1.8, dash: entry.dash ?? [] }, (path) => {
      path.move(x - 7, y);
      path.line(x + 7, y);
    });
  } else {
    const at = entry.shape === 'tick' ? y + 6 : y;
    marks(pen, entry.shape, colour, [[x, at]], entry.opacity);
  }
}

/** A small picture of a mark. */
export function sample(entry: Entry, colours: Palette): Element {
  const pen = new SvgPen(16, 14);
  drawSample(pen, entry, colours, 8, 7);
  const text = pen.finish('', 'none').trim();
  const svg = new DOMParser().parseFromString(text, 'image/svg+xml').documentElement;
  svg.removeAttribute('role');
  svg.removeAttribute('aria-label');
  svg.setAttribute('aria-hidden', 'true');
  return document.importNode(svg, true);
}
