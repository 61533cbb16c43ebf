// Where each packet is at each time: the ways between the events that tell of it.

import type { Recording } from './recording.ts';

/** What a packet is, by its look. */
export type Look = 'data' | 'again' | 'local' | 'ack' | 'notice';

/** A way of a packet along the path. Places are stages; a link reaches half a place to both sides of its own. */
export interface Ways {
  from: Float64Array;
  to: Float64Array;
  start: Float64Array;
  end: Float64Array;
  /** Up to here the packet waits in the queue of its link. */
  leaves: Float64Array;
  look: Uint8Array;
  /** Whether the channel had damaged it on this way. */
  hurt: Uint8Array;
  /** The event that made the packet, from which its bytes are known; -1 if none did. */
  origin: Int32Array;
  /** The event that ends the packet's life by a loss; -1 if it arrives. */
  loss: Int32Array;
  /** The longest way, in seconds: how far back one must look. */
  longest: number;
}

/** A packet whose life ended. */
export interface Deaths {
  t: Float64Array;
  place: Float64Array;
  event: Uint32Array;
}

export const LOOKS: Look[] = ['data', 'again', 'local', 'ack', 'notice'];

/** No packet has as many bytes. */
const SIZES = 1 << 20;

const AGAIN = new Set(['fast-retransmit', 'timeout-retransmit', 'eln-retransmit', 'tail-loss-probe', 'window-probe']);
const LOCAL = new Set(['local-dup-ack', 'local-timeout', 'local-persist', 'handoff-repeated']);
const ACKS = new Set(['ack', 'split-ack', 'control', 'split-control', 'reconstructed-ack']);
const DATA = new Set(['data', 'split-data', 'datagram', 'handoff-copy', 'line-duplicate', 'split-probe']);

function lookOf(cause: string): number {
  if (AGAIN.has(cause)) return 1;
  if (LOCAL.has(cause)) return 2;
  if (ACKS.has(cause)) return 3;
  return DATA.has(cause) ? 0 : 4;
}

/** Finds the ways of all packets of a recording. */
export function travel(run: Recording): { ways: Ways; deaths: Deaths } {
  const from: number[] = [];
  const to: number[] = [];
  const start: number[] = [];
  const end: number[] = [];
  const look: number[] = [];
  const hurt: number[] = [];
  const origin: number[] = [];
  const packets: number[] = [];
  // The shortest crossing of each link by packets of one size is the one without a queue.
  const crossing: number[] = [];
  const least = new Map<number, number>();
  const losses = new Map<number, number>();
  const deaths: { t: number; place: number; event: number }[] = [];
  // By packet: where it was last, when, what it looks like, whether it is damaged, and the number of its last way.
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
        // Damage may be told after the transmission that brought it.
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
  // In the order of their beginnings, so that those of a time are found by halving.
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

/** The first place in `values`, which are in order, that is not below `value`. */
export function first(values: Float64Array, value: number): number {
  let [low, high] = [0, values.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (values[middle]! < value) low = middle + 1;
    else high = middle;
  }
  return low;
}
