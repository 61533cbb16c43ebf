// Lets node run TypeScript: 20 cannot take types away by itself, and Vite, which can, is here.
import { register } from 'node:module'
register('./typescript-loader.mjs', import.meta.url)
