import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { pagePaths } from '../src/pages/paths'
import { freePort } from './browser.mjs'
import { api, applyNow, findings, open, settled, visit, type World } from './world'

let w: World
beforeAll(
  async () =>
    void (w = await open({
      text: `ports:
  web: {address: "127.0.0.1:${await freePort()}", protocol: http}
proxies:
  shop:
    description: The shop
    tags: [prod, a-rather-long-tag-that-has-to-fit]
    virtual_hosts: [shop.example.com, a-very-long-label-of-a-host-name.with-many-parts.and-more-parts.example.com]
    rate_limit: {requests: 100}
    cache: {}
    routes:
      - path: /api
        servers: [{url: "http://127.0.0.1:9/"}, {url: "http://127.0.0.2:9/"}]
      - servers: [{url: "http://127.0.0.1:9/"}]
`,
    })),
)
afterAll(() => w?.close())

/** The address of a page; where a part varies, that of the first object which is there. */
async function addressOf(path: string): Promise<string> {
  if (!path.includes('$')) return path
  const list = await api<{ items?: { name?: string; number?: number }[] }>(w.page, 'GET', path.slice(0, path.indexOf('/$')))
  const first = list.value?.items?.[0]
  return path.replace(/\$\w+/, encodeURIComponent(String(first?.name ?? first?.number ?? 'none')))
}

describe.each(pagePaths)('the page $path', ({ path }) => {
  it('has no findings of axe, light, dark and on a phone, and cuts nothing off', async () => {
    const { page, h } = w
    const address = await addressOf(path)
    await page.setViewportSize({ width: 1280, height: 800 })
    await page.emulateMedia({ colorScheme: 'light', reducedMotion: 'reduce' })
    await visit(page, h, address)
    expect(await findings(page)).toEqual([])
    // The structure is the same in the dark: what differs is contrast.
    await page.emulateMedia({ colorScheme: 'dark', reducedMotion: 'reduce' })
    await page.locator('html[data-mantine-color-scheme=dark]').waitFor()
    expect(await findings(page, ['color-contrast'])).toEqual([])
    await page.setViewportSize({ width: 360, height: 780 })
    await settled(page)
    expect(await findings(page)).toEqual([])
    const [wide, seen] = await page.evaluate(() => [document.documentElement.scrollWidth, document.documentElement.clientWidth])
    expect(wide, 'the page is wider than a phone').toBeLessThanOrEqual(seen!)
  })
})

it('gives the focus back when a dialog is closed by Escape', async () => {
  const { page, h } = w
  await page.setViewportSize({ width: 1280, height: 800 })
  await visit(page, h, '/ports')
  for (const name of ['Edit web', 'Add']) {
    const button = page.getByRole('button', { name, exact: true })
    await button.focus()
    await page.keyboard.press('Enter')
    await page.getByRole('dialog').waitFor()
    await page.keyboard.press('Escape')
    await page.getByRole('dialog').waitFor({ state: 'detached' })
    await page.waitForFunction((name) => [document.activeElement?.getAttribute('aria-label'), document.activeElement?.textContent].includes(name), name)
  }
})

it('leaves names their room where a window is narrow', async () => {
  const { page, h } = w
  await page.emulateMedia({ colorScheme: 'light', reducedMotion: 'reduce' })
  for (const path of ['/proxies', '/history', '/operators']) {
    await page.setViewportSize({ width: 1280, height: 800 })
    await visit(page, h, path)
    for (const width of [1280, 1024, 800, 360]) {
      await page.setViewportSize({ width, height: 800 })
      const [name, table, box] = await page.evaluate(() =>
        ['tbody tr.row td:is(:has(.row-name), :first-child:not(.select))', 'table', '.table-scroll'].map((s) => document.querySelector(s)!.getBoundingClientRect().width),
      )
      expect(name, `the column of names of ${path} at ${width}`).toBeGreaterThanOrEqual(80)
      expect(table, `the table of ${path} at ${width}`).toBeLessThanOrEqual(Math.ceil(box!))
    }
  }
})

it('changes all colors with the scheme, at once', async () => {
  const { page, h } = w
  const colors = () =>
    page.evaluate(() => [...document.querySelectorAll('body *')].filter((e) => e.checkVisibility()).map((e) => `${e.tagName}.${e.getAttribute('class') ?? ''} ${getComputedStyle(e).color}`))
  await page.setViewportSize({ width: 360, height: 780 })
  await page.emulateMedia({ colorScheme: 'dark', reducedMotion: 'reduce' })
  await visit(page, h, '/proxies')
  await page.emulateMedia({ colorScheme: 'light', reducedMotion: 'reduce' })
  await page.locator('html[data-mantine-color-scheme=light]').waitFor()
  const switched = await colors()
  await visit(page, h, '/proxies')
  expect(switched).toEqual(await colors())
  // By the menu, too, and without a breach of the policy.
  await page.getByRole('button', { name: 'Menu of ann' }).click()
  await page.getByRole('menuitemradio', { name: 'Dark' }).click()
  await page.locator('html[data-mantine-color-scheme=dark]').waitFor()
  await page.getByRole('menuitemradio', { name: 'System' }).click()
  await page.locator('html[data-mantine-color-scheme=light]').waitFor()
})

