import { queryOptions } from '@tanstack/react-query'

/** Requests of a proxy since headgate's start, and those that ended with 5xx. */
export type Counts = { requests: number; errors: number }
export type Traffic = { counts: Map<string, Counts>; perMinute: Map<string, number> }

const line = /^headgate_requests_total\{(.*)\} (\S+)$/
const pair = /([a-z_]+)="((?:[^"\\]|\\.)*)"/g

/** Reads the counters of requests out of the page for Prometheus. */
export function counts(text: string): Map<string, Counts> {
  const out = new Map<string, Counts>()
  for (const row of text.split('\n')) {
    const m = row.startsWith('headgate_requests_total{') && line.exec(row)
    if (!m) continue
    const labels = Object.fromEntries([...m[1]!.matchAll(pair)].map((p) => [p[1], p[2]!.replace(/\\(.)/g, '$1')]))
    const c = out.get(labels.proxy ?? '') ?? { requests: 0, errors: 0 }
    c.requests += Number(m[2])
    if (labels.status_class === '5xx') c.errors += Number(m[2])
    out.set(labels.proxy ?? '', c)
  }
  return out
}

let last: { at: number; counts: Map<string, Counts> } | undefined

/** How many requests each proxy has had, and has now, from one look to the next. */
export const traffic = queryOptions({
  queryKey: ['traffic'],
  queryFn: async ({ signal }): Promise<Traffic> => {
    const response = await fetch('/metrics', { signal })
    if (!response.ok) throw new Error(`/metrics: HTTP ${response.status}`)
    const now = { at: Date.now(), counts: counts(await response.text()) }
    const perMinute = new Map<string, number>()
    if (last && now.at > last.at)
      for (const [name, c] of now.counts) perMinute.set(name, Math.max(0, c.requests - (last.counts.get(name)?.requests ?? 0)) / ((now.at - last.at) / 60_000))
    last = now
    return { counts: now.counts, perMinute }
  },
  refetchInterval: 5_000,
  staleTime: 4_000,
})
