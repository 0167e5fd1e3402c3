/** The parts of JSON Schema that the API's schema of the configuration has. */
export type JSONSchema = {
  $ref?: string
  $defs?: Record<string, JSONSchema>
  /** The name of the definition that was put in; resolve sets it. */
  def?: string
  type?: string | string[]
  description?: string
  default?: unknown
  examples?: unknown[]
  enum?: unknown[]
  properties?: Record<string, JSONSchema>
  required?: string[]
  items?: JSONSchema
  additionalProperties?: JSONSchema | boolean
  patternProperties?: Record<string, JSONSchema>
  anyOf?: JSONSchema[]
  allOf?: JSONSchema[]
  minimum?: number
  maximum?: number
  minLength?: number
  maxLength?: number
  maxItems?: number
  pattern?: string
  format?: string
  writeOnly?: boolean
}

export type Control = 'text' | 'number' | 'switch' | 'choice' | 'lines' | 'object' | 'objects' | 'map' | 'entries'
export type Kind = 'duration' | 'size' | undefined

/** A field as a form shows it. */
export type Field = {
  control: Control
  /** What a text counts; it is written with its unit. */
  unit: Kind
  schema: JSONSchema
  /** Of an object, a list or a map: the schema of what is inside. */
  inner?: JSONSchema
  choices?: string[]
}

/** Puts in what a schema refers to. What stands beside the reference wins. */
export function resolve(s: JSONSchema, root: JSONSchema): JSONSchema {
  if (s.$ref) {
    const name = s.$ref.replace(/^#\/\$defs\//, '')
    const { $ref: _, ...beside } = s
    return { ...resolve(root.$defs?.[name] ?? {}, root), def: name, ...beside }
  }
  if (s.anyOf && !s.type) {
    // `${…}` may stand for any value; the form shows the other possibility.
    const main = s.anyOf.find((x) => x.$ref || !x.pattern?.startsWith('\\$\\{')) ?? s.anyOf[0]!
    const { anyOf: _, ...beside } = s
    return { ...resolve(main, root), ...beside }
  }
  return s
}

const types = (s: JSONSchema) => [s.type ?? []].flat().filter((x) => x !== 'null')

/** Chooses the control of a field. */
export function fieldOf(given: JSONSchema, root: JSONSchema): Field {
  const schema = resolve(given, root)
  const type = types(schema)
  const unit: Kind = schema.pattern?.includes('(ns|us') ? 'duration' : /[KMG]i?\)?\??B|KiB/.test(schema.pattern ?? '') ? 'size' : undefined
  const field = (control: Control, more: Partial<Field> = {}): Field => ({ control, unit, schema, ...more })
  if (schema.enum) return field('choice', { choices: schema.enum.filter((x) => x !== null).map(String) })
  if (type.includes('boolean')) return field('switch')
  if (type.includes('array')) {
    const inner = resolve(schema.items ?? {}, root)
    return types(inner).includes('object') && inner.properties ? field('objects', { inner }) : field('lines', { inner })
  }
  if (type.includes('object')) {
    if (schema.properties) return field('object', { inner: schema })
    const inner = typeof schema.additionalProperties === 'object' ? schema.additionalProperties : Object.values(schema.patternProperties ?? {})[0]
    const entry = inner && resolve(inner, root)
    return field(entry?.properties ? 'entries' : 'map', { inner: entry })
  }
  if (type.length > 0 && type.every((x) => x === 'integer' || x === 'number')) return field('number')
  return field('text')
}

/** The schema of a kind of object: that of the entries of its section. */
export function schemaOf(kind: string, root: JSONSchema): JSONSchema {
  const section = resolve(root.properties?.[kind] ?? {}, root)
  const entry =
    typeof section.additionalProperties === 'object' ? section.additionalProperties : Object.values(section.patternProperties ?? {}).find((s) => typeof s === 'object' && Object.keys(s).length > 0)
  return section.properties ? section : resolve(entry ?? {}, root)
}

/** What is wrong with a value, before the server is asked; '' is nothing that can be told here. */
export type Wrong = { what: 'number' | 'duration' | 'long' | 'between' | 'missing'; min?: number; max?: number }

export function check(value: unknown, f: Field, required = false): Wrong | undefined {
  if (value === undefined || value === null || value === '') return required ? { what: 'missing' } : undefined
  if (typeof value === 'string' && value.includes('${')) return undefined
  const { minimum: min, maximum: max, maxLength, pattern } = f.schema
  if (f.control === 'number') {
    if (typeof value !== 'number' || Number.isNaN(value)) return { what: 'number' }
    if ((min !== undefined && value < min) || (max !== undefined && value > max)) return { what: 'between', min, max }
  }
  if (typeof value === 'string') {
    if (maxLength !== undefined && [...value].length > maxLength) return { what: 'long', max: maxLength }
    if (f.unit === 'duration' && pattern && !new RegExp(pattern).test(value)) return { what: 'duration' }
  }
  return undefined
}

/**
 * The help of a field as plain words, for a reader who has its label before him: "period is
 * the time that …" is "The time that …". Code marks go.
 */
export function help(s: JSONSchema): string {
  // It begins with the name of the field, whose label stands beside it.
  const text = (s.description ?? '').replace(/^(?:`[a-z0-9_]+`|[a-z0-9_]+(?= (?:is|are) [a-z])) (?:(?:is|are) (?=[a-z]))?/, '').replaceAll('`', '')
  return text.charAt(0).toUpperCase() + text.slice(1)
}

/** A help in two: its first sentence, and what follows, which is shown when asked for. */
export function sentences(text: string): [string, string] {
  const end = /[^.][^.\s]\.(?=\s+[A-Z"{[(/0-9])/.exec(text)
  if (!end || text.length < 100) return [text, '']
  const at = end.index + end[0].length
  return [text.slice(0, at), text.slice(at).trim()]
}
