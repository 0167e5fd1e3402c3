import { readFileSync } from 'node:fs'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { freePort } from './browser.mjs'
import { applyNow, ask, findings, open, visit, type World } from './world'

const bad = '<img src=x onerror="document.title=1">'
const rtl = 'مرحبا \u202eabc'
let w: World
let port = 0
beforeAll(
  async () =>
    void (w = await open({
      text: `ports:
  web: {address: "127.0.0.1:${(port = await freePort())}", protocol: http}
policies:
  small: {request_body_limit: 1MB}
proxies:
  plain: {virtual_hosts: [plain.example.com], routes: [{servers: [{url: "http://127.0.0.1:9"}]}]}
  # what people type
  shop:
    description: '${bad} ${rtl}'
    virtual_hosts: [shop.example.com]
    use: [small]
    basic_auth: {users: [{name: ada, password_hash: "$2y$12$abcdefghijklmnopqrstuuhX0qcGnmcz0DC0GI4ihGoSUtTvsT7Se"}]}
    routes:
      - rate_limit: {requests: 100}
        servers: [{url: "http://127.0.0.1:9"}]
`,
    })),
)
afterAll(() => w?.close())

const config = () => readFileSync(w.h.config, 'utf8')
const dialog = () => w.page.getByRole('dialog')
const review = () => w.page.getByRole('button', { name: 'Review', exact: true })

it('edits a filter in its place, and keeps masked secrets', async () => {
  const { page, h } = w
  await visit(page, h, '/proxies/shop')
  const path = page.getByRole('group', { name: 'Routes /' })
  // In the order of the server; what a policy sets is shown and not edited here.
  await path.getByText('Request body limit').waitFor()
  expect(
    (await path.locator('.step').nth(1).innerText())
      .split('\n')
      .map((s) => s.trim())
      .filter(Boolean),
  ).toEqual(['Filters', 'Rate limit', 'Request body limit', 'from policy small', 'Basic auth', 'Add a filter'])
  await path.getByRole('button', { name: 'Rate limit' }).click()
  await dialog().getByRole('textbox', { name: 'Requests' }).fill('250')
  expect(await dialog().getByLabel('Description').count()).toBe(0)
  expect(await findings(page)).toEqual([])
  await review().click()
  await applyNow(page)
  expect(config()).toContain('requests: 250')
  expect(config()).toContain('$2y$12$abc')
  expect(config()).toContain('# what people type')
})

it('adds a filter to the path', async () => {
  const { page, h } = w
  await visit(page, h, '/proxies/shop')
  await page.getByRole('button', { name: 'Add a filter' }).click()
  await dialog()
    .getByRole('button', { name: /^Compression/ })
    .click()
  await dialog().getByText('Compression', { exact: true }).first().waitFor()
  await review().click()
  await applyNow(page)
  expect(config()).toContain('compression:')
})

it('says at the field what is wrong, and changes nothing', async () => {
  const { page, h } = w
  const before = config()
  await visit(page, h, '/proxies/shop?edit=1')
  await dialog().getByLabel('Virtual hosts').fill('no host at all/')
  await review().click()
  await dialog().getByText('Change rejected').waitFor()
  expect(await dialog().getByLabel('Virtual hosts').getAttribute('aria-invalid')).toBe('true')
  expect(await findings(page)).toEqual([])
  expect(config()).toBe(before)
  expect(await page.title()).not.toBe('1')
})

it.each([
  ['with HTML', bad],
  ['from right to left', rtl],
  ['of 1 000 characters', 'x'.repeat(1000)],
])('refuses a name %s', async (_, name) => {
  const { page, h } = w
  const before = config()
  await visit(page, h, '/proxies/new')
  await page.getByLabel('Host name').fill('other.example.com')
  await page.getByLabel('Server').fill('http://127.0.0.1:9')
  await page.getByLabel('Name', { exact: true }).fill(name)
  await review().click()
  await page.getByRole('alert').waitFor()
  expect(await page.evaluate(() => document.documentElement.scrollWidth <= document.documentElement.clientWidth)).toBe(true)
  expect(config()).toBe(before)
  await page.reload()
  await page.getByRole('button', { name: 'Start over' }).click() // else the draft has the name
})

