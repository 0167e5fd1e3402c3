// Makes the pictures of README and docs/guides/console.md, from the built binary. With a folder as
// argument it makes those of every page there: light, dark and on a phone, to look at.
import { mkdirSync, writeFileSync } from 'node:fs'
import { createServer, request } from 'node:http'
import { join } from 'node:path'
import { runnerImport } from 'vite'
import { freePort, openBrowser, setUp, startHeadgate, until } from './browser.mjs'
import { startDocker } from './docker.mjs'

const all = process.argv[2]
const { pagePaths } = (await runnerImport(join(import.meta.dirname, '../src/pages/paths.ts'))).module
const out = all ?? join(import.meta.dirname, '../../docs/guides/console')
mkdirSync(out, { recursive: true })

/** A server that takes its time, and sometimes fails. */
async function startServer(fail = 0) {
  let n = 0
  const s = createServer((rq, answer) => {
    if (rq.url === '/healthz') return void answer.end('ok')
    n++
    setTimeout(
      () => {
        answer.writeHead(fail && n % fail === 0 ? 502 : rq.url.includes('missing') ? 404 : 200, { 'content-type': 'text/html', 'cache-control': 'max-age=60' })
        answer.end('<p>hello</p>'.repeat(20 + (n % 200)))
      },
      3 + ((n * 7) % 40),
    )
  })
  await new Promise((ready) => s.listen(0, '127.0.0.1', ready))
  return s
}

const servers = await Promise.all([startServer(), startServer(40), startServer(), startServer()])
const [a, b, c, d] = servers.map((s) => s.address().port)
const dead = await freePort()
const port = await freePort()
const docker = await startDocker([
  { name: 'grafana', labels: { 'headgate.enable': 'true', 'headgate.host': 'grafana.example.com', 'headgate.port': String(c) } },
  { name: 'queue', labels: { 'headgate.enable': 'true', 'headgate.host': 'queue.example.com' } },
])
const h = await startHeadgate(`ports:
  web: {address: "127.0.0.1:${port}", protocol: http}
  secure: {address: "127.0.0.1:${await freePort()}", protocol: https}
acme:
  main: {email: ops@example.com, directory: "https://127.0.0.1:${dead}/directory"}
policies:
  members:
    description: Who works here
    basic_auth: {users: [{name: ada, password_hash: "$2y$12$abcdefghijklmnopqrstuuhX0qcGnmcz0DC0GI4ihGoSUtTvsT7Se"}]}
proxies:
  shop:
    description: Where customers buy
    tags: [prod]
    virtual_hosts: [shop.example.com, www.shop.example.com]
    compression: {}
    routes:
      - path: /api
        rate_limit: {requests: 5000}
        servers: [{url: "http://127.0.0.1:${a}"}, {url: "http://127.0.0.1:${b}"}]
        health_check: {path: /healthz, interval: 2s}
      - cache: {default_ttl: 30s}
        servers: [{url: "http://127.0.0.1:${c}", weight: 3}, {url: "http://127.0.0.1:${d}"}]
        health_check: {path: /healthz, interval: 2s}
  wiki:
    description: Notes of the team
    tags: [team]
    virtual_hosts: [wiki.example.com]
    use: [members]
    routes:
      - servers: [{url: "http://127.0.0.1:${d}"}]
        health_check: {path: /healthz, interval: 2s}
  cloud:
    tags: [team]
    virtual_hosts: [cloud.example.com]
    request_body_limit: 10GB
    routes:
      - servers: [{url: "http://127.0.0.1:${c}"}, {url: "http://127.0.0.1:${dead}"}]
        health_check: {path: /healthz, interval: 2s}
  photos:
    description: Pictures of the family
    tags: [home]
    virtual_hosts: [photos.example.com]
    routes:
      - servers: [{url: "http://127.0.0.1:${dead}"}]
        health_check: {path: /healthz, interval: 2s}
  old-blog:
    tags: [home]
    virtual_hosts: [blog.example.com]
    routes:
      - redirects: [{regex: "^/(.*)$", target: "https://shop.example.com/$1"}]
        fixed_response: {status: 410}
  matrix:
    tags: [home]
    virtual_hosts: [matrix.example.com]
    forward_auth: {url: "http://127.0.0.1:${a}/check"}
    routes:
      - servers: [{url: "http://127.0.0.1:${a}"}]
tcp_proxies:
  database:
    description: PostgreSQL of the shop
    address: "127.0.0.1:${await freePort()}"
    servers: [{address: "127.0.0.1:${a}"}]
discovery:
  docker:
    local: {endpoint: "${docker.endpoint}", hosts: ["*.example.com"]}
`)

