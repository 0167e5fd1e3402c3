import { execFileSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { freePort, until } from './browser.mjs'
import { api, applyNow, ask, findings, open, visit, type World } from './world'

let w: World
let port = 0
beforeAll(async () => {
  port = await freePort()
  // A proxy in front of it, on this machine, says who the clients are: those of this machine are never banned.
  w = await open({
    text: [
      `ports:\n  web: {address: "127.0.0.1:${port}", protocol: http}`,
      `defaults: {client_ip: {trusted: [127.0.0.1]}}`,
      `lists:\n  office: {entries: [203.0.113.0/28, 2001:db8::/32]}`,
      `proxies:\n  shop: {virtual_hosts: [shop.example.com], routes: [{fixed_response: {status: 200, body: the shop}}]}\n`,
    ].join('\n'),
  })
})
afterAll(() => w?.close())

const config = () => readFileSync(w.h.config, 'utf8')
const from = (client: string, path = '/') => ask(port, 'shop.example.com', { 'X-Forwarded-For': client }, path)
const scan = async (client: string) => {
  for (let i = 0; i < 4; i++) await from(client, '/.env')
}

/** Makes a database of countries as vendors do; where CI made one of public data, it is that. */
function database(dir: string, type: string) {
  const csv = join(dir, 'countries.csv')
  const out = join(dir, 'country.mmdb')
  writeFileSync(csv, '198.51.100.0,198.51.100.255,DE\n203.0.113.0,203.0.113.255,JP\n')
  execFileSync('go', ['run', '-trimpath', './internal/geo/geotest/convert', '-out', out, '-type', type, '-built', new Date().toISOString().slice(0, 10), csv], {
    cwd: join(import.meta.dirname, '../..'),
  })
  return out
}

it('shows the databases of countries with the attribution that their licences ask for', async () => {
  const { page, h } = w
  const asn = process.env.HEADGATE_COUNTRIES ?? ''
  const set = await api(page, 'PUT', '/settings/geo', { country: { file: database(h.dir, 'DBIP-Country-Lite') }, ...(asn && { asn: { file: asn } }) })
  expect(set.status).toBe(200)
  await visit(page, h, '/lists')
  const card = page.locator('section.card', { has: page.getByText('IP Geolocation by DB-IP, https://db-ip.com') })
  await card.getByText('DBIP-Country-Lite', { exact: false }).waitFor()
  if (asn) await card.getByText('asn-country', { exact: false }).first().waitFor()
  expect(await findings(page)).toEqual([])
})

it('says what a list is, and which lists have an address', async () => {
  const { page, h } = w
  const file = join(h.dir, 'bad.txt')
  writeFileSync(file, '198.51.100.0/24 ; bad\nnonsense\n')
  await visit(page, h, '/lists')
  const card = page.locator('section.card', { has: page.getByRole('heading', { name: 'Lists', exact: true }) })
  await card.getByText(/Entries in the configuration · 2 entries/).waitFor()
  await card.getByRole('button', { name: 'Add', exact: true }).click()
  await page.getByRole('dialog').getByLabel('Name').fill('bad')
  await page.getByRole('dialog').getByRole('button', { name: 'Continue' }).click()
  await page.getByRole('dialog').getByText('YAML', { exact: true }).click()
  await page.locator('.cm-content').click()
  await page.keyboard.press('Control+a')
  await page.keyboard.insertText(`file: ${file}\n`)
  await page.getByRole('button', { name: 'Review', exact: true }).click()
  await applyNow(page)
  const bad = card.getByRole('listitem').filter({ hasText: file })
  await bad.getByText(/1 entry · loaded/).waitFor()
  await bad.getByText(/the first is line 2/).waitFor()
  expect(await findings(page)).toEqual([])

  await page.getByLabel('Address').fill('198.51.100.7')
  await page.getByRole('button', { name: 'Check', exact: true }).click()
  const known = page.getByRole('status').filter({ hasText: 'Not banned.' })
  await known.getByText('bad', { exact: true }).waitFor()
  expect(await known.getByText('office', { exact: true }).count()).toBe(0)
  expect(page.url()).toContain('address=198.51.100.7')
  await page.getByLabel('Address').fill('127.0.0.1')
  await page.getByRole('button', { name: 'Check', exact: true }).click()
  await page.getByText(/Rules do not ban it: /).waitFor()
  await page.getByLabel('Address').fill('no address')
  await page.getByRole('button', { name: 'Check', exact: true }).click()
  await page.getByText(/not an IP address/i).waitFor()
})

it('shows what a rule would have done before it is written, and applies it to observe', async () => {
  const { page, h } = w
  await scan('192.0.2.9')
  expect((await from('192.0.2.9'))[0]).toBe(200)
  await until('the requests in the log', async () => (await api<{ items: unknown[] }>(page, 'GET', '/logs/access?client=192.0.2.9')).value.items.length === 5)
  await visit(page, h, '/bans')
  await page.getByText('No ban rules yet').waitFor()
  expect(await page.getByRole('button', { name: 'Ban an address' }).count()).toBe(0)
  expect(await findings(page)).toEqual([])
  await page.getByRole('button', { name: 'Add', exact: true }).click()
  await page.getByRole('dialog').getByLabel('Name').fill('scanners')
  await page.getByRole('dialog').getByRole('button', { name: 'Continue' }).click()
  const editor = page.getByRole('dialog')
  await editor.getByRole('button', { name: 'Try on recent requests' }).click()
  await editor.getByText('1 address would have been banned, and 2 requests of theirs rejected.').waitFor()
  await editor.getByText('192.0.2.9', { exact: true }).waitFor()
  await editor.getByText(/3 × \/\.env since/).waitFor()
  expect(await findings(page)).toEqual([])
  expect(config()).not.toContain('scanners')
  await editor.getByRole('button', { name: 'Review', exact: true }).click()
  // The review has it, too.
  await page.getByRole('dialog', { name: 'Review changes' }).getByText('1 address would have been banned').waitFor()
  await applyNow(page)
  expect(config()).toContain('scanners')
  expect((await from('192.0.2.9'))[0]).toBe(200)
})

it('observes first, then enforces, and shows who is banned and why', async () => {
  const { page, h } = w
  await scan('192.0.2.10')
  expect((await from('192.0.2.10'))[0]).toBe(200)
  await visit(page, h, '/bans')
  const rules = page.locator('section.card', { has: page.getByRole('heading', { name: 'Ban rules' }) })
  await rules.getByText('observes', { exact: true }).waitFor()
  await rules.getByText(/1 address would be banned, 0 of them signed in/).waitFor()
  await rules.getByText('Show 1 address').click()
  await rules.getByText('192.0.2.10', { exact: true }).waitFor()
  expect(await findings(page)).toEqual([])
  await rules.getByRole('button', { name: 'Enforce scanners' }).click()
  await applyNow(page)
  await rules.getByText('enforces', { exact: true }).waitFor()

  await scan('192.0.2.11')
  await until('the ban', async () => (await from('192.0.2.11'))[0] === 403)
  const row = page.getByRole('row', { name: /192\.0\.2\.11/ })
  await row.getByText(/3 × \/\.env since/).waitFor()
  await row.getByText('Ban rule scanners').waitFor()
  await until('the requests that were refused', async () => Number(await row.locator('td').nth(4).innerText()) >= 2)
  expect(await findings(page)).toEqual([])
  // The address is a link to its requests.
  await row.getByRole('link', { name: '192.0.2.11' }).click()
  await page.waitForURL('**/log?client=192.0.2.11')
})

it('lifts a ban, and never bans an address again', async () => {
  const { page, h } = w
  await visit(page, h, '/bans')
  await page.getByRole('button', { name: 'Lift the ban of 192.0.2.11' }).click()
  await page.getByText('192.0.2.11 is no longer banned.').waitFor()
  await page.getByText('No client is banned.').waitFor()
  expect((await from('192.0.2.11'))[0]).toBe(200)
  await scan('192.0.2.12')
  await until('the ban', async () => (await from('192.0.2.12'))[0] === 403)
  await page.getByRole('button', { name: 'Lift and exempt: 192.0.2.12' }).click()
  await page.getByRole('dialog').getByRole('button', { name: 'Lift and exempt', exact: true }).click()
  const exempt = page.locator('section.card', { has: page.getByRole('heading', { name: 'Exempt addresses' }) })
  await exempt.getByText('192.0.2.12', { exact: true }).waitFor()
  await scan('192.0.2.12')
  expect((await from('192.0.2.12'))[0]).toBe(200)
  expect(await findings(page)).toEqual([])
  await exempt.getByRole('button', { name: 'Remove exemption: 192.0.2.12' }).click()
  await exempt.waitFor({ state: 'detached' })
})

it('bans an address by hand, and says what is wrong with one', async () => {
  const { page, h } = w
  await visit(page, h, '/bans')
  await page.getByRole('button', { name: 'Ban an address' }).click()
  const dialog = page.getByRole('dialog', { name: 'Ban an address' })
  await dialog.getByLabel('Address or network').fill('127.0.0.1')
  await dialog.getByLabel('Reason').fill('scans for phpMyAdmin')
  await dialog.getByRole('button', { name: 'Ban', exact: true }).click()
  await dialog.getByText(/never banned/).waitFor()
  expect(await findings(page)).toEqual([])
  await dialog.getByLabel('Address or network').fill('198.51.100.0/24')
  await dialog.getByRole('button', { name: 'Ban', exact: true }).click()
  await dialog.waitFor({ state: 'detached' })
  await page.getByRole('row', { name: /198\.51\.100\.0\/24.*scans for phpMyAdmin.*by ann/ }).waitFor()
  expect((await from('198.51.100.7'))[0]).toBe(403)
})

it('shows a viewer everything and no button', async () => {
  const { page, h } = w
  expect((await api(page, 'POST', '/users', { name: 'vera', password: 'correct horse 10', role: 'viewer' })).status).toBe(201)
  const theirs = await w.another()
  await theirs.goto(h.url + '/bans')
  await theirs.getByLabel('Name').fill('vera')
  await theirs.getByLabel('Password', { exact: true }).fill('correct horse 10')
  await theirs.getByRole('button', { name: 'Sign in', exact: true }).click()
  await theirs.getByRole('row', { name: /198\.51\.100\.0\/24/ }).waitFor()
  for (const name of ['Lift', 'Never', 'Ban an address', 'Add', 'Edit', 'Remove', 'Enforce']) expect(await theirs.getByRole('main').getByRole('button', { name }).count(), name).toBe(0)
  await visit(theirs, h, '/lists?address=198.51.100.7')
  await theirs.getByText('banned by hand').waitFor()
  for (const name of ['Add', 'Edit', 'Remove']) expect(await theirs.getByRole('main').getByRole('button', { name }).count(), name).toBe(0)
  expect(await findings(theirs)).toEqual([])
  await theirs.setViewportSize({ width: 360, height: 780 })
  for (const path of ['/bans', '/lists']) {
    await visit(theirs, h, path)
    const [wide, seen] = await theirs.evaluate(() => [document.documentElement.scrollWidth, document.documentElement.clientWidth])
    expect(wide, path).toBeLessThanOrEqual(seen!)
  }
  await theirs.context().close()
})

it('shows a list that is downloaded, and what is wrong when it cannot be', async () => {
  const { page, h } = w
  expect((await api(page, 'POST', '/lists', { name: 'drop', url: 'https://127.0.0.1:9/drop.txt' })).status).toBe(201)
  await visit(page, h, '/lists')
  const drop = page.getByRole('listitem').filter({ hasText: 'Downloaded: https://127.0.0.1:9/drop.txt' })
  await drop.getByText('error', { exact: true }).waitFor()
  await drop.getByText(/never loaded/).waitFor()
})

it('asks no other host and breaks no rule of its policy', () => {
  expect(w.elsewhere).toEqual([])
  expect(w.complaints).toEqual([])
})