it('keeps edits over a reload and a restart, and gathers several to one change', async () => {
  const { page, h } = w
  await visit(page, h, '/proxies/new')
  await page.getByLabel('Host name').fill('wiki.example.com')
  await page.getByLabel('Server').fill('http://127.0.0.1:9')
  await review().click()
  await page.getByRole('button', { name: 'Apply', exact: true }).waitFor()
  await page.keyboard.press('Escape')
  await page.reload()
  await page.getByRole('button', { name: '1 change to review' }).waitFor()
  await h.stop()
  await page.getByText('No connection to headgate').waitFor()
  await h.start()
  await page.getByText('No connection to headgate').waitFor({ state: 'detached' })
  await visit(page, h, '/proxies/shop')
  await page.getByRole('button', { name: 'More' }).click()
  await page.getByRole('menuitem', { name: 'Rename' }).click()
  await dialog().getByRole('button', { name: 'Cancel' }).waitFor()
  await dialog().getByLabel('New name').fill('store')
  await dialog().getByRole('button', { name: 'Review' }).click()
  await applyNow(page)
  expect(config()).toContain('wiki:')
  expect(config()).toMatch(/^ {2}store:/m)
  expect(config()).not.toMatch(/^ {2}shop:/m)
})

it('duplicates a proxy with all that it has', async () => {
  const { page, h } = w
  await visit(page, h, '/proxies/wiki')
  await page.getByRole('button', { name: 'More' }).click()
  await page.getByRole('menuitem', { name: 'Duplicate' }).click()
  await page.getByLabel('Host name').fill('docs.example.com')
  await review().click()
  await applyNow(page)
  expect(config()).toMatch(/docs:/)
})

it('asks for a password, and keeps its hash alone', async () => {
  const { page, h } = w
  await visit(page, h, '/proxies/wiki')
  await page.getByRole('button', { name: 'Add a filter' }).click()
  await dialog()
    .getByRole('button', { name: /^Basic auth/ })
    .click()
  await dialog().getByRole('button', { name: 'Add user' }).click()
  await dialog().getByRole('textbox', { name: 'Name' }).fill('ada')
  await dialog().getByRole('textbox', { name: 'Password' }).fill('correct horse 13')
  expect(await findings(page)).toEqual([])
  await review().click()
  await page.getByRole('button', { name: 'Apply', exact: true }).waitFor()
  expect(await page.getByText(/\$2[aby]\$/).count()).toBe(0)
  expect(await page.evaluate(() => JSON.stringify({ ...sessionStorage }))).not.toContain('$2')
  await applyNow(page)
  expect(config()).toMatch(/password_hash: ["']?\$2b\$10\$/)
  expect(config()).not.toContain('correct horse 13')
  const asked = async (password: string) => (await ask(port, 'wiki.example.com', { authorization: 'Basic ' + btoa(`ada:${password}`) }))[0]
  expect(await asked('wrong')).toBe(401)
  expect(await asked('correct horse 13')).toBe(502)
})

it('completes keys and values of YAML, and marks what is wrong at its place', async () => {
  const { page, h } = w
  await visit(page, h, '/proxies/plain?edit=1')
  await dialog().getByText('YAML', { exact: true }).click()
  const text = page.locator('.cm-content')
  await text.click()
  await page.keyboard.press('Control+End')
  await page.keyboard.press('Enter')
  await page.keyboard.press('Home')
  await page.keyboard.type('rate_l')
  // The keys of this place with their help, by the schema.
  await page.getByRole('option', { name: /^rate_limit/ }).waitFor()
  await page.locator('.cm-completionInfo').waitFor()
  expect(await findings(page)).toEqual([])
  await page.keyboard.press('Enter')
  await page.getByRole('option', { name: /^requests/ }).waitFor()
  await page.keyboard.press('Escape')
  await page.keyboard.type('reqests: 5')
  await page.locator('.cm-lintRange-error', { hasText: 'reqests' }).waitFor()
  await page.locator('.cm-lintRange-error').hover()
  await page.getByText('did you mean requests?').waitFor()
  expect(await findings(page)).toEqual([])
  for (let i = 0; i < 'reqests: 5'.length; i++) await page.keyboard.press('Backspace')
  await page.keyboard.type('requests: 5')
  await review().click()
  await applyNow(page)
  expect(config()).toMatch(/rate_limit: *(\{ *requests: 5 *\}|\n +requests: 5)/)
})

it('breaks no rule of its policy', () => expect(w.complaints).toEqual([]))
