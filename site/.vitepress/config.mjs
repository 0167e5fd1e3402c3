import { readFileSync, readdirSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { defineConfig } from 'vitepress'

const pages = join(dirname(fileURLToPath(import.meta.url)), '..', '.pages')

/** The title of a page: its first heading. */
const title = (file) => (readFileSync(join(pages, file), 'utf8').match(/^# (.*)$/m)?.[1] ?? file).replaceAll('`', '')
const item = (file) => ({ text: title(file), link: `/${file.replace(/\.md$/, '').replace(/index$/, '')}` })
const folder = (name) =>
  readdirSync(join(pages, name))
    .filter((f) => f.endsWith('.md') && f !== 'index.md')
    .sort()
    .map((f) => item(`${name}/${f}`))

/** The guides in the groups of their index, docs/guides/README.md. */
function guides() {
  const groups = []
  for (const line of readFileSync(join(pages, 'guides/index.md'), 'utf8').split('\n')) {
    const group = line.match(/^\| \*\*(.*)\*\* \|/)
    if (group) groups.push({ text: group[1], collapsed: false, items: [] })
    const page = line.match(/^\|.*\]\(([a-z0-9-]+\.md)\) \|$/)
    if (page && groups.length) groups.at(-1).items.push(item(`guides/${page[1]}`))
  }
  return [...groups, { text: 'Migration examples', collapsed: true, items: folder('guides/moving') }, { text: 'Features', collapsed: true, items: folder('features') }]
}

// The headings of the pages are linked to in the form of the repository's lint.
const slug = (s) =>
  s
    .toLowerCase()
    .replace(/[^\p{L}\p{N}_ -]/gu, '')
    .replaceAll(' ', '-')

const about = [
  { text: 'Project', items: [item('overview.md'), item('scoreboard.md'), item('performance.md'), item('release-notes.md')] },
  { text: 'Development', items: [item('architecture.md'), item('glossary.md'), item('style.md'), item('language.md')] },
  { text: 'Design', items: folder('design') },
]

export default defineConfig({
  srcDir: '.pages',
  title: 'headgate',
  description: 'A fast reverse proxy with a web console',
  cleanUrls: false,
  lastUpdated: false,
  // Code in pages is no template and no HTML: all that looks like it is text.
  markdown: {
    html: false,
    attrs: { disable: true },
    languageAlias: { caddyfile: 'nginx', haproxy: 'ini' },
    anchor: { slugify: slug },
    config(md) {
      const braces = (html) => html.replaceAll('{{', '&#123;&#123;')
      for (const rule of ['text', 'code_inline']) {
        const render = md.renderer.rules[rule]
        md.renderer.rules[rule] = (...args) => braces(render(...args))
      }
    },
  },
  vite: { build: { chunkSizeWarningLimit: 4096 } },
  themeConfig: {
    search: { provider: 'local' },
    outline: [2, 3],
    nav: [
      { text: 'Guides', link: '/guides/', activeMatch: '^/(guides|features)/' },
      { text: 'Reference', link: '/reference/configuration', activeMatch: '^/reference/' },
      { text: 'Errors', link: '/errors/', activeMatch: '^/errors/' },
      { text: 'Scoreboard', link: '/scoreboard' },
      { text: 'Release notes', link: '/release-notes' },
    ],
    sidebar: {
      '/guides/': guides(),
      '/features/': guides(),
      '/reference/': [{ text: 'Reference', items: folder('reference') }],
      '/errors/': [{ text: 'Reasons', items: folder('errors') }],
      '/': about,
    },
  },
})
