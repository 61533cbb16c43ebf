// Colours, marks and style sheet, as in crates/report/src/plot/style.rs and sequence.rs.

import type { Path, Pen, Point } from './pen.ts';

/** Default colours by name, light and dark. The page's CSS variables override them. */
const COLOURS = {
  paper: ['#ffffff', '#14181d'],
  ink: ['#1b2430', '#e7ebf0'],
  muted: ['#5c6773', '#9ba6b2'],
  grid: ['#e3e7ec', '#2a323b'],
  axis: ['#9aa5b1', '#5b6672'],
  stall: ['#f0ead6', '#2c2a20'],
  blue: ['#0072b2', '#5ab4ea'],
  orange: ['#bf7900', '#f0b23c'],
  green: ['#00875f', '#2fc49a'],
  purple: ['#b4558c', '#dd90bd'],
  sky: ['#3a9bd6', '#8fd0f5'],
  red: ['#cc3311', '#ff7458'],
} as const;

/** Name of a colour. */
export type Colour = keyof typeof COLOURS;

/** The current colours. */
export type Palette = Record<Colour, string>;

/** Colours of series, in the order of their use. */
const SERIES: readonly Colour[] = ['blue', 'orange', 'green', 'purple', 'red', 'sky', 'ink'];

/** Dashes of lines, in the order of their use. */
const DASHES: readonly (readonly number[])[] = [[], [8, 3], [2.5, 2.5], [9, 3, 2, 3]];

/** Colour and dashes of the `i`th line. */
export function series(i: number): { colour: Colour; dash: readonly number[] } {
  return { colour: SERIES[i % SERIES.length]!, dash: DASHES[i % DASHES.length]! };
}

/** The colours at `element`: those of the page, or ours for the light or dark scheme that the user prefers. */
export function palette(element: Element): Palette {
  const style = getComputedStyle(element);
  const dark = matchMedia('screen and (prefers-color-scheme: dark)').matches ? 1 : 0;
  const found = Object.entries(COLOURS).map(([name, both]) => {
    return [name, style.getPropertyValue(`--lh-${name}`).trim() || both[dark]];
  });
  return Object.fromEntries(found) as Palette;
}

/** Shape of a mark. Kinds differ by shape as well as by colour. */
export type Shape =
  | 'stroke'
  | 'stairs'
  | 'cross'
  | 'triangle'
  | 'diamond'
  | 'square'
  | 'ring'
  | 'tick'
  | 'band';

/** Look and name of a kind. */
export interface Look {
  shape: Shape;
  colour: Colour;
  words: string;
  dash?: readonly number[];
  /** Whether it is drawn in the panel of the window, below. */
  below?: boolean;
}

/** Looks by kind, in the order of drawing. */
export const LOOKS: Readonly<Record<string, Look>> = {
  ack: { shape: 'stairs', colour: 'muted', words: 'acknowledged' },
  window: { shape: 'stairs', colour: 'sky', words: 'receive window', dash: [2.5, 2.5] },
  sent: { shape: 'stroke', colour: 'blue', words: 'data' },
  sack: { shape: 'stroke', colour: 'purple', words: 'SACK block' },
  fast: { shape: 'triangle', colour: 'orange', words: 'fast retransmission' },
  timeout: { shape: 'diamond', colour: 'purple', words: 'retransmission after timeout' },
  eln: { shape: 'square', colour: 'sky', words: 'retransmission after loss notice' },
  probe: { shape: 'square', colour: 'purple', words: 'tail loss probe' },
  local: { shape: 'ring', colour: 'green', words: 'local retransmission' },
  retransmitted: { shape: 'ring', colour: 'orange', words: 'retransmission' },
  lost: { shape: 'cross', colour: 'red', words: 'lost' },
  dropped: { shape: 'cross', colour: 'red', words: 'dropped' },
  ssthresh: { shape: 'stairs', colour: 'muted', words: 'ssthresh', dash: [4, 3], below: true },
  cwnd: { shape: 'stairs', colour: 'green', words: 'cwnd', below: true },
  expired: { shape: 'tick', colour: 'purple', words: 'timer expired', below: true },
};

/** The look of any kind. */
export function look(kind: string): Look {
  return LOOKS[kind] ?? { shape: 'square', colour: 'ink', words: kind };
}

/** Spans of time: colour, opacity, words. */
export const SPANS: Readonly<Record<string, { colour: Colour; opacity: number; words: string }>> = {
  stall: { colour: 'stall', opacity: 1, words: 'stall' },
  bad: { colour: 'red', opacity: 0.18, words: 'channel bad' },
  nocell: { colour: 'sky', opacity: 0.18, words: 'in no cell' },
};

/** Filled shapes; others are lines. */
const FILLED = new Set<Shape>(['triangle', 'diamond', 'square']);

/** Draws marks of one shape at points. */
export function marks(
  pen: Pen,
  shape: Shape,
  colour: string,
  points: readonly Point[],
  opacity = 0.18,
): void {
  if (points.length === 0) return;
  pen.stamps(`${shape} ${colour} ${opacity}`, shape === 'tick' ? 14 : 8, points, (pen, points) => {
    const build = (path: Path) => {
      for (const [x, y] of points) trace(path, shape, x, y);
    };
    if (shape === 'band') pen.fill(colour, opacity, build);
    else if (FILLED.has(shape)) pen.fill(colour, 1, build);
    else {
      const width = { cross: 2, ring: 1.6, stroke: 2.2, tick: 2.4 }[shape as string] ?? 1.4;
      pen.stroke({ colour, width, round: shape === 'cross' || shape === 'stroke' }, build);
    }
  });
}

