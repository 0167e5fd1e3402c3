import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { layouts, placed, references } from './layout'
import type { JSONSchema } from './schema'

const root = JSON.parse(readFileSync(join(import.meta.dirname, '../../../internal/config/schema.json'), 'utf8')) as JSONSchema
const fields = (def: string) => Object.keys(root.$defs?.[def]?.properties ?? {})

it('names fields that there are', () => {
  for (const [def, l] of Object.entries(layouts)) for (const name of [...l.usual, ...(l.groups ?? []).flatMap(([, list]) => list)]) expect(fields(def), `${def}.${name}`).toContain(name)
  for (const [def, list] of Object.entries(references)) for (const name of Object.keys(list)) expect(fields(def), `${def}.${name}`).toContain(name)
})

it('lays out every object that is large', () => {
  for (const def of Object.keys(root.$defs ?? {})) if (fields(def).length > 6) expect(Object.keys(layouts), def).toContain(def)
})

it('shows each field once, the usual ones first', () => {
  const { first, groups } = placed('Proxy', fields('Proxy'), () => false, ['routes'])
  expect(first.slice(0, 2)).toEqual(['virtual_hosts', 'routes'])
  const all = [...first, ...groups.flatMap(([, list]) => list)]
  expect(new Set(all).size).toBe(all.length)
  expect(all.sort()).toEqual(fields('Proxy').sort())
  expect(placed('RateLimit', fields('RateLimit'), (n) => n === 'key').first).toEqual(['requests', 'period', 'burst', 'key'])
  expect(placed('Unknown', ['a', 'b', 'c', 'd', 'e', 'f'], () => false, ['f'])).toEqual({ first: ['a', 'b', 'c', 'd', 'f'], groups: [['', ['e']]] })
})
