// Draws on a canvas or as SVG, with one interface.

/** A path under construction. */
export interface Path {
  move(x: number, y: number): void;
  line(x: number, y: number): void;
  circle(x: number, y: number, radius: number): void;
  rect(x: number, y: number, width: number, height: number): void;
  close(): void;
}

/** How a line looks. */
export interface Stroke {
  colour: string;
  width: number;
  dash?: readonly number[];
  round?: boolean;
}

/** How a text looks. */
export interface Lettering {
  colour: string;
  size: number;
  bold?: boolean;
  anchor?: 'start' | 'middle' | 'end';
  /** Reads upwards. */
  upwards?: boolean;
}

/** A position in a drawing. */
export type Point = readonly [x: number, y: number];

/** Draws the same shape at several points. */
export type Draw = (pen: Pen, points: readonly Point[]) => void;

/** The target of a drawing. */
export interface Pen {
  stroke(look: Stroke, build: (path: Path) => void): void;
  /** A staircase: horizontal to the next corner, then vertical. Fast for many corners. */
  stairs(look: Stroke, build: (corner: (x: number, y: number) => void) => void): void;
  /** Vertical lines. Fast for many lines. */
  uprights(look: Stroke, build: (line: (x: number, top: number, bottom: number) => void) => void): void;
  /** Rectangles. Fast for many. */
  bars(colour: string, opacity: number, build: (bar: (x: number, y: number, width: number, height: number) => void) => void): void;
  /** The same small drawing, within `radius` of each point. Fast for many points. `name` identifies the drawing in a cache. */
  stamps(name: string, radius: number, points: readonly Point[], draw: Draw): void;
  fill(colour: string, opacity: number, build: (path: Path) => void): void;
  text(look: Lettering, x: number, y: number, text: string): void;
  /** Approximate width of a text. */
  width(text: string, size: number): number;
  /** Clips the drawing of `draw` at the edges. */
  clip(x: number, y: number, width: number, height: number, draw: () => void): void;
}

/** Font family of all text. */
export const FONT =
  "system-ui,-apple-system,'Segoe UI',Roboto,'Helvetica Neue','DejaVu Sans',sans-serif";

/** Maximum number of lines that are drawn with round ends; with more lines the ends are too small to see. */
const ROUND = 300;
/** Maximum number of cached stamps. */
const STAMPS = 64;
/** Fewer points than this are drawn without a stamp. */
const FEW = 12;

/** Cached stamps by name and scale. */
const stamps = new Map<string, ImageBitmap>();

const font = (size: number, bold?: boolean) => `${bold ? '600 ' : ''}${size}px ${FONT}`;

type Context = CanvasRenderingContext2D | OffscreenCanvasRenderingContext2D;

/** Draws on a canvas whose unit is the CSS pixel. */
export class CanvasPen implements Pen {
  readonly #context: Context;
  readonly #path: Path;

