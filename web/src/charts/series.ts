import { queryOptions } from '@tanstack/react-query'
import { call } from '@/api/client'
import type { components } from '@/api/schema'

export type Series = components['schemas']['seriesBody']

/** Whose numbers: nothing is the whole of HTTP; with a route, those of its cache; with a node, those of that machine. */
export type Of = { node?: string; proxy?: string; route?: string; tcp_proxy?: string; udp_proxy?: string; server?: string }

export const series = (of: Of, period: string) =>
  queryOptions({
    queryKey: ['series', of, period],
    queryFn: ({ signal }) => call<Series>('GET', '/series', { query: { ...of, period }, signal }).then((s) => s.value),
    refetchInterval: 10_000,
    retry: false,
  })

/** One line of a chart. */
export type Curve = { name: string; tone: 'info' | 'good' | 'warn' | 'bad'; values: (number | null)[]; dash?: boolean }

/**
 * The lines of a chart over the times of points, in seconds. Rates are per second of the
 * step. A time without requests has no duration: the line breaks there, it is not zero.
 */
export function curves(
  s: Series,
  names: Record<'all' | 'e4' | 'e5' | 'p50' | 'p99' | 'sent' | 'received' | 'hits', string>,
): { times: number[]; requests: Curve[]; errors: Curve[]; duration: Curve[]; bytes: Curve[]; cache: Curve[] } {
  const points = s.points ?? []
  const step = Math.max(1, s.step ?? 10)
  const rate = (field: 'requests' | 'errors_4xx' | 'errors_5xx' | 'bytes_sent' | 'bytes_received' | 'cache_hits') => points.map((p) => (p[field] ?? 0) / step)
  const time = (field: 'p50_ms' | 'p99_ms') => points.map((p) => (p.requests ? (p[field] ?? null) : null))
  return {
    times: points.map((p) => Date.parse(p.time ?? '') / 1000),
    requests: [{ name: names.all, tone: 'info', values: rate('requests') }],
    errors: [
      { name: names.e4, tone: 'warn', values: rate('errors_4xx'), dash: true },
      { name: names.e5, tone: 'bad', values: rate('errors_5xx') },
    ],
    duration: [
      { name: names.p50, tone: 'good', values: time('p50_ms') },
      { name: names.p99, tone: 'warn', values: time('p99_ms'), dash: true },
    ],
    bytes: [
      { name: names.sent, tone: 'info', values: rate('bytes_sent') },
      { name: names.received, tone: 'good', values: rate('bytes_received'), dash: true },
    ],
    cache: [{ name: names.hits, tone: 'good', values: rate('cache_hits') }],
  }
}

/** Whether a chart has anything to show: lines of zeros alone say nothing. */
export const shown = (list: Curve[]) => list.some((c) => c.values.some((v) => !!v))

/** A number of an axis or a legend in short form: 0.25, 12, 3.4k, 1.2M. */
export function shortNumber(n: number | null | undefined): string {
  if (n === null || n === undefined) return '–'
  const a = Math.abs(n)
  if (a >= 1e9) return trim(n / 1e9) + 'G'
  if (a >= 1e6) return trim(n / 1e6) + 'M'
  if (a >= 1e3) return trim(n / 1e3) + 'k'
  return a === 0 || a >= 10 ? String(Math.round(n)) : a >= 1 ? trim(n) : String(Number(n.toPrecision(2)))
}
const trim = (n: number) => (Math.abs(n) >= 100 ? String(Math.round(n)) : String(Number(n.toFixed(1))))
