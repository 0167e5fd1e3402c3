import type { AnyObject } from '@/api/queries'

export type Kind = 'proxies' | 'tcp_proxies' | 'udp_proxies'

/** One way to a server: the object, the route, and what it is there. */
export type Use = { kind: Kind; name: string; hosts: string[]; route?: string; as: 'server' | 'backup' | 'forward_auth' | 'mirror'; address: string }

/** The host and port of an address, by which a server is the same wherever it is named; a socket is its path. */
export function hostPort(address: string): string {
  const text = address.trim().toLowerCase()
  const found = /^([a-z0-9+]+):\/\/([^/?#]*)/.exec(text)
  if (!found) return text.startsWith('unix:') ? text : text.replace(/\/.*$/, '')
  const [, scheme, host] = found
  if (scheme === 'unix') return text
  if (/:\d+$/.test(host!)) return host!
  return `${host}:${scheme === 'https' || scheme === 'wss' || scheme === 'grpcs' ? 443 : 80}`
}

type Server = { url?: string; address?: string; backup?: boolean }
type Part = { path?: string; servers?: Server[]; forward_auth?: { url?: string }; mirror?: { servers?: Server[] } }

/** All ways to servers of one object. */
function usesOf(kind: Kind, o: AnyObject): Use[] {
  const name = o.name!
  const hosts = kind === 'proxies' ? ((o.virtual_hosts as string[] | undefined) ?? []) : ((o.sni as string[] | undefined) ?? [o.address, o.port].filter((x) => typeof x === 'string'))
  const out: Use[] = []
  const take = (address: string | undefined, as: Use['as'], route?: string) => address && out.push({ kind, name, hosts, route, as, address })
  const part = (p: Part, route?: string) => {
    for (const s of Array.isArray(p.servers) ? p.servers : []) take(s.url ?? s.address, s.backup ? 'backup' : 'server', route)
    take(p.forward_auth?.url, 'forward_auth', route)
    for (const s of p.mirror?.servers ?? []) take(s.url, 'mirror', route)
  }
  part({ ...(o as Part), path: undefined })
  for (const r of (o.routes as Part[] | undefined) ?? []) part(r, r.path ?? '/')
  return out
}

/** Who reaches a server: every proxy and route that names its host and port. */
export function reach(address: string, lists: Record<Kind, AnyObject[]>): Use[] {
  const wanted = hostPort(address)
  return (Object.keys(lists) as Kind[]).flatMap((kind) => lists[kind].flatMap((o) => usesOf(kind, o).filter((u) => hostPort(u.address) === wanted)))
}
