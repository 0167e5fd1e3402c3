import { readFileSync } from 'node:fs'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { freePort } from './browser.mjs'
import { applyNow, findings, open, visit, type World } from './world'

let w: World
beforeAll(async () => {
  w = await open({
    text: `ports:
  web: {address: "127.0.0.1:${await freePort()}", protocol: https}
acme:
  main: {directory: "https://127.0.0.1:9/dir"}
proxies:
  tenants:
    acme: main
    on_demand: {list: [one.customer.example], max_per_hour: 20}
    routes: [{fixed_response: {status: 200}}]
`,
  })
})
afterAll(() => w?.close())

const config = () => readFileSync(w.h.config, 'utf8')
const dialog = () => w.page.getByRole('dialog')

it('shows and edits the limits of certificates on demand', async () => {
  const { page, h } = w
  await visit(page, h, '/proxies/tenants?edit=1')
  await dialog()
    .getByText(/^Ports and hosts/)
    .click()
  const perHour = dialog().getByRole('textbox', { name: 'Max per hour' })
  expect(await perHour.inputValue()).toBe('20')
  expect(await dialog().getByLabel('List').inputValue()).toContain('one.customer.example')
  expect(await findings(page)).toEqual([])
  await perHour.fill('0')
  await dialog().getByRole('button', { name: 'Review', exact: true }).click()
  await dialog().getByText('Change rejected').waitFor()
  expect(await perHour.getAttribute('aria-invalid')).toBe('true')
  await perHour.fill('7')
  await dialog().getByRole('button', { name: 'Review', exact: true }).click()
  await applyNow(page)
  expect(config()).toContain('max_per_hour: 7')
  expect(config()).toContain('list: [one.customer.example]')
})
