// Checks the built site: every link to a page, a heading, a picture or a script of the
// site leads somewhere, no page shows a template or HTML as text, and the search index
// has every page.
import { existsSync, readFileSync, readdirSync, statSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import { pages } from './pages.mjs'

const dist = join(dirname(fileURLToPath(import.meta.url)), '.vitepress', 'dist')
const files = (dir) =>
  readdirSync(dir, { withFileTypes: true }).flatMap((e) => (e.isDirectory() ? files(join(dir, e.name)) : [join(dir, e.name)]))

const all = files(dist)
const html = all.filter((f) => f.endsWith('.html'))
const ids = new Map()
const idsOf = (file) => {
  if (!ids.has(file)) ids.set(file, new Set([...readFileSync(file, 'utf8').matchAll(/ id="([^"]+)"/g)].map((m) => m[1])))
  return ids.get(file)
}
const problems = []
let links = 0
for (const file of html) {
  const text = readFileSync(file, 'utf8')
  const where = relative(dist, file)
  for (const [, target] of text.matchAll(/ (?:href|src)="([^"]+)"/g)) {
    if (/^[a-z]+:/.test(target) || target.startsWith('//')) continue
    links++
    const [path, anchor] = target.replaceAll('&amp;', '&').split('#')
    let to = path === '' ? file : path.startsWith('/') ? join(dist, path) : join(dirname(file), path)
    if (existsSync(to) && statSync(to).isDirectory()) to = join(to, 'index.html')
    if (!existsSync(to) && existsSync(`${to}.html`)) to += '.html'
    if (!existsSync(to)) problems.push(`${where}: the link to ${target} leads nowhere`)
    else if (anchor && to.endsWith('.html') && !idsOf(to).has(decodeURIComponent(anchor))) problems.push(`${where}: ${relative(dist, to)} has no heading for the link to ${target}`)
  }
  const body = text.match(/<main[^]*<\/main>/)?.[0] ?? ''
  if (where !== '404.html' && where !== 'index.html' && !body) problems.push(`${where}: the page has no content`)
  if (body.includes('&lt;!--')) problems.push(`${where}: a comment of HTML shows as text`)
}
for (const to of [...pages().values(), 'index.md', 'scoreboard.md']) {
  if (!existsSync(join(dist, to.replace(/\.md$/, '.html')))) problems.push(`${to}: the page was not built`)
}
const index = all.find((f) => /localSearchIndex/.test(f))
const searched = index ? readFileSync(index, 'utf8') : ''
for (const name of ['/guides/install.html', '/errors/upstream_refused.html', '/reference/configuration.html', '/scoreboard.html']) {
  if (!searched.includes(name)) problems.push(`the search index lacks ${name}`)
}
const outside = all.filter((f) => (f.endsWith('.css') ? /url\(["']?https?:/ : f.endsWith('.html') ? /<(?:script|img|link|iframe)\b[^>]* (?:src|href)="(?:https?:)?\/\// : /$^/).test(readFileSync(f, 'utf8')))
for (const f of outside) problems.push(`${relative(dist, f)}: loads something from another host`)
for (const p of problems) console.error(p)
console.log(`${html.length} pages, ${links} links, ${problems.length} problems`)
process.exit(problems.length ? 1 : 0)
