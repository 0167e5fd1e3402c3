// Makes the pictures of docs/guides/console.md, from the built binary.
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { freePort, openBrowser, setUp, startHeadgate } from './browser.mjs'

const out = join(import.meta.dirname, '../../docs/guides/console')
mkdirSync(out, { recursive: true })
const h = await startHeadgate(`ports:
  web:
    address: 127.0.0.1:${await freePort()}
    protocol: http
proxies:
  shop:
    description: The shop
    tags: [prod]
    virtual_hosts: [shop.example.com, www.shop.example.com]
    rate_limit: {requests: 100}
    routes:
      - path: /api
        servers: [{url: "http://10.0.0.7:3000"}, {url: "http://10.0.0.8:3000"}]
      - servers: [{url: "http://10.0.0.9:8080"}]
  wiki:
    tags: [team]
    virtual_hosts: [wiki.example.com]
    compression: {}
    routes:
      - servers: [{url: "http://10.0.0.11:8080"}]
`)
const browser = await openBrowser()
try {
  const page = await browser.newPage({ viewport: { width: 1280, height: 720 }, reducedMotion: 'reduce', colorScheme: 'light' })
  await setUp(page, h)
  const picture = async (name) => {
    await page.waitForLoadState('load')
    await page.waitForTimeout(500)
    await page.screenshot({ path: join(out, name + '.png') })
  }
  await picture('overview')
  await page.goto(h.url + '/proxies')
  await page.getByRole('link', { name: 'shop' }).waitFor()
  await picture('proxies')
  await page.goto(h.url + '/proxies/shop')
  await page.getByRole('heading', { name: 'shop' }).waitFor()
  await picture('proxy')
  await page.emulateMedia({ colorScheme: 'dark' })
  await picture('proxy-dark')
  await page.setViewportSize({ width: 390, height: 844 })
  await picture('proxy-phone')
} finally {
  await browser.close()
  await h.end()
}
