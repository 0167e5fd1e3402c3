import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import type { Proxy } from '@/api/queries'
import { accessOf, all, aroundServer, filtersOf, groups, missing, onRequest, onResponse } from './flow'
import { t } from '@/text'

/** The names of a table of the server, in its order. */
function table(of: string): string[] {
  const text = readFileSync(join(import.meta.dirname, '../../../../internal/plan/rooms.go'), 'utf8')
  const body = text.slice(text.indexOf(of))
  return [...body.slice(0, body.indexOf('\n}')).matchAll(/^\t\t(?:onStreams\()?(?:\w+\((?:\w+, )?|\{name: )"(\w+)"/gm)].map((m) => m[1]!).filter((n) => n !== 'around')
}

it('has the filters of the server in their order', () => {
  const rooms = table('filters() []room')
  expect(rooms.length).toBeGreaterThan(15)
  const known: string[] = [...onRequest, ...onResponse, 'forwarded', 'tracing', 'bans'] // these are no settings of a proxy
  expect(rooms.filter((n) => !known.includes(n))).toEqual([])
  // Of a room with two rows the one for requests counts; a rate limit has both there.
  const last = (n: string) => (n === 'rate_limit' ? rooms.indexOf(n) : rooms.lastIndexOf(n))
  expect([...onRequest]).toEqual([...onRequest].sort((a, b) => last(a) - last(b)))
  expect([...onRequest].filter((n) => !rooms.includes(n))).toEqual([])
  expect([...aroundServer].sort()).toEqual(table('func sources()').sort())
})

it('tells where each filter is set', () => {
  const proxy = { name: 'p', use: ['a', 'b'], compression: {}, rate_limit: { requests: 1 }, request_timeout: '5s' } as unknown as Proxy
  const route = { use: ['c'], rate_limit: { enabled: false }, basic_auth: { users: [] } } as never
  const policies = { a: { cache: {} }, b: { cache: { enabled: false }, cors: {} }, c: { compression: { enabled: false } } }
  const filters = filtersOf(proxy, route, 2, policies)
  expect(filters).toEqual([
    { name: 'cors', level: 'policy', at: '', policy: 'b' },
    { name: 'request_timeout', level: 'proxy', at: 'request_timeout' },
    { name: 'basic_auth', level: 'route', at: 'routes[2].basic_auth' },
  ])
  expect(missing(filters, false)).not.toContain('mirror')
  expect(missing(filters, true)).toContain('mirror')
})

it('has every feature in one group of the menu, with a line of help', () => {
  expect(Object.values(groups).flat().sort()).toEqual([...all].sort())
  for (const name of all) expect(t.proxy.filterHelp[name], name).toBeTruthy()
})
it('says who may use a proxy, by what holds at each route', () => {
  const proxy = { use: ['careful'], routes: [{ path: '/' }, { path: '/api' }] } as never
  const policies = { careful: { basic_auth: { users: [] } } }
  expect(accessOf(proxy, policies)).toMatchObject({ password: true, closed: false })
  expect(accessOf({ use: ['careful'], routes: [{ path: '/' }, { path: '/api', basic_auth: { enabled: false } }] } as never, policies)).toBeUndefined()
  expect(accessOf({ routes: [{}] } as never, {}, { ip_filter: { allow: ['10.0.0.0/8'] } })).toMatchObject({ allow: ['10.0.0.0/8'] })
  expect(accessOf({ routes: [{}] } as never, {}, { ip_filter: { allow: ['10.0.0.0/8'], mode: 'observe' } })).toMatchObject({ allow: [] })
})
