import { request as https } from 'node:https'
import type { CDPSession, Page } from 'playwright-core'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { freePort, until } from './browser.mjs'
import { api, applyNow, findings, open, settled, visit, type World } from './world'

/**
 * From a proxy without a gate to a protected application, in the console; then a person
 * signs in there with a passkey of a virtual authenticator. Hosts below localhost need no
 * name server, and browsers accept passkeys there with any certificate.
 */
let w: World
let port = 0
let guest: Page
let devtools: CDPSession
let authenticator = ''
let link = ''
let clicks = 0
beforeAll(async () => {
  port = await freePort()
  w = await open({ text: `ports:\n  web: {address: "127.0.0.1:${await freePort()}", protocol: http}\n  websecure: {address: "127.0.0.1:${port}", protocol: https}\n` })
  const made = await api(w.page, 'POST', '/proxies', { name: 'wiki', virtual_hosts: ['wiki.home.localhost'], routes: [{ servers: [{ url: `http://127.0.0.1:${w.upstream}` }] }] })
  expect(made.status).toBe(201)
  await w.page.exposeFunction('clicked', () => clicks++)
  await w.page.addInitScript(() => addEventListener('pointerdown', () => (window as unknown as { clicked(): void }).clicked(), true))
  guest = await w.another({ ignoreHTTPSErrors: true })
  devtools = await guest.context().newCDPSession(guest)
  await devtools.send('WebAuthn.enable')
  const options = { protocol: 'ctap2', transport: 'internal', hasResidentKey: true, hasUserVerification: true, isUserVerified: true, automaticPresenceSimulation: true } as const
  authenticator = (await devtools.send('WebAuthn.addVirtualAuthenticator', { options })).authenticatorId
})
afterAll(() => w?.close())

const at = (host: string, path = '/') => `https://${host}.home.localhost:${port}${path}`
const dialog = () => w.page.getByRole('dialog')
const tab = (name: string) => w.page.getByRole('tab', { name, exact: true }).click()

/** Requests a page of an application as a program does. */
const asProgram = (path: string, headers: Record<string, string> = {}, host = 'wiki.home.localhost') =>
  new Promise<[number, string]>((resolve, reject) => {
    https({ host: '127.0.0.1', port, path, servername: host, rejectUnauthorized: false, agent: false, headers: { host: `${host}:${port}`, ...headers } }, (r) => {
      let body = ''
      r.on('data', (d) => (body += d)).on('end', () => resolve([r.statusCode ?? 0, body]))
    })
      .on('error', reject)
      .end()
  })

it('protects an application and invites a person in six clicks', async () => {
  const { page, h } = w
  expect((await asProgram('/'))[0]).toBe(200)
  await page.goto(h.url)
  await settled(page)
  clicks = 0
  await page.getByRole('navigation', { name: 'Pages' }).getByRole('link', { name: 'Access', exact: true }).click()
  expect(await page.getByLabel('Host name of the sign-in page').inputValue()).toBe('login.home.localhost')
  await page.getByRole('button', { name: 'Review', exact: true }).click()
  await applyNow(page)
  await until('the gate', async () => (await asProgram('/'))[0] === 401)
  const protectedAfter = clicks
  await page.getByRole('button', { name: 'Add person' }).click()
  await dialog().getByLabel('Name', { exact: true }).fill('ann')
  await dialog().getByText('family').waitFor()
  await dialog().getByRole('button', { name: 'Add and create a link' }).click()
  const shown = page.getByRole('dialog', { name: 'Invitation for ann' })
  link = (await shown.locator('pre').innerText()).trim()
  console.log(`note: ${protectedAfter} clicks to a protected application, ${clicks} with the first invitation`)
  expect(clicks).toBeLessThanOrEqual(6)
  expect(link).toMatch(new RegExp(`^https://login\\.home\\.localhost:${port}/invite\\?link=`))
  expect(await findings(page)).toEqual([])
  await shown.getByRole('button', { name: 'Done' }).click()
})

it('signs the person in with a passkey, and out again', async () => {
  await guest.goto(at('wiki'))
  expect(new URL(guest.url()).host).toBe(`login.home.localhost:${port}`)
  expect(await findings(guest)).toEqual([])
  await guest.goto(link)
  expect(await findings(guest)).toEqual([])
  await guest.getByRole('button', { name: 'Use a passkey' }).click()
  await guest.getByRole('link', { name: /wiki\.home\.localhost/ }).click()
  await guest.getByText('hello from the server').waitFor()
  expect(guest.url()).toBe(at('wiki'))
  expect((await devtools.send('WebAuthn.getCredentials', { authenticatorId: authenticator })).credentials).toHaveLength(1)
  await signOut()
  await signIn()
})

