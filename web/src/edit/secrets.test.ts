import { expect, it } from 'vitest'
import configuration from '../../../internal/config/schema.json'
import { schemaOf, type JSONSchema } from './schema'
import { mask, masked, secretIn } from './secrets'

const root = configuration as unknown as JSONSchema
const has = (kind: string, value: unknown) => secretIn(value, schemaOf(kind, root), root)

it('knows what has secrets, which no browser keeps', () => {
  expect(has('proxies', { basic_auth: { users: [{ name: 'a', password_hash: 'x' }] } })).toBe(true)
  expect(has('proxies', { routes: [{ basic_auth: { users: [{ name: 'a', password_hash: 'x' }] } }] })).toBe(true)
  expect(has('proxies', { basic_auth: { users: [{ name: 'a', password_hash: mask }] } })).toBe(false)
  expect(has('acme', { dns: { credentials: { api: 'x' } } })).toBe(true)
  expect(has('acme', { dns: { credentials: { api: mask } } })).toBe(false)
  expect(has('webhooks', { url: 'https://a.example', secret: 'x' })).toBe(true)
  expect(has('admin', { oidc: { client_secret: 'x' } })).toBe(true)
  expect(has('proxies', { virtual_hosts: ['a'], routes: [{ servers: [{ url: 'http://a' }] }] })).toBe(false)
  expect(has('proxies', undefined)).toBe(false)
})

it('shows a mark in place of a secret', () => {
  const value = { url: 'https://a.example', secret: 'x', events: ['config.*'] }
  expect(masked(value, schemaOf('webhooks', root), root)).toEqual({ ...value, secret: mask })
})
