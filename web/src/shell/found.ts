import type { AnyObject } from '@/api/queries'

/** What the palette can lead to. */
export type Entry = { id: string; label: string; description?: string; to: string; search?: Record<string, string> }

/** The kinds whose objects are found, and the page of one. */
export const kinds: { kind: string; to: (name: string) => string }[] = [
  { kind: 'proxies', to: (n) => '/proxies/' + n },
  { kind: 'tcp_proxies', to: (n) => '/streams/tcp/' + n },
  { kind: 'udp_proxies', to: (n) => '/streams/udp/' + n },
  { kind: 'ports', to: () => '/ports' },
  { kind: 'certificates', to: () => '/certificates' },
  { kind: 'acme', to: () => '/certificates' },
  { kind: 'policies', to: () => '/settings' },
  { kind: 'lists', to: () => '/lists' },
  { kind: 'bans', to: () => '/bans' },
  { kind: 'notices', to: () => '/notices' },
  { kind: 'webhooks', to: () => '/webhooks' },
]

/** How many of one kind are shown at most. */
const most = 20

/** Whether a text has all words. */
export const has = (text: string, words: string[]) => {
  const low = text.toLowerCase()
  return words.every((w) => low.includes(w))
}

/** The objects of a kind that have all words in what people know of them. */
export function find(kind: { kind: string; to: (name: string) => string }, list: AnyObject[], words: string[]): Entry[] {
  const out: Entry[] = []
  for (const o of list) {
    const hosts = [...((o.virtual_hosts as string[]) ?? []), String(o.address ?? ''), String(o.url ?? '')].filter(Boolean).join(', ')
    if (!has(`${o.name} ${hosts} ${o.description ?? ''} ${((o.tags as string[]) ?? []).join(' ')}`, words)) continue
    out.push({ id: `${kind.kind} ${o.name}`, label: o.name!, description: hosts || String(o.description ?? ''), to: kind.to(encodeURIComponent(o.name!)) })
    if (out.length === most) break
  }
  return out
}

/** An address or a host that somebody typed: it can be explained, and looked for in the log. */
export const isAddress = (query: string) => /^(https?:\/\/\S+|[a-z0-9-]+(\.[a-z0-9-]+)+(:\d+)?(\/\S*)?)$/i.test(query.trim())
