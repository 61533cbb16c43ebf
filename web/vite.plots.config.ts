import { readFileSync } from 'node:fs'
import { defineConfig } from 'vite'

// The embedded script names its authors, with the text that the licence requires.
const uplot = readFileSync(new URL('node_modules/uplot/LICENSE', import.meta.url), 'utf8').trim()
const banner = `/*! lasthop, MIT OR Apache-2.0. Holds uPlot:\n${uplot}\n*/`

/** The script of reports as one file, which crates/report embeds: `make web-plots`. */
export default defineConfig({
    build: {
        target: 'es2023',
        outDir: process.env.LASTHOP_PLOTS_OUT ?? '../target/web/plots',
        emptyOutDir: true,
        lib: {
            entry: 'src/plots/report.ts',
            formats: ['iife'],
            name: 'lasthopPlots',
            fileName: () => 'plots.js',
        },
        rolldownOptions: {
            output: {
                postBanner: banner,
            },
        },
    },
})
