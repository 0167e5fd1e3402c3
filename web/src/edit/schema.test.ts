import { expect, it } from 'vitest'
import { check, fieldOf, schemaOf, type JSONSchema, help, sentences } from './schema'

const duration = {
  anyOf: [
    { type: ['string', 'integer'], pattern: '^(0|([0-9]+(ns|us|ms|s|m|h))*)$' },
    { type: 'string', pattern: '\\$\\{' },
  ],
  default: '1s',
}
const root: JSONSchema = {
  properties: { proxies: { type: 'object', additionalProperties: { $ref: '#/$defs/Proxy' } }, admin: { $ref: '#/$defs/Admin' } },
  $defs: {
    Admin: { type: 'object', properties: { address: { type: 'string' } } },
    Proxy: {
      type: ['object', 'null'],
      properties: { hosts: { type: 'array', items: { type: 'string' } }, routes: { type: 'array', items: { $ref: '#/$defs/Route' } }, limit: { $ref: '#/$defs/Limit', description: 'beside' } },
    },
    Route: { type: 'object', properties: { strip: { default: true, anyOf: [{ type: 'boolean' }, { type: 'string', pattern: '\\$\\{' }] } } },
    Limit: { type: 'object', description: 'inside', properties: { requests: { type: 'integer', minimum: 1, maximum: 10 }, period: duration, mode: { enum: ['enforce', 'observe'], type: 'string' } } },
  },
}

it('finds the schema of a kind, of a list and of a single object', () => {
  expect(Object.keys(schemaOf('proxies', root).properties!)).toEqual(['hosts', 'routes', 'limit'])
  expect(Object.keys(schemaOf('admin', root).properties!)).toEqual(['address'])
})
it('chooses a control for every field', () => {
  const p = schemaOf('proxies', root).properties!
  expect(fieldOf(p.hosts!, root).control).toBe('lines')
  expect(fieldOf(p.routes!, root).control).toBe('objects')
  const limit = fieldOf(p.limit!, root)
  expect([limit.control, limit.schema.description]).toEqual(['object', 'beside'])
  const of = (name: string) => fieldOf(limit.inner!.properties![name]!, root)
  expect(of('requests').control).toBe('number')
  expect(of('mode')).toMatchObject({ control: 'choice', choices: ['enforce', 'observe'] })
  expect(of('period')).toMatchObject({ control: 'text', unit: 'duration', schema: { default: '1s' } })
  expect(fieldOf(fieldOf(p.routes!, root).inner!.properties!.strip!, root).control).toBe('switch')
})
it('checks bounds, and leaves variables to the server', () => {
  const limit = fieldOf(schemaOf('proxies', root).properties!.limit!, root).inner!.properties!
  const requests = fieldOf(limit.requests!, root)
  expect(check(11, requests)).toMatchObject({ what: 'between', min: 1, max: 10 })
  expect(check('x', requests)).toMatchObject({ what: 'number' })
  expect(check('${N}', requests)).toBeUndefined()
  expect(check(undefined, requests, true)).toMatchObject({ what: 'missing' })
  expect(check('5 minutes', fieldOf(limit.period!, root))).toMatchObject({ what: 'duration' })
  expect(check('5m', fieldOf(limit.period!, root))).toBeUndefined()
})

it.each([
  ['period is the time that requests are counted over', 'The time that requests are counted over'],
  ['routes are the paths the proxy answers', 'The paths the proxy answers'],
  ['matchers narrow the requests', 'Matchers narrow the requests'],
  ['`enabled` is whether the limit acts', 'Whether the limit acts'],
  ['`eab` binds the account to one of the authority', 'Binds the account to one of the authority'],
])('tells a reader of a label: %s', (description, want) => expect(help({ description })).toBe(want))

it('folds what follows the first sentence of a long help', () => {
  const long = 'An exact name ("shop.example.com"), a wildcard ("*.example.com"), or an expression from ~^ to $. Exact names win over wildcards. Empty means every host.'
  expect(sentences(long)).toEqual(['An exact name ("shop.example.com"), a wildcard ("*.example.com"), or an expression from ~^ to $.', 'Exact names win over wildcards. Empty means every host.'])
  expect(sentences('Short. Whole.')).toEqual(['Short. Whole.', ''])
})
