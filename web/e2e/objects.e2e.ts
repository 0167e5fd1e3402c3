import { readFileSync } from 'node:fs'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { freePort, until } from './browser.mjs'
import { api, applyNow, ask, findings, hold, open, removeRow, visit, type World } from './world'

let w: World
let port = 0
beforeAll(async () => {
  port = await freePort()
  w = await open({
    text: `ports:\n  web: {address: "127.0.0.1:${port}", protocol: http}\nproxies:\n  shop: {virtual_hosts: [shop.example.com], routes: [{fixed_response: {status: 200, body: the first}}]}\n`,
  })
})
afterAll(() => w?.close())

const config = () => readFileSync(w.h.config, 'utf8')
const dialog = () => w.page.getByRole('dialog')

/** The kinds that stand in cards, with the fields that a new one of each needs. */
const kinds: { kind: string; page: string; card: string; fill: () => Promise<void> }[] = [
  {
    kind: 'ports',
    page: '/ports',
    card: 'Ports',
    fill: async () =>
      void (await dialog()
        .getByLabel(/^Address/)
        .fill(`127.0.0.1:${await freePort()}`)),
  },
  {
    kind: 'tcp_proxies',
    page: '/streams',
    card: 'TCP proxies',
    fill: async () =>
      void (await dialog()
        .getByLabel(/^Address/)
        .first()
        .fill(`127.0.0.1:${await freePort()}`)),
  },
  {
    kind: 'udp_proxies',
    page: '/streams',
    card: 'UDP proxies',
    fill: async () =>
      void (await dialog()
        .getByLabel(/^Address/)
        .first()
        .fill(`127.0.0.1:${await freePort()}`)),
  },
  { kind: 'acme', page: '/certificates', card: 'ACME accounts', fill: async () => void (await dialog().getByLabel('Email').fill('ops@example.com')) },
  {
    kind: 'policies',
    page: '/settings',
    card: 'Policies',
    fill: async () => void (await dialog().getByText('Limits Rate limit').click(), await dialog().getByLabel('Request body limit').fill('5MB')),
  },
  {
    kind: 'webhooks',
    page: '/webhooks',
    card: 'Webhooks',
    fill: async () => {
      await dialog().getByLabel('URL').fill('http://127.0.0.1:9/hook')
      await dialog().getByLabel('Secret').first().fill('a secret of sixteen letters')
    },
  },
]
const card = (title: string) => w.page.locator('section.card', { has: w.page.getByRole('heading', { name: title, exact: true }) })

it('makes an object of every kind, as one change', async () => {
  const { page, h } = w
  for (const k of kinds) {
    await visit(page, h, k.page)
    await card(k.card).getByRole('button', { name: 'Add', exact: true }).click()
    await dialog().getByLabel('Name').fill(`new-${k.kind}`)
    await dialog().getByRole('button', { name: 'Continue' }).click()
    await k.fill()
    await dialog().getByRole('button', { name: 'Add to changes' }).click()
    await dialog().waitFor({ state: 'detached' })
    await card(k.card)
      .getByText('not applied yet')
      .or(card(k.card).getByText(`new-${k.kind}`))
      .first()
      .waitFor()
  }
  const before = config()
  await page.getByRole('button', { name: `${kinds.length} changes to review` }).click()
  await applyNow(page)
  expect(before).not.toContain('new-')
  for (const k of kinds) expect(config(), k.kind).toContain(`new-${k.kind}`)
})

it('changes each of them', async () => {
  const { page, h } = w
  for (const k of kinds) {
    await visit(page, h, k.page)
    await page.getByRole('button', { name: `Edit new-${k.kind}` }).click()
    await dialog().getByLabel('Description').first().fill(`changed ${k.kind}`)
    await dialog().getByRole('button', { name: 'Add to changes' }).click()
    await dialog().waitFor({ state: 'detached' })
  }
  await page.getByRole('button', { name: `${kinds.length} changes to review` }).click()
  await applyNow(page)
  for (const k of kinds) expect(config(), k.kind).toContain(`changed ${k.kind}`)
})

it('shows how many sessions of a UDP proxy are open, and how many may be', async () => {
  const { page, h } = w
  await visit(page, h, '/streams')
  await page.getByRole('link', { name: /new-udp_proxies$/ }).click()
  await page.getByText('0 open, at most 10,000').waitFor()
})

it('removes each of them', async () => {
  const { page, h } = w
  for (const k of kinds) {
    await visit(page, h, k.page)
    await removeRow(page, page, `new-${k.kind}`)
    await page.getByRole('button', { name: /changes? to review/ }).waitFor()
  }
  await page.getByRole('button', { name: `${kinds.length} changes to review` }).click()
  await applyNow(page)
  for (const k of kinds) expect(config(), k.kind).not.toContain(`new-${k.kind}`)
})

