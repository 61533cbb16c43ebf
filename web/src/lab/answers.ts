// Answers of the engine about scenarios.

import type { Trouble } from '../engine/envelope.ts';
import type { Slider } from './numbers.ts';

/** The built-in scenarios, the schemes, and the schema of files. */
export interface Known {
  version: string;
  scenarios: { name: string; summary: string; text: string }[];
  schemes: { name: string; family: string; what: string; change: string[] }[];
  schema: unknown;
}

/** A scenario without errors. */
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
