// All lessons, from their files.

import { type Lesson, lesson } from './lesson.ts';

export type { Lesson } from './lesson.ts';

const files = import.meta.glob<string>('../../lessons/*.md', { query: '?raw', import: 'default', eager: true });

/** All lessons in their order. */
export function lessons(): Lesson[] {
  return Object.entries(files)
    .sort(([a], [b]) => a.localeCompare(b, 'en', { numeric: true }))
    .map(([path, file]) => lesson(path.replace(/^.*\/(?:\d+-)?|\.md$/g, ''), file));
}
