// Loads the module of the pure crates without imports, and prints its imports and digests as JSON.
import { readFileSync } from 'node:fs';

const module = new WebAssembly.Module(readFileSync(process.argv[2]));
const imports = WebAssembly.Module.imports(module).map(({ module, name }) => `${module}.${name}`);
if (imports.length > 0) {
    console.log(JSON.stringify({ imports }));
    process.exit();
}
const { lasthop_cases, lasthop_digest, lasthop_study_digest } = new WebAssembly.Instance(module).exports;
// JavaScript returns 64-bit numbers as signed.
const unsigned = (digest) => BigInt.asUintN(64, digest).toString();
const cases = Array.from({ length: lasthop_cases() }, (_, i) => unsigned(lasthop_digest(i, BigInt(i + 1))));
console.log(JSON.stringify({ imports, cases, study: unsigned(lasthop_study_digest()) }));
