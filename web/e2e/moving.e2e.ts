import { readFileSync } from 'node:fs'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { freePort, until } from './browser.mjs'
import { api, ask, findings, open, visit, type World } from './world'

let w: World
let port = 0
let old: Server
const oldPort = () => (old.address() as AddressInfo).port

beforeAll(async () => {
  port = await freePort()
  // Old proxy answers as the new one does, but for one cookie and one status.
  old = createServer((rq, answer) => {
    if (rq.url === '/cart') answer.setHeader('Set-Cookie', 'sid=1; Path=/; Secure; HttpOnly')
    answer.statusCode = rq.url?.startsWith('/gone') ? 410 : 200
    answer.end('hello from the server')
  }).listen(0, '127.0.0.1')
  w = await open({ text: `ports:\n  web: {address: "127.0.0.1:${port}", protocol: http}\n` })
  expect((await api(w.page, 'POST', '/proxies', { name: 'shop', virtual_hosts: ['shop.example.com'], routes: [{ servers: [{ url: `http://127.0.0.1:${w.upstream}` }] }] })).status).toBe(201)
})
afterAll(async () => {
  await w?.close()
  old?.close()
})

const config = () => readFileSync(w.h.config, 'utf8')

const nginx = `
http {
  upstream app { server 127.0.0.1:9000; server 127.0.0.1:9001 weight=3; }
  server {
    listen 80;
    server_name wiki.example.com;
    autoindex on;
    include conf.d/*.conf;
    location / { proxy_pass http://app; proxy_set_header X-Real-IP $remote_addr; }
  }
}
`

it('translates a configuration, shows every verdict, and takes it by a plan', async () => {
  const { page, h } = w
  const before = config()
  await visit(page, h, '/import')
  await page.getByRole('radio', { name: /^nginx/ }).click()
  await page.getByRole('button', { name: 'Translate' }).click()
  await page.getByText('Choose files or paste').waitFor()
  await page
    .locator('input[type=file]')
    .first()
    .setInputFiles([
      { name: 'nginx.conf', mimeType: 'text/plain', buffer: Buffer.from(nginx) },
      { name: 'extra.conf', mimeType: 'text/plain', buffer: Buffer.from('client_max_body_size 20m;\n') },
    ])
  // The main file is known; the other is found by the name that includes it.
  await page.getByLabel('Name of extra.conf').fill('conf.d/extra.conf')
  expect(await page.getByLabel('is included').last().isChecked()).toBe(true)
  expect(await findings(page)).toEqual([])
  await page.getByRole('button', { name: 'Translate' }).click()
  await page.getByText(/directives of nginx/).waitFor()
  await page.getByRole('region', { name: 'directives' }).getByText('nginx.conf:').first().waitFor()
  await page.locator('.cm-content').getByText('wiki.example.com').waitFor()
  await page.locator('.cm-content').getByText('20').first().waitFor()
  // Ports 80 and 443 are put aside: the old proxy has them still.
  await page.locator('.cm-content').getByText(':8080').waitFor()
  expect(await findings(page)).toEqual([])
  await page.getByRole('button', { name: /not possible/ }).click()
  await page.getByRole('button', { name: 'autoindex on' }).click()
  await page.getByRole('dialog', { name: 'Directive' }).getByText('headgate cannot do this').waitFor()
  expect(await findings(page)).toEqual([])
  await page.keyboard.press('Escape')
  expect(config()).toBe(before)

  await page.getByText('ports web').or(page.getByText('port web')).first().waitFor()
  await page.getByRole('button', { name: 'Show the plan' }).click()
  const plan = page.getByRole('dialog', { name: 'Import' })
  await plan.getByText('wiki.example.com').first().waitFor()
  expect(await findings(page)).toEqual([])
  expect(config()).toBe(before)
  await plan.getByText(':8080').first().waitFor()
  await page.keyboard.press('Escape')
  await plan.waitFor({ state: 'detached' })

  // The document can be changed before it is taken: here the port goes to a free one.
  const free = await freePort()
  const lines = await page.locator('.cm-line').allInnerTexts()
  await page.locator('.cm-content').click()
  await page.keyboard.press('Control+a')
  await page.keyboard.press('Delete')
  await page.keyboard.insertText(lines.join('\n').replace(/address: [^,}\n]+/, `address: 127.0.0.1:${free}`))
  await page.getByRole('button', { name: 'Show the plan' }).click()
  await plan.getByText(`127.0.0.1:${free}`).first().waitFor()
  await plan.getByRole('button', { name: 'Apply', exact: true }).click()
  await plan.waitFor({ state: 'detached' })
  expect(config()).toContain('wiki.example.com')
  expect((await ask(free, 'wiki.example.com'))[0]).toBe(502)
  await page.getByRole('link', { name: 'Compare both proxies' }).click()
  await page.getByRole('heading', { name: 'Compare', level: 1 }).waitFor()
  // The port that was asked before is gone with the name that both have: back to the first address.
  expect((await api(page, 'PATCH', '/ports/web', { address: `127.0.0.1:${port}` })).status).toBe(200)
})

