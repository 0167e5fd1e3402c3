import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import test from 'node:test'
import { pages, rewrite, root } from './pages.mjs'
import { rows, scoreboard } from './scoreboard.mjs'

const all = pages()

test('links between pages follow them to their addresses', () => {
  const change = (text) => rewrite(text, 'docs/guides/routing.md', 'guides/routing.md', all)
  assert.equal(change('[a](servers.md#x)'), '[a](servers.md#x)')
  assert.equal(change('[a](../../internal/feature/rewrite/guide.md)'), '[a](../features/rewrite.md)')
  assert.equal(change('[a](../../CHANGELOG.md)'), '[a](../release-notes.md)')
  assert.equal(change('[a](#host) [b](https://example.com/)'), '[a](#host) [b](https://example.com/)')
})

test('pictures follow their pages', () => {
  assert.equal(rewrite('![a](docs/guides/console/log.webp)', 'README.md', 'overview.md', all), '![a](guides/console/log.webp)')
})

test('links to source files become code', () => {
  assert.equal(rewrite('[serve.go](../internal/plan/serve.go)', 'docs/architecture.md', 'architecture.md', all), '`serve.go`')
})

test('a link that leads nowhere fails', () => {
  assert.throws(() => rewrite('[a](nothing.md)', 'docs/guides/routing.md', 'guides/routing.md', all), /leads nowhere/)
})

test('comments are removed, and code is left as it is', () => {
  const code = '```html\n<!-- kept --> [a](nothing.md)\n```'
  assert.equal(rewrite(`<!-- gone -->\n${code}\n`, 'README.md', 'overview.md', all), `${code}\n`)
})

test('the scoreboard has every row of the benchmark, and marks the best', () => {
  const performance = readFileSync(join(root, 'docs/performance.md'), 'utf8')
  const page = scoreboard(performance, { conformance: [] })
  const bench = rows(performance.match(/<!-- bench: begin[^]*?<!-- bench: end -->/)[0])
  assert.ok(bench.length > 20)
  for (const row of bench) assert.ok(page.includes(`| ${row.work} | ${row.unit} |`), row.work)
  const made = (cells) => `<!-- bench: begin -->\n| work | unit | headgate | nginx | haproxy | net/http | ÷ nginx |\n|---|---|---|---|---|---|---|\n| w | µs | ${cells.join(' | ')} | 2 |\n<!-- bench: end -->\n<!-- abuse: begin -->\n| attack |\n|---|\n<!-- abuse: end -->\n<!-- features: begin -->\n| feature |\n|---|\n<!-- features: end -->\n<!-- steady: begin -->\n| work | headgate | nginx | haproxy | ÷ nginx | ÷ haproxy |\n|---|---|---|---|---|---|\n| s | 1; 2; 3 | 4; 5; 6 | – | 0.25 | – |\n<!-- steady: end -->`
  const lost = scoreboard(made(['20 (1–30)', '10 (9–11)', '–', '30']), { conformance: [] })
  assert.ok(lost.includes('| w | µs | 20 | **10** | – | 30 | 2 |'), lost)
  assert.ok(lost.includes('best result in 0 of 1 rows'))
  assert.ok(lost.includes('| s | 1; 2; 3 | 4; 5; 6 | – | 0.25 | – |'), lost)
  const upgrades = { about: 'Five upgrades.', rows: [{ load: 'HTTP/3', headgate: '0 of 9', nginx: '2 of 9', haproxy: '1 of 9' }] }
  assert.ok(scoreboard(performance, { conformance: [], upgrades }).includes('| HTTP/3 | 0 of 9 | 2 of 9 | 1 of 9 |'))
})
