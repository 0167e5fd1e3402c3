import { beforeEach, describe, expect, it, vi } from 'vitest'
import { basket, body, put, settle } from './basket'

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
    const was = { name: 'web', state: 'listening', etag: 'x', address: 'a', protocol: 'http', tags: ['old'] }
    const edit = () => put({ kind: 'ports', name: 'web', op: 'set', value: { address: 'mine', protocol: 'https', tags: ['old'] }, base: was })
    const now = { ...was, etag: 'z', address: 'theirs', tags: ['new'] }
    edit()
    const c = { edit: basket.get()[0]!, theirs: now, fields: ['address'] }
    settle(c, 'fields', { address: 'theirs' })
    expect(basket.get()[0]).toMatchObject({ value: { address: 'theirs', protocol: 'https', tags: ['new'] }, base: { etag: 'z' } })
    basket.set([c.edit])
    settle(c, 'fields', { address: 'mine' })
    expect(basket.get()[0]!.value).toEqual({ address: 'mine', protocol: 'https', tags: ['new'] })
    basket.set([c.edit])
    settle(c, 'mine')
    expect(basket.get()[0]).toMatchObject({ value: { address: 'mine', tags: ['old'] }, base: { etag: 'z' } })
    settle(c, 'theirs')
    expect(basket.get()).toEqual([])
  })
  it('keeps a rename over what somebody else changed', () => {
    put({ kind: 'proxies', name: 'shop', op: 'rename', to: 'store', base })
    settle({ edit: basket.get()[0]!, theirs: { ...base, etag: 'z' } }, 'mine')
    expect(basket.get()).toEqual([{ kind: 'proxies', name: 'shop', op: 'rename', to: 'store', base: { ...base, etag: 'z' }, value: undefined }])
  })
  it('renames', () => {
    put({ kind: 'proxies', name: 'shop', op: 'rename', to: 'store', base })
    expect(body(basket.get()).edits).toEqual([{ op: 'rename', path: 'proxies.shop', to: 'store' }])
  })
})

describe('after a reload', () => {
  it('keeps what was there, and removals, before it knows which fields are secrets', async () => {
    const before = { kind: 'proxies', name: 'shop', op: 'set' as const, value: { virtual_hosts: ['a'] }, base }
    let stored = JSON.stringify([before])
    vi.stubGlobal('sessionStorage', { getItem: () => stored, setItem: (_: string, value: string) => (stored = value) })
    vi.resetModules()
    const anew = await import('./basket')
    anew.put({ kind: 'ports', name: 'web', op: 'remove', base })
    anew.put({ kind: 'webhooks', name: 'chat', op: 'set', value: { secret: 'not to be kept' } })
    expect(JSON.parse(stored)).toEqual([before, { kind: 'ports', name: 'web', op: 'remove', base }])
    expect(anew.isKept()).toBe(false)
    vi.unstubAllGlobals()
  })
})
