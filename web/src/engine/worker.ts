// Answers questions in a worker, so that they never block the page.

import { compile } from './compile.ts';
import { Module } from './module.ts';

let module: Module | null = null;

self.onmessage = ({ data }: MessageEvent) => {
  if (data.packed) {
    compile(data.packed).then(
      (module) => self.postMessage({ module }),
      (error) => self.postMessage({ failed: String(error) }),
    );
    return;
  }
  if (data.module) {
    module = new Module(data.module);
    return;
  }
  const began = performance.now();
  try {
    const answer = module!.answer(data.question);
    const took = performance.now() - began;
    self.postMessage({ id: data.id, answer, took, bytes: module!.bytes }, { transfer: [answer] });
  } catch (error) {
    self.postMessage({ id: data.id, failed: String(error) });
  }
};
