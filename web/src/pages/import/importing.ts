import { parseDocument } from 'yaml'
import { isSingle, type Whole } from '@/api/queries'
import type { components } from '@/api/schema'
import type { Edit } from '@/edit/basket'
import type { Value } from '@/edit/object'

type S = components['schemas']
export type Verdict = 'same' | 'close' | 'ignored' | 'not_possible'
export type Entry = Omit<Whole<S['Entry']>, 'verdict'> & { verdict: Verdict }
type Report = Omit<Whole<S['importerReport']>, 'entries'> & { entries: Entry[] }
export type Imported = Omit<Whole<S['importBody']>, 'report' | 'files'> & { report: Report; files: S['importedFile'][] }

/** A file of the source; included is that it is read only where another names it. */
export type Source = { name: string; included: boolean; size: number; text?: string; data?: string }

/** What the API takes of files together. */
export const maxSize = 32 << 20

/** Reads a file: text as it is, anything else in base64. */
export async function read(file: File): Promise<Source> {
  const bytes = new Uint8Array(await file.arrayBuffer())
  const name = (file.webkitRelativePath || file.name).replace(/^\.\//, '')
  const base = { name, included: false, size: bytes.length }
  if (!bytes.subarray(0, 8192).includes(0))
    try {
      return { ...base, text: new TextDecoder('utf-8', { fatal: true }).decode(bytes) }
    } catch {
      // it is no text
    }
  let binary = ''
  for (let i = 0; i < bytes.length; i += 0x8000) binary += String.fromCharCode(...bytes.subarray(i, i + 0x8000))
  return { ...base, data: btoa(binary) }
}

/** How the main file of a source is called; the others are there to be included. */
const main: Record<string, RegExp> = { nginx: /(^|\/)nginx\.conf$/i, caddy: /(^|\/)caddyfile$/i }

/** Guesses which files are only there for others: where there is a main one, all but it. */
export function guess(kind: string, files: Source[]): Source[] {
  const rule = main[kind]
  const first = rule && files.filter((f) => rule.test(f.name)).sort((a, b) => a.name.split('/').length - b.name.split('/').length)[0]
  return files.map((f) => ({ ...f, included: !!first && f !== first }))
}

/** The sections of a document as values; undefined where it cannot be read. */
export function parsed(text: string): Record<string, unknown> | undefined {
  const d = parseDocument(text)
  if (d.errors.length) return undefined
  const value: unknown = d.toJS()
  return typeof value === 'object' && value ? (value as Record<string, unknown>) : undefined
}

/** The edits that bring a document into the configuration: each of its objects is set. */
export function editsOf(document: Record<string, unknown>): Edit[] {
  const edits: Edit[] = []
  for (const [kind, section] of Object.entries(document)) {
    if (kind === 'version' || kind.startsWith('x-') || typeof section !== 'object' || !section) continue
    if (isSingle(kind)) edits.push({ kind, name: '', op: 'set', value: section as Value })
    else for (const [name, value] of Object.entries(section)) edits.push({ kind, name, op: 'set', value: value as Value })
  }
  return edits
}

/** The numbers that the usual ports get beside the old proxy. */
export const besidePorts = ['80=8080', '443=8443']

/** Certificates that came with their keys, and are not kept in headgate yet. */
export function keysOf(text: string, files: Imported['files']): { name: string; certificate: string; key: string }[] {
  const all = Object.entries((parsed(text)?.certificates ?? {}) as Record<string, { cert_file?: string; key_file?: string } | null>)
  const of = (name?: string) => {
    const f = files.find((f) => f.name === name)
    return f && (f.text ?? new TextDecoder().decode(Uint8Array.from(atob(f.data ?? ''), (c) => c.charCodeAt(0))))
  }
  return all.flatMap(([name, c]) => {
    const certificate = of(c?.cert_file)
    const key = of(c?.key_file)
    return certificate && key ? [{ name, certificate, key }] : []
  })
}

/** The document with certificates that are kept in headgate in place of files. */
export function withStored(text: string, names: string[]): string {
  const d = parseDocument(text)
  for (const name of names) d.setIn(['certificates', name], { stored: name })
  return String(d)
}