it('explains why a URL is not cached', async () => {
  const { page, h } = w
  await page.setViewportSize({ width: 1280, height: 800 })
  await visit(page, h, '/cache')
  await page.getByLabel('URL').fill('http://shop.example.com/x')
  await page.getByRole('button', { name: 'Explain' }).click()
  await page.getByText('no server answered').waitFor()
  expect(await findings(page)).toEqual([])
  await page.getByRole('button', { name: 'Purge cache' }).click()
  await page.getByRole('dialog', { name: 'Purge all caches' }).getByRole('button', { name: 'Count first' }).click()
  await page.getByText('0 responses in the cache.').waitFor()
})

it('shows every setting of a proxy without findings', async () => {
  const { page, h } = w
  await page.setViewportSize({ width: 1280, height: 800 })
  await page.emulateMedia({ colorScheme: 'light', reducedMotion: 'reduce' })
  await visit(page, h, '/proxies/shop?edit=1')
  // All that is folded is opened.
  await page.evaluate(() => document.querySelectorAll('[role=dialog] details').forEach((d) => ((d as HTMLDetailsElement).open = true)))
  expect(await findings(page)).toEqual([])
  await page.getByText('YAML', { exact: true }).click()
  await page.locator('.cm-content').waitFor()
  expect(await findings(page)).toEqual([])
})

it('is usable on a phone', async () => {
  const { page, h } = w
  await page.setViewportSize({ width: 360, height: 780 })
  await visit(page, h, '/')
  await page.getByRole('button', { name: 'Open navigation' }).click()
  await page.getByRole('navigation', { name: 'Pages' }).getByRole('link', { name: 'Proxies' }).click()
  await page.getByRole('link', { name: 'shop', exact: true }).click()
  await page.getByRole('button', { name: 'Edit', exact: true }).click()
  await page.getByRole('dialog').getByLabel('Description').first().fill('from a phone')
  expect(await findings(page)).toEqual([])
  await page.getByRole('button', { name: 'Review', exact: true }).click()
  await applyNow(page)
  await page.getByText('from a phone').waitFor()
})

it('needs no mouse', async () => {
  const page = await w.another()
  const { keyboard } = page
  const named = (name: string) =>
    page.waitForFunction(
      (n) => (document.activeElement?.textContent ?? '').includes(n) || [...((document.activeElement as HTMLInputElement)?.labels ?? [])].some((l) => l.textContent?.includes(n)),
      name,
    )
  /** Goes on with the Tab key until something has the focus; it must be reached in a few steps. */
  const tabTo = async (name: string) => {
    for (let i = 0; i < 40; i++) {
      if (
        await page.evaluate(
          (n) => (document.activeElement?.textContent ?? '').trim() === n || [...((document.activeElement as HTMLInputElement)?.labels ?? [])].some((l) => l.textContent?.trim().startsWith(n)),
          name,
        )
      )
        return
      await keyboard.press('Tab')
    }
    throw new Error(`Tab does not come to ${name}`)
  }
  await page.goto(w.h.url)
  await named('Name')
  await keyboard.type('ann')
  await tabTo('Password')
  await keyboard.type('correct horse 9')
  await keyboard.press('Enter')
  await page.getByRole('heading', { name: 'Overview' }).waitFor()

  await keyboard.press('Control+k')
  await page.getByPlaceholder('Search or go to').waitFor()
  await keyboard.type('new proxy')
  await page.getByRole('button', { name: 'New proxy' }).or(page.locator('[data-selected]')).first().waitFor()
  await keyboard.press('Enter')
  await page.getByRole('heading', { name: 'New proxy' }).waitFor()
  await named('Host name')
  await keyboard.type('keys.example.com')
  await tabTo('Server')
  await keyboard.type('http://127.0.0.1:9')
  await keyboard.press('Enter')
  await page.getByRole('button', { name: 'Apply', exact: true }).waitFor()
  await tabTo('Apply')
  await keyboard.press('Enter')
  await page.getByText('Applied as revision').waitFor()
  await page.getByRole('link', { name: 'keys', exact: true }).waitFor()

  // A drawer is left with Escape, and the focus is where it was.
  await page.getByRole('link', { name: 'keys', exact: true }).focus()
  await keyboard.press('Enter')
  await page.getByRole('heading', { name: 'keys' }).waitFor()
  await tabTo('Edit')
  await keyboard.press('Enter')
  await page.getByRole('dialog').waitFor()
  await keyboard.press('Escape')
  await page.getByRole('dialog').waitFor({ state: 'detached' })
  await named('Edit')
  await page.context().close()
})

it('works in a browser that keeps nothing', async () => {
  const page = await w.another()
  await page.addInitScript(() => {
    for (const name of ['localStorage', 'sessionStorage'])
      Object.defineProperty(window, name, {
        get: () => {
          throw new DOMException('storage is off', 'SecurityError')
        },
      })
  })
  await page.goto(w.h.url)
  await page.getByLabel('Name').fill('ann')
  await page.getByLabel('Password', { exact: true }).fill('correct horse 9')
  await page.getByRole('button', { name: 'Sign in', exact: true }).click()
  await page.getByRole('heading', { name: 'Overview' }).waitFor()
  await page.getByRole('link', { name: 'Proxies' }).first().click()
  await page.getByRole('link', { name: 'shop', exact: true }).click()
  await page.getByRole('button', { name: 'Edit', exact: true }).click()
  await page.getByRole('dialog').getByLabel('Description').first().fill('kept nowhere')
  await page.getByRole('button', { name: 'Review', exact: true }).click()
  await applyNow(page)
  await page.getByText('kept nowhere').waitFor()
  await page.context().close()
})

it('asks no other host and breaks no rule of its policy', () => {
  expect(w.elsewhere).toEqual([])
  expect(w.complaints).toEqual([])
})
