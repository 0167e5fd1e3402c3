import { readFileSync } from 'node:fs'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { freePort } from './browser.mjs'
import { api, applyNow, findings, open, visit, type World } from './world'

const long = 'x'.repeat(1000)
const html = '<img src=x onerror="document.title=1">'
const rtl = 'مرحبا بالعالم'
let w: World
beforeAll(async () => {
  w = await open({
    text: `ports:\n  web: {address: "127.0.0.1:${await freePort()}", protocol: http}\nproxies:\n  shop: {virtual_hosts: [shop.example.com], routes: [{servers: [{url: "http://127.0.0.1:9"}]}]}\n`,
  })
})
afterAll(() => w?.close())

const config = () => readFileSync(w.h.config, 'utf8')
const dialog = () => w.page.getByRole('dialog', { name: 'Edit shop' })
const description = () => dialog().getByLabel('Description').first()
const review = () => dialog().getByRole('button', { name: 'Review', exact: true })

/** Every status that the API answers with, and one that something before it made. */
const answers: [number, string, object | string][] = [
  [400, 'The body is no JSON', { code: 'invalid', title: 'invalid', detail: 'the body is no JSON', remedy: 'send JSON' }],
  [403, 'This is for admins', { code: 'forbidden', title: 'forbidden', detail: 'this is for admins' }],
  [404, 'There is no proxy shop', { code: 'not_found', title: 'not found', detail: 'there is no proxy shop' }],
  [
    409,
    'Revision 7 waits to be confirmed',
    { code: 'confirm_pending', title: 'A change waits to be confirmed', detail: 'revision 7 waits to be confirmed until 2026-11-26T21:00:00Z', remedy: 'confirm it, revert it, or wait' },
  ],
  [412, 'It was changed meanwhile', { code: 'changed', title: 'changed', detail: 'it was changed meanwhile' }],
  [413, 'The body has more than 1 MiB', { code: 'too_large', title: 'too large', detail: 'the body has more than 1 MiB' }],
  [422, 'no such policy', { code: 'invalid', title: 'invalid', detail: 'no such policy', pointer: '/edits/0/value/description' }],
  [428, 'If-Match is missing', { code: 'if_match', title: 'precondition required', detail: 'If-Match is missing' }],
  [429, 'Too many requests', { code: 'throttled', title: 'throttled', detail: 'too many requests', remedy: 'wait 30 s' }],
  [500, 'A fault of headgate', { code: 'internal', title: 'internal', detail: 'a fault of headgate' }],
  [503, 'headgate is stopping', { code: 'unavailable', title: 'unavailable', detail: 'headgate is stopping' }],
  [502, '<html>bad gateway', '<html>bad gateway</html>'],
]

it('shows a refusal of every status in its words, and keeps what was typed', async () => {
  const { page, h } = w
  const before = config()
  await visit(page, h, '/proxies/shop?edit=1')
  await description().fill('what I typed')
  for (const [status, words, body] of answers) {
    const json = typeof body === 'object'
    await page.route('**/api/v1/config/plan', (r) =>
      r.fulfill({ status, contentType: json ? 'application/problem+json' : 'text/html', body: json ? JSON.stringify({ type: 'about:blank', status, ...body }) : body }),
    )
    await review().click()
    await dialog().getByRole('alert').getByText(words, { exact: false }).first().waitFor()
    expect(await description().inputValue(), String(status)).toBe('what I typed')
    await page.unroute('**/api/v1/config/plan')
  }
  await page.route('**/api/v1/config/plan', (r) => r.abort())
  await review().click()
  await dialog().getByText('headgate cannot be reached').waitFor()
  await page.unroute('**/api/v1/config/plan')
  expect(config()).toBe(before)
})

