import { readFileSync } from 'node:fs'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { freePort, setUp, until } from './browser.mjs'
import { api, applyNow, ask, findings, open, settled, visit, type World } from './world'

let w: World
beforeAll(async () => void (w = await open({ signedIn: false })))
afterAll(() => w?.close())

/** Opens the editor of the proxy, from a fresh page: no test rests on what another left open. */
async function edit() {
  await visit(w.page, w.h, '/proxies/app')
  await w.page.getByRole('button', { name: 'Edit', exact: true }).click()
}
const description = () => w.page.getByRole('dialog').getByLabel('Description').first()
const review = () => w.page.getByRole('button', { name: 'Review', exact: true })
let port = 0

it('goes from the set-up link to the first request that is served', async () => {
  const { page, h } = w
  const began = performance.now()
  let clicks = 0
  await page.exposeFunction('clicked', () => clicks++)
  await page.addInitScript(() => addEventListener('click', (e) => e.detail > 0 && void (window as unknown as { clicked(): void }).clicked(), true))
  await setUp(page, h)
  expect(page.url()).not.toContain('#')
  expect(await findings(page)).toEqual([])

  await page.getByRole('link', { name: 'New proxy' }).first().click()
  port = await freePort()
  await page.getByLabel('Host name').fill('app.example.com')
  await page.getByLabel('Server').fill(`127.0.0.1:${w.upstream}`)
  await page.getByLabel('HTTP port').fill(`127.0.0.1:${port}`)
  expect(await findings(page)).toEqual([])
  await review().click()

  // The plan is shown before anything is changed.
  await page.getByRole('button', { name: 'Apply', exact: true }).waitFor()
  await page.getByText('Affected hosts').waitFor()
  expect(await ask(port, 'app.example.com')).toEqual([0, ''])
  expect(await findings(page)).toEqual([])
  await applyNow(page)
  await page.getByText('Applied as revision').waitFor()
  await until('the first request', async () => (await ask(port, 'app.example.com'))[0] === 200)
  console.log(`note: set-up link to first served request: ${clicks} clicks, ${((performance.now() - began) / 1000).toFixed(1)} s with the checks of axe`)
  expect(await ask(port, 'app.example.com')).toEqual([200, 'hello from the server'])
})

it('shows the proxy in the list, by its filter, and its path', async () => {
  const { page, h } = w
  await visit(page, h, '/proxies')
  await page.getByRole('textbox', { name: 'Filter' }).fill('-app')
  await page.getByText('Nothing matches').waitFor()
  expect(page.url()).toContain('q=-app')
  await page.getByRole('textbox', { name: 'Filter' }).fill('host:app.example')
  await page.getByRole('link', { name: 'app', exact: true }).waitFor()
  expect(await findings(page)).toEqual([])
  await page.getByRole('link', { name: 'app', exact: true }).click()
  await page.getByRole('heading', { name: 'Routes' }).waitFor()
  expect(await findings(page)).toEqual([])
})

it('takes a change back that is to be confirmed, at once', async () => {
  const { page, h } = w
  const before = readFileSync(h.config, 'utf8')
  await edit()
  await description().fill('what we show')
  await review().click()
  await page.getByText('what we show').waitFor()
  await page.getByRole('button', { name: 'Apply, and revert' }).click()
  await page.getByRole('button', { name: 'Revert now' }).waitFor()
  expect(readFileSync(h.config, 'utf8')).toContain('what we show')
  expect(await page.locator('.countdown').textContent()).toMatch(/^[0-2]:\d\d$/)
  expect(await findings(page)).toEqual([])
  await page.getByRole('button', { name: 'Revert now' }).click()
  await page.getByRole('button', { name: 'Revert now' }).waitFor({ state: 'detached' })
  expect(readFileSync(h.config, 'utf8')).toBe(before)
})

it('keeps a change that is confirmed', async () => {
  const { page, h } = w
  await edit()
  await description().fill('what stays')
  await review().click()
  await page.getByRole('button', { name: 'Apply, and revert' }).click()
  await page.getByRole('button', { name: 'Confirm', exact: true }).click()
  await page.getByText('Confirmed. The change is permanent.').waitFor()
  await page.getByRole('button', { name: 'Confirm', exact: true }).waitFor({ state: 'detached' })
  expect(readFileSync(h.config, 'utf8')).toContain('what stays')
})

