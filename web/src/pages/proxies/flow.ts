import type { Proxy } from '@/api/queries'

type Route = NonNullable<Proxy['routes']>[number]

/**
 * The features that act on a request, in the order in which they do, and those that act
 * on its response alone. A test compares them with the table of the server. What a route
 * sets replaces what the proxy sets.
 */
export const onRequest = ['client_ip', 'ip_filter', 'rate_limit', 'redirect_http_to_https', 'cors', 'maintenance', 'redirects', 'request_body_limit', 'request_timeout', 'basic_auth', 'forward_auth', 'sticky_cookie', 'rewrite', 'headers'] as const
export const aroundServer = ['cache', 'compression', 'mirror'] as const
export const onResponse = ['error_pages', 'security_headers'] as const

/** Where a feature can be set: sticky_cookie and mirror on routes only. */
export const all = [...onRequest, ...aroundServer, ...onResponse]
const onRoutesOnly = ['sticky_cookie', 'mirror']

/** A feature of a route: where it is set, and the path of the setting. */
export type Filter = { name: string; level: 'route' | 'proxy' | 'policy'; at: string; policy?: string }
export type Policies = Record<string, object>

const get = (o: object | undefined, name: string) => (o as Record<string, unknown> | undefined)?.[name]
const off = (v: unknown) => v === false || v === 0 || (typeof v === 'object' && (v as { enabled?: boolean } | null)?.enabled === false)

/** The features of a route that are set, each with where. Defaults of all proxies are not among them. */
export function filtersOf(proxy: Proxy, route: Route, index = 0, policies: Policies = {}): Filter[] {
  // What holds first comes first; of two policies the later one holds.
  const used = (use: string[] | undefined) => [...(use ?? [])].reverse().map((policy) => ({ o: policies[policy], level: 'policy' as const, policy, at: '' }))
  const places = [{ o: route as object, level: 'route' as const, at: `routes[${index}].` }, ...used(route.use), { o: proxy as object, level: 'proxy' as const, at: '' }, ...used(proxy.use)]
  return all.flatMap((name): Filter[] => {
    const found = places.find((p) => get(p.o, name) !== undefined && get(p.o, name) !== null)
    if (!found || off(get(found.o, name))) return []
    const { level, at, ...rest } = found
    return [{ name, level, at: level === 'policy' ? '' : at + name, ...('policy' in rest ? { policy: rest.policy } : {}) }]
  })
}

/** The features that a route does not have yet, and may. */
export const missing = (filters: Filter[], served: boolean) => all.filter((name) => !filters.some((f) => f.name === name) && (served || !onRoutesOnly.includes(name)))
