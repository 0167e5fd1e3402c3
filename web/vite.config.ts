/// <reference types="vitest/config" />
import { readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { brotliCompressSync, constants, gzipSync } from 'node:zlib'
import react from '@vitejs/plugin-react'
import { defineConfig, type Plugin } from 'vite'
import { firstSegments } from './src/pages/paths.ts'

const out = join(import.meta.dirname, '../internal/admin/console/dist')

/** The most that the first load may be, compressed. */
const maxFirstLoad = 300 * 1024

/** Compresses every file once, writes the list of pages, and checks the first load. */
function finish(): Plugin {
  return {
    name: 'finish',
    apply: 'build',
    closeBundle() {
      writeFileSync(join(out, '.keep'), '')
      writeFileSync(join(out, 'pages.json'), JSON.stringify(firstSegments()))
      const sizes = new Map<string, number>()
      for (const name of readdirSync(join(out, 'assets'))) {
        const path = join(out, 'assets', name)
        const plain = readFileSync(path)
        const br = brotliCompressSync(plain, { params: { [constants.BROTLI_PARAM_QUALITY]: 11 } })
        const gz = gzipSync(plain, { level: 9 })
        if (br.length < plain.length) writeFileSync(path + '.br', br)
        if (gz.length < plain.length) {
          writeFileSync(path + '.gz', gz)
          rmSync(path) // the server decompresses for a client that accepts neither
        }
        sizes.set(name, gz.length)
      }
      const index = readFileSync(join(out, 'index.html'), 'utf8')
      let first = 0
      for (const [name, size] of sizes) if (index.includes(name)) first += size
      console.log(`first load: ${Math.ceil(first / 1024)} KB with gzip (limit ${maxFirstLoad / 1024} KB)`)
      if (first > maxFirstLoad) throw new Error('the first load is too large: load pages lazily')
    },
  }
}

/** Lists the packages that are part of the build, for license notices and the SBOM. */
function listPackages(): Plugin {
  return {
    name: 'list-packages',
    apply: 'build',
    generateBundle(_, bundle) {
      const folders = new Set<string>()
      for (const chunk of Object.values(bundle)) {
        if (chunk.type !== 'chunk') continue
        for (const id of chunk.moduleIds) {
          const folder = /.*(\bnode_modules\/(?:@[^/]+\/)?[^/]+)\//.exec(id)
          if (folder) folders.add(id.slice(id.indexOf('node_modules/'), folder.index + folder[0].length - 1))
        }
      }
      writeFileSync(join(import.meta.dirname, 'bundled.json'), JSON.stringify([...folders].sort()))
    },
  }
}

export default defineConfig({
  plugins: [react(), finish(), listPackages()],
  resolve: { alias: { '@': join(import.meta.dirname, 'src') } },
  build: { outDir: out, emptyOutDir: true, target: 'es2022', sourcemap: false, assetsInlineLimit: 0, chunkSizeWarningLimit: 1000 },
  // `npm run dev` shows changes at once; the API is that of a headgate at its usual address.
  server: { proxy: { '/api': 'http://127.0.0.1:9080', '/metrics': 'http://127.0.0.1:9080' } },
  test: { environment: 'node', setupFiles: ['src/test.ts'], include: ['src/**/*.test.{ts,tsx}'] },
})
