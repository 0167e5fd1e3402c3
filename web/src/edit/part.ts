import type { Value } from './object'
import { fieldOf, resolve, type JSONSchema } from './schema'

export type Step = string | number

/** The steps of a path: routes[0].rate_limit is routes, 0, rate_limit. */
export const stepsOf = (path: string): Step[] =>
  path
    .split(/[.[\]]+/)
    .filter(Boolean)
    .map((s) => (/^\d+$/.test(s) ? Number(s) : s))

/** The schema of a part of an object; undefined when there is none. */
export function schemaAt(schema: JSONSchema, steps: Step[], root: JSONSchema): JSONSchema | undefined {
  let at: JSONSchema | undefined = schema
  for (const step of steps) {
    const here: JSONSchema = resolve(at, root)
    at = typeof step === 'number' ? here.items : (here.properties?.[step] ?? (typeof here.additionalProperties === 'object' ? here.additionalProperties : undefined))
    if (!at) return undefined
  }
  return at
}

/** The name of the definition of the object around a part. */
export function schemaAround(schema: JSONSchema, steps: Step[], root: JSONSchema): string | undefined {
  const around = schemaAt(schema, steps.slice(0, -1), root)
  return around && resolve(around, root).def
}

export const valueAt = (value: unknown, steps: Step[]): unknown => steps.reduce<unknown>((v, step) => (v as Record<Step, unknown> | undefined)?.[step], value)

/** The object with another value of a part; undefined takes it out. */
export function withPart(value: Value, steps: Step[], v: unknown): Value {
  const set = (at: unknown, [step, ...rest]: Step[]): unknown => {
    if (step === undefined) return v
    const copy = (Array.isArray(at) ? [...at] : { ...(at as object) }) as Record<Step, unknown>
    const inner = set(copy[step], rest)
    if (inner === undefined) delete copy[step]
    else copy[step] = inner
    return copy
  }
  return set(value, steps) as Value
}

/** What a part begins with that is not set yet: a form to fill in, not a button to press first. */
export function emptyPart(schema: JSONSchema, root: JSONSchema): unknown {
  const f = fieldOf(schema, root)
  if (f.control === 'switch') return f.schema.default === true ? undefined : true
  return f.control === 'object' ? {} : f.control === 'objects' ? [{}] : undefined
}
