// Computes the movements of packets along the path between their events, for the animation.

import { AGAIN, type Recording } from './recording.ts';

/** Kind of a packet, which determines its look. */
export type Look = 'data' | 'again' | 'local' | 'ack' | 'notice';

/**
 * The movements of all packets, sorted by start time; each array has one entry per movement. Positions are stage
 * numbers. A link extends half a position to both sides of its stage.
 */
export interface Ways {
  from: Float64Array;
  to: Float64Array;
  start: Float64Array;
  end: Float64Array;
  /** Time at which the packet leaves the queue of its link. */
  leaves: Float64Array;
  look: Uint8Array;
  /** Whether the channel damaged the packet before or during this movement. */
  hurt: Uint8Array;
  /** Index of the event that originated the packet, which has its bytes; -1 if there is none. */
  origin: Int32Array;
  /** Index of the event of the packet's loss; -1 if it arrives. */
  loss: Int32Array;
  /** Duration of the longest movement in seconds: movements at time t start after t - longest. */
  longest: number;
}

/** The dropped packets; each array has one entry per packet. */
export interface Deaths {
  t: Float64Array;
  place: Float64Array;
  event: Uint32Array;
}

export const LOOKS: Look[] = ['data', 'again', 'local', 'ack', 'notice'];

/** Upper bound of packet lengths, for keys of a map. */
const SIZES = 1 << 20;

const LOCAL = new Set(['local-dup-ack', 'local-timeout', 'local-persist', 'local-burst-check', 'handoff-repeated']);
const ACKS = new Set(['ack', 'split-ack', 'control', 'split-control', 'reconstructed-ack']);
const DATA = new Set(['data', 'split-data', 'datagram', 'handoff-copy', 'line-duplicate', 'split-probe']);

function lookOf(cause: string): number {
  if (AGAIN.has(cause)) return 1;
  if (LOCAL.has(cause)) return 2;
  if (ACKS.has(cause)) return 3;
  return DATA.has(cause) ? 0 : 4;
}

/** Computes the movements and drops of all packets of a recording. */
export function travel(run: Recording): { ways: Ways; deaths: Deaths } {
  const from: number[] = [];
  const to: number[] = [];
  const start: number[] = [];
  const end: number[] = [];
  const look: number[] = [];
  const hurt: number[] = [];
  const origin: number[] = [];
  const packets: number[] = [];
  // The shortest crossing of a link by packets of one size includes no queueing delay.
  const crossing: number[] = [];
  const least = new Map<number, number>();
  const losses = new Map<number, number>();
  const deaths: { t: number; place: number; event: number }[] = [];
  // By packet: its last position and time, its look, whether it is damaged, and the index of its last movement.
  const last = new Map<number, { place: number; t: number; look: number; hurt: number; way: number; origin: number }>();
  let longest = 0;
  for (let i = 0; i < run.t.length; i++) {
    const packet = run.packet[i]!;
    if (packet === 0) continue;
    const { event, cause } = run.of(i);
    const t = run.t[i]!;
    const stage = run.stage[i]!;
    const by = run.side[i] === 1 ? 0.5 : -0.5;
    const known = last.get(packet);
    if (event === 'originated') {
      last.set(packet, { place: stage, t, look: lookOf(cause), hurt: 0, way: -1, origin: i });
    } else if (event === 'damaged') {
      if (!known) last.set(packet, { place: stage - by, t, look: 0, hurt: 1, way: -1, origin: -1 });
      else {
        known.hurt = 1;
        // Damage may be reported after the transmission that caused it.
        if (end[known.way] === t) hurt[known.way] = 1;
      }
    } else if (event === 'transmitted') {
      const was = known ?? { place: stage - by, t, look: 0, hurt: 0, way: -1, origin: -1 };
      const place = stage + by;
      from.push(was.place);
      to.push(place);
      start.push(was.t);
      end.push(t);
      look.push(was.look);
      hurt.push(was.hurt);
      origin.push(was.origin);
      packets.push(packet);
      const bytes = was.origin < 0 ? 0 : run.to[was.origin]! - run.from[was.origin]!;
      const key = (2 * stage + run.side[i]!) * SIZES + Math.min(bytes, SIZES - 1);
      crossing.push(key);
      if (!(least.get(key)! <= t - was.t)) least.set(key, t - was.t);
      longest = Math.max(longest, t - was.t);
      [was.place, was.t, was.way] = [place, t, from.length - 1];
      if (!known) last.set(packet, was);
    } else if (event === 'dropped') {
      const link = run.stages[stage]?.role === 'link' || run.stages[stage]?.role === 'radio';
      deaths.push({ t, place: link && known ? known.place + (known.place === stage ? 0 : by * 0.6) : stage, event: i });
      if (run.of(i).loss) losses.set(packet, i);
      last.delete(packet);
    } else if (event === 'received') {
      last.delete(packet);
    }
  }
  // Sorted by start time, for binary search.
  const order = Uint32Array.from(start.keys()).sort((a, b) => start[a]! - start[b]!);
  const sorted = (values: number[]) => Float64Array.from(order, (i) => values[i]!);
  return {
    ways: {
      from: sorted(from),
      to: sorted(to),
      start: sorted(start),
      end: sorted(end),
      leaves: Float64Array.from(order, (i) => end[i]! - least.get(crossing[i]!)!),
      look: Uint8Array.from(order, (i) => look[i]!),
      hurt: Uint8Array.from(order, (i) => hurt[i]!),
      origin: Int32Array.from(order, (i) => origin[i]!),
      loss: Int32Array.from(order, (i) => losses.get(packets[i]!) ?? -1),
      longest,
    },
    deaths: {
      t: Float64Array.from(deaths, (d) => d.t),
      place: Float64Array.from(deaths, (d) => d.place),
      event: Uint32Array.from(deaths, (d) => d.event),
    },
  };
}

/** Index of the first entry of the sorted `values` that is at least `value`. */
export function first(values: Float64Array, value: number): number {
  let [low, high] = [0, values.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (values[middle]! < value) low = middle + 1;
    else high = middle;
  }
  return low;
}
