// Loads a wheel of the Python package into Pyodide and runs the examples of its docstrings: `node .ci/pyodide.mjs PYODIDE WHEEL`.

import { readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';

const [pyodide, wheel] = process.argv.slice(2).map((it) => resolve(it));
const { loadPyodide } = await import(pathToFileURL(join(pyodide, 'pyodide.mjs')).href);
const python = await loadPyodide();
// Without micropip, which needs a network.
python.unpackArchive(new Uint8Array(readFileSync(wheel)), 'wheel', { extractDir: '/wheel' });
const [failed, attempted] = python.runPython(`
import sys
sys.path.insert(0, "/wheel")
import doctest, importlib, lasthop
modules = [lasthop] + [importlib.import_module(f"lasthop.{name}") for name in ("bbr", "control", "scenario", "sweeps")]
results = [doctest.testmod(module) for module in modules]
[sum(result.failed for result in results), sum(result.attempted for result in results)]
`).toJs();
console.log(`Pyodide ${python.version}: ${attempted - failed} passed, ${failed} failed`);
process.exit(failed === 0 && attempted > 0 ? 0 : 1);
