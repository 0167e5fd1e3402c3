import type { Proxy } from '@/api/queries'

type Route = NonNullable<Proxy['routes']>[number]

/**
 * The features that act on a request, in the order in which they do (docs/architecture.md).
 * What a route sets replaces what the proxy sets.
 */
const order = ['client_ip', 'redirect_https', 'ip_filter', 'rate_limit', 'maintenance', 'redirects', 'basic_auth', 'forward_auth', 'limits', 'headers', 'rewrite', 'cache', 'compression', 'mirror', 'retry', 'error_pages'] as const

export type Filter = { name: string; level: 'route' | 'proxy' }

/** The features of a route that are set, each with where. */
export function filtersOf(proxy: Proxy, route: Route): Filter[] {
  const on = (o: unknown, name: string): boolean => {
    const v = (o as Record<string, unknown>)[name]
    if (v === undefined || v === null || v === false) return false
    return !(typeof v === 'object' && (v as { enabled?: boolean }).enabled === false)
  }
  const has = (o: unknown, name: string) => (o as Record<string, unknown>)[name] !== undefined
  return order.flatMap((name): Filter[] => {
    if (has(route, name)) return on(route, name) ? [{ name, level: 'route' }] : []
    return on(proxy, name) ? [{ name, level: 'proxy' }] : []
  })
}
