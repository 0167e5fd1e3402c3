// Copies the pages of the repository into .pages, from which VitePress builds the site.
// The pages stay where they are and as they are: this program only changes what a site
// needs. It moves pages to their addresses, rewrites links between them, turns links to
// source files into code, removes HTML comments, and writes the home page and the
// scoreboard.
import { cpSync, existsSync, mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join, normalize, posix, relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import { scoreboard } from './scoreboard.mjs'

const site = dirname(fileURLToPath(import.meta.url))
export const root = join(site, '..')
export const out = join(site, '.pages')

/** The pages: where each is in the repository, and where on the site. */
export function pages() {
  const all = new Map()
  const folder = (from, to, recursive = false) => {
    for (const entry of readdirSync(join(root, from), { withFileTypes: true })) {
      if (entry.isDirectory() && recursive) folder(`${from}/${entry.name}`, `${to}/${entry.name}`, true)
      if (!entry.name.endsWith('.md')) continue
      all.set(`${from}/${entry.name}`, `${to}/${entry.name === 'README.md' ? 'index.md' : entry.name}`)
    }
  }
  folder('docs/guides', 'guides', true)
  folder('docs/reference', 'reference')
  folder('docs/errors', 'errors')
  folder('docs/design', 'design')
  for (const name of ['architecture', 'glossary', 'language', 'performance']) all.set(`docs/${name}.md`, `${name}.md`)
  for (const feature of readdirSync(join(root, 'internal/feature'))) {
    const guide = `internal/feature/${feature}/guide.md`
    if (existsSync(join(root, guide))) all.set(guide, `features/${feature}.md`)
  }
  all.set('README.md', 'overview.md')
  all.set('STYLE.md', 'style.md')
  all.set('CHANGELOG.md', 'release-notes.md')
  for (const name of ['CONTRIBUTING', 'SECURITY', 'UPGRADING', 'CODE_OF_CONDUCT']) {
    if (existsSync(join(root, `${name}.md`))) all.set(`${name}.md`, `${name.toLowerCase().replaceAll('_', '-')}.md`)
  }
  return all
}

/** Calls change for each part of a text that is not in a fenced block of code. */
export function outsideFences(text, change) {
  return text
    .split(/(^ *```[^]*?^ *```[^\n]*$)/m)
    .map((part, i) => (i % 2 ? part : change(part)))
    .join('')
}

/** Changes a page for the site. */
export function rewrite(text, from, to, all) {
  return outsideFences(text, (part) =>
    part.replace(/<!--[^]*?-->\n?/g, '').replace(/(!?)\[((?:[^\][]|\[[^\]]*\])*)\]\(([^)\s]+)\)/g, (link, image, label, target) => {
      if (/^[a-z]+:/.test(target) || target.startsWith('#')) return link
      const [path, anchor] = target.split('#')
      const named = posix.normalize(posix.join(posix.dirname(from), path))
      const page = all.get(named) ?? all.get(posix.join(named, 'README.md'))
      if (page) return `${image}[${label}](${posix.relative(posix.dirname(to), page) || posix.basename(page)}${anchor ? `#${anchor}` : ''})`
      if (image && named.startsWith('docs/guides/console/')) return `![${label}](${posix.relative(posix.dirname(to), named.slice('docs/'.length))})`
      if (named === 'docs/design') return label // a folder without a list of its own
      if (!existsSync(join(root, named))) throw new Error(`${from}: the link to ${target} leads nowhere`)
      return label.startsWith('`') ? label : named.endsWith('LICENSE') || label.includes(' ') ? `${label} (\`${named}\`)` : `\`${label}\``
    }),
  )
}

/** Writes all pages. */
export function write() {
  rmSync(out, { recursive: true, force: true })
  const all = pages()
  const put = (to, text) => {
    mkdirSync(dirname(join(out, to)), { recursive: true })
    writeFileSync(join(out, to), text)
  }
  for (const [from, to] of all) {
    let text = rewrite(readFileSync(join(root, from), 'utf8'), from, to, all)
    if (to === 'release-notes.md') text = text.replace(/^# Changelog$/m, '# Release notes')
    if (to === 'overview.md') text = text.replace(/^# headgate$/m, '# Overview')
    put(to, text)
  }
  cpSync(join(root, 'docs/guides/console'), join(out, 'guides/console'), { recursive: true })
  put('scoreboard.md', scoreboard(readFileSync(join(root, 'docs/performance.md'), 'utf8'), JSON.parse(readFileSync(join(site, 'scoreboard.json'), 'utf8'))))
  put('index.md', rewrite(readFileSync(join(site, 'home.md'), 'utf8'), 'site/home.md', 'index.md', all))
  return all.size + 2
}

if (process.argv[1] && normalize(process.argv[1]) === normalize(fileURLToPath(import.meta.url))) {
  console.log(`${write()} pages in ${relative(process.cwd(), out) || out}`)
}
