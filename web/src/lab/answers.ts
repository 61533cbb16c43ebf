// What the engine answers about scenarios.

import type { Trouble } from '../engine/envelope.ts';
import type { Slider } from './numbers.ts';

/** What the program has. */
export interface Known {
  version: string;
  scenarios: { name: string; summary: string; text: string }[];
  schemes: { name: string; family: string; what: string; change: string[] }[];
  schema: unknown;
}

/** A scenario that is sound. */
export interface Checked {
  name: string;
  first_seed: number;
  warnings: Trouble[];
  sliders: Slider[];
}

/** The schemes that apply: all, and those of the scenario's own axis. */
export interface Choices {
  schemes: string[];
  own: string[];
}

export const NOTHING: Known = { version: '', scenarios: [], schemes: [], schema: null };
