import { describe, expect, it } from 'vitest'
import configuration from '../../../internal/config/schema.json'
import openapi from '../../../internal/admin/api/openapi.json'
import { pathOf } from '@/api/queries'
import { changedFields, equal, merge, stateFields, written } from './object'

describe('objects', () => {
  it('leaves out what the API tells beside the document', () => {
    const o = { name: 'a', state: 'active', etag: 'x', servers: { healthy: 0, unknown: 1, total: 1 }, virtual_hosts: ['a'] }
    expect(written('proxies', o)).toEqual({ virtual_hosts: ['a'] })
    expect(written('tcp_proxies', { ...o, servers: [{ address: 'x' }] })).toHaveProperty('servers')
  })
  it('leaves out whether a secret is set, and keeps its mask', () => {
    const users = [{ name: 'ada', password_hash: '********', password_hash_set: true }]
    expect(written('proxies', { name: 'a', state: 'active', etag: 'x', basic_auth: { users } })).toEqual({ basic_auth: { users: [{ name: 'ada', password_hash: '********' }] } })
    // No field of the configuration is called so.
    expect(JSON.stringify(configuration)).not.toMatch(/"[a-z_]+_set":/)
  })
  it('finds the fields that differ', () => {
    expect(changedFields({ a: 1, b: [1] }, { a: 1, b: [2], c: 3 })).toEqual(['b', 'c'])
    expect(equal({ a: [{ b: 1 }] }, { a: [{ b: 1 }] })).toBe(true)
    expect(equal([], {})).toBe(false)
  })
  it('merges changes of different fields and refuses those of the same', () => {
    const base = { a: 1, b: 1, c: 1 }
    expect(merge(base, { a: 2, b: 1, c: 1 }, { a: 1, b: 3 })).toEqual({ a: 2, b: 3 })
    expect(merge(base, { a: 2, b: 1, c: 1 }, { a: 3, b: 1, c: 1 })).toBeNull()
    expect(merge(base, { b: 1, c: 1 }, { a: 1, b: 2, c: 1 })).toEqual({ b: 2, c: 1 })
  })
  it('knows everything that the API tells beside the document', () => {
    const { schemas } = openapi.components
    for (const state of ['objectState', 'proxyState'] as const) expect(Object.keys(schemas[state].properties).filter((name) => name !== 'servers' && !stateFields.includes(name))).toEqual([])
  })
  it('knows the path of every single object', () => {
    const singles = Object.keys(openapi.paths).filter((p) => p.startsWith('/api/v1/settings/'))
    expect(singles.map((p) => '/api/v1' + pathOf(p.split('/').pop()!))).toEqual(singles)
  })
})