  constructor(context: Context) {
    this.#context = context;
    this.#path = {
      move: (x, y) => context.moveTo(x, y),
      line: (x, y) => context.lineTo(x, y),
      circle: (x, y, radius) => {
        context.moveTo(x + radius, y);
        context.arc(x, y, radius, 0, 2 * Math.PI);
      },
      rect: (x, y, width, height) => context.rect(x, y, width, height),
      close: () => context.closePath(),
    };
  }

  stroke(look: Stroke, build: (path: Path) => void): void {
    const context = this.#context;
    context.strokeStyle = look.colour;
    context.lineWidth = look.width;
    context.lineCap = look.round ? 'round' : 'butt';
    context.lineJoin = 'round';
    context.setLineDash(look.dash ? [...look.dash] : []);
    context.beginPath();
    build(this.#path);
    context.stroke();
  }

  // A browser without a graphics card fills rectangles a hundred times as fast as it strokes a path of as many lines.

  stairs(look: Stroke, build: (corner: (x: number, y: number) => void) => void): void {
    const context = this.#context;
    context.fillStyle = look.colour;
    const half = look.width / 2;
    const dash = look.dash?.length === 2 ? look.dash : null;
    const period = dash ? dash[0]! + dash[1]! : 0;
    const shown = (at: number) => !dash || ((at % period) + period) % period < dash[0]!;
    /** A horizontal line; its dashes have the same positions in every drawing. */
    const level = (from: number, to: number, y: number) => {
      if (!dash) context.fillRect(from - half, y - half, to - from + look.width, look.width);
      else {
        for (let at = Math.floor(from / period) * period; at < to; at += period) {
          const [a, b] = [Math.max(at, from), Math.min(at + dash[0]!, to)];
          if (b > a) context.fillRect(a, y - half, b - a, look.width);
        }
      }
    };
    // A column of pixels is one rectangle, from the lowest to the highest value in it.
    let begun = false;
    let [first, last, low, high, held] = [0, 0, 0, 0, 0];
    const column = () => {
      if (high > low && shown(first)) {
        const width = Math.max(last - first, look.width);
        context.fillRect((first + last - width) / 2, low - half, width, high - low + look.width);
      }
    };
    build((x, y) => {
      if (!begun) {
        begun = true;
        [first, last, low, high, held] = [x, x, y, y, y];
        return;
      }
      if (x - first > 1) {
        column();
        // A part without a jump is drawn even if it is narrower than a column.
        level(high > low ? last : first, x, held);
        [first, low, high] = [x, held, held];
      }
      last = x;
      held = y;
      if (y < low) low = y;
      if (y > high) high = y;
    });
    if (!begun) return;
    column();
    if (high === low) level(first, last, held);
  }

  uprights(look: Stroke, build: (line: (x: number, top: number, bottom: number) => void) => void): void {
    const context = this.#context;
    const half = look.width / 2;
    context.fillStyle = look.colour;
    if (!look.round) {
      build((x, top, bottom) => context.fillRect(x - half, top, look.width, bottom - top));
      return;
    }
    const all: number[] = [];
    build((x, top, bottom) => all.push(x, top, bottom));
    if (all.length > 3 * ROUND) {
      // Nearly as long as with round ends.
      for (let i = 0; i < all.length; i += 3) {
        context.fillRect(all[i]! - half, all[i + 1]! - half / 2, look.width, all[i + 2]! - all[i + 1]! + half);
      }
      return;
    }
    this.stroke(look, (path) => {
      for (let i = 0; i < all.length; i += 3) {
        path.move(all[i]!, all[i + 2]!);
        path.line(all[i]!, Math.min(all[i + 1]!, all[i + 2]! - 0.6));
      }
    });
  }

  bars(colour: string, opacity: number, build: (bar: (x: number, y: number, w: number, h: number) => void) => void): void {
    const context = this.#context;
    context.fillStyle = colour;
    context.globalAlpha = opacity;
    build((x, y, width, height) => context.fillRect(x, y, width, height));
    context.globalAlpha = 1;
  }

  stamps(name: string, radius: number, points: readonly Point[], draw: Draw): void {
    const context = this.#context;
    if (points.length < FEW) {
      draw(this, points);
      return;
    }
    const { a: scale } = context.getTransform();
    const key = `${name} ${scale}`;
    // An odd number of pixels has one in the middle.
    const side = 2 * Math.ceil(radius * scale) + 1;
    let stamp = stamps.get(key);
    if (!stamp) {
      const paper = new OffscreenCanvas(side, side);
      const own = paper.getContext('2d')!;
      own.setTransform(scale, 0, 0, scale, side / 2, side / 2);
      draw(new CanvasPen(own), [[0, 0]]);
      stamp = paper.transferToImageBitmap();
      if (stamps.size === STAMPS) stamps.delete(stamps.keys().next().value!);
      stamps.set(key, stamp);
    }
    // At whole pixels a stamp is copied without resampling.
    context.save();
    context.setTransform(1, 0, 0, 1, 0, 0);
    const back = Math.ceil(radius * scale);
    for (const [x, y] of points) context.drawImage(stamp, Math.floor(x * scale) - back, Math.floor(y * scale) - back);
    context.restore();
  }

  fill(colour: string, opacity: number, build: (path: Path) => void): void {
    const context = this.#context;
    context.fillStyle = colour;
    context.globalAlpha = opacity;
    context.beginPath();
    build(this.#path);
    context.fill();
    context.globalAlpha = 1;
  }

  text(look: Lettering, x: number, y: number, text: string): void {
    const context = this.#context;
    context.font = font(look.size, look.bold);
    context.fillStyle = look.colour;
    const anchor = look.anchor ?? 'start';
    context.textAlign = anchor === 'middle' ? 'center' : anchor;
    if (look.upwards) {
      context.save();
      context.translate(x, y);
      context.rotate(-Math.PI / 2);
      context.fillText(text, 0, 0);
      context.restore();
    } else {
      context.fillText(text, x, y);
    }
  }

  width(text: string, size: number): number {
    this.#context.font = font(size);
    return this.#context.measureText(text).width;
  }

  clip(x: number, y: number, width: number, height: number, draw: () => void): void {
    const context = this.#context;
    context.save();
    context.beginPath();
    context.rect(x, y, width, height);
    context.clip();
    draw();
    context.restore();
  }
}

/** A coordinate with at most one decimal. */
const n = (value: number) => String(Math.round(value * 10) / 10);

/** Text that is safe inside elements and attributes. */
export function escaped(text: string): string {
  const names: Record<string, string> = { '&': 'amp', '<': 'lt', '>': 'gt', '"': 'quot', "'": '#39' };
  // Control characters are not allowed in XML, not even escaped.
  return text.replace(/[&<>"']/g, (c) => `&${names[c]};`).replace(/[\0-\x08\x0b-\x1f\x7f]/g, '\ufffd');
}

/** Writes SVG. */
export class SvgPen implements Pen {
  readonly #size: readonly [number, number];
  #body = '';
  #clips = 0;

  constructor(width: number, height: number) {
    this.#size = [width, height];
  }

  /** The finished file. */
  finish(title: string, paper: string): string {
    const [width, height] = this.#size;
    return (
      `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}" ` +
      `role="img" aria-label="${escaped(title)}" font-family="${escaped(FONT)}">` +
      `<rect width="100%" height="100%" fill="${paper}"/>${this.#body}</svg>\n`
    );
  }

  stroke(look: Stroke, build: (path: Path) => void): void {
    const path = pathOf(build);
    if (path === '') return;
    const dash = look.dash?.length ? ` stroke-dasharray="${look.dash.join(' ')}"` : '';
    const cap = look.round ? ' stroke-linecap="round"' : '';
    this.#body +=
      `<path d="${path}" fill="none" stroke="${look.colour}" stroke-width="${n(look.width)}" ` +
      `stroke-linejoin="round"${cap}${dash}/>`;
  }

  stairs(look: Stroke, build: (corner: (x: number, y: number) => void) => void): void {
    this.stroke(look, (path) => {
      let held: number | null = null;
      build((x, y) => {
        if (held === null) path.move(x, y);
        else {
          path.line(x, held);
          if (y !== held) path.line(x, y);
        }
        held = y;
      });
    });
  }

  uprights(look: Stroke, build: (line: (x: number, top: number, bottom: number) => void) => void): void {
    this.stroke(look, (path) => {
      build((x, top, bottom) => {
        path.move(x, bottom);
        path.line(x, Math.min(top, bottom - 0.6));
      });
    });
  }

  bars(colour: string, opacity: number, build: (bar: (x: number, y: number, w: number, h: number) => void) => void): void {
    this.fill(colour, opacity, (path) => build((x, y, width, height) => path.rect(x, y, width, height)));
  }

  stamps(_name: string, _radius: number, points: readonly Point[], draw: Draw): void {
    draw(this, points);
  }

  fill(colour: string, opacity: number, build: (path: Path) => void): void {
    const path = pathOf(build);
    if (path === '') return;
    this.#body += `<path d="${path}" fill="${colour}"${opacity < 1 ? ` fill-opacity="${opacity}"` : ''}/>`;
  }

  text(look: Lettering, x: number, y: number, text: string): void {
    const anchor = look.anchor && look.anchor !== 'start' ? ` text-anchor="${look.anchor}"` : '';
    const bold = look.bold ? ' font-weight="600"' : '';
    const turned = look.upwards ? ` transform="rotate(-90 ${n(x)} ${n(y)})"` : '';
    this.#body +=
      `<text x="${n(x)}" y="${n(y)}" font-size="${look.size}" fill="${look.colour}"${anchor}${bold}${turned}>` +
      `${escaped(text)}</text>`;
  }

  width(text: string, size: number): number {
    return text.length * size * 0.58;
  }

  clip(x: number, y: number, width: number, height: number, draw: () => void): void {
    const id = `c${++this.#clips}`;
    const rect = `<rect x="${n(x)}" y="${n(y)}" width="${n(width)}" height="${n(height)}"/>`;
    this.#body += `<clipPath id="${id}">${rect}</clipPath><g clip-path="url(#${id})">`;
    draw();
    this.#body += '</g>';
  }
}

function pathOf(build: (path: Path) => void): string {
  let text = '';
  build({
    move: (x, y) => (text += `M${n(x)} ${n(y)}`),
    line: (x, y) => (text += `L${n(x)} ${n(y)}`),
    circle: (x, y, r) =>
      (text += `M${n(x - r)} ${n(y)}a${r} ${r} 0 1 0 ${2 * r} 0a${r} ${r} 0 1 0 ${-2 * r} 0`),
    rect: (x, y, width, height) => (text += `M${n(x)} ${n(y)}h${n(width)}v${n(height)}h${n(-width)}z`),
    close: () => (text += 'z'),
  });
  return text;
}
