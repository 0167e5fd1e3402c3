import type { Proxy } from '@/api/queries'

type Way = 'basic_auth' | 'forward_auth'
type Part = Partial<Record<Way, { enabled?: boolean } | null>> & { use?: string[] }

/** How people sign in somewhere, and the policy that says so; none is the proxy or a route itself. */
export type Auth = { how: Way; policy?: string }

export const defaultsName = '*'

/**
 * How people sign in at a proxy, on any of its routes. What an object says itself counts
 * before its policies, of which the later one counts; the defaults of all come last.
 */
export function authOf(p: Proxy, policies: Record<string, Part> = {}, defaults: Part = {}): Auth[] {
  const found = new Map<string, Auth>()
  for (const how of ['basic_auth', 'forward_auth'] as const)
    for (const o of [...(p.routes?.length ? p.routes : [{}])] as Part[]) {
      const places: { o: Part | undefined; policy?: string }[] = [{ o }, ...policiesOf(o, policies), { o: p as Part }, ...policiesOf(p as Part, policies), { o: defaults, policy: defaultsName }]
      const place = places.find((x) => x.o?.[how] !== undefined && x.o[how] !== null)
      if (place && place.o![how]!.enabled !== false) found.set(`${how} ${place.policy}`, { how, policy: place.policy })
    }
  return [...found.values()]
}

const policiesOf = (o: Part, policies: Record<string, Part>) => [...(o.use ?? [])].reverse().map((policy) => ({ o: policies[policy], policy }))
