import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { freePort, until } from './browser.mjs'
import { api, ask, findings, open, visit, type World } from './world'

let w: World
let port = 0
let failing = false
let servers: Server[]
const portOf = (s: Server) => (s.address() as AddressInfo).port

beforeAll(async () => {
  port = await freePort()
  servers = [false, true].map((candidate) =>
    createServer((_, answer) => {
      answer.statusCode = candidate && failing ? 500 : 200
      answer.end(candidate ? 'new' : 'old')
    }).listen(0, '127.0.0.1'),
  )
  await until('the servers to listen', () => servers.every((s) => s.listening))
  w = await open({
    text: `ports:
  web: {address: "127.0.0.1:${port}", protocol: http}
proxies:
  shop:
    routes:
      - servers: [{url: "http://127.0.0.1:${portOf(servers[0]!)}"}, {url: "http://127.0.0.1:${portOf(servers[1]!)}", group: candidate}]
        split: {schedule: "5, 50", key: "header:Client", rollback: {slower_than: "off", within: 10m, min_requests: 20}}
`,
  })
})
afterAll(async () => {
  await w?.close()
  servers?.forEach((s) => s.close())
})

const card = () => w.page.locator('section.card', { has: w.page.getByRole('heading', { name: 'Traffic split' }) })
const dialog = () => w.page.getByRole('dialog')
const button = (name: string) => card().getByRole('button', { name: `${name}: /`, exact: true })
/** A row of the table of both groups: the share is its first cell. */
const group = (name: string, share: string) => card().getByRole('row', { name: new RegExp(`^${name} ${share} `) })
const clients = (n: number) => Promise.all(Array.from({ length: n }, (_, i) => ask(port, 'shop.example.com', { Client: `client ${i}` })))

it('shows the shares of both groups and what the next step waits for', async () => {
  const { page, h } = w
  await visit(page, h, '/proxies/shop')
  await group('Stable', '95%').waitFor()
  await group('Candidate', '5%').waitFor()
  await card().getByText('running', { exact: true }).waitFor()
  await card().getByText('50% when an operator promotes the candidate').waitFor()
  await card().getByText('Nothing is decided until both groups have had 20 requests in this time.').waitFor()
  await card().getByText('5%, 50%', { exact: true }).waitFor()
})

it('promotes by keys to the next step, and counts the requests of both groups', async () => {
  const { page } = w
  await button('Promote').focus()
  await page.keyboard.press('Enter')
  const share = dialog().getByLabel('Share of the candidate, in percent')
  expect(await share.inputValue()).toBe('50')
  expect(await findings(page)).toEqual([])
  await share.press('Enter')
  await dialog().waitFor({ state: 'detached' })
  await group('Candidate', '50%').waitFor()
  const bodies = (await clients(200)).map(([, body]) => body)
  const fresh = bodies.filter((b) => b === 'new').length
  expect(fresh).toBeGreaterThan(50)
  expect(fresh).toBeLessThan(150)
  await group('Candidate', `50% ${fresh} 0`).waitFor()
  await group('Stable', `50% ${200 - fresh} 0`).waitFor()
  await card().getByText('The groups are compared.').waitFor()
})

it('shows why headgate has returned the candidate, also on the overview', async () => {
  const { page, h } = w
  failing = true
  await clients(200)
  await card().getByText('returned', { exact: true }).waitFor()
  await group('Candidate', '0%').waitFor()
  await group('Stable', '100%').waitFor()
  await card()
    .getByText(/^errors: candidate .* limit 2x$/)
    .waitFor()
  await card().getByText('by headgate').waitFor()
  // The issue of the proxy is read again when the event comes.
  await page
    .getByRole('listitem')
    .filter({ hasText: /the candidate gets no requests since .* limit 2x/ })
    .waitFor()
  expect(await button('Hold').count()).toBe(0)
  expect(await button('Return').count()).toBe(0)
  await visit(page, h, '/')
  await page
    .locator('.attention')
    .getByRole('listitem')
    .filter({ has: page.getByRole('link', { name: 'shop', exact: true }) })
    .getByText('the candidate gets no requests')
    .waitFor()
})

