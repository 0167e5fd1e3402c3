import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { freePort, openBrowser, until } from './browser.mjs'
import { Database, Machine, openPage, setUpOn, visitOn } from './machines'
import { ask, findings, settled } from './world'

const served = 'ports:\n  web: {address: "${WEB}", protocol: http}\nproxies:\n  shop: {virtual_hosts: [shop.example.com], routes: [{fixed_response: {status: 200, body: "ok"}}]}\n'

const database = new Database()
let c: Machine
let d: Machine
let browser: Browser
let page: Page

const requests = (m: Machine, path: string) => ask(m.web, 'shop.example.com', {}, path)
const row = (text: string) => page.getByRole('row').filter({ hasText: text })
const choose = async (name: string) => {
  await page.getByRole('combobox', { name: 'Node' }).click()
  await page.getByRole('option', { name }).click()
}
/** Pretends that the page is hidden, or seen again. */
const hide = (hidden: boolean) =>
  page.evaluate((hidden) => {
    Object.defineProperty(document, 'visibilityState', { configurable: true, get: () => (hidden ? 'hidden' : 'visible') })
    document.dispatchEvent(new Event('visibilitychange'))
  }, hidden)

beforeAll(async () => {
  await database.start()
  browser = await openBrowser()
  const machine = async (name: string) => {
    const m = new Machine(name, await freePort(), await freePort(), served)
    mkdirSync(m.state, { mode: 0o700 })
    writeFileSync(join(m.state, 'store.key'), '5a'.repeat(32) + '\n', { mode: 0o600 })
    await m.start('--store', database.url, '--node', name)
    return m
  }
  c = await machine('c')
  page = await openPage(browser, c)
  await setUpOn(page, c)
  await visitOn(page, c, '/log')
  await page.getByText('No requests yet').waitFor()
  expect(await page.getByRole('combobox', { name: 'Node' }).count(), 'a selection although there is one machine').toBe(0)
  d = await machine('d')
  await requests(c, '/first-c')
  await requests(d, '/first-d')
})
afterAll(async () => {
  await browser?.close()
  for (const m of [c, d]) {
    await m?.end()
    if (m) rmSync(m.dir, { recursive: true, force: true })
  }
  await database.end()
})

it('shows the log of another machine as it comes, and none while the page is hidden', async () => {
  await visitOn(page, c, '/log')
  await row('/first-c').waitFor()
  await page.getByRole('combobox', { name: 'Node' }).waitFor()
  expect(await findings(page)).toEqual([])
  await choose('d')
  await row('/first-d').waitFor()
  expect(await row('/first-c').count()).toBe(0)
  expect(new URL(page.url()).searchParams.get('node')).toBe('d')
  expect(await page.getByRole('heading', { level: 1 }).textContent()).toContain('d')

  await page.getByText('following', { exact: true }).waitFor()
  await requests(d, '/second-d')
  await row('/second-d').waitFor()
  // A filter keeps the machine, and so does the address.
  await page.getByLabel('Search host, path, server, user…').fill('second')
  await row('/first-d').waitFor({ state: 'detached' })
  await page.reload()
  await row('/second-d').waitFor()
  expect(await page.getByRole('combobox', { name: 'Node' }).inputValue()).toBe('d')
  await page.getByRole('button', { name: 'Filters' }).waitFor()
  await visitOn(page, c, '/log?node=d')
  await row('/second-d').click()
  await page.getByRole('dialog').getByText('Last requests of this client').waitFor()
  await page.getByRole('dialog').getByText('/first-d').waitFor()
  expect(await page.getByRole('dialog').getByText('/first-c').count()).toBe(0)
  await page.keyboard.press('Escape')

  // Each look is a question to the other machine: there are none while no one looks.
  const asked: string[] = []
  page.on('request', (r) => void (r.url().includes('node=d') && asked.push(r.url())))
  const streams = () => page.evaluate(() => performance.getEntriesByType('resource').filter((e) => e.name.includes('/logs/access/stream')).length)
  const ended = await streams()
  await hide(true)
  await until('the stream to end', async () => (await streams()) > ended)
  await requests(d, '/hidden-d')
  await page.waitForTimeout(2_500)
  expect(asked).toEqual([])
  expect(await row('/hidden-d').count()).toBe(0)
  await hide(false)
  await row('/hidden-d').waitFor()
})

