// Translates input of mouse, touch, pen, wheel and keys to actions of a plot.

/** The actions of a plot. Positions are CSS pixels within the surface. */
export interface Touched {
  /** Zooms around a position; `factor` below 1 zooms in. */
  zoom(factor: number, x?: number): void;
  /** Moves the view, in pixels. */
  drag(dx: number, dy: number): void;
  /** Zooms into a rectangle. */
  box(from: readonly [number, number], to: readonly [number, number]): void;
  /** The pointer is at this position; null if it left the surface. */
  hover(at: readonly [number, number] | null): void;
  /** This position was clicked. */
  pick(at: readonly [number, number]): void;
  reset(): void;
  /** Moves the view by a share of its range. */
  pan(share: number): void;
  /** Moves the cursor to the next or previous mark; `interesting` skips ordinary ones. */
  step(by: 1 | -1, interesting: boolean): void;
  /** The mark at the cursor was chosen by a key. */
  choose(): void;
}

/** Zoom factor of a key or button. */
export const CLOSER = 0.6;

/** Help text of keys and gestures. */
export const KEYS =
  'Keys: + and - zoom, arrows left and right move, Home and End go to the ends, 0 shows all, n and p step to the next and ' +
  'the previous loss or retransmission, . and , to the next and the previous mark, Enter chooses it. ' +
  'Mouse: drag moves, Shift and drag zooms into a rectangle. The wheel zooms with Ctrl, or after a click on the plot. ' +
  'Touch: drag sideways moves, two fingers zoom.';

const ACTIONS: Readonly<Record<string, (plot: Touched) => void>> = {
  '+': (plot) => plot.zoom(CLOSER),
  '=': (plot) => plot.zoom(CLOSER),
  '-': (plot) => plot.zoom(1 / CLOSER),
  ArrowLeft: (plot) => plot.pan(-0.15),
  ArrowRight: (plot) => plot.pan(0.15),
  Home: (plot) => plot.pan(-Infinity),
  End: (plot) => plot.pan(Infinity),
  0: (plot) => plot.reset(),
  Escape: (plot) => plot.reset(),
  n: (plot) => plot.step(1, true),
  p: (plot) => plot.step(-1, true),
  '.': (plot) => plot.step(1, false),
  ',': (plot) => plot.step(-1, false),
  Enter: (plot) => plot.choose(),
};

/** A press that moved less than this many pixels is a click. */
const CLICK = 4;

/** Listens to gestures on `surface`. Returns a function that stops listening. */
export function listen(surface: HTMLElement, plot: Touched): () => void {
  const ended = new AbortController();
  const { signal } = ended;
  /** Positions of pressed fingers or buttons, by pointer. */
  const down = new Map<number, [number, number]>();
  let began: [number, number] | null = null;
  let moved = false;
  let rectangle: HTMLElement | null = null;

  const place = (event: MouseEvent): [number, number] => {
    const { left, top } = surface.getBoundingClientRect();
    return [event.clientX - left, event.clientY - top];
  };
  const release = () => {
    rectangle?.remove();
    rectangle = null;
    began = null;
    surface.classList.remove('held');
  };

  const press = (event: PointerEvent) => {
    if (event.button !== 0) return;
    surface.focus({ preventScroll: true });
    down.set(event.pointerId, place(event));
    surface.setPointerCapture(event.pointerId);
    if (down.size > 1) return void (moved = true);
    began = place(event);
    moved = false;
    if (event.shiftKey) {
      rectangle = surface.appendChild(document.createElement('div'));
      rectangle.className = 'lhp-box';
    }
  };

  const move = (event: PointerEvent) => {
    const [x, y] = place(event);
    const last = down.get(event.pointerId);
    if (!last) {
      if (event.pointerType !== 'touch') plot.hover([x, y]);
      return;
    }
    const two = down.size === 2 ? spread(down) : null;
    down.set(event.pointerId, [x, y]);
    if (two) {
      const now = spread(down);
      plot.drag(now.x - two.x, now.y - two.y);
      if (now.apart > 10 && two.apart > 10) plot.zoom(two.apart / now.apart, now.x);
      return;
    }
    if (!began || (!moved && Math.hypot(x - began[0], y - began[1]) < CLICK)) return;
    moved = true;
    if (rectangle) {
      const [left, top] = [Math.min(x, began[0]), Math.min(y, began[1])];
      Object.assign(rectangle.style, {
        left: `${left}px`,
        top: `${top}px`,
        width: `${Math.abs(x - began[0])}px`,
        height: `${Math.abs(y - began[1])}px`,
      });
    } else {
      surface.classList.add('held');
      plot.drag(x - last[0], event.pointerType === 'touch' ? 0 : y - last[1]);
    }
  };

  const lift = (event: PointerEvent) => {
    if (!down.delete(event.pointerId) || down.size > 0) return;
    const at = place(event);
    if (event.type === 'pointerup' && began) {
      if (rectangle && moved) plot.box(began, at);
      else if (!moved) plot.pick(at);
    }
    release();
  };

  const wheel = (event: WheelEvent) => {
    // Scrolling the page must not zoom a plot under the pointer.
    const ours = event.ctrlKey || event.metaKey || document.activeElement === surface;
    if (!ours) return;
    event.preventDefault();
    if (Math.abs(event.deltaX) > Math.abs(event.deltaY)) return plot.drag(-event.deltaX, 0);
    const lines = event.deltaMode === WheelEvent.DOM_DELTA_LINE ? 30 : 1;
    const delta = Math.min(Math.max(event.deltaY * lines, -240), 240);
    plot.zoom(Math.exp(delta * (event.ctrlKey ? 0.008 : 0.0025)), place(event)[0]);
  };

  const key = (event: KeyboardEvent) => {
    const action = ACTIONS[event.key];
    if (!action || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    action(plot);
  };

  surface.addEventListener('pointerdown', press, { signal });
  surface.addEventListener('pointermove', move, { signal });
  surface.addEventListener('pointerup', lift, { signal });
  surface.addEventListener('pointercancel', lift, { signal });
  surface.addEventListener('pointerleave', () => down.size || plot.hover(null), { signal });
  surface.addEventListener('dblclick', () => plot.reset(), { signal });
  surface.addEventListener('wheel', wheel, { signal, passive: false });
  surface.addEventListener('keydown', key, { signal });
  return () => ended.abort();
}

/** The middle of two fingers, and their horizontal distance. */
function spread(down: Map<number, [number, number]>): { x: number; y: number; apart: number } {
  const [a, b] = [...down.values()] as [[number, number], [number, number]];
  return { x: (a[0] + b[0]) / 2, y: (a[1] + b[1]) / 2, apart: Math.abs(a[0] - b[0]) };
}