const paths = ['/', '/', '/style.css', '/cart', '/products/7', '/missing', '/api/orders?page=2', '/api/items']
const hosts = ['shop.example.com', 'shop.example.com', 'wiki.example.com', 'cloud.example.com', 'grafana.example.com', 'photos.example.com', 'blog.example.com']
let sent = 0
const traffic = setInterval(() => {
  for (let i = 0; i < 3; i++, sent++)
    request({ host: '127.0.0.1', port, path: paths[(sent * 5) % paths.length], headers: { host: hosts[sent % hosts.length] }, agent: false }, (r) => r.resume())
      .on('error', () => {})
      .end()
}, 50)

/** What is done on a page before its picture. */
const more = {
  imported: async (page) => {
    await page.getByText('Paste', { exact: true }).click()
    await page
      .getByLabel('Text')
      .fill(
        `http {\n  gzip on;\n  server {\n    listen 80;\n    server_name legacy.example.com;\n    autoindex on;\n    sendfile on;\n    location / { proxy_pass http://127.0.0.1:${a}; proxy_read_timeout 90s; proxy_set_header X-Real-IP $remote_addr; }\n    location /api/ { proxy_pass http://127.0.0.1:${b}/v2/; limit_req zone=one burst=5; }\n  }\n}\n`,
      )
    await page.getByRole('button', { name: 'Translate' }).click()
    await page.getByText(/directives of/).waitFor()
    await page.locator('.cm-content').waitFor()
  },
  compared: async (page) => {
    await page.getByLabel('Old proxy').fill(`127.0.0.1:${a}`)
    await page.getByRole('button', { name: 'Compare', exact: true }).click()
    await page.getByText('identical responses', { exact: true }).waitFor()
  },
  'acme-form': async (page) => page.getByRole('button', { name: 'Edit main' }).click(),
}

