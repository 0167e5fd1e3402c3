import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { freePort, until } from './browser.mjs'
import { ask, findings, open, visit, type World } from './world'

let w: World
let port = 0
let servers: Server[]
const portOf = (s: Server) => (s.address() as AddressInfo).port

beforeAll(async () => {
  port = await freePort()
  servers = [false, true].map((mirror) =>
    createServer((request, answer) => {
      answer.statusCode = mirror && request.url === '/broken' ? 500 : 200
      answer.setHeader('Content-Type', mirror && request.url === '/typed' ? 'text/html' : 'text/plain')
      answer.end(mirror && request.url?.startsWith('/changed') ? 'new' : 'old')
    }).listen(0, '127.0.0.1'),
  )
  await until('the servers to listen', () => servers.every((s) => s.listening))
  w = await open({
    text: `ports:
  web: {address: "127.0.0.1:${port}", protocol: http}
proxies:
  shop:
    routes:
      - servers: [{url: "http://127.0.0.1:${portOf(servers[0]!)}"}]
        mirror: {servers: [{url: "http://127.0.0.1:${portOf(servers[1]!)}"}], compare: true}
`,
  })
})
afterAll(async () => {
  await w?.close()
  servers?.forEach((s) => s.close())
})

const card = () => w.page.locator('section.card', { has: w.page.getByRole('heading', { name: 'Mirrored responses' }) })

it('shows how the responses of a mirror differ from those of the servers', async () => {
  const { page, h } = w
  await visit(page, h, '/proxies/shop')
  await card().getByText('Nothing is compared yet.').waitFor()
  for (const path of ['/', '/', '/broken', '/changed?token=hunter2', '/typed']) await ask(port, 'shop.example.com', {}, path)
  await page.reload()
  await card().getByText('2 (40%)').waitFor()
  await card().getByText('content-type (1)').waitFor()
  await card()
    .getByRole('row', { name: /^GET \/typed 1 Header: content-type 200, 3 B, .*, text\/plain 200, 3 B, .*, text\/html$/ })
    .waitFor()
  await card()
    .getByRole('row', { name: /^GET \/broken 1 Status 200, .* 500, / })
    .waitFor()
  await card()
    .getByRole('row', { name: /^GET \/changed 1 Body / })
    .waitFor()
  expect(await card().textContent()).not.toContain('hunter2')
  expect(await findings(page)).toEqual([])
})