it('asks which change counts when somebody else made one meanwhile', async () => {
  const { page, h } = w
  await edit()
  await description().fill('mine')
  expect((await api(page, 'PATCH', '/proxies/app', { description: 'theirs' })).status).toBe(200)
  await review().click()
  await page.getByText('Another operator changed this').waitFor()
  expect(await findings(page)).toEqual([])
  const go = page.getByRole('button', { name: 'Continue' })
  await page.getByRole('radio', { name: 'Merge field by field' }).check()
  expect(await go.isDisabled()).toBe(true)
  expect(await findings(page)).toEqual([])
  await page.getByRole('radiogroup', { name: 'Description' }).getByRole('radio', { name: 'Yours' }).check()
  await page.getByRole('button', { name: 'Continue' }).click()
  await applyNow(page)
  expect(readFileSync(h.config, 'utf8')).toMatch(/description: "?mine\b/)

  // Changes of different fields go together.
  await edit()
  await description().fill('mine again')
  expect((await api(page, 'PATCH', '/proxies/app', { tags: ['theirs'] })).status).toBe(200)
  await page.locator('.tag', { hasText: 'theirs' }).waitFor() // the page behind knows of it already
  await review().click()
  await page.getByRole('radio', { name: 'Merge field' }).check()
  await page.getByRole('button', { name: 'Continue' }).click()
  await applyNow(page)
  const text = readFileSync(h.config, 'utf8')
  expect(text).toContain('mine again')
  expect(text).toContain('theirs')
})

it('says that the connection is lost, and mends it', async () => {
  const { page, h } = w
  await h.stop()
  await page.getByText('No connection to headgate').waitFor()
  expect(await findings(page)).toEqual([])
  await h.start()
  await page.getByText('No connection to headgate').waitFor({ state: 'detached' })
  await settled(page)
})

it('asks to sign in again without losing what was typed', async () => {
  const { page, h, context } = w
  await edit()
  await description().fill('typed before')
  await context.clearCookies()
  // The page asks by itself when it next looks how things stand.
  const dialog = page.getByRole('dialog', { name: 'Sign in again' })
  await dialog.waitFor()
  expect(await findings(page)).toEqual([])
  await dialog.getByLabel('Password', { exact: true }).fill('correct horse 9')
  await dialog.getByRole('button', { name: 'Sign in', exact: true }).click()
  await dialog.waitFor({ state: 'detached' })
  expect(await description().inputValue()).toBe('typed before')
  await review().click()
  await applyNow(page)
  expect(readFileSync(h.config, 'utf8')).toContain('typed before')
})

it('lets a viewer look and not write', async () => {
  const { page, h } = w
  expect((await api(page, 'POST', '/users', { name: 'vera', password: 'correct horse 10', role: 'viewer' })).status).toBe(201)
  const theirs = await w.another()
  await theirs.goto(h.url + '/proxies/app')
  await theirs.getByLabel('Name').fill('vera')
  await theirs.getByLabel('Password', { exact: true }).fill('correct horse 10')
  await theirs.getByRole('button', { name: 'Sign in', exact: true }).click()
  await theirs.getByText('your role is viewer').waitFor()
  expect(await theirs.getByRole('button', { name: 'Edit', exact: true }).count()).toBe(0)
  expect(await findings(theirs)).toEqual([])
  await visit(theirs, h, '/proxies')
  expect(await theirs.getByRole('link', { name: 'New proxy' }).count()).toBe(0)
  await visit(theirs, h, '/proxies/new')
  await theirs.getByText('your role is viewer').waitFor()
  // Whatever a page shows, the server refuses.
  const before = readFileSync(h.config, 'utf8')
  expect((await api(theirs, 'PATCH', '/proxies/app', { description: 'no' })).status).toBe(403)
  expect(readFileSync(h.config, 'utf8')).toBe(before)
  await theirs.context().close()
})

it('removes a proxy', async () => {
  const { page } = w
  await visit(page, w.h, '/proxies/app')
  await page.getByRole('button', { name: 'More' }).click()
  await page.getByRole('menuitem', { name: 'Remove' }).click()
  await page.getByRole('button', { name: '1 change to review' }).click()
  await applyNow(page)
  await until('no proxy', async () => (await ask(port, 'app.example.com'))[0] !== 200)
})

it('asks no other host and breaks no rule of its policy', () => {
  expect(w.elsewhere).toEqual([])
  expect(w.complaints).toEqual([])
})
