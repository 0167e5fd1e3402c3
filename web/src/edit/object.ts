import type { AnyObject } from '@/api/queries'

/** What the API tells of an object beside what its document says. */
export const stateFields = ['name', 'origin', 'state', 'etag', 'issues', 'health', 'last_change', 'recent', 'plan', 'read_only']

export type Value = Record<string, unknown>

/**
 * The object as its document says it. Of a proxy, `servers` are a count; beside a secret
 * the API tells whether it is set.
 */
export function written(kind: string, o: AnyObject): Value {
  const skip = kind === 'proxies' ? [...stateFields, 'servers'] : stateFields
  return withoutSet(Object.fromEntries(Object.entries(o).filter(([key]) => !skip.includes(key)))) as Value
}

function withoutSet(v: unknown): unknown {
  if (Array.isArray(v)) return v.map(withoutSet)
  if (typeof v !== 'object' || !v) return v
  return Object.fromEntries(
    Object.entries(v)
      .filter(([key, x]) => !(key.endsWith('_set') && typeof x === 'boolean'))
      .map(([key, x]) => [key, withoutSet(x)]),
  )
}

export const equal = (a: unknown, b: unknown): boolean => {
  if (a === b) return true
  if (typeof a !== 'object' || typeof b !== 'object' || !a || !b || Array.isArray(a) !== Array.isArray(b)) return false
  const keys = Object.keys(a)
  return keys.length === Object.keys(b).length && keys.every((k) => k in b && equal((a as Value)[k], (b as Value)[k]))
}

/** The fields of an object, first level, that are not the same. */
export function changedFields(before: Value | undefined, after: Value | undefined): string[] {
  const keys = new Set([...Object.keys(before ?? {}), ...Object.keys(after ?? {})])
  return [...keys].filter((k) => !equal(before?.[k], after?.[k]))
}

/** The fields that both changed, each otherwise: of these somebody has to choose. */
export const contested = (base: Value, mine: Value, theirs: Value): string[] => changedFields(base, mine).filter((k) => !equal(base[k], theirs[k]) && !equal(mine[k], theirs[k]))

export type Side = 'mine' | 'theirs'

/** Merges two changes of one object; sides say whose counts of the fields that both changed, and null is that one is not said. */
export function merge(base: Value, mine: Value, theirs: Value, sides: Record<string, Side> = {}): Value | null {
  const out: Value = { ...theirs }
  const open = contested(base, mine, theirs)
  if (open.some((key) => !sides[key])) return null
  for (const key of changedFields(base, mine)) {
    if (open.includes(key) && sides[key] === 'theirs') continue
    if (key in mine) out[key] = mine[key]
    else delete out[key]
  }
  return out
}
