import { expect, it } from 'vitest'
import configuration from '../../../../internal/config/schema.json'
import { inspect } from '@/edit/complete'
import { schemaOf, type JSONSchema } from '@/edit/schema'
import { stringify } from 'yaml'
import { recipes } from './recipes'

const root = configuration as unknown as JSONSchema

it.each(recipes.map((r) => [r.name, r] as const))('sets only what a proxy has: %s', (_, r) => {
  const value = { ...r.proxy, virtual_hosts: ['a.test'], routes: [{ ...r.route, servers: [{ url: 'http://a:1' }] }, ...(r.more?.('a.test') ?? [])] }
  expect(inspect(stringify(value), schemaOf('proxies', root), root)).toEqual([])
})
