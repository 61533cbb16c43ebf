// Lets Node run TypeScript: Node 20 cannot strip types itself, so Vite does it.
import { register } from 'node:module'
register('./typescript-loader.mjs', import.meta.url)
