import { readFileSync } from 'node:fs'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { freePort, setUp, until } from './browser.mjs'
import { applyNow, ask, findings, open, settled, type World } from './world'

/**
 * The first hour of a new user, in the order in which people ask how to do it. Each part
 * begins at the overview, and its clicks, fields and seconds are noted: more clicks than
 * now are a step back, and fail.
 */
let w: World
let plain = 0
let secure = 0
let clicks = 0
let fields = 0
beforeAll(async () => {
  plain = await freePort()
  secure = await freePort()
  // The authority is one that does not answer: no test asks a real one.
  w = await open({ signedIn: false, text: `acme:\n  main: {directory: "https://127.0.0.1:${await freePort()}/directory"}\n` })
  await w.page.exposeFunction('clicked', () => clicks++)
  await w.page.addInitScript(() => addEventListener('pointerdown', () => (window as unknown as { clicked(): void }).clicked(), true))
})
afterAll(() => w?.close())

const config = () => readFileSync(w.h.config, 'utf8')
const dialog = () => w.page.getByRole('dialog')
const review = () => w.page.getByRole('button', { name: 'Review', exact: true })
const go = (page: string) => w.page.getByRole('navigation', { name: 'Pages' }).getByRole('link', { name: page, exact: true }).click()

/** Fills a field, as people do who click it first. */
async function fill(label: string | RegExp, value: string, where: Pick<typeof w.page, 'getByLabel'> = w.page) {
  fields++
  await where
    .getByLabel(label, typeof label === 'string' ? { exact: true } : undefined)
    .first()
    .fill(value)
}

/** One thing that people want to do, from the overview on, with the most clicks that it may take. */
async function part(name: string, most: number, does: () => Promise<void>) {
  await w.page.goto(w.h.url)
  await settled(w.page)
  clicks = fields = 0
  const began = performance.now()
  await does()
  console.log(`note: ${name}: ${clicks} clicks, ${fields} fields, ${((performance.now() - began) / 1000).toFixed(1)} s`)
  expect(clicks, name).toBeLessThanOrEqual(most)
}

it('creates the first user', async () => {
  const began = performance.now()
  await setUp(w.page, w.h)
  console.log(`note: the first user: ${clicks} clicks, ${((performance.now() - began) / 1000).toFixed(1)} s`)
})

it('publishes a first proxy with HTTPS', () =>
  part('first proxy with HTTPS', 4, async () => {
    const { page } = w
    await page.getByRole('link', { name: 'New proxy' }).first().click()
    await fill('Host name', 'app.example.com')
    await fill('Server', `127.0.0.1:${w.upstream}`)
    await page.getByText('Certificate from Let’s Encrypt', { exact: true }).click()
    await fill('HTTP port', `127.0.0.1:${plain}`)
    await fill('HTTPS port', `127.0.0.1:${secure}`)
    await review().click()
    await applyNow(page)
    await until('the redirect to HTTPS', async () => [301, 308].includes((await ask(plain, 'app.example.com'))[0]))
  }))

it('publishes a second one for tests, without HTTPS', () =>
  part('second proxy', 5, async () => {
    const { page } = w
    await page.getByRole('link', { name: 'Proxies', exact: true }).first().click()
    await page.getByRole('link', { name: 'New proxy' }).first().click()
    await fill('Host name', 'wiki.example.com')
    await fill('Server', `127.0.0.1:${w.upstream}`)
    await page.getByText('No HTTPS', { exact: true }).click()
    await review().click()
    await applyNow(page)
    await until('the first request', async () => (await ask(plain, 'wiki.example.com'))[0] === 200)
  }))

it('asks for a password at one site', () =>
  part('password for one site', 7, async () => {
    const { page } = w
    await go('Proxies')
    await page.getByRole('link', { name: 'wiki', exact: true }).click()
    await page.getByRole('button', { name: 'Add a filter' }).click()
    await dialog()
      .getByRole('button', { name: /^Basic auth/ })
      .click()
    await dialog().getByRole('button', { name: 'Add user' }).click()
    fields += 2
    await dialog().getByRole('textbox', { name: 'Name' }).fill('ada')
    await dialog().getByRole('textbox', { name: 'Password' }).fill('correct horse 13')
    await review().click()
    await applyNow(page)
    expect((await ask(plain, 'wiki.example.com'))[0]).toBe(401)
  }))

