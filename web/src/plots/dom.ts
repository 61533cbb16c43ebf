// Creates elements of a page, and saves files.

/** Saves a file as a download. */
export function save(blob: Blob, name: string): void {
  const link = make('a');
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

/** An element with a class and a text. */
export function make<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  name = '',
  text = '',
): HTMLElementTagNameMap[K] {
  const made = document.createElement(tag);
  if (name) made.className = name;
  if (text) made.textContent = text;
  return made;
}

/** Sets attributes of an element. */
export function attributes(element: Element, all: Record<string, string>): void {
  for (const [name, value] of Object.entries(all)) element.setAttribute(name, value);
}
