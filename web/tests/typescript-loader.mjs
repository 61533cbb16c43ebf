import { readFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import { transformWithOxc } from 'vite'

export async function load(url, context, next) {
    if (!url.endsWith('.ts')) return next(url, context)
    const path = fileURLToPath(url)
    const { code } = await transformWithOxc(await readFile(path, 'utf8'), path, { target: 'es2023' })
    return { format: 'module', source: code, shortCircuit: true }
}
