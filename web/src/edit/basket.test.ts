import { beforeEach, describe, expect, it } from 'vitest'
import { basket, body, put, secretIn, settle } from './basket'

const base = { name: 'shop', state: 'active', etag: 'x', virtual_hosts: ['a'] }
beforeEach(() => basket.set([]))

describe('the basket', () => {
  it('keeps one edit of each object, with the base of the first', () => {
    put({ kind: 'ports', name: 'web', op: 'set', value: { address: 'a' }, base })
    put({ kind: 'ports', name: 'web', op: 'set', value: { address: 'b' }, base: { ...base, etag: 'y' } })
    expect(basket.get()).toHaveLength(1)
    expect(basket.get()[0]).toMatchObject({ value: { address: 'b' }, base: { etag: 'x' } })
  })
  it('has no edit that changes nothing, and none of an object that never was', () => {
    put({ kind: 'ports', name: 'web', op: 'set', value: { virtual_hosts: ['a'] }, base })
    expect(basket.get()).toEqual([])
    put({ kind: 'proxies', name: 'new', op: 'set', value: {} })
    put({ kind: 'proxies', name: 'new', op: 'remove' })
    expect(basket.get()).toEqual([])
  })
  it('writes names that are no plain words so that a path holds them', () => {
    put({ kind: 'proxies', name: 'a.b "c"', op: 'remove', base })
    expect(body(basket.get()).edits[0]!.path).toBe('proxies["a.b \\"c\\""]')
  })
  it('settles a conflict by any of three ways', () => {
    put({ kind: 'ports', name: 'web', op: 'set', value: { address: 'mine' }, base })
    const c = { edit: basket.get()[0]!, theirs: { ...base, etag: 'z' }, both: { address: 'both' } }
    settle(c, 'both')
    expect(basket.get()[0]).toMatchObject({ value: { address: 'both' }, base: { etag: 'z' } })
    settle(c, 'theirs')
    expect(basket.get()).toEqual([])
  })
  it('renames', () => {
    put({ kind: 'proxies', name: 'shop', op: 'rename', to: 'store', base })
    expect(body(basket.get()).edits).toEqual([{ op: 'rename', path: 'proxies.shop', to: 'store' }])
  })
  it('knows what has secrets, which no browser keeps', () => {
    expect(secretIn({ basic_auth: { users: [{ name: 'a', password_hash: 'x' }] } })).toBe(true)
    expect(secretIn({ basic_auth: { users: [{ name: 'a', password_hash: '********' }] } })).toBe(false)
    expect(secretIn({ dns: { credentials: { api: 'x' } } })).toBe(true)
    expect(secretIn({ virtual_hosts: ['a'], routes: [{ servers: [{ url: 'http://a' }] }] })).toBe(false)
  })
})
