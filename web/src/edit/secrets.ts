import { resolve, type JSONSchema } from './schema'

/** What the API gives in place of a secret. */
export const mask = '********'

/** Whether a value has a secret in it, by the marks of its schema; one that is masked is none. */
export function secretIn(value: unknown, given: JSONSchema | undefined, root: JSONSchema): boolean {
  if (!given || value === undefined || value === null) return false
  if (given.writeOnly) return typed(value)
  const s = resolve(given, root)
  if (s.writeOnly) return typed(value)
  if (Array.isArray(value)) return value.some((x) => secretIn(x, s.items, root))
  if (typeof value !== 'object') return false
  return Object.entries(value).some(([name, x]) => secretIn(x, s.properties?.[name] ?? (typeof s.additionalProperties === 'object' ? s.additionalProperties : undefined), root))
}

const typed = (v: unknown): boolean => (typeof v === 'object' && v ? Object.values(v).some(typed) : typeof v === 'string' && v !== '' && v !== mask)

/** The value with a mark in place of each secret, to be shown. */
export function masked(value: unknown, given: JSONSchema | undefined, root: JSONSchema): unknown {
  if (!given || value === undefined || value === null) return value
  const s = resolve(given, root)
  if (given.writeOnly || s.writeOnly) return mask
  if (Array.isArray(value)) return value.map((x) => masked(x, s.items, root))
  if (typeof value !== 'object') return value
  return Object.fromEntries(
    Object.entries(value).map(([name, x]) => [name, masked(x, s.properties?.[name] ?? (typeof s.additionalProperties === 'object' ? s.additionalProperties : undefined), root)]),
  )
}