it('refuses what is no configuration, and says where', async () => {
  const { page, h } = w
  await visit(page, h, '/import?from=nginx')
  await page.getByText('Paste', { exact: true }).click()
  await page.getByLabel('Text').fill('server { listen 80; ')
  await page.getByRole('button', { name: 'Translate' }).click()
  await page
    .getByRole('alert')
    .getByText(/nginx\.conf/)
    .waitFor()
})

it('compares both proxies, and says how ready each is and why', async () => {
  const { page, h } = w
  await visit(page, h, '/compare')
  await page.getByText('No comparison yet').waitFor()
  await page.getByLabel('Old proxy').fill(`127.0.0.1:${oldPort()}`)
  await page.getByLabel('headgate', { exact: true }).fill(`127.0.0.1:${port}`)
  await page.getByText('From a list or an access log').click()
  await page.getByLabel('Addresses or log').fill(['/', '/cart', '/gone', '/a', '/b'].map((p) => 'http://shop.example.com' + p).join('\n'))
  await page.getByText('Options').click()
  await page.getByLabel('Skip DNS lookups').check()
  expect(await findings(page)).toEqual([])
  await page.getByRole('button', { name: 'Compare', exact: true }).click()
  await page.getByText('60%', { exact: true }).waitFor()
  await page.getByText('3 of 5 requests').first().waitFor()
  expect(await findings(page)).toEqual([])
  await page.getByRole('button', { name: /Cookies · breaks · 1/ }).click()
  await page.getByText('1 of 2 requests').waitFor()
  await page.getByRole('button', { name: 'GET http://shop.example.com/cart' }).click()
  const one = page.getByRole('dialog')
  await one.getByText('Secure').first().waitFor()
  expect(await findings(page)).toEqual([])
  await page.keyboard.press('Escape')
  await visit(page, h, '/cut-over')
  await page.getByText('60% of the responses are identical.').waitFor()
})

it('compares what clients have asked, and stops when told to', async () => {
  const { page, h } = w
  for (const host of Array.from({ length: 40 }, () => 'shop.example.com')) await ask(port, host)
  await visit(page, h, '/compare')
  await page.getByLabel('Old proxy').fill('169.254.1.1')
  await page.getByText('From the live log').click()
  await page.getByRole('button', { name: 'Compare', exact: true }).click()
  await page
    .getByText(/169\.254/)
    .nth(0)
    .waitFor()
  expect(await page.getByLabel('Old proxy').getAttribute('aria-invalid')).toBe('true')
  await page.getByLabel('Old proxy').fill(`127.0.0.1:${oldPort()}`)
  await page.getByLabel('headgate', { exact: true }).fill(`127.0.0.1:${port}`)
  await page.getByText('Options').click()
  await page.getByLabel('Requests per second').fill('1')
  await page.getByText('From a list or an access log').click()
  await page.getByLabel('Addresses or log').fill(Array.from({ length: 300 }, (_, i) => `http://shop.example.com/${i}`).join('\n'))
  await page.getByRole('button', { name: 'Compare', exact: true }).click()
  await page.getByRole('button', { name: 'Stop' }).click()
  await page.getByText('The comparison was stopped. The results').waitFor()
})

