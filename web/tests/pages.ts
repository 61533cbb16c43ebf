// Checks of pages: forbidden requests, errors, and accessibility with axe.

import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import type { Page } from 'playwright-core';

/** Collects faults of a page: requests to other origins, errors, and violations of its policy. */
export function watch(page: Page): string[] {
  const wrong: string[] = [];
  page.on('request', (request) => {
    if (!/^(file|blob|data):/.test(request.url())) wrong.push(`request to ${request.url()}`);
  });
  page.on('pageerror', (error) => wrong.push(`error: ${error.message}`));
  page.on('console', (message) => {
    if (message.type() === 'error') wrong.push(`console: ${message.text()}`);
  });
  return wrong;
}

const AXE = readFileSync(fileURLToPath(import.meta.resolve('axe-core/axe.min.js')), 'utf8');

/** Violations that axe finds on a page: a line for each rule, with the first element. */
export async function violations(page: Page): Promise<string[]> {
  await page.evaluate(AXE);
  return page.evaluate(async () => {
    const { axe } = window as unknown as { axe: { run(): Promise<{ violations: Violation[] }> } };
    interface Violation {
      id: string;
      nodes: { html: string; failureSummary?: string }[];
    }
    const { violations } = await axe.run();
    return violations.map(({ id, nodes }) => {
      return `${id}, ${nodes.length} times: ${nodes[0]!.html.slice(0, 200)} ${nodes[0]!.failureSummary ?? ''}`;
    });
  });
}
