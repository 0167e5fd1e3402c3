import { spawn, spawnSync, type ChildProcess } from 'node:child_process'
import { chmodSync, chownSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { get } from 'node:https'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Browser, Page } from 'playwright-core'
import { binary, setUp, until } from './browser.mjs'
import { settled } from './world'

/** A machine of a group: its management port speaks TLS. */
export class Machine {
  dir = mkdtempSync(join(tmpdir(), 'headgate-node-'))
  state = join(this.dir, 'state')
  log = ''
  process?: ChildProcess
  constructor(
    readonly name: string,
    readonly port: number,
    readonly web = 0, // the port WEB of the configuration
    text = '',
  ) {
    writeFileSync(join(this.dir, 'headgate.yaml'), 'version: 1\nadmin: {address: "${ADMIN}"}\n' + text)
  }
  get url() {
    return `https://127.0.0.1:${this.port}`
  }
  run(...args: string[]): string {
    const done = spawnSync(binary, [...args, '--state', this.state], { encoding: 'utf8' })
    if (done.status !== 0) throw new Error(`headgate ${args.join(' ')}: ${done.stderr}`)
    return done.stdout
  }
  async start(...more: string[]) {
    const child = spawn(binary, ['run', '-c', join(this.dir, 'headgate.yaml'), '--state', this.state, ...more], {
      stdio: ['ignore', 'ignore', 'pipe'],
      env: { ...process.env, ADMIN: `0.0.0.0:${this.port}`, WEB: `127.0.0.1:${this.web}` },
    })
    child.stderr.on('data', (d) => (this.log += d))
    this.process = child
    await until(`machine ${this.name} to answer`, () => {
      if (child.exitCode !== null) throw new Error('headgate ended at its start\n' + this.log)
      return new Promise<boolean>((resolve) => get(this.url + '/livez', { rejectUnauthorized: false }, (r) => (r.resume(), resolve(r.statusCode === 200))).on('error', () => resolve(false)))
    })
  }
  async end() {
    if (this.process && this.process.exitCode === null) {
      const ended = new Promise((r) => this.process!.once('exit', r))
      this.process.kill('SIGKILL')
      await ended
    }
    this.process = undefined
  }
  setupToken() {
    const path = join(this.state, 'setup-token')
    return existsSync(path) ? readFileSync(path, 'utf8').trim() : ''
  }
}

/** A PostgreSQL on a Unix socket. It refuses to run as root. */
export class Database {
  dir = mkdtempSync('/tmp/hg-db-')
  log = ''
  process?: ChildProcess
  url = `postgres://tester@/postgres?host=${encodeURIComponent(this.dir)}`
  async start() {
    const all = '/usr/lib/postgresql'
    const versions = existsSync(all) ? readdirSync(all).map(Number) : []
    if (!versions.length) throw new Error('this test needs PostgreSQL: install the package postgresql')
    const bin = join(all, String(Math.max(...versions)), 'bin')
    const id = (flag: string) => Number(spawnSync('id', [flag, 'postgres'], { encoding: 'utf8' }).stdout)
    const as = process.getuid?.() === 0 ? { uid: id('-u'), gid: id('-g') } : {}
    if (as.uid !== undefined) chownSync(this.dir, as.uid, as.gid)
    chmodSync(this.dir, 0o755)
    const made = spawnSync(join(bin, 'initdb'), ['-D', join(this.dir, 'data'), '-U', 'tester', '--auth=trust', '--no-sync'], { cwd: this.dir, encoding: 'utf8', ...as })
    if (made.status !== 0) throw new Error('initdb: ' + made.stderr)
    this.process = spawn(join(bin, 'postgres'), ['-D', join(this.dir, 'data'), '-h', '', '-k', this.dir, '-c', 'fsync=off'], { cwd: this.dir, stdio: ['ignore', 'ignore', 'pipe'], ...as })
    this.process.stderr!.on('data', (d) => (this.log += d))
    await until('PostgreSQL to be ready', () => this.log.includes('ready to accept connections'))
  }
  async end() {
    const ended = new Promise((r) => this.process?.once('exit', r) ?? r(0))
    this.process?.kill('SIGQUIT')
    await ended
    rmSync(this.dir, { recursive: true, force: true })
  }
}

/** A browser with a profile for each machine. */
export const openPage = async (browser: Browser, m: Machine): Promise<Page> => {
  const context = await browser.newContext({ viewport: { width: 1280, height: 800 }, reducedMotion: 'reduce', ignoreHTTPSErrors: true })
  context.setDefaultTimeout(Number(process.env.PATIENCE ?? 60_000))
  const page = await context.newPage()
  await page.goto(m.url)
  return page
}

/** Opens a page of the console of a machine. */
export const visitOn = async (page: Page, m: Machine, path: string) => {
  await page.goto(m.url + path)
  await settled(page)
}

/** Creates the first user of a machine. */
export const setUpOn = (page: Page, m: Machine) => setUp(page, m as unknown as Parameters<typeof setUp>[1])
