import { expect, it } from 'vitest'
import type { Proxy } from '@/api/queries'
import { authOf } from './auth'

const policies = { members: { basic_auth: {} }, sso: { forward_auth: {} }, open: { basic_auth: { enabled: false } } }
const of = (p: object, defaults = {}) => authOf(p as Proxy, policies, defaults).map((a) => [a.how, a.policy].filter(Boolean).join(' '))

it('knows sign-in of the proxy, of a route, and of a policy by its name', () => {
  expect(of({ basic_auth: {}, routes: [{}] })).toEqual(['basic_auth'])
  expect(of({ routes: [{}, { forward_auth: {} }] })).toEqual(['forward_auth'])
  expect(of({ use: ['members', 'sso'], routes: [{}] })).toEqual(['basic_auth members', 'forward_auth sso'])
  expect(of({ routes: [{ use: ['members'] }, { use: ['members'] }] })).toEqual(['basic_auth members'])
})
it('takes what stands nearer, and what is switched off for nothing', () => {
  expect(of({ use: ['members', 'open'], routes: [{}] })).toEqual([])
  expect(of({ use: ['members'], basic_auth: { enabled: false }, routes: [{}] })).toEqual([])
  expect(of({ use: ['members'], routes: [{ basic_auth: { enabled: false } }, {}] })).toEqual(['basic_auth members'])
  expect(of({ routes: [{}] }, { basic_auth: {} })).toEqual(['basic_auth *'])
  expect(of({})).toEqual([])
})
