// Starts Chromium, and a headgate of the built binary with an empty state.
import { spawn } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { chromium } from 'playwright-core'

export const flags = ['--headless', '--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking', '--disable-component-update', '--disable-sync']
export const binary = join(import.meta.dirname, '../../bin/headgate')

/** Where it is installed, Chromium without the window that nobody looks at: it takes a fifth less of the processor. */
const browserPath = process.env.CHROMIUM ?? ['/usr/bin/chromium-headless-shell', '/usr/bin/chromium'].find(existsSync) ?? 'chromium'

export const openBrowser = () => chromium.launch({ executablePath: browserPath, args: flags })

/** Waits until a condition holds; the deadline is for broken machines. */
export async function until(what, condition, deadline = 60_000) {
  const end = Date.now() + deadline
  for (;;) {
    const found = await condition()
    if (found) return found
    if (Date.now() > end) throw new Error(`waited in vain for ${what}`)
    await new Promise((r) => setTimeout(r, 50))
  }
}

let next = 0

/**
 * A port of this machine that nobody has now. The system would give one again that was
 * asked for and is not used yet, so ports are counted, each of the files that run at once
 * from a place of its own, below those that the system gives to clients, and where no browser refuses one.
 */
export async function freePort() {
  next ||= 12_000 + 8_000 * (Number(process.env.VITEST_POOL_ID ?? 1) % 2) + Math.floor(Math.random() * 6_000)
  while (!(await isFree(next))) next++
  return next++
}

const isFree = (port) =>
  new Promise((resolve) => {
    const s = createServer().listen(port, '127.0.0.1', () => s.close(() => resolve(true)))
    s.on('error', () => resolve(false))
  })

/** Starts a headgate; text is what its document has beside version and admin. */
export async function startHeadgate(text = '') {
  const dir = mkdtempSync(join(tmpdir(), 'headgate-console-'))
  const port = await freePort()
  const config = join(dir, 'headgate.yaml')
  writeFileSync(config, `version: 1\nadmin:\n  address: 127.0.0.1:${port}\n${text}`)
  const h = { dir, config, port, url: `http://127.0.0.1:${port}`, log: '', process: undefined }
  h.start = async () => {
    h.process = spawn(binary, ['run', '-c', config, '--state', join(dir, 'state')], { stdio: ['ignore', 'ignore', 'pipe'] })
    h.process.stderr.on('data', (d) => (h.log += d))
    await until('headgate to answer', async () => {
      if (h.process.exitCode !== null) throw new Error('headgate ended at its start\n' + h.log)
      return (await fetch(h.url + '/livez').catch(() => null))?.ok
    })
  }
  h.stop = async () => {
    if (h.process.exitCode === null) {
      const ended = new Promise((r) => h.process.once('exit', r))
      h.process.kill('SIGKILL')
      await ended
    }
  }
  h.end = async () => {
    await h.stop()
    rmSync(dir, { recursive: true, force: true })
  }
  h.setupToken = () => {
    const path = join(dir, 'state', 'setup-token')
    return existsSync(path) ? readFileSync(path, 'utf8').trim() : ''
  }
  await h.start()
  return h
}

/** Makes the first user with the link of the set-up page. */
export async function setUp(page, h, name = 'ann', password = 'correct horse 9') {
  await page.goto(`${h.url}/setup#${h.setupToken()}`)
  await page.getByLabel('Name').fill(name)
  await page.getByLabel('Password', { exact: true }).fill(password)
  await page.getByRole('button', { name: 'Create user and sign in' }).click()
  await page.getByRole('heading', { name: 'Overview' }).waitFor()
}
