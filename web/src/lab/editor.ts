// A plain text field for scenarios: errors are underlined in place, and keys are completed from the JSON Schema.

import type { Trouble } from '../engine/envelope.ts';

/** A key with its description. */
interface Word {
  word: string;
  description: string;
}

/** The text field. */
export class Editor {
  readonly element = document.createElement('div');
  readonly field = document.createElement('textarea');
  readonly #under = document.createElement('pre');
  readonly #list = document.createElement('ul');
  #schema: any = null;
  #troubles: { start: number; end: number; grave: boolean }[] = [];
  #words: Word[] = [];
  #chosen = 0;
  #began = 0;
  onchange: (text: string) => void = () => {};

  constructor(label: string) {
    this.element.className = 'editor';
    this.field.setAttribute('aria-label', label);
    this.field.spellcheck = false;
    this.field.autocapitalize = 'off';
    this.field.rows = 18;
    this.#under.setAttribute('aria-hidden', 'true');
    this.#list.className = 'completions';
    this.#list.id = 'completions';
    this.#list.hidden = true;
    this.#list.setAttribute('role', 'listbox');
    this.#list.setAttribute('aria-label', 'Keys');
    this.field.setAttribute('aria-controls', 'completions');
    this.field.setAttribute('aria-autocomplete', 'list');
    const stack = document.createElement('div');
    stack.className = 'editor-stack';
    stack.append(this.#under, this.field);
    this.element.append(stack, this.#list);
    this.field.addEventListener('input', () => {
      this.#troubles = [];
      this.#paint();
      this.#complete();
      this.onchange(this.field.value);
    });
    this.field.addEventListener('scroll', () => this.#follow());
    this.field.addEventListener('keydown', (event) => this.#key(event));
    this.field.addEventListener('blur', () => setTimeout(() => this.#hide(), 150));
  }

  set schema(schema: any) {
    this.#schema = schema;
  }

  get text(): string {
    return this.field.value;
  }

  set text(text: string) {
    if (this.field.value === text) return;
    this.field.value = text;
    this.#troubles = [];
    this.#paint();
  }

  /** Underlines errors and warnings. */
  underline(errors: Trouble[], warnings: Trouble[]): void {
    const place = (grave: boolean) => (it: Trouble) => ({ start: it.start ?? 0, end: it.end ?? 0, grave });
    const inFile = (it: Trouble) => it.source === 'file';
    this.#troubles = [
      ...errors.filter(inFile).map(place(true)),
      ...warnings.filter(inFile).map(place(false)),
    ];
    this.field.setAttribute('aria-invalid', String(errors.some(inFile)));
    this.#paint();
  }

  /** Selects the place of an error or warning. */
  go(trouble: Trouble): void {
    this.field.focus();
    this.field.setSelectionRange(trouble.start ?? 0, trouble.end ?? trouble.start ?? 0);
  }

  #paint(): void {
    const text = this.field.value;
    const parts: Node[] = [];
    let at = 0;
    for (const { start, end, grave } of [...this.#troubles].sort((a, b) => a.start - b.start)) {
      const from = Math.max(start, at);
      // The place of a missing part is empty: mark one character.
      const to = Math.min(Math.max(end, from + 1), text.length);
      if (to <= at) continue;
      parts.push(document.createTextNode(text.slice(at, from)));
      const mark = document.createElement('mark');
      mark.className = grave ? 'wrong' : 'odd';
      mark.textContent = text.slice(from, to);
      parts.push(mark);
      at = to;
    }
    parts.push(document.createTextNode(`${text.slice(at)}\n`));
    this.#under.replaceChildren(...parts);
    this.#follow();
  }

  #follow(): void {
    this.#under.scrollTop = this.field.scrollTop;
    this.#under.scrollLeft = this.field.scrollLeft;
  }

  // ---- completion

  /** The schema of the table at the caret. */
  #here(): any {
    const before = this.field.value.slice(0, this.field.selectionStart);
    const heads = [...before.matchAll(/^\s*\[\[?([\w.-]+)\]?\]/gm)];
    const line = before.slice(before.lastIndexOf('\n') + 1);
    const way = (heads.at(-1)?.[1] ?? '').split('.').filter(Boolean);
    const inner = /([\w-]+)\s*=\s*\{[^}]*$/.exec(line);
    if (inner) way.push(inner[1]!);
    return way.reduce((schema, word) => step(schema, word), this.#schema);
  }

  #complete(): void {
    const at = this.field.selectionStart;
    const before = this.field.value.slice(0, at);
    const line = before.slice(before.lastIndexOf('\n') + 1);
    const match = /(?:^|[{,])\s*([a-z][\w-]*)$/.exec(line);
    if (!this.#schema || !match || line.includes('#')) return this.#hide();
    const typed = match[1]!;
    const keys = properties(this.#here());
    const found = Object.entries<any>(keys).filter(([word]) => word.startsWith(typed) && word !== typed);
    this.#words = found.slice(0, 12).map(([word, schema]) => ({ word, description: schema?.description ?? '' }));
    this.#began = at - typed.length;
    this.#chosen = 0;
    this.#draw();
  }

  #draw(): void {
    this.#list.hidden = this.#words.length === 0;
    this.#list.replaceChildren(
      ...this.#words.map(({ word, description }, i) => {
        const item = document.createElement('li');
        item.id = `completion-${i}`;
        item.setAttribute('role', 'option');
        item.setAttribute('aria-selected', String(i === this.#chosen));
        const code = document.createElement('code');
        code.textContent = word;
        item.append(code, ` ${description}`);
        item.addEventListener('mousedown', (event) => {
          event.preventDefault();
          this.#take(i);
        });
        return item;
      }),
    );
    if (this.#list.hidden) this.field.removeAttribute('aria-activedescendant');
    else this.field.setAttribute('aria-activedescendant', `completion-${this.#chosen}`);
  }

  #hide(): void {
    this.#words = [];
    this.#draw();
  }

  #take(i: number): void {
    const { word } = this.#words[i]!;
    this.field.setRangeText(`${word} = `, this.#began, this.field.selectionStart, 'end');
    this.#hide();
    this.#paint();
    this.onchange(this.field.value);
  }

  #key(event: KeyboardEvent): void {
    if (this.#words.length === 0) return;
    const by = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (by) {
      this.#chosen = (this.#chosen + by + this.#words.length) % this.#words.length;
      this.#draw();
    } else if (event.key === 'Tab' || event.key === 'Enter') this.#take(this.#chosen);
    else if (event.key === 'Escape') this.#hide();
    else return;
    event.preventDefault();
  }
}

/** The part of a schema for a key below it. */
function step(schema: any, word: string): any {
  if (!schema) return null;
  for (const one of [schema, ...(schema.anyOf ?? []), ...(schema.oneOf ?? []), ...(schema.allOf ?? [])]) {
    const items = one.items ?? one;
    const found = items.properties?.[word] ?? anyOf(items).map((s: any) => s.properties?.[word]).find(Boolean);
    if (found) return found;
    if (typeof items.additionalProperties === 'object') return items.additionalProperties;
  }
  return null;
}

function anyOf(schema: any): any[] {
  return [...(schema?.anyOf ?? []), ...(schema?.oneOf ?? []), ...(schema?.allOf ?? [])];
}

/** All keys of a table. */
function properties(schema: any): Record<string, any> {
  if (!schema) return {};
  const items = schema.items ?? schema;
  const parts = [items, ...anyOf(items), ...anyOf(schema).map((s) => s.items ?? s)];
  return Object.assign({}, ...parts.map((part) => part?.properties ?? {}));
}