async function signOut() {
  await guest.goto(at('wiki', '/.headgate/sign-out'))
  await guest.getByRole('button', { name: 'Sign out' }).click()
  await guest.getByText('You are signed out').waitFor()
}

async function signIn() {
  await guest.goto(at('wiki'))
  expect(new URL(guest.url()).host).toBe(`login.home.localhost:${port}`)
  await guest.getByRole('button', { name: 'Sign in with a passkey' }).click()
  await guest.getByText('hello from the server').waitFor()
}

it('reports a passkey whose counter did not grow, and accepts it', async () => {
  await signOut()
  await signIn()
  await signOut()
  const [credential] = (await devtools.send('WebAuthn.getCredentials', { authenticatorId: authenticator })).credentials
  expect(credential!.signCount).toBeGreaterThan(1)
  await devtools.send('WebAuthn.clearCredentials', { authenticatorId: authenticator })
  await devtools.send('WebAuthn.addCredential', { authenticatorId: authenticator, credential: { ...credential!, signCount: 0 } })
  await signIn()
  const events = await api<{ items: unknown[] }>(w.page, 'GET', '/events/history?types=person.signed_in&limit=1')
  expect(JSON.stringify(events.value.items)).toContain('may have been copied')
})

it('shows the session, and ends it', async () => {
  const { page } = w
  await tab('Sessions')
  await page.getByText('wiki.home.localhost').first().waitFor()
  expect(await findings(page)).toEqual([])
  await page.getByRole('button', { name: 'End all sessions of ann' }).click()
  await dialog().getByRole('button', { name: 'End all sessions' }).click()
  await page.getByText('No person is signed in').waitFor()
  await guest.goto(at('wiki'))
  expect(new URL(guest.url()).host).toBe(`login.home.localhost:${port}`)
})

it('creates a token that is shown once, and revokes it', async () => {
  const { page } = w
  await tab('Applications')
  await page.getByRole('button', { name: 'Edit who may enter wiki' }).click()
  await dialog().getByLabel('May enter').fill('group:family\ntoken:phone')
  await dialog().getByRole('button', { name: 'Review', exact: true }).click()
  await applyNow(page)
  await tab('Tokens')
  await page.getByText('No tokens yet').waitFor()
  expect(await findings(page)).toEqual([])
  await page.getByRole('button', { name: 'Create token' }).click()
  await dialog().getByLabel('Name', { exact: true }).fill('phone')
  expect(await findings(page)).toEqual([])
  await dialog().getByRole('button', { name: 'Create', exact: true }).click()
  const shown = page.getByRole('dialog', { name: 'Token created' })
  const token = (await shown.locator('pre').innerText()).trim()
  await shown.getByRole('button', { name: 'Done' }).click()
  await shown.waitFor({ state: 'detached' })
  expect(await page.content()).not.toContain(token)
  expect((await asProgram('/', { authorization: `Bearer ${token}` }))[0]).toBe(200)
  await page.getByRole('button', { name: 'Revoke phone' }).click()
  await dialog().getByRole('button', { name: 'Revoke', exact: true }).click()
  await page.getByText('No tokens yet').waitFor()
  expect((await asProgram('/', { authorization: `Bearer ${token}` }))[0]).toBe(401)
})

it('shares a link with a guest, and ends it', async () => {
  const { page } = w
  await tab('Share links')
  await page.getByRole('button', { name: 'Share', exact: true }).click()
  await dialog().getByLabel('Address').fill(at('wiki', '/album'))
  expect(await findings(page)).toEqual([])
  await dialog().getByRole('button', { name: 'Create', exact: true }).click()
  const shown = page.getByRole('dialog', { name: 'Share link created' })
  const shared = (await shown.locator('pre').innerText()).trim()
  await shown.getByRole('button', { name: 'Done' }).click()
  const stranger = await w.another({ ignoreHTTPSErrors: true })
  await stranger.goto(shared)
  expect(await findings(stranger)).toEqual([])
  await stranger.getByRole('button').click()
  await stranger.getByText('hello from the server').waitFor()
  await page.getByRole('button', { name: `Revoke ${at('wiki', '/album')}` }).click()
  await dialog().getByRole('button', { name: 'Revoke', exact: true }).click()
  await page.getByText('No share links yet').waitFor()
  await stranger.goto(at('wiki', '/album'))
  expect(new URL(stranger.url()).host).toBe(`login.home.localhost:${port}`)
  await stranger.context().close()
})

