import { readFileSync } from 'node:fs'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { freePort, until } from './browser.mjs'
import { startDocker } from './docker.mjs'
import { api, applyNow, ask, findings, open, visit, type World } from './world'

let w: World
let port = 0
let docker: Awaited<ReturnType<typeof startDocker>>
beforeAll(async () => {
  port = await freePort()
  const server = await freePort()
  docker = await startDocker([
    { name: 'grafana', labels: { 'headgate.enable': 'true', 'headgate.host': 'grafana.example.com', 'headgate.port': String(server) } },
    { name: 'queue', labels: { 'headgate.enable': 'true', 'headgate.host': 'queue.example.com' } },
    // It becomes no proxy: what is wrong with it stands at no row of the list.
    { name: 'wiki', labels: { 'headgate.enable': 'true', 'headgate.port': String(server), 'headgate.http.wiki.virtual_host': 'wiki.example.com' } },
  ])
  w = await open({
    text: `ports:\n  web: {address: "127.0.0.1:${port}", protocol: http}\ndiscovery:\n  docker:\n    local: {endpoint: "${docker.endpoint}", hosts: ["*.example.com"]}\n    gone: {endpoint: "unix:///nowhere/docker.sock"}\ntcp_proxies:\n  db: {address: "127.0.0.1:${await freePort()}", servers: [{address: "127.0.0.1:9"}], health_check: {interval: 1s, fall: 1}}\n`,
  })
  await until('the proxy of the container', async () => (await api(w.page, 'GET', '/proxies/grafana')).status === 200)
})
afterAll(async () => {
  await w?.close()
  docker?.close()
})

it('names a TCP proxy without a healthy server on the overview', async () => {
  const { page } = w
  await visit(page, w.h, '/')
  // Once for its state, once for its availability: both lead to its page.
  const links = page.getByRole('listitem').filter({ hasText: 'db' }).getByRole('link', { name: 'db', exact: true })
  await until('both links', async () => (await links.count()) === 2)
  for (const i of [0, 1]) {
    await links.nth(i).click()
    await page.waitForURL('**/streams/tcp/db')
    await visit(page, w.h, '/')
    await links.nth(1).waitFor()
  }
})

it('shows what was found as read-only, with its container and its issues', async () => {
  const { page, h } = w
  await visit(page, h, '/discovery')
  await page.getByText('container grafana').waitFor()
  await page.getByText('no_port').waitFor()
  expect(await findings(page)).toEqual([])
  await visit(page, h, '/proxies/grafana')
  await page.getByText('container grafana').first().waitFor()
  expect(await page.getByRole('button', { name: 'Edit', exact: true }).count()).toBe(0)
  expect(await page.getByRole('button', { name: 'Add a filter' }).count()).toBe(0)
})

it('shows at the list of proxies how many servers are healthy, and what discovery reports', async () => {
  const { page, h } = w
  await visit(page, h, '/proxies')
  const issues = page.locator('details', { hasText: /Discovery reports \d+ issues/ })
  await issues.locator('summary').click()
  await issues.getByText('there is no socket /nowhere/docker.sock').waitFor()
  await issues.getByText('no_port').waitFor()
  await issues.getByText('headgate.http.wiki.virtual_host', { exact: true }).waitFor()
  await page
    .getByRole('row', { name: /grafana/ })
    .getByText('1 not checked')
    .waitFor()
  const db = page.getByRole('row', { name: /db.*TCP/ })
  await db.getByText('down', { exact: true }).waitFor()
  await db.getByText('1 unavailable').waitFor()
  expect(await findings(page)).toEqual([])
  await issues.getByRole('link', { name: 'Show all' }).click()
  await page.getByRole('heading', { name: 'Discovery', level: 1 }).waitFor()
})

it('takes an object over into the document, after its plan', async () => {
  const { page, h } = w
  const before = readFileSync(h.config, 'utf8')
  await visit(page, h, '/discovery')
  await page.getByRole('button', { name: 'Convert to configuration grafana' }).click()
  await page.getByRole('dialog').getByText('Proxy grafana').waitFor()
  await page.getByRole('button', { name: 'Apply', exact: true }).waitFor()
  expect(await findings(page)).toEqual([])
  expect(readFileSync(h.config, 'utf8')).toBe(before)
  await applyNow(page)
  expect(readFileSync(h.config, 'utf8')).toMatch(/grafana:[\s\S]*grafana\.example\.com/)
  // From now on it is like any other of the document.
  await visit(page, h, '/proxies/grafana')
  await page.getByRole('button', { name: 'Edit', exact: true }).click()
  await page.getByRole('dialog').getByLabel('Description').first().fill('ours now')
  await page.getByRole('button', { name: 'Review', exact: true }).click()
  await applyNow(page)
  expect(readFileSync(h.config, 'utf8')).toContain('ours now')
  expect((await ask(port, 'grafana.example.com'))[0]).toBe(502)
})

it('asks no other host and breaks no rule of its policy', () => {
  expect(w.elsewhere).toEqual([])
  expect(w.complaints).toEqual([])
})
