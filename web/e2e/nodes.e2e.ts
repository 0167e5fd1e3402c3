import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { freePort, openBrowser, until } from './browser.mjs'
import { Database, Machine, openPage, setUpOn, visitOn } from './machines'
import { findings } from './world'

let a: Machine
let b: Machine
let browser: Browser
const opened = (m: Machine) => openPage(browser, m)
const visit = visitOn

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
  await setUpOn(page, a)
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
    await setUpOn(page, c)
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