it('shows charts and the overview of another machine, also with the keyboard and on a phone', async () => {
  await visitOn(page, c, '/charts')
  const select = page.getByRole('combobox', { name: 'Node' })
  await settled(page)
  await select.focus()
  await page.keyboard.press('Enter')
  const option = page.getByRole('option', { name: 'd', exact: true })
  await option.waitFor()
  const chosen = async () => (await select.getAttribute('aria-activedescendant')) === (await option.getAttribute('id'))
  await until('the arrow to reach the machine', async () => (await chosen()) || (await page.keyboard.press('ArrowDown'), await chosen()))
  await page.keyboard.press('Enter')
  await until('the address to name the machine', () => new URL(page.url()).searchParams.get('node') === 'd')
  await page.getByRole('heading', { name: 'Charts d' }).waitFor()
  await settled(page)
  expect(await findings(page)).toEqual([])

  await visitOn(page, c, '/?node=d')
  await page.getByText('Status of d.').waitFor()
  await page.setViewportSize({ width: 375, height: 780 })
  await page.emulateMedia({ colorScheme: 'dark', reducedMotion: 'reduce' })
  await page.locator('html[data-mantine-color-scheme=dark]').waitFor()
  for (const path of ['/?node=d', '/charts?node=d', '/log?node=d', '/nodes']) {
    await visitOn(page, c, path)
    expect(await findings(page), path).toEqual([])
    const [wide, seen] = await page.evaluate(() => [document.documentElement.scrollWidth, document.documentElement.clientWidth])
    expect(wide, `${path} is wider than a phone`).toBeLessThanOrEqual(seen!)
  }
  await page.emulateMedia({ colorScheme: 'light', reducedMotion: 'reduce' })
  await page.setViewportSize({ width: 1280, height: 800 })

  // The page of nodes links to them.
  await visitOn(page, c, '/nodes')
  for (const name of [/^c /, /^d /])
    await page
      .getByRole('row', { name })
      .getByText(/^[\d.]+\/s$/)
      .waitFor()
  expect(await findings(page)).toEqual([])
  await page.getByRole('link', { name: 'Log: d' }).click()
  await row('/first-d').waitFor()
})

it('says that a machine is away, and shows none of its numbers or of another', async () => {
  await visitOn(page, c, '/log?node=d')
  await row('/first-d').waitFor()
  await d.end()
  const away = page.getByRole('alert').filter({ hasText: 'machine d does not respond' })
  await away.waitFor()
  await away.getByText('headgate node list').waitFor()
  expect(await row('/first-').count()).toBe(0)
  expect(await findings(page)).toEqual([])
  for (const path of ['/?node=d', '/charts?node=d']) {
    await page.goto(c.url + path)
    await away.first().waitFor()
    expect((await page.getByText('Healthy').count()) + (await page.locator('.stats, .charts').count()), path).toBe(0)
    expect(await findings(page)).toEqual([])
  }
  await page.goto(c.url + '/nodes')
  await page.getByRole('row', { name: /^d / }).getByText('unknown').waitFor()
  await page.goto(c.url + '/?node=nobody')
  await page.getByText('the machines are c, d').first().waitFor()
  await choose('c (this machine)')
  await page.locator('.stats').waitFor()
  expect(new URL(page.url()).searchParams.get('node')).toBe(null)

  // It is shown again when it is back.
  await page.goto(c.url + '/log?node=d')
  await away.waitFor()
  await d.start('--store', database.url, '--node', 'd')
  await away.waitFor({ state: 'detached' })
  await requests(d, '/back-d')
  await row('/back-d').waitFor()
})
