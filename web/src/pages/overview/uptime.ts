import type { Event } from '@/api/events'

/** How long a server could be used, as a share of the time. */
export type Uptime = { server: string; kind: string; proxy: string; share: number; days: number[] /** Whether it is away now. */; away: boolean }

export const period = 30 * 86_400_000

type About = { kind?: string; proxy?: string; route?: string; server?: string }

/**
 * The availability of servers over the last 30 days, by the events of each: it is away from
 * unhealthy or ejected until healthy. Servers of which no event tells were there all the time
 * and are left out. The events come the newest first.
 */
export function uptimes(events: Event[], now = Date.now()): Uptime[] {
  const begin = now - period
  const gone = new Map<string, { about: About; away: [number, number][]; since?: number }>()
  for (const e of [...events].reverse()) {
    const about = (e.data ?? {}) as About
    if (!about.server || !e.time) continue
    const key = `${about.kind ?? 'proxies'} ${about.proxy} ${about.server}`
    const at = Date.parse(e.time)
    const known = gone.get(key) ?? { about, away: [] as [number, number][] }
    gone.set(key, known)
    if (e.type === 'server.healthy') {
      if (known.since !== undefined) known.away.push([known.since, at])
      known.since = undefined
    } else if (e.type === 'server.unhealthy' || e.type === 'server.ejected') known.since ??= at
  }
  const out: Uptime[] = []
  for (const { about, away, since } of gone.values()) {
    const all = since === undefined ? away : [...away, [since, now] as [number, number]]
    const within = (from: number, to: number) => all.reduce((sum, [a, b]) => sum + Math.max(0, Math.min(b, to) - Math.max(a, from)), 0)
    const lost = within(begin, now)
    if (lost === 0) continue
    const days = Array.from({ length: 30 }, (_, i) => 1 - within(begin + i * 86_400_000, begin + (i + 1) * 86_400_000) / 86_400_000)
    out.push({ server: about.server!, kind: about.kind ?? 'proxies', proxy: about.proxy ?? '', share: 1 - lost / period, days, away: since !== undefined })
  }
  return out.sort((a, b) => a.share - b.share)
}