it('opens a gate for a while, and closes it', async () => {
  const { page } = w
  await tab('Applications')
  await page.getByRole('button', { name: 'Open for a while: wiki' }).click()
  await dialog().getByLabel('Reason').fill('the provider is away')
  expect(await findings(page)).toEqual([])
  await dialog().getByRole('button', { name: 'Open', exact: true }).click()
  await until('the open gate', async () => (await asProgram('/'))[0] === 200)
  await page.getByText('the provider is away').waitFor()
  expect(await findings(page)).toEqual([])
  await page.getByRole('button', { name: 'Close now: wiki.home.localhost' }).click()
  await until('the closed gate', async () => (await asProgram('/'))[0] === 401)
})

it('resets a person who has lost the phone, and deletes one', async () => {
  const { page } = w
  await tab('People')
  await page.getByRole('button', { name: 'ann', exact: true }).click()
  await dialog().getByText('1 passkey').waitFor()
  expect(await findings(page)).toEqual([])
  await dialog().getByRole('button', { name: 'Reset', exact: true }).click()
  await page
    .getByRole('dialog', { name: /Reset the sign-in/ })
    .getByRole('button', { name: 'Reset', exact: true })
    .click()
  const shown = page.getByRole('dialog', { name: 'Invitation for ann' })
  expect(await shown.locator('pre').innerText()).toContain('/invite?link=')
  await shown.getByRole('button', { name: 'Done' }).click()
  await page.getByText('invited, link expires').waitFor()
  await page.getByRole('button', { name: 'ann', exact: true }).click()
  await dialog().getByRole('button', { name: 'Delete', exact: true }).click()
  await page
    .getByRole('dialog', { name: /Delete the person/ })
    .getByRole('button', { name: 'Delete', exact: true })
    .click()
  await page.getByText('No people yet').waitFor()
})

it('offers a viewer nothing that is refused', async () => {
  const { page, h } = w
  expect((await api(page, 'POST', '/users', { name: 'eve', role: 'viewer', password: 'correct horse 17' })).status).toBe(201)
  expect((await api(page, 'POST', '/people', { name: 'bob', groups: ['family'] })).status).toBe(201)
  const viewer = await w.another()
  await viewer.goto(h.url)
  await viewer.getByLabel('Name').fill('eve')
  await viewer.getByLabel('Password', { exact: true }).fill('correct horse 17')
  await viewer.getByRole('button', { name: 'Sign in', exact: true }).click()
  await viewer.getByRole('heading', { name: 'Overview' }).waitFor()
  for (const [name, text] of Object.entries({
    applications: 'group:family',
    people: 'bob',
    sessions: 'No person is signed in',
    tokens: 'Only admins can see this',
    links: 'Only admins can see this',
  })) {
    await visit(viewer, h, `/access?tab=${name}`)
    await viewer.getByText(text).first().waitFor()
    const offered = viewer.getByRole('main').getByRole('button', { name: /^(Add|End|Edit|Open|Close|Revoke|Create|Protect|Share|Review|bob)/ })
    expect(await offered.count(), name).toBe(0)
    expect(await findings(viewer)).toEqual([])
  }
  await viewer.context().close()
})

it('breaks no rule of the policies', () => expect(w.complaints).toEqual([]))

it('offers editors nothing that they may not do, and says whom to ask', async () => {
  expect((await api(w.page, 'POST', '/users', { name: 'ed', role: 'editor', password: 'correct horse 9' })).status).toBe(201)
  const editor = await w.another({ locale: 'de-DE' })
  await editor.goto(w.h.url)
  await editor.getByLabel('Name').fill('ed')
  await editor.getByLabel('Passwort', { exact: true }).fill('correct horse 9')
  await editor.getByRole('button', { name: 'Anmelden', exact: true }).click()
  await editor.getByRole('navigation').first().waitFor()
  await editor.goto(w.h.url + '/access')
  await editor.getByText('fragen Sie einen Administrator').first().waitFor()
  for (const name of ['people', 'sessions', 'tokens', 'links', 'applications']) {
    await editor.goto(`${w.h.url}/access?tab=${name}`)
    await settled(editor)
    expect(
      await editor
        .locator('main button:visible:not([role=tab])')
        .filter({ hasText: /hinzufügen|erstellen|schützen|ändern|öffnen|beenden|entfernen/i })
        .count(),
      name,
    ).toBe(0)
  }
  expect(await findings(editor)).toEqual([])
  const refused = await api<{ code: string; remedy: string }>(editor, 'PATCH', '/proxies/wiki', { gate: { allow: ['domain:example.org'] } })
  expect([refused.status, refused.value.code]).toEqual([403, 'access_required'])
})
