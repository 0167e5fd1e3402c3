import { isMap, isScalar, isSeq, parseDocument, type Node, type Pair } from 'yaml'
import { schemaAt, type Step } from './part'
import { check, fieldOf, help, resolve, type JSONSchema, type Wrong } from './schema'

/** Where the cursor stands: the path of the object around it, or of the field whose value is written. */
type Place = {
  steps: Step[]
  /** Whether a value is written at steps, else a key inside of steps. */
  value: boolean
  /** Where the word begins that is being written, and its column. */
  from: number
  column: number
  /** The keys that the object has already. */
  taken: string[]
}

type Line = { dashes: number[]; column: number; key?: string; value?: string }

/** A line of YAML in block style: its dashes, its key and what follows. */
function lineOf(text: string): Line {
  const dashes: number[] = []
  let at = /^ */.exec(text)![0].length
  while (text[at] === '-' && (text[at + 1] === ' ' || text[at + 1] === undefined)) {
    dashes.push(at)
    at += 1 + /^ */.exec(text.slice(at + 1))![0].length
  }
  const found = /^(?:"([^"]*)"|'([^']*)'|([^\s#:'"][^:#]*?))\s*:(?:\s+(.*))?$/.exec(text.slice(at))
  return { dashes, column: at, key: found ? (found[1] ?? found[2] ?? found[3]) : undefined, value: found?.[4] ?? undefined }
}

const blank = (text: string) => /^\s*(#.*)?$/.test(text)

/** Finds where the cursor stands, by columns: a text that is being written is no whole YAML yet. */
export function placeOf(text: string, at: number): Place | undefined {
  const lines = text.split('\n')
  let start = 0
  let index = 0
  while (index < lines.length - 1 && start + lines[index]!.length < at) start += lines[index++]!.length + 1
  const before = lines[index]!.slice(0, at - start)
  if (/(^|\s)#/.test(before) || /["'{[|>&*]/.test(before.replace(/^\s*(- +)*("[^"]*"|'[^']*')\s*:/, ''))) return undefined
  const here = lineOf(before)
  const typed = here.key !== undefined && /:\s/.test(before) ? (here.value ?? '') : before.slice(here.column)
  const value = here.key !== undefined && /:\s/.test(before)
  if (/\s/.test(typed)) return undefined

  const steps: Step[] = value ? [here.key!] : []
  let column = here.column
  let inDash = false
  const leave = (dashes: number[]) => {
    for (const d of [...dashes].reverse()) {
      if (d >= column) continue
      steps.unshift(0)
      column = d
      inDash = true
    }
  }
  const taken: string[] = []
  const sibling = (line: Line) => line.key !== undefined && line.column === here.column && taken.push(line.key)
  leave(here.dashes)
  let siblings = here.dashes.length === 0
  for (let i = index - 1; i >= 0 && column >= 0; i--) {
    if (blank(lines[i]!)) continue
    const line = lineOf(lines[i]!)
    if (siblings) sibling(line)
    if (line.column < here.column || (line.dashes.length > 0 && line.column === here.column)) siblings = false
    if (line.key !== undefined && line.column < column + (inDash && line.dashes.length === 0 ? 1 : 0)) {
      steps.unshift(line.key)
      column = line.column
      inDash = false
      leave(line.dashes)
    } else if (line.column === column && !inDash) leave(line.dashes)
    if (column === 0 && !inDash && !siblings) break
  }
  for (let i = index + 1; i < lines.length; i++) {
    if (blank(lines[i]!)) continue
    const line = lineOf(lines[i]!)
    if (line.column < here.column || (line.dashes.length > 0 && line.dashes[0]! < here.column)) break
    sibling(line)
  }
  return { steps, value, from: at - typed.length, column: here.column, taken }
}

type Option = { label: string; apply: string; detail: string; info: string }

/** What may be written at a place: keys with their help, or the values of a field. */
export function options(place: Place, schema: JSONSchema, root: JSONSchema): Option[] {
  const at = schemaAt(schema, place.steps, root)
  if (!at) return []
  const field = fieldOf(at, root)
  const inList = place.steps.at(-1) === 0
  if (place.value || (inList && field.control !== 'object')) {
    const texts =
      field.choices ??
      (field.control === 'switch' ? ['true', 'false'] : [field.schema.default, ...(field.schema.examples ?? [])].filter((v) => v !== undefined && v !== null && typeof v !== 'object').map(String))
    return [...new Set(texts)].map((v) => ({ label: v, apply: v, detail: v === String(field.schema.default) ? 'default' : '', info: '' }))
  }
  const pad = ' '.repeat(place.column + 2)
  return Object.entries(resolve(at, root).properties ?? {})
    .filter(([name]) => !place.taken.includes(name))
    .map(([name, s]) => {
      const f = fieldOf(s, root)
      const after = f.control === 'object' || f.control === 'map' ? `:\n${pad}` : f.control === 'objects' || f.control === 'lines' ? `:\n${pad}- ` : ': '
      const d = f.schema.default
      return { label: name, apply: name + after, detail: f.choices?.join(' | ') ?? (d !== undefined && d !== null && typeof d !== 'object' && d !== '' ? `default ${d}` : ''), info: help(f.schema) }
    })
}

export type Found = { from: number; to: number; key: string; wrong?: Wrong; known?: string[]; choices?: string[] }

/** What the schema says against a text, at its place: keys that are not known, values out of bounds. */
export function inspect(text: string, schema: JSONSchema, root: JSONSchema): Found[] {
  const out: Found[] = []
  const look = (node: Node | null | undefined, given: JSONSchema, key: string) => {
    if (!node) return
    const f = fieldOf(given, root)
    if (isMap(node)) {
      const s = resolve(given, root)
      for (const pair of node.items as Pair<Node, Node | null>[]) {
        const name = isScalar(pair.key) ? String(pair.key.value) : ''
        const inner = s.properties?.[name] ?? (f.control === 'map' ? f.inner : undefined)
        if (inner) look(pair.value, inner, name)
        else if (s.properties && !Object.keys(s.patternProperties ?? {}).some((p) => new RegExp(p).test(name)) && name !== '<<' && pair.key.range)
          out.push({ from: pair.key.range[0], to: pair.key.range[1], key: name, known: Object.keys(s.properties) })
      }
    } else if (isSeq(node)) {
      for (const item of node.items as Node[]) look(item, resolve(given, root).items ?? {}, key)
    } else if (isScalar(node) && node.range) {
      const wrong = check(node.value, f)
      const text = String(node.value)
      if (wrong) out.push({ from: node.range[0], to: node.range[1], key, wrong })
      else if (f.choices && node.value !== null && !f.choices.includes(text) && !text.includes('${')) out.push({ from: node.range[0], to: node.range[1], key, choices: f.choices })
    }
  }
  look(parseDocument(text).contents as Node | null, schema, '')
  return out
}

/** The known word that is nearest to one that is not, for "did you mean". */
export function nearest(word: string, known: string[]): string | undefined {
  let best: [number, string] | undefined
  for (const k of known) {
    const d = distance(word, k)
    if (d <= Math.max(1, Math.floor(k.length / 3)) && (!best || d < best[0])) best = [d, k]
  }
  return best?.[1]
}

function distance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, i) => i)
  for (let i = 1; i <= a.length; i++) {
    const next = [i]
    for (let j = 1; j <= b.length; j++) next.push(Math.min(row[j]! + 1, next[j - 1]! + 1, row[j - 1]! + (a[i - 1] === b[j - 1] ? 0 : 1)))
    row = next
  }
  return row[b.length]!
}
