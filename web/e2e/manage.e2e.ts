import { readFileSync } from 'node:fs'
import { Agent, get } from 'node:http'
import { connect, createServer, type Server, type Socket } from 'node:net'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { freePort, until } from './browser.mjs'
import { api, ask, findings, open, visit, type World } from './world'

let w: World
let port = 0
beforeAll(async () => {
  port = await freePort()
  w = await open({
    text: `ports:\n  web: {address: "127.0.0.1:${port}", protocol: http}\nproxies:\n  shop: {description: the first, virtual_hosts: [shop.example.com], routes: [{fixed_response: {status: 200, body: hello}}]}\n`,
  })
})
afterAll(() => w?.close())

const config = () => readFileSync(w.h.config, 'utf8')

it('says who holds an address before the ports move, and that it is free when it is', async () => {
  const { page, h } = w
  const wanted = await freePort()
  const other = await new Promise<Server>((ready) => {
    const s = createServer().listen(wanted, '127.0.0.1', () => ready(s))
  })
  const before = config()
  await visit(page, h, '/cut-over')
  await page.getByLabel('New address of web').fill(`127.0.0.1:${wanted}`)
  await page.getByText('address already in use').first().waitFor()
  expect(await findings(page)).toEqual([])
  await new Promise((done) => other.close(done))
  await page.getByText('Free.').waitFor()
  expect(config()).toBe(before)
  await page.getByRole('button', { name: 'Show the plan' }).click()
  await page.getByRole('button', { name: 'Apply, and revert' }).click()
  await page.getByRole('button', { name: 'Revert now' }).click()
  await page.getByRole('button', { name: 'Revert now' }).waitFor({ state: 'detached' })
  expect(config()).toBe(before)
})

it('compares any two revisions, in words and as text', async () => {
  const { page, h } = w
  for (const description of ['the second', 'the third']) expect((await api(page, 'PATCH', '/proxies/shop', { description })).status).toBe(200)
  const list = await api<{ items: { number: number }[] }>(page, 'GET', '/revisions')
  const newest = list.value.items[0]!.number
  await visit(page, h, `/history/${newest}?against=1`)
  await page.getByText('the first').waitFor()
  await page.getByText('the third').waitFor()
  expect(await page.getByText('the second').count()).toBe(0)
  expect(await findings(page)).toEqual([])
  await page.getByText('As text').click()
  await page.locator('.diff').getByText('the first').waitFor()
})

it('does not grow while it follows the log', async () => {
  const { page, h } = w
  await visit(page, h, '/log')
  const devtools = await page.context().newCDPSession(page)
  const heap = async () => {
    await devtools.send('HeapProfiler.collectGarbage')
    return (await devtools.send('Runtime.getHeapUsage')).usedSize / 1e6
  }
  const agent = new Agent({ keepAlive: true, maxSockets: 20 })
  const load = async (n: number) => {
    const one = () => new Promise<void>((done) => void get({ host: '127.0.0.1', port, headers: { host: 'shop.example.com' }, agent }, (r) => r.resume().on('end', done)).on('error', () => done()))
    for (let i = 0; i < n; i += 20) await Promise.all(Array.from({ length: 20 }, one))
  }
  const shown = page.getByText('1,000 requests')
  await until('as many rows as are kept', async () => {
    await load(200)
    return shown.isVisible()
  })
  const first = await heap()
  // An hour of a busy site is LOG_REQUESTS=200000; a few thousand show as well that nothing grows.
  const many = Number(process.env.LOG_REQUESTS ?? 5000)
  await load(many)
  const last = await heap()
  console.log(`note: the heap of the log is ${first.toFixed(1)} MB with 1,000 rows, and ${last.toFixed(1)} MB after ${many.toLocaleString('en')} more requests`)
  expect(last).toBeLessThan(first + 10)
  await shown.waitFor()
  agent.destroy()
})