it('gives it another share, holds it, returns it by hand and restarts it', async () => {
  const { page, h } = w
  failing = false
  await visit(page, h, '/proxies/shop')
  await button('Promote').click()
  await dialog().getByLabel('Share of the candidate, in percent').fill('30')
  await dialog().getByRole('button', { name: 'Promote' }).click()
  await group('Candidate', '30%').waitFor()
  await button('Hold').click()
  await card().getByText('held', { exact: true }).waitFor()
  await group('Candidate', '30%').waitFor()
  await button('Return').click()
  await dialog().getByText('The candidate gets no more requests until it is promoted or restarted.').waitFor()
  await dialog().getByRole('button', { name: 'Cancel' }).last().click()
  await dialog().waitFor({ state: 'detached' })
  await group('Candidate', '30%').waitFor()
  await button('Return').click()
  await dialog().getByLabel('Reason').fill('wrong prices')
  await dialog().getByRole('button', { name: 'Return' }).click()
  await card().getByText('wrong prices', { exact: true }).waitFor()
  await group('Candidate', '0%').waitFor()
  await card().getByText('by ann').waitFor()
  await button('Restart').click()
  await dialog().getByRole('button', { name: 'Restart' }).click()
  await group('Candidate', '5%').waitFor()
})

it('shows in the dialog what the API rejects', async () => {
  const { page } = w
  await button('Promote').click()
  await dialog().getByLabel('Share of the candidate, in percent').fill('100')
  await dialog().getByRole('button', { name: 'Promote' }).click()
  await card().getByText('complete', { exact: true }).waitFor()
  await button('Promote').click()
  await dialog().getByRole('button', { name: 'Promote' }).click()
  await dialog().getByText('the candidate gets all requests already').waitFor()
  expect(await findings(page)).toEqual([])
  await page.keyboard.press('Escape')
})

it('has no findings in the light, in the dark and on a phone, and lets a viewer look', async () => {
  const { page, h } = w
  expect((await api(page, 'POST', '/users', { name: 'vera', password: 'correct horse 10', role: 'viewer' })).status).toBe(201)
  await visit(page, h, '/proxies/shop')
  await group('Candidate', '100%').waitFor()
  expect(await findings(page)).toEqual([])
  await page.emulateMedia({ colorScheme: 'dark', reducedMotion: 'reduce' })
  await page.locator('html[data-mantine-color-scheme=dark]').waitFor()
  expect(await findings(page, ['color-contrast'])).toEqual([])
  const theirs = await w.another({ viewport: { width: 360, height: 780 } })
  await theirs.goto(h.url + '/proxies/shop')
  await theirs.getByLabel('Name').fill('vera')
  await theirs.getByLabel('Password', { exact: true }).fill('correct horse 10')
  await theirs.getByRole('button', { name: 'Sign in', exact: true }).click()
  const mine = theirs.locator('section.card', { has: theirs.getByRole('heading', { name: 'Traffic split' }) })
  await mine.getByText('your role is viewer').waitFor()
  for (const name of ['Promote', 'Return', 'Restart']) expect(await mine.getByRole('button', { name: `${name}: /` }).isDisabled(), name).toBe(true)
  expect(await findings(theirs)).toEqual([])
  const [wide, seen] = await theirs.evaluate(() => [document.documentElement.scrollWidth, document.documentElement.clientWidth])
  expect(wide, 'the page is wider than a phone').toBeLessThanOrEqual(seen!)
  expect((await api(theirs, 'POST', '/splits/return', { proxy: 'shop' })).status).toBe(403)
  await theirs.context().close()
})

it('breaks no rule of its policy', () => expect(w.complaints).toEqual([]))