it('makes a certificate, names it, and removes both', async () => {
  const { page, h } = w
  await visit(page, h, '/certificates')
  await page.getByRole('button', { name: 'Create self-signed' }).click()
  await dialog().getByLabel('Name').fill('own')
  await dialog().getByLabel('Hosts').fill('shop.example.com')
  await dialog().getByRole('button', { name: 'Create self-signed' }).click()
  await page.getByRole('button', { name: '1 change to review' }).click()
  await applyNow(page)
  expect(config()).toMatch(/own:\s*(\{ ?stored: own ?\}|\n +stored: own)/)
  await page.getByRole('button', { name: 'Edit own' }).click()
  await dialog().getByLabel('Description').fill('signs itself')
  await dialog().getByRole('button', { name: 'Review', exact: true }).click()
  await applyNow(page)
  expect(config()).toContain('signs itself')
  await removeRow(card('Configured certificates'), page, 'own')
  await page.getByRole('button', { name: '1 change to review' }).click()
  await applyNow(page)
  expect(config()).not.toContain('stored: own')
  await card('Stored certificates').getByRole('button', { name: 'Remove own' }).click()
  await dialog().getByRole('button', { name: 'Remove' }).click()
  await card('Stored certificates').getByText('own', { exact: true }).waitFor({ state: 'detached' })
})

it('changes a setting, chooses a provider of discovery by its name, and takes both back', async () => {
  const { page, h } = w
  await visit(page, h, '/settings')
  await page.getByRole('button', { name: 'Edit Server connections' }).click()
  await dialog().getByLabel('Idle timeout', { exact: true }).fill('77s')
  await dialog().getByRole('button', { name: 'Add to changes' }).click()
  await page.getByRole('button', { name: 'Edit Discovery' }).click()
  await dialog().getByRole('group', { name: 'Docker' }).getByLabel('New name').fill('local')
  await dialog().getByRole('button', { name: 'Add docker' }).click()
  await dialog().getByLabel('Endpoint').fill('unix:///nowhere.sock')
  await dialog().getByRole('button', { name: 'Review', exact: true }).click()
  await applyNow(page)
  expect(config()).toContain('77s')
  expect(config()).toContain('unix:///nowhere.sock')
  await page.getByRole('button', { name: 'Edit Discovery' }).click()
  await dialog().getByRole('button', { name: 'Remove local' }).click()
  await dialog().getByRole('button', { name: 'Review', exact: true }).click()
  await applyNow(page)
  expect(config()).not.toContain('nowhere.sock')
})

it('begins a form with what is in force, however late the page hears of it', async () => {
  const { page, h } = w
  const reads = '**/api/v1/settings/upstreams'
  const idle = dialog().getByLabel('Idle timeout', { exact: true })
  const edit = () => page.getByRole('button', { name: 'Edit Server connections' }).click()
  const waits = async () => {
    await dialog().getByRole('group', { name: 'Loading…' }).waitFor()
    expect(await dialog().getByRole('textbox').count()).toBe(0)
  }
  await visit(page, h, '/settings')
  await edit()
  await idle.fill('51s')
  await dialog().getByRole('button', { name: 'Review', exact: true }).click()
  await dialog().getByRole('button', { name: 'Apply', exact: true }).waitFor()
  let release = await hold(page, reads)
  await applyNow(page)
  await edit()
  await waits()
  expect(await findings(page)).toEqual([])
  await release()
  await idle.waitFor()
  expect(await idle.inputValue()).toBe('51s')
  await page.keyboard.press('Escape')

  // What another changes is in the form, too, though the page has not read it.
  release = await hold(page, reads)
  expect((await api(page, 'PATCH', '/settings/upstreams?why=theirs', { idle_timeout: '52s' })).status).toBe(200)
  await edit()
  await waits()
  await release()
  await idle.waitFor()
  expect(await idle.inputValue()).toBe('52s')
  await page.keyboard.press('Escape')

  // A read that fails is told, and can be tried again.
  await page.route(reads, (r) => r.abort())
  await edit()
  await dialog().getByText('headgate cannot be reached').waitFor()
  expect(await findings(page)).toEqual([])
  await page.unroute(reads)
  await dialog()
    .getByRole('button', { name: 'Try again' })
    .click({ timeout: 5000 })
    .catch(() => undefined) // it may have been read again by itself
  await idle.waitFor()
  await page.keyboard.press('Escape')
})

it('asks nothing about a removal of what it has changed itself', async () => {
  const { page, h } = w
  expect((await api(page, 'POST', '/policies', { name: 'small', request_body_limit: '1MB' })).status).toBe(201)
  await visit(page, h, '/settings')
  await page.getByRole('button', { name: 'Edit small' }).click()
  await dialog().getByLabel('Description').fill('of us')
  await dialog().getByRole('button', { name: 'Review', exact: true }).click()
  await dialog().getByRole('button', { name: 'Apply', exact: true }).waitFor()
  const release = await hold(page, '**/api/v1/policies?*')
  await applyNow(page)
  await removeRow(page, page, 'small')
  await page.getByRole('button', { name: '1 change to review' }).click()
  await applyNow(page)
  expect(config()).not.toContain('small')
  await release()
})

