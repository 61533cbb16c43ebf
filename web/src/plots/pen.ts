// One drawing, on a canvas or as SVG.

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

/** Where a drawing goes. */
export interface Pen {
  stroke(look: Stroke, build: (path: Path) => void): void;
  fill(colour: string, opacity: number, build: (path: Path) => void): void;
  text(look: Lettering, x: number, y: number, text: string): void;
  /** About how wide a text is. */
  width(text: string, size: number): number;
  /** What `draw` draws ends at the edges. */
  clip(x: number, y: number, width: number, height: number, draw: () => void): void;
}

/** The family of all text. */
export const FONT =
  "system-ui,-apple-system,'Segoe UI',Roboto,'Helvetica Neue','DejaVu Sans',sans-serif";

const font = (size: number, bold?: boolean) => `${bold ? '600 ' : ''}${size}px ${FONT}`;

/** Draws on a canvas whose unit is the CSS pixel. */
export class CanvasPen implements Pen {
  readonly #context: CanvasRenderingContext2D;
  readonly #path: Path;

  constructor(context: CanvasRenderingContext2D) {
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

/** A coordinate with one decimal at most. */
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

  /** The file. */
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
