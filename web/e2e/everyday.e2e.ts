import { readFileSync } from 'node:fs'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { freePort } from './browser.mjs'
import { applyNow, ask, findings, open, settled, visit, type World } from './world'

let w: World
let port = 0
let secure = 0
beforeAll(async () => {
  port = await freePort()
  secure = await freePort()
  const dead = await freePort()
  w = await open({
    text: `ports:
  web: {address: "127.0.0.1:${port}", protocol: http}
  secure: {address: "127.0.0.1:${secure}", protocol: https}
acme:
  main: {directory: "https://127.0.0.1:${dead}/directory"}
proxies:
  shop:
    virtual_hosts: [shop.example.com]
    acme: main
    routes: [{servers: [{url: "http://127.0.0.1:${dead}"}], health_check: {path: /, interval: 1s, fall: 1}}]
  off: {active: false, virtual_hosts: [off.example.com], routes: [{fixed_response: {status: 204}}]}
`,
  })
})
afterAll(() => w?.close())

const config = () => readFileSync(w.h.config, 'utf8')
const dialog = () => w.page.getByRole('dialog')
const review = () => w.page.getByRole('button', { name: 'Review', exact: true })

it('names on the overview what is down, and certificates that failed', async () => {
  const { page, h } = w
  await visit(page, h, '/')
  const attention = page.locator('.attention')
  await attention.getByRole('listitem').filter({ hasText: 'shop.example.com' }).getByText('failed').waitFor()
  await attention
    .getByRole('listitem')
    .filter({ has: page.getByRole('link', { name: 'shop', exact: true }) })
    .getByText('down', { exact: true })
    .waitFor()
  await page.getByRole('heading', { name: 'Overview' }).getByText('1 proxy down').waitFor()
  await page.getByText('0 valid, 1 need attention').waitFor()
  expect(await findings(page)).toEqual([])
})

it('leads to the port that serves a host, and nowhere for a proxy that is off', async () => {
  const { page, h } = w
  await visit(page, h, '/proxies')
  expect(await page.getByRole('link', { name: 'shop.example.com' }).getAttribute('href')).toBe(`http://shop.example.com:${port}/`)
  expect(await page.getByRole('link', { name: 'off.example.com' }).count()).toBe(0)
})

it('keeps what was typed over Escape, Back and a reload', async () => {
  const { page, h } = w
  await visit(page, h, '/proxies/shop')
  const description = () => dialog().getByLabel('Description').first()
  await page.getByRole('button', { name: 'Edit', exact: true }).click()
  await description().fill('typed')
  await page.keyboard.press('Escape')
  await dialog().waitFor({ state: 'detached' })
  await page.getByText('Your entries are kept as a draft.').waitFor()
  await page.getByRole('heading', { name: 'shop' }).getByText('draft').waitFor()

  await page.getByRole('button', { name: 'Edit', exact: true }).click()
  await dialog().getByText('Your draft was restored.').waitFor()
  expect(await description().inputValue()).toBe('typed')
  await description().fill('typed more')
  await page.goBack()
  await dialog().waitFor({ state: 'detached' })
  expect(new URL(page.url()).pathname).toBe('/proxies/shop')

  await page.getByRole('button', { name: 'Edit', exact: true }).click()
  await page.reload()
  await dialog().getByText('Your draft was restored.').waitFor()
  expect(await description().inputValue()).toBe('typed more')
  expect(await findings(page)).toEqual([])
  await dialog().getByRole('button', { name: 'Discard draft' }).click()
  expect(await description().inputValue()).toBe('')
  await page.keyboard.press('Escape')
  await dialog().waitFor({ state: 'detached' })
  expect(await page.getByText('draft', { exact: true }).count()).toBe(0)
})

it('switches a filter on that is added, and says what changes for visitors', async () => {
  const { page, h } = w
  for (const [filter, text] of [
    ['Automatically redirect HTTP to HTTPS', 'visitors who come over HTTP are redirected'],
    ['Maintenance', 'visitors get 503 and the maintenance page'],
  ] as const) {
    await visit(page, h, '/proxies/shop')
    await page.getByRole('button', { name: 'Add a filter' }).click()
    expect(await findings(page)).toEqual([])
    await dialog()
      .getByRole('button', { name: new RegExp(`^${filter}`) })
      .click()
    await review().click()
    await page.getByText('What changes for visitors').waitFor()
    await page.getByText(text).waitFor()
    await applyNow(page)
  }
  expect(config()).toMatch(/redirect_http_to_https: true/)
  expect(config()).toMatch(/maintenance:/)
})

it('says what waits, in the list too, and asks before all is discarded', async () => {
  const { page, h } = w
  await visit(page, h, '/proxies/shop')
  await page.getByRole('button', { name: 'Edit', exact: true }).click()
  await dialog().getByLabel('Description').first().fill('waits')
  await page.getByRole('button', { name: 'Add to changes' }).click()
  await page.getByRole('heading', { name: 'shop' }).getByText('not applied yet').waitFor()
  await visit(page, h, '/proxies')
  await page.getByRole('row').filter({ hasText: 'shop' }).getByText('not applied yet').waitFor()
  await page.getByRole('button', { name: 'Actions for off' }).click()
  await page.getByRole('menuitem', { name: 'Remove' }).click()
  await page.getByRole('row').filter({ hasText: 'off' }).getByText('will be removed').waitFor()
  await page.getByRole('button', { name: '2 changes to review' }).click()
  await page.getByRole('button', { name: 'Discard all' }).click()
  await page.getByRole('dialog', { name: 'Discard all changes?' }).getByRole('button', { name: 'Discard all' }).click()
  await page.getByText('There is nothing to review.').waitFor()
})

