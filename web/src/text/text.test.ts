import { readdirSync, readFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import ts from 'typescript'
import { expect, it } from 'vitest'
import { de } from './de'
import { en } from './en'
import { es } from './es'
import { fr } from './fr'
import { preferred } from '.'
import { count, many, writeIn } from './many'

const src = join(import.meta.dirname, '..')
const files = readdirSync(src, { recursive: true, encoding: 'utf8' }).filter((f) => /\.tsx$/.test(f))

/** Attributes whose values people read. */
const read = ['title', 'label', 'placeholder', 'aria-label', 'description', 'alt', 'lead', 'empty', 'emptyTitle', 'yes', 'text', 'nothing']

/** What is the same in every language: an address, a path, the head of a PEM block, a unit, the name of a format, a key, a header. */
const technical = (text: string) => /^\S*[./:@]\S*$/.test(text) || text.startsWith('-----') || /^(?:s|ms|%|YAML|TCP|UDP|Ctrl K)$/.test(text) || /^[a-z-]+: \S+$/.test(text)

const visible = (text: string) => /\p{L}{2,}/u.test(text) && !technical(text.trim())

/** Whether an attribute is of a Command: what it shows is typed in a terminal. */
const isCommand = (node: ts.JsxAttribute) => (node.parent.parent as ts.JsxSelfClosingElement).tagName.getText() === 'Command'

/** The texts in a file that people would read and that are no data. */
function texts(file: string): string[] {
  const source = ts.createSourceFile(file, readFileSync(join(src, file), 'utf8'), ts.ScriptTarget.Latest, true, ts.ScriptKind.TSX)
  const found: string[] = []
  const note = (node: ts.Node, text: string) => visible(text) && found.push(`${relative(src, join(src, file))}:${source.getLineAndCharacterOfPosition(node.getStart()).line + 1}: ${text.trim()}`)
  const literal = (e: ts.Node | undefined): void => {
    if (!e) return
    if (ts.isStringLiteralLike(e)) note(e, e.text)
    else if (ts.isTemplateExpression(e)) [e.head.text, ...e.templateSpans.map((s) => s.literal.text)].forEach((x) => note(e, x))
    else if (ts.isConditionalExpression(e)) [e.whenTrue, e.whenFalse].forEach(literal)
    else if (ts.isParenthesizedExpression(e)) literal(e.expression)
  }
  const look = (node: ts.Node) => {
    if (ts.isJsxText(node)) note(node, node.text)
    else if (ts.isJsxExpression(node) && (ts.isJsxElement(node.parent) || ts.isJsxFragment(node.parent))) literal(node.expression)
    else if (ts.isJsxAttribute(node) && read.includes(node.name.getText()) && !isCommand(node))
      literal(node.initializer && (ts.isJsxExpression(node.initializer) ? node.initializer.expression : node.initializer))
    else if (ts.isPropertyAssignment(node) && ['message', 'title', 'label'].includes(node.name.getText()) && ts.isStringLiteralLike(node.initializer)) note(node, node.initializer.text)
    ts.forEachChild(node, look)
  }
  look(source)
  return found
}

it('has every text that people read in the data', () => {
  expect(files.length).toBeGreaterThan(60)
  expect(files.flatMap(texts)).toEqual([])
}, 60_000) // it reads every file

/** The paths of all texts, and what kind each is. */
function shape(value: unknown, at = ''): string[] {
  if (typeof value !== 'object' || value === null) return [`${at} ${typeof value}`]
  return Object.entries(value).flatMap(([k, v]) => shape(v, `${at}.${k}`))
}

/** Words by name that English takes from the API as they are. */
const extra = (path: string) => /^\.(?:state|certificates\.word)\./.test(path)

it.each([
  ['de', de],
  ['fr', fr],
  ['es', es],
] as const)('is complete in %s', (_, language) => {
  const wanted = shape(en).filter((p) => !extra(p))
  const there = new Set(shape(language))
  expect(wanted.filter((p) => !there.has(p))).toEqual([])
  const known = new Set(shape(en))
  expect([...there].filter((p) => !known.has(p) && !extra(p))).toEqual([])
})

it.each([
  ['de', de],
  ['fr', fr],
  ['es', es],
] as const)('is not left in English in %s', (_, language) => {
  const texts = (v: unknown, at = ''): [string, string][] => (typeof v === 'string' ? [[at, v]] : typeof v === 'object' && v ? Object.entries(v).flatMap(([k, x]) => texts(x, `${at}.${k}`)) : [])
  const english = new Map(texts(en))
  // A sentence is never the same in two languages; words such as "Proxy" may be.
  const same = texts(language).filter(([at, text]) => english.get(at) === text && /\s\S+\s\S+\s/.test(text) && !technical(text) && !text.includes('https://'))
  expect(same).toEqual([])
})

it('chooses the first language of the browser that there is', () => {
  expect(preferred(['nl-NL', 'fr-CA', 'de'])).toBe('fr')
  expect(preferred(['nl', 'ja'])).toBe('en')
  expect(preferred([])).toBe('en')
})

it('writes numbers and plurals by the rules of the language', () => {
  writeIn('de')
  expect(count(12345.5)).toBe('12.345,5')
  expect(de.log.shown(1)).toBe('1 Anfrage')
  writeIn('fr')
  expect(many(0, 'serveur', 'serveurs')).toBe('0 serveur')
  writeIn('en')
  expect(many(0, 'server')).toBe('0 servers')
})
