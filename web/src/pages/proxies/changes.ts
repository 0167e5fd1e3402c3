import type { AnyObject } from '@/api/queries'
import { basket, editOf, put, type Edit } from '@/edit/basket'
import { written, type Value } from '@/edit/object'

export type Kind = 'proxies' | 'tcp_proxies' | 'udp_proxies'
export type Target = { kind: Kind; object: AnyObject }

/** The object as it will be: what waits for it counts before what is active. */
export function upcoming({ kind, object }: Target): Value | undefined {
  const edit = editOf(basket.get(), kind, object.name!)
  if (edit?.op === 'remove') return undefined
  return edit?.value ?? written(kind, object)
}

/** Adds a change of each object to the changes; how many there are. Read-only ones are left out. */
export function changeAll(targets: Target[], change: (value: Value, kind: Kind) => Value | undefined): number {
  let n = 0
  for (const target of targets) {
    const value = upcoming(target)
    const next = value && !target.object.read_only && change(value, target.kind)
    if (!next) continue
    put({ kind: target.kind, name: target.object.name!, op: 'set', base: target.object, value: next } satisfies Edit)
    n++
  }
  return n
}

export const withActive =
  (active: boolean) =>
  (v: Value): Value => {
    const { active: _, ...rest } = v
    return active ? rest : { ...rest, active: false }
  }

/** Adds a word to a list of an object, once. */
export const withWord =
  (field: 'tags' | 'use', word: string) =>
  (v: Value): Value => ({ ...v, [field]: [...new Set([...((v[field] as string[] | undefined) ?? []), word])] })

export function removeAll(targets: Target[]): number {
  const open = targets.filter((x) => !x.object.read_only)
  for (const { kind, object } of open) put({ kind, name: object.name!, op: 'remove', base: object })
  return open.length
}

/** The objects as a document, to be kept or imported elsewhere. */
export function documentOf(targets: Target[]): Record<string, unknown> {
  const out: Record<string, Record<string, Value>> = {}
  for (const { kind, object } of targets) (out[kind] ??= {})[object.name!] = written(kind, object)
  return { version: 1, ...out }
}
