import { afterAll, beforeAll, expect, it } from 'vitest'
import { freePort } from './browser.mjs'
import { open, visit, type World } from './world'

const count = 10_000
let w: World
beforeAll(async () => {
  const proxies = Array.from({ length: count }, (_, i) => `  p${i}: {virtual_hosts: [h${i}.example.com], tags: [t${i % 10}], routes: [{servers: [{url: "http://127.0.0.1:9"}]}]}\n`)
  w = await open({ text: `ports:\n  web: {address: "127.0.0.1:${await freePort()}", protocol: http}\nproxies:\n${proxies.join('')}` })
})
afterAll(() => w?.close())

it(`scrolls, sorts and filters ${count} proxies with few rows in the page`, async () => {
  const { page, h } = w
  const began = performance.now()
  await visit(page, h, '/proxies')
  await page.getByText('10,000 proxies', { exact: true }).waitFor()
  const loaded = performance.now() - began

  const scrolled = await page.evaluate(async () => {
    const box = document.scrollingElement!
    const frame = () => new Promise<number>((resolve) => requestAnimationFrame(resolve))
    const seen = new Set<string>()
    let most = 0
    let empty = 0
    let longest = 0
    const began = performance.now()
    let last = await frame()
    while (box.scrollTop + box.clientHeight < box.scrollHeight - 1 && seen.size < 1000) {
      box.scrollTop += box.clientHeight / 2
      const now = await frame()
      longest = Math.max(longest, now - last)
      last = now
      const rows = document.querySelectorAll('tr.row')
      most = Math.max(most, rows.length)
      if (rows.length === 0) empty++
      rows.forEach((r) => seen.add(r.getAttribute('aria-rowindex')!))
    }
    return { seen: seen.size, most, empty, longest, ms: performance.now() - began }
  })
  console.log(
    `note: ${count} proxies: shown after ${(loaded / 1000).toFixed(1)} s, ${Math.round((scrolled.seen / scrolled.ms) * 1000)} rows per second scrolled, longest frame ${Math.round(scrolled.longest)} ms`,
  )
  expect(scrolled.seen).toBeGreaterThanOrEqual(1000)
  expect(scrolled.most).toBeLessThan(120)
  expect(scrolled.empty).toBe(0)

  await page.evaluate(() => scrollTo(0, document.documentElement.scrollHeight))
  await page.getByRole('link', { name: 'p9999', exact: true }).waitFor()
  await page.getByRole('textbox', { name: 'Filter' }).fill('tag:t7 host:h4567.')
  await page.getByText('1 of 10,000 proxies').waitFor()
  await page.getByRole('link', { name: 'p4567', exact: true }).click()
  await page.getByRole('heading', { name: 'p4567' }).waitFor()
})

it('breaks no rule of its policy', () => expect(w.complaints).toEqual([]))
