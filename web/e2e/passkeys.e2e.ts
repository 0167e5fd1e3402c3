import { writeFileSync } from 'node:fs'
import type { CDPSession, Page } from 'playwright-core'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { freePort, until } from './browser.mjs'
import { api, ask, findings, open, settled, visit, type World } from './world'

/**
 * An operator adds passkeys of a virtual authenticator in the console, which is behind an
 * https port at a host name, and signs in with one instead of the password. Browsers accept
 * passkeys at hosts below localhost with any certificate.
 */
let w: World
let web = 0
let page: Page
let devtools: CDPSession
let authenticator = ''
const host = 'console.home.localhost'
beforeAll(async () => {
  web = await freePort()
  const plain = await freePort()
  w = await open()
  writeFileSync(
    w.h.config,
    `version: 1
admin: {address: "127.0.0.1:${w.h.port}", hosts: [${host}], trusted_proxies: [127.0.0.1]}
ports:
  web: {address: "127.0.0.1:${plain}", protocol: http}
  websecure: {address: "127.0.0.1:${web}", protocol: https}
proxies:
  console: {virtual_hosts: [${host}], redirect_http_to_https: false, routes: [{servers: [{url: "http://127.0.0.1:${w.h.port}"}]}]}
`,
  )
  w.h.process.kill('SIGHUP')
  await until('the console behind its proxy', async () => (await ask(plain, host))[0] === 200)
  page = await w.another({ ignoreHTTPSErrors: true })
  devtools = await page.context().newCDPSession(page)
  await devtools.send('WebAuthn.enable')
  const options = { protocol: 'ctap2', transport: 'internal', hasResidentKey: true, hasUserVerification: true, isUserVerified: true, automaticPresenceSimulation: true } as const
  authenticator = (await devtools.send('WebAuthn.addVirtualAuthenticator', { options })).authenticatorId
})
afterAll(() => w?.close())

const at = (path: string) => `https://${host}:${web}${path}`

async function signedIn() {
  await page.getByRole('heading', { name: 'Overview' }).waitFor()
}

async function signOut() {
  await page.evaluate(() => fetch('/api/v1/session', { method: 'DELETE', headers: { 'Headgate-Session': localStorage.getItem('headgate.session') ?? '' } }).then(() => localStorage.clear()))
  await page.goto(at('/'))
  await page.getByRole('button', { name: 'Sign in with a passkey' }).waitFor()
}

async function withPasskey() {
  await page.getByRole('button', { name: 'Sign in with a passkey' }).click()
  await signedIn()
}

it('says why passkeys are not offered at an IP address', async () => {
  await visit(w.page, w.h, '/account')
  await w.page.getByText('the console is open at an IP address').waitFor()
  expect(await w.page.getByRole('button', { name: 'Add a passkey' }).count()).toBe(0)
  expect((await api(w.page, 'POST', '/session/passkeys', { current_password: 'correct horse 9' })).status).toBe(409)
})

it('adds passkeys with a name each', async () => {
  await page.goto(at('/'))
  await page.getByLabel('Name').fill('ann')
  await page.getByLabel('Password', { exact: true }).fill('correct horse 9')
  await page.getByRole('button', { name: 'Sign in', exact: true }).click()
  await signedIn()
  await page.goto(at('/account'))
  await settled(page)
  await page.getByRole('button', { name: 'Add a passkey' }).click()
  await page.getByLabel('Name of the passkey').fill('Phone')
  const card = page.locator('form', { has: page.getByLabel('Name of the passkey') })
  await card.getByLabel('Current password').fill('wrong password 9')
  await page.getByRole('button', { name: 'Create passkey' }).click()
  await page.getByText('the current password is wrong').waitFor()
  expect(await findings(page)).toEqual([])
  await card.getByLabel('Current password').fill('correct horse 9')
  await page.getByRole('button', { name: 'Create passkey' }).click()
  await page.getByRole('button', { name: 'Remove Phone' }).waitFor()
  expect((await devtools.send('WebAuthn.getCredentials', { authenticatorId: authenticator })).credentials).toHaveLength(1)
})

it('signs in with a passkey instead of the password', async () => {
  await signOut()
  expect(await findings(page)).toEqual([])
  await withPasskey()
  await page.goto(at('/account'))
  await settled(page)
  await page.getByText(', passkey;').waitFor()
})

it('reports a passkey whose counter did not grow, and accepts it', async () => {
  await signOut()
  await withPasskey()
  const [credential] = (await devtools.send('WebAuthn.getCredentials', { authenticatorId: authenticator })).credentials
  expect(credential!.signCount).toBeGreaterThan(1)
  await devtools.send('WebAuthn.clearCredentials', { authenticatorId: authenticator })
  await devtools.send('WebAuthn.addCredential', { authenticatorId: authenticator, credential: { ...credential!, signCount: 0 } })
  await signOut()
  await withPasskey()
  await until('the event', async () => {
    const { value } = await api<{ items: { text?: string }[] }>(w.page, 'GET', '/events/history?types=auth.signed_in')
    return JSON.stringify(value).includes('may have been copied')
  })
})

it('says that no passkey was used when the person is not verified', async () => {
  await signOut()
  await devtools.send('WebAuthn.setUserVerified', { authenticatorId: authenticator, isUserVerified: false })
  await page.getByRole('button', { name: 'Sign in with a passkey' }).click()
  await page.getByText('No passkey was used').waitFor()
  await devtools.send('WebAuthn.setUserVerified', { authenticatorId: authenticator, isUserVerified: true })
  await withPasskey()
})

it('removes a passkey, which then opens nothing', async () => {
  await page.goto(at('/account'))
  await settled(page)
  await page.getByRole('button', { name: 'Remove Phone' }).click()
  await page.getByRole('dialog').getByRole('button', { name: 'Remove', exact: true }).click()
  await page.getByRole('dialog', { name: 'Sign in again' }).waitFor() // the session was started with it
  await page.getByRole('button', { name: 'Sign in with a passkey' }).click()
  await page.getByText('the passkey was not accepted', { exact: false }).waitFor()
  expect(w.complaints).toEqual([])
})
