import { expect, it } from 'vitest'
import type { AnyObject } from '@/api/queries'
import { canHaveGate, pageFor, protectEdits } from './protect'

const wiki = { name: 'wiki', state: 'active', virtual_hosts: ['wiki.example.com'], acme: 'main', routes: [{ servers: [{ url: 'http://10.0.0.5' }] }] } as unknown as AnyObject

it('proposes a host for the sign-in page beside the application', () => {
  expect(['wiki.example.com', 'example.com', '*.apps.example.com', 'nas'].map(pageFor)).toEqual(['login.example.com', 'login.example.com', 'login.apps.example.com', ''])
})

it('adds all that is missing for a gate, and nothing that is there', () => {
  const first = protectEdits({ proxy: 'wiki', page: 'login.example.com', group: 'family', secure: '0.0.0.0:443' }, { proxy: wiki, names: ['wiki', 'login'], ports: [] })
  expect(first.map((e) => [e.kind, e.name])).toEqual([
    ['ports', 'websecure'],
    ['sign_in', ''],
    ['proxies', 'login-2'],
    ['proxies', 'wiki'],
  ])
  expect(first[2]!.value).toEqual({ virtual_hosts: ['login.example.com'], acme: 'main', routes: [{ path: '/', sign_in: {} }] })
  expect(first[3]!.value).toMatchObject({ gate: { allow: ['group:family'] }, virtual_hosts: ['wiki.example.com'] })
  const second = protectEdits(
    { proxy: 'wiki', page: '', group: 'family', secure: '' },
    { signIn: { local: true } as unknown as AnyObject, proxy: wiki, names: ['wiki', 'login'], ports: [{ name: 'websecure' }] },
  )
  expect(second.map((e) => e.name)).toEqual(['wiki'])
})

it('offers applications with a name and without a gate', () => {
  expect(canHaveGate(wiki, [])).toBe(true)
  expect(canHaveGate(wiki, ['wiki'])).toBe(false)
  expect(canHaveGate({ ...wiki, virtual_hosts: [] }, [])).toBe(false)
  expect(canHaveGate({ ...wiki, virtual_hosts: ['~^a'] }, [])).toBe(false)
  expect(canHaveGate({ ...wiki, routes: [{ sign_in: {} }] }, [])).toBe(false)
})