it('changes several proxies at once', async () => {
  const { page, h } = w
  await visit(page, h, '/proxies')
  await page.getByRole('checkbox', { name: 'Select all shown proxies' }).check()
  await page.getByText('2 selected').waitFor()
  expect(await findings(page)).toEqual([])
  await page.getByRole('button', { name: 'Add tag' }).click()
  await page.getByLabel('Tag to add').fill('home')
  await page.getByRole('button', { name: 'Add', exact: true }).click()
  await page.getByRole('button', { name: '2 changes to review' }).click()
  await applyNow(page)
  expect(config().match(/home/g)).toHaveLength(2)
  await visit(page, h, '/proxies?group=tag')
  await page
    .getByRole('rowheader', { name: 'home 2' })
    .or(page.getByText('home', { exact: true }))
    .first()
    .waitFor()
})

it('makes a proxy with HTTPS and a password in one page, after a test of its server', async () => {
  const { page, h } = w
  await visit(page, h, '/proxies/new')
  await page.getByLabel('Host name').fill('https://app.example.com/login')
  await page.getByLabel('Server').fill(`127.0.0.1:${w.upstream}/`)
  await page.getByRole('button', { name: 'Test', exact: true }).click()
  await page.getByText('The server responded with status 200').waitFor()
  expect(await page.getByLabel('Host name').inputValue()).toBe('app.example.com')
  await page.getByRole('combobox', { name: 'Application' }).click()
  await page.getByRole('option', { name: 'Immich' }).click()
  await page.getByText('This application sets:').waitFor()
  await page.getByText('Certificate from Let’s Encrypt').click()
  await page.getByText('People with a password').click()
  await page.getByLabel('User name').fill('ada')
  await page.getByRole('textbox', { name: 'Password' }).fill('correct horse 12')
  expect(await findings(page)).toEqual([])
  await review().click()
  await applyNow(page)
  expect(config()).toMatch(/acme: main/)
  expect(config()).toMatch(/request_body_limit: "?50GiB/)
  expect(await page.evaluate(() => JSON.stringify({ ...sessionStorage }))).not.toContain('correct horse')
  const [status] = await ask(port, 'app.example.com')
  expect([301, 308]).toContain(status)
})

it('shows within three seconds that headgate does not answer, keeps what is there, and goes on by itself', async () => {
  const { page, h } = w
  await visit(page, h, '/log')
  await page.getByText('following').waitFor()
  await ask(port, 'before.example.com')
  await page.getByText('before.example.com').first().waitFor()
  const bar = page.getByText('No connection to headgate')
  h.process.kill('SIGSTOP')
  const began = performance.now()
  await bar.waitFor()
  console.log(`note: an outage shows after ${((performance.now() - began) / 1000).toFixed(1)} s`)
  await page.getByText('before.example.com').first().waitFor()
  await page.locator('.main[data-stale]').waitFor()
  expect(await findings(page)).toEqual([])
  h.process.kill('SIGCONT')
  await bar.waitFor({ state: 'detached' })

  await h.stop()
  await bar.waitFor()
  await h.start()
  await bar.waitFor({ state: 'detached' })
  await page.getByText('following').waitFor()
  await ask(port, 'after.example.com')
  await page.getByText('after.example.com').first().waitFor()

  await visit(page, h, '/proxies')
  h.process.kill('SIGSTOP')
  await bar.waitFor()
  await page.getByRole('link', { name: 'shop', exact: true }).waitFor()
  h.process.kill('SIGCONT')
  await bar.waitFor({ state: 'detached' })
  await settled(page)
})

it('goes everywhere by keys, and lists them', async () => {
  const { page, h } = w
  await visit(page, h, '/')
  await page.keyboard.press('?')
  await dialog().getByText('Keyboard shortcuts').waitFor()
  expect(await findings(page)).toEqual([])
  await page.keyboard.press('Escape')
  await dialog().waitFor({ state: 'detached' })
  await page.keyboard.press('g')
  await page.keyboard.press('p')
  await page.getByRole('heading', { name: 'Proxies', level: 1 }).waitFor()
  await settled(page)
  await page.keyboard.press('/')
  await page.keyboard.type('shop')
  expect(page.url()).toContain('q=shop')
  await page.keyboard.press('Escape')
  await page.getByRole('textbox', { name: 'Filter' }).blur()
  await page.keyboard.press('j')
  await page.keyboard.press('Enter')
  await page.getByRole('heading', { name: 'shop', level: 1 }).waitFor()
  await page.keyboard.press('e')
  await dialog().waitFor()
})

it('breaks no rule of its policy', () => expect(w.complaints).toEqual([]))