it('says what becomes of recent requests before a change is made', async () => {
  const { page, h } = w
  await until('the request in the log', async () => (await api<{ items: unknown[] }>(page, 'GET', '/logs/access?host=shop.example.com')).value.items.length > 5)
  await visit(page, h, '/proxies/shop?edit=1')
  await page.getByRole('dialog').getByText('YAML', { exact: true }).click()
  await page.locator('.cm-content').click()
  await page.keyboard.press('Control+End')
  await page.keyboard.press('Enter')
  await page.keyboard.press('Home')
  await page.keyboard.insertText('basic_auth: {users: [{name: ada, password_hash: "$2y$12$abcdefghijklmnopqrstuuhX0qcGnmcz0DC0GI4ihGoSUtTvsT7Se"}]}\n')
  await page.getByRole('button', { name: 'Review', exact: true }).click()
  await page.getByText('Impact on recent requests').waitFor()
  await page.getByText(/\d+ asked for a password/).waitFor()
  await page.getByText('1 host will require a password').waitFor()
  await page.getByText('response 401').first().waitFor()
  expect(await findings(page)).toEqual([])
  await page.getByRole('button', { name: 'Discard all' }).click()
})

it('tells who reaches a server, and takes it out and back', async () => {
  const { page, h } = w
  expect((await api(page, 'POST', '/tcp_proxies', { name: 'raw', address: `127.0.0.1:${await freePort()}`, servers: [{ address: `127.0.0.1:${w.upstream}` }] })).status).toBe(201)
  expect((await api(page, 'POST', '/proxies', { name: 'docs', virtual_hosts: ['docs.example.com'], routes: [{ path: '/d', servers: [{ url: `http://127.0.0.1:${w.upstream}/base` }] }] })).status).toBe(
    201,
  )
  await visit(page, h, '/proxies/shop')
  await page.getByRole('button', { name: `About http://127.0.0.1:${w.upstream}` }).click()
  const panel = page.getByRole('dialog')
  for (const name of ['shop', 'docs', 'raw']) await panel.getByRole('link', { name, exact: true }).waitFor()
  expect(await findings(page)).toEqual([])
  await panel.getByRole('button', { name: /^Take out of service: shop/ }).click()
  await page.getByRole('menuitem', { name: /^Disable/ }).click()
  await until('no answer of the server', async () => (await ask(port, 'shop.example.com'))[0] === 503)
  await panel.getByText('disabled by ann').waitFor()
  await panel.getByRole('button', { name: /^Take out of service: shop/ }).click()
  await page.getByRole('menuitem', { name: /Return to service/ }).click()
  await until('the server', async () => (await ask(port, 'shop.example.com'))[0] === 200)
  await panel.getByRole('link', { name: 'Show all 3 in the list' }).click()
  // TCP proxies stand in the same list.
  await page.getByRole('link', { name: 'raw', exact: true }).waitFor()
  await page.getByRole('textbox', { name: 'Filter' }).fill(`server:127.0.0.1:${w.upstream} kind:tcp`)
  await page.getByRole('link', { name: 'shop', exact: true }).waitFor({ state: 'detached' })
  await page.getByRole('link', { name: 'raw', exact: true }).click()
  await page.getByRole('heading', { name: 'raw' }).waitFor()
})

it('shows sign-in that a policy asks for, with its name', async () => {
  const { page, h } = w
  expect(
    (await api(page, 'POST', '/policies', { name: 'members', basic_auth: { users: [{ name: 'ada', password_hash: '$2y$12$abcdefghijklmnopqrstuuhX0qcGnmcz0DC0GI4ihGoSUtTvsT7Se' }] } })).status,
  ).toBe(201)
  expect((await api(page, 'POST', '/proxies', { name: 'inside', use: ['members'], virtual_hosts: ['inside.example.com'], routes: [{ fixed_response: { status: 204 } }] })).status).toBe(201)
  await page.setViewportSize({ width: 1440, height: 800 }) // narrower lists have no column for sign-in
  await visit(page, h, '/proxies')
  await page
    .getByRole('row', { name: /inside/ })
    .getByText('members')
    .waitFor()
  await page.getByRole('textbox', { name: 'Filter' }).fill('auth:none')
  await page.getByRole('link', { name: 'inside', exact: true }).waitFor({ state: 'detached' })
})

it('asks no other host and breaks no rule of its policy', () => {
  expect(w.elsewhere).toEqual([])
  expect(w.complaints).toEqual([])
})