it('makes, changes and removes users and tokens, and ends sessions', async () => {
  const { page, h } = w
  await visit(page, h, '/operators')
  await page.getByRole('button', { name: 'Add user' }).click()
  await dialog().getByLabel('Name').fill('eve')
  await dialog().getByLabel('Password').first().fill('correct horse 12')
  await dialog().getByRole('button', { name: 'Create' }).click()
  await page.getByRole('button', { name: 'eve' }).click()
  await dialog().getByLabel('Description').fill('on call')
  await dialog().getByRole('button', { name: 'Save' }).click()
  await page.getByText('on call').waitFor()
  const theirs = await w.another()
  await theirs.goto(h.url)
  await theirs.getByLabel('Name').fill('eve')
  await theirs.getByLabel('Password', { exact: true }).fill('correct horse 12')
  await theirs.getByRole('button', { name: 'Sign in', exact: true }).click()
  await theirs.getByRole('heading', { name: 'Overview' }).waitFor()
  await page.getByRole('tab', { name: 'Sessions' }).click()
  await page.getByRole('button', { name: /^End eve/ }).click()
  // Their page asks by itself when it next looks how things stand.
  await theirs.getByRole('dialog', { name: 'Sign in again' }).waitFor()
  await theirs.context().close()

  await page.getByRole('tab', { name: 'Tokens' }).click()
  await page.getByRole('button', { name: 'Create token' }).first().click()
  await dialog().getByLabel('Name').fill('script')
  await dialog().getByRole('button', { name: 'Create' }).click()
  const token = await dialog().locator('pre').innerText()
  const status = async () => (await fetch(`${h.url}/api/v1/proxies`, { headers: { Authorization: `Bearer ${token}` } })).status
  expect(await status()).toBe(200)
  await dialog().getByRole('button', { name: 'Done' }).click()
  await page.getByRole('button', { name: 'Revoke script' }).click()
  await dialog().getByRole('button', { name: 'Revoke' }).click()
  await until('no token', async () => (await status()) === 401)

  await page.getByRole('tab', { name: 'Users' }).click()
  await page.getByRole('button', { name: 'eve' }).click()
  await dialog().getByRole('button', { name: 'Delete' }).click()
  await page.getByRole('dialog').last().getByRole('button', { name: 'Delete' }).last().click()
  await page.getByRole('button', { name: 'eve' }).waitFor({ state: 'detached' })
})

it('goes back to a revision, after its plan', async () => {
  const { page, h } = w
  expect((await api(page, 'PATCH', '/proxies/shop', { routes: [{ fixed_response: { status: 200, body: 'the second' } }] })).status).toBe(200)
  const list = await api<{ items: { number: number }[] }>(page, 'GET', '/revisions')
  expect(await ask(port, 'shop.example.com')).toEqual([200, 'the second'])
  await visit(page, h, `/history/${list.value.items[1]!.number}`)
  await page.getByRole('button', { name: 'Restore this revision' }).click()
  await dialog().getByText('the second').waitFor()
  expect(await ask(port, 'shop.example.com')).toEqual([200, 'the second'])
  await dialog().getByRole('button', { name: 'Apply', exact: true }).click()
  await until('the first', async () => (await ask(port, 'shop.example.com'))[1] === 'the first')
})

it('takes a change back that nobody confirms in time', async () => {
  const { page, h } = w
  const before = config()
  // The shortest time that people can choose is 30 s; the shortest that there is does for a test.
  await page.route('**/config/edits?*', (r) => r.continue({ url: r.request().url().replace('confirm_within=30s', 'confirm_within=10s') }))
  await visit(page, h, '/proxies/shop?edit=1')
  await dialog().getByLabel('Description').first().fill('not for long')
  await dialog().getByRole('button', { name: 'Review', exact: true }).click()
  await page.getByRole('combobox', { name: 'Confirm within' }).click()
  await page.getByRole('option', { name: '30 s' }).click()
  await page.getByRole('button', { name: 'Apply, and revert' }).click()
  await page.locator('.countdown').waitFor()
  expect(config()).toContain('not for long')
  await page.locator('.countdown').waitFor({ state: 'detached' })
  await until('the document of before', () => config() === before)
  await page.getByText('not for long').waitFor({ state: 'detached' })
  await page.unroute('**/config/edits?*')
})

it('moves its numbers without a reload', async () => {
  const { page, h } = w
  await visit(page, h, '/proxies')
  await page.evaluate(() => ((window as unknown as { mark: number }).mark = 1))
  const cell = page.getByRole('row', { name: /shop/ }).locator('td.number').first()
  const first = Number(await cell.innerText())
  for (let i = 0; i < 20; i++) await ask(port, 'shop.example.com')
  await until('more requests in the list', async () => Number(await cell.innerText()) >= first + 20)
  // What somebody else changes is there by the events, at once.
  expect((await api(page, 'POST', '/proxies', { name: 'from-elsewhere', virtual_hosts: ['e.example.com'], routes: [{ fixed_response: { status: 204 } }] })).status).toBe(201)
  await page.getByRole('link', { name: 'from-elsewhere', exact: true }).waitFor()
  expect(await page.evaluate(() => (window as unknown as { mark?: number }).mark)).toBe(1)
})

it('breaks no rule of its policy', () => expect(w.complaints).toEqual([]))
