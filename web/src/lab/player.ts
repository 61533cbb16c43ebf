// The player: one time for all columns, which runs by itself, by events, or by the user's hand.

import { TimeCursor } from '../plots/index.ts';
import type { Column } from './column.ts';
import { clock } from './numbers.ts';
import { PathView } from './path.ts';
import type { Goal } from './recording.ts';

/** Seconds of the run in a second of the clock. */
export const SPEEDS = [0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1, 3];

/** Time between two steps of Play while motion is off, in milliseconds. */
const STILL = 700;

/** Speed of packets before the prediction, and the seconds of the run that repeat. */
const [SLOW, SHORT] = [0.1, 2];

/** The time of the runs that the page shows. */
export abstract class Player {
  readonly cursor = new TimeCursor([0, 1]);
  columns: Column[] = [];
  /** The path of a lesson at rest, before the prediction. */
  readonly preview = new PathView('The path of this lesson', 1.5);
  /** Whether Play steps from event to event instead of moving packets. */
  still = matchMedia('(prefers-reduced-motion: reduce)').matches;
  /** The player's time in seconds of the run, and the index of its speed in `SPEEDS`. */
  time = 0;
  speed = 4;
  playing = false;
  #last = 0;
  #frame = 0;
  /** The requested frame of the preview. */
  #rolling = 0;
  /** The last message. */
  message = '';

  /** Whether a lesson's results still wait for the prediction. */
  abstract get hidden(): boolean;

  /** Renders the page, except for its plots. */
  abstract update(): void;

  /** Switches motion on or off. */
  move(on: boolean): void {
    this.still = !on;
    this.roll();
    this.update();
  }

  /** Moves the player to a time. */
  go(time: number): void {
    const [from, to] = this.cursor.whole;
    this.time = Math.min(Math.max(time, from), to);
    this.cursor.time = this.time;
    for (const column of this.columns) void column.look(this.time);
    this.moved();
    this.update();
  }

  /** Shows the packets of the player's time. */
  protected moved(): void {
    const [from, to] = this.cursor.range;
    this.columns.forEach(({ path }) => path.show(this.time, to - from));
  }

  play(): void {
    if (this.playing) return this.pause();
    this.playing = true;
    this.#last = performance.now();
    if (this.time >= this.cursor.whole[1]) this.time = this.cursor.range[0];
    this.#frame = requestAnimationFrame(() => this.tick());
    this.update();
  }

  pause(): void {
    if (!this.playing) return;
    this.playing = false;
    cancelAnimationFrame(this.#frame);
    this.update();
  }

  /** Starts Play by itself; without motion the user starts it. */
  start(): void {
    if (!this.still && !this.playing) this.play();
  }

  /** Moves to a time that the user chose, and stays there. */
  seek(time: number): void {
    this.pause();
    this.go(time);
  }

  /** Repeats the first seconds of a lesson's path until the prediction; without motion it shows a time with packets. */
  protected roll(): void {
    cancelAnimationFrame(this.#rolling);
    const run = this.columns[0]?.run;
    if (!this.hidden || !run) return;
    const loss = run.next(-1, 'loss');
    const span = Math.min(loss < 0 ? run.end : run.t[loss]!, SHORT);
    const began = performance.now();
    const roll = (now: number) => {
      const passed = Math.max(now - began, 0) / 1000;
      this.preview.show(this.still ? 0.7 * span : (passed * SLOW) % span, span);
      if (!this.still && this.hidden) this.#rolling = requestAnimationFrame(roll);
    };
    roll(began);
  }

  private tick(): void {
    if (!this.playing) return;
    const now = performance.now();
    const passed = now - this.#last;
    const end = this.cursor.whole[1];
    if (this.still) {
      if (passed >= STILL) {
        this.#last = now;
        this.#step('event', 1);
        // The last event is reached.
        if (this.message !== '') this.playing = false;
      }
    } else {
      this.#last = now;
      const time = Math.min(this.time + (passed / 1000) * SPEEDS[this.speed]!, end);
      const [from, to] = this.cursor.range;
      // The view follows the player.
      if (time > to && this.time <= to) this.cursor.range = [time, Math.min(time + (to - from), end)];
      this.playing = time < end;
      this.go(time);
    }
    if (this.playing) this.#frame = requestAnimationFrame(() => this.tick());
    else this.update();
  }

  /** Goes to the next event of a kind in any column. */
  jump(goal: Goal, by: 1 | -1 = 1): void {
    this.pause();
    this.#step(goal, by);
  }

  #step(goal: Goal, by: 1 | -1): void {
    let best: { column: Column; event: number; t: number } | null = null;
    for (const column of this.columns) {
      const event = column.next(this.time, goal, by);
      if (event < 0) continue;
      const t = column.run!.t[event]!;
      if (!best || (by > 0 ? t < best.t : t > best.t)) best = { column, event, t };
    }
    const words = { loss: 'loss', timeout: 'timeout', local: 'local retransmission', event: 'event' }[goal];
    this.message = best ? '' : `There is no ${words} ${by > 0 ? 'after' : 'before'} ${clock(this.time)}.`;
    if (best) {
      const [from, to] = this.cursor.range;
      const half = (to - from) / 2;
      if (best.t < from || best.t > to) this.cursor.range = [best.t - half, best.t + half];
      this.go(best.t);
      // In the other columns pick the event of the same instant, if there is one.
      for (const column of this.columns) {
        const event = column === best.column ? best.event : column.next(best.t - by * 1e-12, goal, by);
        if (event >= 0 && column.run!.t[event] === best.t) void column.pick(event);
        else column.unpick();
      }
    }
    this.update();
  }
}