const browser = await openBrowser()
try {
  const page = await browser.newPage({ viewport: { width: 1280, height: 800 }, reducedMotion: 'reduce', colorScheme: 'light' })
  await setUp(page, h)
  /** Calls the API as the page does. */
  const api = (method, path, body) =>
    page.evaluate(
      async ([method, path, body]) => {
        const r = await fetch('/api/v1' + path, {
          method,
          headers: { 'Headgate-Session': localStorage.getItem('headgate.session') ?? '', 'If-Match': '*', 'Content-Type': 'application/json' },
          body: body && JSON.stringify(body),
        })
        if (!r.ok) throw new Error(`${method} ${path}: ${r.status} ${await r.text()}`)
        return r.json().catch(() => null)
      },
      [method, path, body],
    )
  for (const [name, names] of [
    ['shop', ['shop.example.com', 'www.shop.example.com']],
    ['team', ['*.example.com']],
  ]) {
    await api('POST', '/certificates/self_signed', { name, hosts: names })
    await api('POST', '/certificates?why=' + encodeURIComponent(`HTTPS for ${name}`), { name, stored: name })
  }
  await api('PATCH', '/proxies/shop?why=' + encodeURIComponent('Slow answers of the payment service'), { request_timeout: '30s' })
  await api('PATCH', '/proxies/wiki', { tags: ['team', 'docs'] })
  await api('POST', '/users', { name: 'vera', password: 'correct horse 10', role: 'viewer' })

  const visit = async (path) => {
    await page.goto(h.url + path)
    await page.locator('h1, h2').first().waitFor()
    await page.waitForFunction(() => !document.querySelector('[aria-busy=true]'))
    await page.waitForTimeout(600) // charts and fonts
  }
  const devtools = await page.context().newCDPSession(page)
  const picture = async (name) => {
    if (all) return page.screenshot({ path: join(out, name + '.png') })
    // WebP is a third of PNG: the pictures are in the repository.
    const { data } = await devtools.send('Page.captureScreenshot', { format: 'webp', quality: 82 })
    writeFileSync(join(out, name + '.webp'), Buffer.from(data, 'base64'))
  }
  await until('traffic in the charts', async () => sent > (all ? 1500 : 3000), 120_000)

  if (all) {
    const of = { '/proxies/$name': '/proxies/shop', '/streams/$kind/$name': '/streams/tcp_proxies/database', '/certificates/$name': '/certificates/none', '/history/$number': '/history/2' }
    const places = [
      ...pagePaths.map((p) => [p.name, of[p.path] ?? p.path]),
      ['edit', '/proxies/shop?edit=1'],
      ['part', '/proxies/shop?edit=routes%5B0%5D.rate_limit'],
      ['explained', `/explain?url=${encodeURIComponent('http://shop.example.com/api/orders')}`],
      ['discovered', '/proxies/grafana'],
    ]
    places.push(['server', `/proxies/shop?about=${encodeURIComponent(`http://127.0.0.1:${d}`)}`], ['acme-form', '/certificates'], ['imported', '/import?from=nginx'], ['compared', '/compare'])
    const wanted = process.argv[3]?.split(',')
    for (const [name, path] of places) {
      if (wanted && !wanted.includes(name)) continue
      await page.setViewportSize({ width: 1280, height: 800 })
      await page.emulateMedia({ colorScheme: 'light' })
      await visit(path)
      if (name === 'log') await page.waitForTimeout(2000)
      await more[name]?.(page)
      await picture(name)
      await page.emulateMedia({ colorScheme: 'dark' })
      await page.waitForTimeout(700)
      await picture(name + '-dark')
      await page.setViewportSize({ width: 360, height: 780 })
      await page.emulateMedia({ colorScheme: 'light' })
      await page.waitForTimeout(700)
      await picture(name + '-phone')
    }
  } else {
    await visit('/')
    await picture('overview')
    await visit('/proxies')
    await picture('proxies')
    await page.emulateMedia({ colorScheme: 'dark' })
    await visit('/proxies/shop')
    await picture('proxy-dark')
    await page.emulateMedia({ colorScheme: 'light' })
    await visit('/proxies/new')
    await page.getByLabel('Host name').fill('recipes.example.com')
    await page.getByLabel('Server').fill('http://10.0.0.12:8080')
    await page.getByRole('button', { name: 'Review', exact: true }).click()
    await page.getByText('Affected hosts').waitFor()
    await page.waitForTimeout(600)
    await picture('review')
    await page.getByRole('button', { name: 'Discard all' }).click()
    await page.getByRole('dialog', { name: 'Discard all changes?' }).getByRole('button', { name: 'Discard all' }).click()
    await visit(`/explain?url=${encodeURIComponent('http://shop.example.com/api/orders')}`)
    await picture('explain')
    await visit('/log')
    await page.waitForTimeout(2000)
    await picture('log')
    await visit('/certificates')
    await picture('certificates')
    await visit('/import?from=nginx')
    await more.imported(page)
    await page.getByRole('heading', { name: 'Result' }).scrollIntoViewIfNeeded()
    await page.evaluate(() => window.scrollBy(0, 420))
    await page.waitForTimeout(400)
    await picture('import')
    await visit('/compare')
    await more.compared(page)
    await picture('compare')
    await page.setViewportSize({ width: 390, height: 844 })
    await visit('/proxies')
    await picture('proxies-phone')
  }
} finally {
  clearInterval(traffic)
  await browser.close()
  await h.end()
  docker.close()
  for (const s of servers) s.closeAllConnections(), s.close()
}
