// Numbers as the page shows them, and as scenarios contain them.

export type Unit = 'seconds' | 'bytes' | 'rate' | 'packets' | 'probability' | 'one';

/** A number of the scenario that has a slider, as crates/scenario/src/sliders.rs describes it. */
export interface Slider {
  key: string;
  of: string;
  name: string;
  what: string;
  unit: Unit;
  least: number;
  most: number;
  by_factors: boolean;
  zero: boolean;
  whole: boolean;
  value: number;
  first: boolean;
}

/** Number of steps of a slider. */
export const STEPS = 200;

/** The position of a value on the slider. */
export function placed(slider: Slider, value: number): number {
  if (value <= 0 && slider.zero) return 0;
  const { least, most } = slider;
  const share = slider.by_factors
    ? Math.log(Math.max(value, least) / least) / Math.log(most / least)
    : (value - least) / (most - least);
  return Math.round(Math.min(Math.max(share, 0), 1) * (STEPS - 1)) + 1;
}

/** The value at a position of the slider, rounded for its unit. */
export function valueAt(slider: Slider, place: number): number {
  if (place <= 0 && slider.zero) return 0;
  const { least, most } = slider;
  const share = Math.max(place - 1, 0) / (STEPS - 1);
  const value = slider.by_factors ? least * (most / least) ** share : least + share * (most - least);
  const unit = slider.unit === 'bytes' && value >= KIB ? KIB : 1;
  const rounded = slider.by_factors ? Number((value / unit).toPrecision(2)) * unit : value;
  return Math.min(Math.max(slider.whole ? Math.round(rounded) : rounded, least), most);
}

const plain = (n: number) => String(Number(n.toPrecision(4)));

/** A value with its unit, as a scenario contains it. */
export function written(unit: Unit, value: number): string {
  switch (unit) {
    case 'seconds':
      if (value === 0) return '0ms';
      if (value < 1e-3) return `${plain(value * 1e6)}us`;
      return value < 1 ? `${plain(value * 1e3)}ms` : `${plain(value)}s`;
    case 'bytes':
      if (value >= KIB && value % KIB === 0) return `${value / KIB}KiB`;
      if (value >= 1e6 && value % 1e4 === 0) return `${value / 1e6}MB`;
      return value >= 1e3 && value % 1e3 === 0 ? `${value / 1e3}kB` : `${Math.round(value)}B`;
    case 'rate':
      if (value >= 1e9) return `${plain(value / 1e9)}gbit`;
      if (value >= 1e6) return `${plain(value / 1e6)}mbit`;
      return value >= 1e3 ? `${plain(value / 1e3)}kbit` : `${Math.round(value)}bit`;
    case 'packets':
      return `${Math.round(value)}p`;
    case 'probability':
      return `${plain(value * 100)}%`;
    case 'one':
      return plain(value);
  }
}

export const KIB = 1024;

/** Bytes in binary multiples, the unit of all sizes on the page. */
export function sized(bytes: number): string {
  if (bytes >= KIB * KIB) return `${plain3(bytes / KIB / KIB)} MiB`;
  return bytes >= KIB ? `${plain3(bytes / KIB)} KiB` : `${Math.round(bytes)} B`;
}

const MULTIPLES: Record<string, number> = { B: 1, kB: 1e3, KB: 1e3, MB: 1e6, GB: 1e9, KiB: KIB, MiB: KIB ** 2, GiB: KIB ** 3 };

/** Units as the page shows them. */
const UNITS: Record<string, string> = { us: 'µs', bit: 'bit/s', kbit: 'kbit/s', mbit: 'Mbit/s', gbit: 'Gbit/s', p: 'packets', '%': '%' };

/** A setting as the page shows it: sizes in binary multiples, others in the unit that the scenario writes. */
export function setting(slider: Slider, set: string | undefined): string {
  if (slider.unit !== 'bytes') {
    const text = set ?? written(slider.unit, slider.value);
    const [, number, unit] = /^([\d.]+)(us|ms|s|[kmg]?bit|p|%)$/.exec(text) ?? [];
    return number ? `${number} ${UNITS[unit!] ?? unit}` : text;
  }
  const [, number, unit] = /^([\d.]+)([KMG]i?B|kB|B)$/.exec(set ?? '') ?? [];
  return sized(number ? Number(number) * MULTIPLES[unit!]! : slider.value);
}

/** A number of a run with its unit. */
export function shown(value: number, unit: string): string {
  if (!Number.isFinite(value)) return '–';
  if (unit === 'B/s') return `${plain3((value * 8) / 1e6)} Mbit/s`;
  if (unit === 'B') return sized(value);
  if (unit === 's') return value !== 0 && Math.abs(value) < 0.1 ? `${plain3(value * 1e3)} ms` : `${plain3(value)} s`;
  return unit === '1' || unit === '' ? plain3(value) : `${plain3(value)} ${unit}`;
}

const plain3 = (n: number) => {
  const text = Number(n.toPrecision(3));
  return Math.abs(text) >= 1000 ? Math.round(n).toLocaleString('en') : String(text);
};

/** Seconds of a run. */
export const clock = (t: number) => `${t.toFixed(t < 10 ? 4 : 3)} s`;
