import type { Proxy } from '@/api/queries'

type Route = NonNullable<Proxy['routes']>[number]

/**
 * The features that act on a request, in the order in which they do, and those that act
 * on its response alone. A test compares them with the table of the server. What a route
 * sets replaces what the proxy sets.
 */
export const onRequest = [
  'client_ip',
  'ip_filter',
  'rate_limit',
  'redirect_http_to_https',
  'cors',
  'maintenance',
  'redirects',
  'request_body_limit',
  'request_timeout',
  'gate',
  'basic_auth',
  'forward_auth',
  'split',
  'sticky_cookie',
  'rewrite',
  'headers',
] as const
export const aroundServer = ['cache', 'compression', 'mirror'] as const
export const onResponse = ['error_pages', 'security_headers'] as const

/** Where a feature can be set: split, sticky_cookie and mirror on routes only. */
export const all = [...onRequest, ...aroundServer, ...onResponse]
const onRoutesOnly = ['split', 'sticky_cookie', 'mirror']

/** A feature of a route: where it is set, and the path of the setting. */
export type Filter = { name: string; level: 'route' | 'proxy' | 'policy' | 'defaults'; at: string; policy?: string }
export type Policies = Record<string, object>

const get = (o: object | undefined, name: string) => (o as Record<string, unknown> | undefined)?.[name]
const off = (v: unknown) => v === false || v === 0 || v === '0' || (Array.isArray(v) && v.length === 0) || (typeof v === 'object' && (v as { enabled?: boolean } | null)?.enabled === false)

/** Where the features of a route may be set, what holds first comes first; of two policies the later one holds. */
function placesOf(proxy: Proxy, route: Route, index: number, policies: Policies, defaults?: object) {
  const used = (use: string[] | undefined) => [...(use ?? [])].reverse().map((policy) => ({ o: policies[policy], level: 'policy' as const, policy, at: '' }))
  return [
    { o: route as object | undefined, level: 'route' as const, at: `routes[${index}].`, policy: undefined },
    ...used(route.use),
    { o: proxy as object | undefined, level: 'proxy' as const, at: '', policy: undefined },
    ...used(proxy.use),
    { o: defaults, level: 'defaults' as const, at: '', policy: undefined },
  ]
}

/** The features of a route that are set, each with where. */
export function filtersOf(proxy: Proxy, route: Route, index = 0, policies: Policies = {}, defaults?: object): Filter[] {
  const places = placesOf(proxy, route, index, policies, defaults)
  return all.flatMap((name): Filter[] => {
    const found = places.find((p) => get(p.o, name) !== undefined && get(p.o, name) !== null)
    if (!found || off(get(found.o, name))) return []
    const { level, at, policy } = found
    return [{ name, level, at: level === 'policy' || level === 'defaults' ? '' : at + name, ...(policy ? { policy } : {}) }]
  })
}

/** The setting of a feature that acts on a route; undefined is that it is off. */
export function effective(proxy: Proxy, route: Route, name: string, policies: Policies = {}, defaults?: object): unknown {
  const found = placesOf(proxy, route, 0, policies, defaults).find((p) => get(p.o, name) !== undefined && get(p.o, name) !== null)
  const v = found && get(found.o, name)
  return v === undefined || off(v) ? undefined : v
}

/** Who may use a route. */
export type Access = { closed: boolean; password: boolean; signIn: boolean; allow: string[]; deny: string[] }

/** Who may use a proxy; undefined is that its routes differ. */
export function accessOf(proxy: Proxy, policies: Policies = {}, defaults?: object): Access | undefined {
  const found = (proxy.routes?.length ? proxy.routes : [{} as Route]).map((route): Access => {
    const set = (name: string) => effective(proxy, route, name, policies, defaults)
    const configured = set('ip_filter') as { allow?: string[]; deny?: string[]; mode?: string } | undefined
    const filter = configured?.mode === 'observe' ? undefined : configured
    return { closed: !!set('maintenance'), password: !!set('basic_auth'), signIn: !!set('forward_auth') || !!set('gate'), allow: filter?.allow ?? [], deny: filter?.deny ?? [] }
  })
  return found.every((a) => JSON.stringify(a) === JSON.stringify(found[0])) ? found[0] : undefined
}

/** The features in the groups of the menu; a test holds that each is in one. */
export const groups: Record<'access' | 'traffic' | 'content', readonly string[]> = {
  access: ['gate', 'basic_auth', 'forward_auth', 'ip_filter', 'client_ip', 'cors', 'maintenance'],
  traffic: ['redirect_http_to_https', 'redirects', 'rewrite', 'rate_limit', 'request_body_limit', 'request_timeout', 'split', 'sticky_cookie', 'mirror'],
  content: ['headers', 'security_headers', 'cache', 'compression', 'error_pages'],
}

/** The features that a route does not have yet, and may. */
export const missing = (filters: Filter[], served: boolean) => all.filter((name) => !filters.some((f) => f.name === name) && (served || !onRoutesOnly.includes(name)))
