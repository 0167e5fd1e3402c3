import { expect, it } from 'vitest'
import configuration from '../../../internal/config/schema.json'
import { all } from '@/pages/proxies/flow'
import { emptyPart, schemaAt, stepsOf, valueAt, withPart } from './part'
import { fieldOf, schemaOf, type JSONSchema } from './schema'

const root = configuration as unknown as JSONSchema

it('finds, sets and takes out a part of an object', () => {
  const value = { routes: [{ path: '/' }, { path: '/api', cache: {} }] }
  const at = stepsOf('routes[1].rate_limit')
  expect(at).toEqual(['routes', 1, 'rate_limit'])
  const more = withPart(value, at, { requests: 5 })
  expect(valueAt(more, at)).toEqual({ requests: 5 })
  expect(withPart(more, at, undefined)).toEqual(value)
  expect(value.routes[1]).toEqual({ path: '/api', cache: {} })
})
it('knows the schema of every filter that the path of a request shows', () => {
  for (const name of all) {
    const schema = schemaAt(schemaOf('proxies', root), ['routes', 0, name], root)
    expect(schema, name).toBeDefined()
    expect(fieldOf(schema!, root).control === 'object' ? emptyPart(schema!, root) : {}, name).toEqual({})
  }
})