function polygon(path: Path, points: readonly (readonly [number, number])[]): void {
  points.forEach(([x, y], i) => (i === 0 ? path.move(x, y) : path.line(x, y)));
  path.close();
}

/** Traces one mark around a point; for lines, a sample of 12 pixels. */
function trace(path: Path, shape: Shape, x: number, y: number): void {
  switch (shape) {
    case 'cross':
      path.move(x - 3.5, y - 3.5);
      path.line(x + 3.5, y + 3.5);
      path.move(x - 3.5, y + 3.5);
      path.line(x + 3.5, y - 3.5);
      break;
    case 'triangle':
      polygon(path, [[x, y - 5], [x + 4.6, y + 3], [x - 4.6, y + 3]]);
      break;
    case 'diamond':
      polygon(path, [[x, y - 4.6], [x + 4.6, y], [x, y + 4.6], [x - 4.6, y]]);
      break;
    case 'square':
      path.rect(x - 3.5, y - 3.5, 7, 7);
      break;
    case 'ring':
      path.circle(x, y, 3.4);
      break;
    case 'tick':
      path.move(x, y);
      path.line(x, y - 12);
      break;
    case 'band':
      path.rect(x - 6, y - 5, 12, 10);
      break;
    default:
      path.move(x - 6, y);
      path.line(x + 6, y);
  }
}

const RULES = `
.lhp{position:relative;color:var(--lh-ink,CanvasText);font:14px/1.45 system-ui,-apple-system,'Segoe UI',Roboto,'Helvetica Neue','DejaVu Sans',sans-serif}
.lhp *{box-sizing:border-box}
.lhp [hidden]{display:none!important}
.lhp-head{display:flex;flex-wrap:wrap;align-items:center;gap:6px 14px;margin:0 0 4px}
.lhp-title{flex:1 1 220px;margin:0;font-size:15px;font-weight:600;overflow-wrap:anywhere}
.lhp-tools{display:flex;flex-wrap:wrap;gap:4px}
.lhp button{min-width:32px;min-height:32px;padding:3px 9px;font:inherit;font-size:13px;color:inherit;background:var(--lh-paper,Canvas);border:1px solid var(--lh-axis,GrayText);border-radius:6px;cursor:pointer}
.lhp button:hover{border-color:var(--lh-ink,CanvasText)}
.lhp :focus-visible{outline:2.5px solid var(--lh-blue,Highlight);outline-offset:1px}
.lhp-legend{display:flex;flex-wrap:wrap;gap:0 16px;margin:0 0 4px;padding:0;list-style:none;font-size:12.5px;color:var(--lh-muted,GrayText)}
.lhp-legend li{display:flex;align-items:center;gap:5px}
.lhp-legend svg{flex:none;display:block;width:16px;height:14px}
.lhp-surface{position:relative;touch-action:pan-y;cursor:crosshair;user-select:none;-webkit-user-select:none}
.lhp-surface.held{cursor:grabbing}
.lhp-surface canvas{display:block}
.lhp-surface .lhp-above{position:absolute;left:0;top:0;pointer-events:none}
.lhp-tip{position:absolute;z-index:2;max-width:min(300px,90%);padding:4px 9px;pointer-events:none;font-size:12.5px;background:var(--lh-paper,Canvas);border:1px solid var(--lh-axis,GrayText);border-radius:6px;white-space:pre-line}
.lhp-box{position:absolute;z-index:1;pointer-events:none;border:1px solid var(--lh-blue,Highlight);background:color-mix(in srgb,var(--lh-blue,Highlight) 15%,transparent)}
.lhp-status,.lhp-hint,.lhp-note{margin:4px 0 0;max-width:none;font-size:12.5px;color:var(--lh-muted,GrayText)}
.lhp-status{min-height:1.45em;font-variant-numeric:tabular-nums}
.lhp details{margin-top:4px;font-size:12.5px}
.lhp summary{padding:4px 0;cursor:pointer;color:var(--lh-muted,GrayText)}
.lhp-table{max-height:320px;overflow:auto}
.lhp table{width:100%;border-collapse:collapse;font-size:12.5px;font-variant-numeric:tabular-nums}
.lhp caption{padding:2px 0 4px;text-align:left;font-weight:400}
.lhp th,.lhp td{padding:2px 12px 2px 0;text-align:left;border-bottom:1px solid var(--lh-grid,GrayText)}
.lhp td.n,.lhp th.n{text-align:right}
@media print{.lhp-tools,.lhp-hint,.lhp details{display:none}}
`;

const dressed = new WeakMap<Document, Set<string>>();

/** Adds rules to a page once, as an adopted style sheet, which a strict content security policy permits. */
export function dress(document: Document, rules = RULES): void {
  const known = dressed.get(document) ?? new Set<string>();
  dressed.set(document, known);
  if (known.has(rules)) return;
  known.add(rules);
  const sheet = new CSSStyleSheet();
  sheet.replaceSync(rules);
  document.adoptedStyleSheets.push(sheet);
}
