import { defineConfig } from 'vite'

/** The page as a folder for a web server. `pack.ts` makes one file of it. */
export default defineConfig({
    base: './',
    build: {
        target: 'es2023',
        outDir: process.env.LASTHOP_WEB_OUT ?? '../target/web/folder',
        emptyOutDir: true,
        assetsInlineLimit: 0,
        modulePreload: { polyfill: false },
        chunkSizeWarningLimit: 1000,
    },
    worker: { format: 'es' },
})
