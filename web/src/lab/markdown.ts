// Renders the Markdown of lessons: paragraphs, lists, `code`, *emphasis*. The texts are ours, not the user's.

import { type TemplateResult, html } from 'lit';

/** A text as HTML. */
export function markdown(text: string): TemplateResult[] {
  return text.split(/\n\s*\n/).filter(Boolean).map((block) => {
    const lines = block.split('\n');
    if (lines[0]!.startsWith('- ')) {
      const items = block.split(/^- /m).filter(Boolean);
      return html`<ul>${items.map((item) => html`<li>${inline(item)}</li>`)}</ul>`;
    }
    if (lines[0]!.startsWith('### ')) return html`<h3>${inline(lines[0]!.slice(4))}</h3>`;
    return html`<p>${inline(block)}</p>`;
  });
}

/** A text with `code` and *emphasis*. */
export function inline(text: string): (string | TemplateResult)[] {
  const parts = text.replace(/\s+/g, ' ').trim().split(/(`[^`]+`|\*[^*]+\*)/);
  return parts.map((part) => {
    if (part.startsWith('`')) return html`<code>${part.slice(1, -1)}</code>`;
    return part.length > 2 && part.startsWith('*') ? html`<em>${part.slice(1, -1)}</em>` : part;
  });
}
