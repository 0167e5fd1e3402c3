import { describe, expect, it } from 'vitest'
import { inspect, nearest, options, placeOf } from './complete'
import type { JSONSchema } from './schema'

const root: JSONSchema = {
  $defs: {
    Limit: { type: 'object', properties: { requests: { type: 'integer', minimum: 1, maximum: 10, description: 'requests is how many' }, mode: { enum: ['enforce', 'observe'], default: 'enforce' } } },
  },
}
const schema: JSONSchema = {
  type: 'object',
  properties: {
    description: { type: 'string' },
    tags: { type: 'array', items: { type: 'string' } },
    methods: { type: 'array', items: { enum: ['GET', 'PUT'] } },
    limit: { $ref: '#/$defs/Limit' },
    routes: {
      type: 'array',
      items: {
        type: 'object',
        properties: {
          path: { type: 'string' },
          active: { type: 'boolean', default: true },
          limit: { $ref: '#/$defs/Limit' },
          servers: { type: 'array', items: { type: 'object', properties: { url: { type: 'string' }, weight: { type: 'integer', default: 1 } } } },
        },
      },
    },
    named: { type: 'object', additionalProperties: { $ref: '#/$defs/Limit' } },
  },
}
/** The labels that are offered where | stands. */
const at = (text: string) => {
  const place = placeOf(text.replace('|', ''), text.indexOf('|'))
  return place && options(place, schema, root).map((o) => o.label)
}

describe('what is offered', () => {
  it.each([
    ['|', ['description', 'tags', 'methods', 'limit', 'routes', 'named']],
    ['description: x\nro|', ['tags', 'methods', 'limit', 'routes', 'named']],
    ['ro|\ntags: [a]', ['description', 'methods', 'limit', 'routes', 'named']],
    ['limit:\n  |', ['requests', 'mode']],
    ['limit:\n  mode: |', ['enforce', 'observe']],
    ['limit:\n  mode: ob|', ['enforce', 'observe']],
    ['routes:\n  - |', ['path', 'active', 'limit', 'servers']],
    ['routes:\n- |', ['path', 'active', 'limit', 'servers']],
    ['routes:\n  - path: /a\n    |', ['active', 'limit', 'servers']],
    ['routes:\n  - path: /a\n    servers:\n      - url: x\n    limit:\n      requests: 1\n      |', ['mode']],
    ['routes:\n  - path: /a\n    servers:\n      - url: x\n        |', ['weight']],
    ['routes:\n  - path: /a\n  - |', ['path', 'active', 'limit', 'servers']],
    ['routes:\n  - path: /a\n    active: |', ['true', 'false']],
    ['methods:\n  - |', ['GET', 'PUT']],
    ['routes:\n  - path: /a\n|', ['description', 'tags', 'methods', 'limit', 'named']],
    ['named:\n  one:\n    |', ['requests', 'mode']],
    ['# a comm|', undefined],
    ['description: "a quo|', undefined],
    ['nothing:\n  |', []],
  ])('%j', (text, want) => expect(at(text)).toEqual(want))

  it('writes what belongs after a key', () => {
    const place = placeOf('routes:\n  - ', 12)!
    expect(options(place, schema, root).map((o) => o.apply)).toEqual(['path: ', 'active: ', 'limit:\n      ', 'servers:\n      - '])
  })
})

it('finds at its place what the schema does not allow', () => {
  const text = 'descripton: x\nlimit:\n  requests: 11\n  mode: off\nroutes:\n  - path: /a\n    limit: {requests: "${N}"}\nnamed:\n  any: {requests: 2}\n'
  const found = inspect(text, schema, root)
  expect(found.map((f) => text.slice(f.from, f.to))).toEqual(['descripton', '11', 'off'])
  expect(nearest('descripton', found[0]!.known!)).toBe('description')
  expect(found[1]!.wrong).toMatchObject({ what: 'between', max: 10 })
  expect(found[2]!.choices).toEqual(['enforce', 'observe'])
})
it('guesses no word that is far from all', () => expect(nearest('zzz', ['path', 'limit'])).toBeUndefined())