it('closes the connections of a port, after it has told how many they are', async () => {
  const { page, h } = w
  const client = await new Promise<Socket>((ready) => {
    const s = connect(port, '127.0.0.1', () => s.write('GET / HTTP/1.1\r\nHost: shop.example.com\r\n\r\n'))
    s.once('data', () => ready(s))
  })
  const closed = new Promise((done) => client.once('close', done))
  await visit(page, h, '/ports')
  await page.getByRole('button', { name: 'Close connections web' }).click()
  await page
    .getByRole('dialog')
    .getByText(/\d connections? (is|are) closed immediately/)
    .waitFor()
  expect(await findings(page)).toEqual([])
  expect(client.destroyed).toBe(false)
  await page.getByRole('dialog').getByRole('button', { name: 'Close connections' }).click()
  await page.getByText('The connections are closed.').waitFor()
  await closed
  expect((await ask(port, 'shop.example.com'))[0]).toBe(200)
})

it('purges the cache of a proxy, and can count first', async () => {
  const { page, h } = w
  expect(
    (await api(page, 'POST', '/proxies', { name: 'cached', virtual_hosts: ['cached.example.com'], cache: { default_ttl: '10m' }, routes: [{ servers: [{ url: `http://127.0.0.1:${w.upstream}` }] }] }))
      .status,
  ).toBe(201)
  for (const path of ['/a', '/b/1', '/b/2']) expect((await ask(port, 'cached.example.com', {}, path))[0]).toBe(200)
  await visit(page, h, '/proxies/cached')
  const open = async () => {
    await page.getByRole('button', { name: 'More' }).click()
    await page.getByRole('menuitem', { name: 'Purge cache' }).click()
  }
  const dialog = page.getByRole('dialog')
  await open()
  await dialog.getByRole('button', { name: 'Count first' }).click()
  await dialog.getByText('3 responses in the cache.').waitFor()
  expect(await findings(page)).toEqual([])
  await dialog.getByRole('combobox', { name: 'Responses' }).click()
  await page.getByRole('option', { name: 'URLs that start with' }).click()
  await dialog.getByRole('textbox', { name: 'URLs that start with' }).fill('https://cached.example.com/b/')
  await dialog.getByRole('button', { name: 'Purge', exact: true }).click()
  await page.getByText('2 responses purged.').waitFor()
  await open()
  await dialog.getByRole('button', { name: 'Purge', exact: true }).click()
  await page.getByText('1 response purged.').waitFor()
  await visit(page, h, '/proxies/shop')
  await open()
  await dialog.getByRole('button', { name: 'Purge', exact: true }).click()
  await dialog
    .getByRole('alert')
    .getByText(/no such cache/)
    .waitFor()
  await page.keyboard.press('Escape')
})

it('downloads a backup, and restores it after its plan', async () => {
  const { page, h } = w
  await visit(page, h, '/settings')
  const coming = page.waitForEvent('download')
  await page.getByLabel('Passphrase').first().fill('correct horse 11')
  await page.getByRole('button', { name: 'Download backup' }).click()
  const path = await (await coming).path()
  expect((await api(page, 'PATCH', '/proxies/shop', { description: 'after the backup' })).status).toBe(200)
  const before = config()
  await visit(page, h, '/settings')
  await page.locator('input[type=file]').setInputFiles(path)
  await page.getByLabel('Passphrase').last().fill('correct horse 11')
  await page.getByRole('button', { name: 'Show the plan' }).click()
  const dialog = page.getByRole('dialog')
  await dialog.getByText('after the backup').waitFor()
  expect(await findings(page)).toEqual([])
  expect(config()).toBe(before)
  await dialog.getByRole('button', { name: 'Apply', exact: true }).click()
  await page.getByText('The archive is restored.').waitFor()
  expect(config()).toContain('the third')
  expect(config()).not.toContain('after the backup')
})

it('is usable soon on a slow processor', async () => {
  const page = await w.another()
  const devtools = await page.context().newCDPSession(page)
  await devtools.send('Emulation.setCPUThrottlingRate', { rate: 4 })
  const began = performance.now()
  await page.goto(w.h.url)
  await page.getByLabel('Name').click()
  console.log(`note: usable after ${Math.round(performance.now() - began)} ms with the processor at a quarter of its speed`)
  await page.context().close()
})

it('asks no other host and breaks no rule of its policy', () => {
  expect(w.elsewhere).toEqual([])
  expect(w.complaints).toEqual([])
})
