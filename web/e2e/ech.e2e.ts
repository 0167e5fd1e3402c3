import { afterAll, beforeAll, expect, it } from 'vitest'
import { freePort } from './browser.mjs'
import { findings, open, visit, type World } from './world'

let w: World
let port = 0
let other = 0

beforeAll(async () => {
  port = await freePort()
  other = await freePort()
  const nobody = await freePort()
  w = await open({
    text: `ports:
  secure: {address: "127.0.0.1:${port}", protocol: https, tls: {ech: {public_name: front.example.com}}}
  written: {address: "127.0.0.1:${other}", protocol: https, tls: {ech: {public_name: front.example.com, dns: main}}}
acme:
  main: {resolvers: ["127.0.0.1:${nobody}"], dns: {provider: rfc2136, credentials: {server: "127.0.0.1:${nobody}"}}}
proxies:
  shop: {virtual_hosts: [shop.example.com], routes: [{fixed_response: {status: 200}}]}
`,
  })
})
afterAll(() => w?.close())

it('shows the records of a port with Encrypted Client Hello, and what is missing', async () => {
  const { page, h } = w
  await visit(page, h, '/ports')
  const card = page.locator('section.card', { has: page.getByRole('heading', { name: 'Encrypted Client Hello secure' }) })
  await card.getByText('front.example.com', { exact: true }).waitFor()
  const records = card.getByLabel('DNS records')
  await records.getByText(`_${port}._https.shop.example.com. 300 IN HTTPS 1 shop.example.com. alpn="h2" ech="`).waitFor()
  expect(await records.textContent()).not.toContain('front.example.com. 300')
  await card.getByText(/^published, accepted until /).waitFor()
  await card.getByText('no certificate has the public name front.example.com: clients with an outdated key cannot connect').waitFor()
  await card.getByRole('button', { name: 'Copy records: secure' }).click()
  await card.getByRole('button', { name: 'Copied: secure' }).waitFor()
  expect(await findings(page)).toEqual([])
})

it('shows why a record that headgate writes is not in the DNS', async () => {
  const { page, h } = w
  await visit(page, h, '/ports')
  const card = page.locator('section.card', { has: page.getByRole('heading', { name: 'Encrypted Client Hello written' }) })
  await card.getByText('headgate writes these records through the DNS provider of the ACME entry main.').waitFor()
  await card.getByText('failed: 1', { exact: true }).waitFor()
  await card.getByText(`_${other}._https.shop.example.com: failed: look up shop.example.com`).waitFor()
  await card.getByText(/^the HTTPS record of .* is not written: look up shop\.example\.com/).waitFor()
  expect(await findings(page)).toEqual([])
})
