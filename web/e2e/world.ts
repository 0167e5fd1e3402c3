import { readFileSync } from 'node:fs'
import { createServer, get, type Server } from 'node:http'
import { createRequire } from 'node:module'
import type { AddressInfo } from 'node:net'
import type { Browser, BrowserContext, BrowserContextOptions, Locator, Page } from 'playwright-core'
import { openBrowser, setUp, startHeadgate, type Headgate } from './browser.mjs'

const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')

/** A headgate of the built binary, a server behind it, and a browser with one user signed in. */
export type World = {
  h: Headgate
  browser: Browser
  context: BrowserContext
  page: Page
  /** The port of the server behind it. */
  upstream: number
  /** Requests to other hosts, and what the browser complained of: the policy, faults of scripts. */
  elsewhere: string[]
  complaints: string[]
  /** Opens another browser profile that is watched as the first. */
  another(options?: BrowserContextOptions): Promise<Page>
  close(): Promise<void>
}

/** Starts all of it. A deadline is for broken machines, so it is long. */
export async function open({ text = '', signedIn = true, ...options }: { text?: string; signedIn?: boolean } & BrowserContextOptions = {}): Promise<World> {
  const upstream: Server = createServer((_, answer) => answer.end('hello from the server')).listen(0, '127.0.0.1')
  const h = await startHeadgate(text)
  const browser = await openBrowser()
  const elsewhere: string[] = []
  const complaints: string[] = []
  async function another(more: BrowserContextOptions = {}) {
    const context = await browser.newContext({ viewport: { width: 1280, height: 800 }, reducedMotion: 'reduce', ...more })
    context.setDefaultTimeout(Number(process.env.PATIENCE ?? 60_000))
    const page = await context.newPage()
    page.on('request', (r) => void (/^https?:/.test(r.url()) && new URL(r.url()).host !== `127.0.0.1:${h.port}` && elsewhere.push(r.url())))
    page.on('console', (m) => void (/Content.Security.Policy|violates/i.test(m.text()) && complaints.push(m.text())))
    page.on('pageerror', (e) => complaints.push(e.message))
    return page
  }
  const page = await another(options)
  if (signedIn) await setUp(page, h)
  return {
    h,
    browser,
    context: page.context(),
    page,
    elsewhere,
    complaints,
    another,
    upstream: (upstream.address() as AddressInfo).port,
    async close() {
      await browser.close()
      await h.end()
      upstream.close()
    },
  }
}

type Violation = { id: string; nodes: { html: string; failureSummary?: string }[] }

/** Runs axe in the page, all of its rules or some. It is put in by the browser's protocol, which the policy does not bind. */
export async function findings(page: Page, rules?: string[]): Promise<string[]> {
  if (!(await page.evaluate(() => 'axe' in window))) await page.evaluate(axe)
  const violations = await page.evaluate(async (only) => {
    const { axe } = window as unknown as { axe: { run(options: object): Promise<{ violations: Violation[] }> } }
    return (await axe.run(only ? { runOnly: only } : {})).violations
  }, rules)
  return violations.flatMap((v) => v.nodes.map((n) => `${v.id}: ${n.html.slice(0, 200)} ${n.failureSummary ?? ''}`))
}

/** Asks the proxy: status and body; 0 is no answer. */
export const ask = (port: number, host: string, more: Record<string, string> = {}, path = '/') =>
  new Promise<[number, string]>((resolve) => {
    get({ host: '127.0.0.1', port, path, headers: { host, ...more }, agent: false }, (r) => {
      let body = ''
      r.on('data', (d) => (body += d)).on('end', () => resolve([r.statusCode ?? 0, body]))
    }).on('error', () => resolve([0, '']))
  })

/** Calls the API as the user of the page does, beside the page: another writer. */
export async function api<T = Record<string, unknown>>(page: Page, method: string, path: string, body?: unknown): Promise<{ status: number; value: T }> {
  return page.evaluate(
    async ([method, path, body]) => {
      const headers = { 'Headgate-Session': localStorage.getItem('headgate.session') ?? '', 'If-Match': '*', 'Content-Type': 'application/json' }
      const response = await fetch('/api/v1' + path, { method: method as string, headers, body: body === null ? undefined : JSON.stringify(body) })
      return { status: response.status, value: (await response.json().catch(() => null)) as T }
    },
    [method, path, body ?? null] as const,
  )
}

/** Applies what is reviewed, and waits until that is done. */
export async function applyNow(page: Page) {
  await page.getByRole('button', { name: 'Apply', exact: true }).click()
  await page.getByRole('dialog', { name: 'Review changes' }).waitFor({ state: 'detached' })
}

/** Removes the object of a row with its menu. */
export async function removeRow(within: Page | Locator, page: Page, name: string) {
  await within.getByRole('button', { name: `Actions for ${name}` }).click()
  await page.getByRole('menuitem', { name: 'Remove', exact: true }).click()
}

/** Holds what the page reads there, until the function that it gives is called. */
export async function hold(page: Page, url: string): Promise<() => Promise<void>> {
  let release = () => {}
  const held = new Promise<void>((go) => (release = go))
  // A read that the page has given up meanwhile cannot go on.
  await page.route(url, (r) => (r.request().method() === 'GET' ? held.then(() => r.continue()).catch(() => {}) : r.continue()))
  return () => {
    release()
    return page.unrouteAll({ behavior: 'wait' })
  }
}

/** Opens a page of the console, and waits until it has what it shows. */
export async function visit(page: Page, h: Headgate, path: string) {
  await page.goto(h.url + path)
  await settled(page)
}

/** Waits until nothing on the page says that it is loading. */
export async function settled(page: Page) {
  await page.locator('h1, h2').first().waitFor()
  await page.waitForFunction(() => !document.querySelector('[aria-busy=true]'))
}
