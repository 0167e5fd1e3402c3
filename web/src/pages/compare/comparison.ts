import { queryOptions } from '@tanstack/react-query'
import { call } from '@/api/client'
import { Problem } from '@/api/problem'
import type { Whole } from '@/api/queries'
import type { components } from '@/api/schema'
import type { Meaning } from '@/theme/states'

type S = components['schemas']
export type Input = S['compareInput']
export type Report = Weighed<Whole<S['Report']>>
type Weight = 'breaks' | 'differs' | 'note'
/** A difference is of one of three weights. */
type Weighed<T> = T extends (infer E)[] ? Weighed<E>[] : T extends { weight: string } ? Omit<T, 'weight'> & { weight: Weight } : T extends object ? { [K in keyof T]: Weighed<T[K]> } : T
export type Readiness = Weighed<Whole<S['Readiness']>>
export type Difference = Weighed<Whole<S['Difference']>>
export type Result = Weighed<Whole<S['Result']>>
export type Comparison = Whole<Omit<S['comparisonBody'], 'report' | 'who'>> & { who?: string; report?: Report }

/** The last comparison; null is that there was none. While one runs it is asked for often. */
export const comparison = queryOptions({
  queryKey: ['compare'],
  queryFn: async (): Promise<Comparison | null> => {
    try {
      return (await call<Comparison>('GET', '/compare')).value
    } catch (e) {
      if (e instanceof Problem && e.status === 404) return null
      throw e
    }
  },
  refetchInterval: (q) => (q.state.data?.state === 'running' ? 700 : 15_000),
  retry: false,
})

export const meaningOfWeight: Record<Weight, Meaning> = { breaks: 'bad', differs: 'warn', note: 'calm' }
export const meaningOfPercent = (n: number): Meaning => (n === 100 ? 'good' : n >= 90 ? 'warn' : 'bad')

const rank: Record<Weight, number> = { breaks: 2, differs: 1, note: 0 }

/** The kinds of differences with how many requests have each, and its worst weight; the worst first. */
export function kindsOf(results: Result[]): { kind: string; requests: number; weight: Weight }[] {
  const found = new Map<string, { kind: string; requests: number; weight: Weight }>()
  for (const r of results) {
    for (const kind of new Set(r.differences.map((d) => d.kind))) {
      const worst = worstOf(r.differences.filter((d) => d.kind === kind))
      const k = found.get(kind) ?? { kind, requests: 0, weight: worst }
      found.set(kind, { kind, requests: k.requests + 1, weight: rank[worst] > rank[k.weight] ? worst : k.weight })
    }
  }
  return [...found.values()].sort((a, b) => rank[b.weight] - rank[a.weight] || b.requests - a.requests)
}

export const worstOf = (list: Difference[]): Weight => list.reduce<Weight>((w, d) => (rank[d.weight] > rank[w] ? d.weight : w), 'note')

/** The addresses of a side as people type them. */
export const addresses = (text: string) => text.split(/[\s,]+/).filter(Boolean)

/** The address that a compared request asked for. */
export const urlOf = (r: Result['request']): string => `${r.scheme}://${r.host}${r.target}`

type Logged = { method?: string; scheme?: string; host?: string; path?: string; query?: string }

/** A list of what clients have asked, each address once; what has no method was no request of HTTP. */
export function listOf(requests: Logged[]): string {
  const lines = new Set<string>()
  for (const r of requests) if (r.method && r.host && r.path?.startsWith('/')) lines.add(`${r.method} ${r.scheme || 'http'}://${r.host}${r.path}${r.query ? '?' + r.query : ''}`)
  return [...lines].join('\n')
}