it('lets only one network in', () =>
  part('only my network', 6, async () => {
    const { page } = w
    await go('Proxies')
    await page.getByRole('link', { name: 'wiki', exact: true }).click()
    await page.getByRole('button', { name: 'Add a filter' }).click()
    await dialog()
      .getByRole('button', { name: /^IP filter/i })
      .click()
    await fill(/^Allow/, '203.0.113.0/24', dialog())
    await review().click()
    await applyNow(page)
    expect((await ask(plain, 'wiki.example.com'))[0]).toBe(403)
  }))

it('reverts that', () =>
  part('revert', 4, async () => {
    const { page } = w
    await go('History')
    await page
      .getByRole('link', { name: '4', exact: true })
      .or(page.getByRole('link', { name: 'Revision 4', exact: true }))
      .first()
      .click()
    await page.getByRole('button', { name: 'Restore this revision' }).click()
    await dialog().getByRole('button', { name: 'Apply', exact: true }).click()
    await dialog().waitFor({ state: 'detached' })
    await until('the revision before', async () => (await ask(plain, 'wiki.example.com'))[0] === 401)
  }))

it('orders a wildcard certificate by DNS, with one labelled field for each credential', () =>
  part('wildcard certificate by DNS', 8, async () => {
    const { page } = w
    await go('Certificates')
    await page.getByRole('button', { name: 'Edit main' }).click()
    await fill('Domains', '*.example.com', dialog())
    await dialog()
      .getByRole('button', { name: /^Set DNS/i })
      .click()
    fields++
    await dialog().getByRole('combobox', { name: 'DNS provider' }).fill('cloud')
    await page.getByRole('option', { name: 'Cloudflare' }).click()
    await dialog()
      .getByText(/Zone: Read and DNS: Edit/)
      .waitFor()
    expect(await dialog().getByRole('link', { name: 'Where to get them: Cloudflare' }).getAttribute('href')).toContain('cloudflare.com')
    const token = dialog().getByLabel(/^API token/i)
    expect(await token.getAttribute('type')).toBe('password')
    fields++
    await token.fill('a token of the test')
    expect(await findings(page)).toEqual([])
    await review().click()
    await page.getByRole('dialog', { name: 'Review changes' }).waitFor()
    expect(await page.getByText('a token of the test').count()).toBe(0)
    await applyNow(page)
    expect(config()).toMatch(/provider: "?cloudflare/)
    expect(config()).toContain('a token of the test')
  }))

it('keeps a credential that is not typed again, and drops it with its provider', async () => {
  const { page, h } = w
  await page.goto(h.url + '/certificates')
  await page.getByRole('button', { name: 'Edit main' }).click()
  expect(
    await dialog()
      .getByLabel(/^API token/i)
      .inputValue(),
  ).not.toContain('a token')
  await dialog().getByLabel('Email').fill('ops@example.com')
  await review().click()
  await applyNow(page)
  expect(config()).toContain('a token of the test')
  await page.getByRole('button', { name: 'Edit main' }).click()
  await dialog().getByRole('combobox', { name: 'DNS provider' }).fill('duck')
  await page.getByRole('option', { name: 'Duck DNS' }).click()
  expect(
    await dialog()
      .getByLabel(/^Token/i)
      .inputValue(),
  ).toBe('')
  expect(
    await dialog()
      .getByLabel(/^API token/i)
      .count(),
  ).toBe(0)
})

it('imports the configuration of the proxy before', () =>
  part('import', 6, async () => {
    const { page } = w
    await go('Import')
    await page.getByRole('radio', { name: /^nginx/ }).click()
    await page.getByText('Paste', { exact: true }).click()
    await fill('Text', `server { listen 80; server_name old.example.com; location / { proxy_pass http://127.0.0.1:${w.upstream}; } }`)
    await page.getByRole('button', { name: 'Translate' }).click()
    await page.getByRole('button', { name: 'Show the plan' }).click()
    await dialog().getByText('old.example.com').first().waitFor()
  }))

it('asks no other host and breaks no rule of its policy', () => {
  expect(w.elsewhere).toEqual([])
  expect(w.complaints).toEqual([])
})