it('shows a page that cannot be read as that, with a way on', async () => {
  const { page, h } = w
  for (const [status, words, body] of answers.filter(([s]) => s === 403 || s === 500 || s === 502)) {
    await page.route('**/api/v1/ports?*', (r) =>
      r.fulfill({ status, contentType: typeof body === 'object' ? 'application/problem+json' : 'text/html', body: typeof body === 'object' ? JSON.stringify({ status, ...body }) : body }),
    )
    await page.goto(h.url + '/ports')
    await page.getByRole('alert').getByText(words).waitFor()
    if (status === 403) expect(await findings(page)).toEqual([])
    await page.unroute('**/api/v1/ports?*')
    await page.getByRole('button', { name: 'Try again' }).click()
    await page.getByText('web', { exact: true }).waitFor()
  }
})

it('makes the plan again when somebody was faster, and applies nothing before it is seen', async () => {
  const { page, h } = w
  await visit(page, h, '/proxies/shop?edit=1')
  await description().fill('mine')
  await review().click()
  await page.getByRole('button', { name: 'Apply', exact: true }).waitFor()
  expect((await api(page, 'POST', '/policies', { name: 'between', request_body_limit: '5MB' })).status).toBe(201)
  await page.getByRole('button', { name: 'Apply', exact: true }).click()
  await page.getByText('Another operator changed the configuration').waitFor()
  expect(config()).not.toContain('mine')
  await applyNow(page)
  expect(config()).toContain('mine')
})

it('goes on after a session was ended by somebody else, with what was typed', async () => {
  const { page, h } = w
  await visit(page, h, '/proxies/shop?edit=1')
  await description().fill('typed before the end')
  const sessions = await api<{ items: { id: string }[] }>(page, 'GET', '/sessions')
  for (const s of sessions.value.items) expect((await api(page, 'DELETE', `/sessions/${s.id}`)).status).toBe(204)
  // What the page reads by itself may ask to sign in first: then the button is behind the question.
  await review().dispatchEvent('click')
  const again = page.getByRole('dialog', { name: 'Sign in again' })
  await again.getByLabel('Password', { exact: true }).fill('correct horse 9')
  await again.getByRole('button', { name: 'Sign in', exact: true }).click()
  await again.waitFor({ state: 'detached' })
  // The request that waited goes on by itself.
  await applyNow(page)
  expect(config()).toContain('typed before the end')
})

it('keeps a form open over a restart of the server', async () => {
  const { page, h } = w
  await visit(page, h, '/proxies/shop?edit=1')
  await description().fill('typed before the restart')
  await h.stop()
  await review().click()
  await dialog().getByText('headgate cannot be reached').waitFor()
  await h.start()
  expect(await description().inputValue()).toBe('typed before the restart')
  await review().click()
  await applyNow(page)
  expect(config()).toContain('typed before the restart')
})

it('cuts nothing off and runs nothing, whatever texts objects have', async () => {
  const { page, h } = w
  expect((await api(page, 'PATCH', '/proxies/shop', { description: `${html} ${rtl} ${long.slice(0, 400)}`, tags: [html.slice(0, 40), rtl, long.slice(0, 60)] })).status).toBe(200)
  expect((await api(page, 'PATCH', '/proxies/shop?why=' + encodeURIComponent(`${html} ${rtl} ${long.slice(0, 300)}`), { request_timeout: '31s' })).status).toBe(200)
  await page.setViewportSize({ width: 360, height: 780 })
  for (const path of [
    '/',
    '/proxies',
    '/proxies/shop',
    '/history',
    '/operators?tab=audit',
    `/log?host=${encodeURIComponent(html)}`,
    `/explain?url=${encodeURIComponent('http://shop.example.com/' + long)}`,
  ]) {
    await visit(page, h, path)
    const [wide, seen] = await page.evaluate(() => [document.documentElement.scrollWidth, document.documentElement.clientWidth])
    expect(wide, path).toBeLessThanOrEqual(seen!)
    expect(await page.title()).not.toBe('1')
    expect(await page.locator('img[src=x]').count()).toBe(0)
  }
  await page.setViewportSize({ width: 1280, height: 800 })
})

it('breaks no rule of its policy', () => expect(w.complaints).toEqual([]))
