import { spawn, spawnSync, type ChildProcess } from 'node:child_process'
import { chmodSync, chownSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { get } from 'node:https'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { binary, freePort, openBrowser, setUp, until } from './browser.mjs'
import { findings, settled } from './world'

/** A machine of a pair: its management port speaks TLS. */
class Machine {
  dir = mkdtempSync(join(tmpdir(), 'headgate-node-'))
  state = join(this.dir, 'state')
  log = ''
  process?: ChildProcess
  constructor(
    readonly name: string,
    readonly port: number,
  ) {
    writeFileSync(join(this.dir, 'headgate.yaml'), 'version: 1\nadmin: {address: "${ADMIN}"}\n')
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
      env: { ...process.env, ADMIN: `0.0.0.0:${this.port}` },
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
class Database {
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

let a: Machine
let b: Machine
let browser: Browser
const opened = async (m: Machine): Promise<Page> => {
  const context = await browser.newContext({ viewport: { width: 1280, height: 800 }, reducedMotion: 'reduce', ignoreHTTPSErrors: true })
  context.setDefaultTimeout(Number(process.env.PATIENCE ?? 60_000))
  const page = await context.newPage()
  await page.goto(m.url)
  return page
}
const visit = async (page: Page, m: Machine, path: string) => {
  await page.goto(m.url + path)
  await settled(page)
}

beforeAll(async () => {
  browser = await openBrowser()
  a = new Machine('a', await freePort())
  b = new Machine('b', await freePort())
  a.run('node', 'init', '--name', 'a', '--address', a.url)
  await a.start()
})
afterAll(async () => {
  await browser?.close()
  for (const m of [a, b]) {
    await m?.end()
    if (m) rmSync(m.dir, { recursive: true, force: true })
  }
})

it('invites a machine, shows both, drains one, and turns the pair around from the follower', async () => {
  const page = await opened(a)
  await setUp(page, a as unknown as Parameters<typeof setUp>[1])
  await visit(page, a, '/nodes')
  await page.getByRole('row', { name: /a This machine/ }).waitFor()
  expect(await findings(page)).toEqual([])
  expect(await page.getByText('This machine follows').count()).toBe(0)

  // The token is shown once, with the command for the other machine.
  await page.getByRole('button', { name: 'Invite a machine' }).click()
  await page.getByLabel('Name that the machine must have').fill('b')
  await page.getByRole('dialog').getByRole('button', { name: 'Invite a machine' }).click()
  const shown = page.getByRole('dialog', { name: 'Token to join' })
  await shown.getByText('headgate node join --token-file token').waitFor()
  const token = (await shown.locator('pre').textContent())!.trim()
  expect(await findings(page)).toEqual([])
  await shown.getByRole('button', { name: 'Done' }).click()
  writeFileSync(join(b.dir, 'token'), token)
  b.run('node', 'join', '--name', 'b', '--token-file', join(b.dir, 'token'), '--address', b.url)
  await b.start()
  const other = page.getByRole('row', { name: /^b / })
  await other.getByText('Follower').waitFor()
  await other.getByText('up to date').waitFor()
  await page.getByText('b is connected').waitFor()

  // Drain and return to service; the command is in the dialog.
  await page.getByRole('button', { name: 'Drain b' }).click()
  await page.getByRole('dialog').getByText('headgate node drain b').waitFor()
  expect(await findings(page)).toEqual([])
  await page.getByRole('dialog').getByRole('button', { name: 'Drain', exact: true }).click()
  await other.getByText('drained', { exact: true }).waitFor()
  await page.getByRole('button', { name: 'Undrain b' }).click()
  await page.getByRole('dialog').getByRole('button', { name: 'Undrain', exact: true }).click()
  await other.getByText('ready', { exact: true }).waitFor()

  // The follower is read-only and says where the leader is, on every page.
  const there = await opened(b)
  await there.getByLabel('Name').fill('ann')
  await there.getByLabel('Password', { exact: true }).fill('correct horse 9')
  await there.getByRole('button', { name: 'Sign in', exact: true }).click()
  const banner = there.getByRole('status').filter({ hasText: 'This machine follows a' })
  expect(await banner.getByRole('link').getAttribute('href')).toBe(a.url)
  expect(await findings(there)).toEqual([])
  await visit(there, b, '/nodes')
  expect(await there.getByRole('button', { name: 'Invite a machine' }).isDisabled()).toBe(true)

  // Promotion there makes it the leader, and this one the follower.
  await there.getByRole('button', { name: 'Promote', exact: true }).click()
  await there.getByRole('dialog').getByText('headgate promote').waitFor()
  await there.getByRole('dialog').getByRole('button', { name: 'Promote', exact: true }).click()
  await there.getByText('This machine leads: changes are made here.').waitFor()
  await banner.waitFor({ state: 'detached' })
  await page.getByRole('status').filter({ hasText: 'This machine follows b' }).waitFor()

  // Without the other machine, only promotion alone is offered.
  await b.end()
  await page.getByText('b is not connected').waitFor()
  await page.getByRole('button', { name: 'Promote alone' }).click()
  await page.getByRole('dialog').getByText('headgate promote --alone').waitFor()
  expect(await findings(page)).toEqual([])
  await page.getByRole('dialog').getByRole('button', { name: 'Promote alone' }).click()
  await page.getByText('This machine leads: changes are made here.').waitFor()
})

it('invites a machine to a shared database', async () => {
  const database = new Database()
  const [c, d] = [new Machine('c', await freePort()), new Machine('d', await freePort())]
  try {
    await database.start()
    mkdirSync(c.state, { mode: 0o700 })
    writeFileSync(join(c.state, 'store.key'), '5a'.repeat(32) + '\n', { mode: 0o600 })
    await c.start('--store', database.url, '--node', 'c')
    const page = await opened(c)
    await setUp(page, c as unknown as Parameters<typeof setUp>[1])
    await visit(page, c, '/nodes')
    await page.getByRole('row', { name: /c This machine/ }).waitFor()
    expect(await page.getByText('Use a second machine').count()).toBe(0)

    await page.getByRole('button', { name: 'Invite a machine' }).click()
    const asked = page.getByRole('dialog')
    await asked.getByLabel('Name that the machine must have').fill('d')
    const address = asked.getByLabel('URL at which the machine reaches this one')
    expect(await address.inputValue()).toBe(c.url)
    await address.fill('192.0.2.7:9080')
    await asked.getByRole('button', { name: 'Invite a machine' }).click()
    await until('the address to be refused', async () => (await address.getAttribute('aria-invalid')) === 'true')
    expect(await findings(page)).toEqual([])
    await address.fill(c.url)
    await asked.getByRole('button', { name: 'Invite a machine' }).click()
    const shown = page.getByRole('dialog', { name: 'Token to join' })
    await shown.getByText('headgate node join --token-file token --name d', { exact: true }).waitFor()
    const token = (await shown.locator('pre').textContent())!.trim()
    expect(await findings(page)).toEqual([])
    await shown.getByRole('button', { name: 'Done' }).click()

    writeFileSync(join(d.dir, 'token'), token)
    const printed = d.run('node', 'join', '--name', 'd', '--token-file', join(d.dir, 'token'))
    const options = /--store (\S+) --node (\w+)/.exec(printed)
    expect(options?.[2]).toBe('d')
    await d.start('--store', options![1], '--node', 'd')
    await page.getByRole('row', { name: /^d / }).getByText('ready', { exact: true }).waitFor()
  } finally {
    for (const m of [c, d]) {
      await m.end()
      rmSync(m.dir, { recursive: true, force: true })
    }
    await database.end()
  }
})
