import { useState } from 'react'
import { t } from '@/text'
import { count } from '@/text/many'
import { help, sentences, type Field, type JSONSchema, type Wrong } from './schema'
import { shown } from './words'

/** Problems by the path of their field, such as routes[0].path. */
export type Errors = Record<string, string>

/** What all parts of a form get. */
export type Common = { root: JSONSchema; errors: Errors; disabled?: boolean }

/** What the parts get that have fields inside. */
export type Inside = Common & { f: Field; title: string; at: string; onChange: (v: unknown) => void }

/** The path of a field in an object. */
export const join = (at: string, name: string) => (at ? `${at}.${name}` : name)

/** Whether a path is a place, or in it. */
export const under = (path: string, at: string) => path === at || path.startsWith(at + '.') || path.startsWith(at + '[')

/** What is wrong with a value, in words. */
export function wrongText(w: Wrong | undefined): string {
  switch (w?.what) {
    case 'missing':
      return t.edit.needed
    case 'number':
      return t.edit.notNumber
    case 'duration':
      return t.edit.notDuration
    case 'long':
      return t.edit.longest(w.max!)
    case 'between':
      return bounds(w.min, w.max)
    default:
      return ''
  }
}

function bounds(min?: number, max?: number): string {
  const n = count
  if (min !== undefined && max !== undefined) return t.edit.between(n(min), n(max))
  return min !== undefined ? t.edit.atLeast(n(min)) : max !== undefined ? t.edit.atMost(n(max)) : ''
}

/** The help of a field: its first sentence and its bounds; the rest on demand. */
export function About({ f }: { f: Field }) {
  const [whole, setWhole] = useState(false)
  const [first, rest] = sentences(help(f.schema))
  return (
    <>
      {first}{' '}
      {rest &&
        (whole ? (
          `${rest} `
        ) : (
          <button type="button" className="link" onClick={() => setWhole(true)}>
            {t.edit.moreHelp}
          </button>
        ))}
      {hints(f)}
    </>
  )
}

function hints(f: Field): string {
  const list = [f.unit && t.edit.unit[f.unit], f.control === 'number' && bounds(f.schema.minimum, f.schema.maximum), f.control === 'lines' && t.edit.listHelp].filter(Boolean)
  return list.length ? ` (${list.join('; ')})` : ''
}

/** What an empty field shows. */
export const placeholder = (s: JSONSchema) =>
  s.default !== undefined && s.default !== null && s.default !== '' ? t.edit.defaultIs(shown(s.default)) : s.examples?.[0] !== undefined ? t.edit.example(shown(s.examples[0])) : t.edit.optional
