import type { components } from '@/api/schema'
import type { Meaning } from '@/theme/states'

export type Request = components['schemas']['Request']

/** A row of the log: a request, or that some were missed. The number never comes twice. */
export type Row = { key: number; request?: Request; missed?: number }

/** How many rows there are at most: a log that is followed for days holds no more. */
export const maxRows = 1000

/** What a request is known by; those of before and of the stream overlap. */
const mark = (r: Request) => `${r.request_id ?? ''} ${r.time} ${r.client_ip ?? ''} ${r.path ?? ''} ${r.duration_ms ?? ''}`

/**
 * Gathers requests as they come, the newest first, with a bound. While it is held, what
 * is shown stays as it is, and what comes is gathered apart with the same bound.
 */
export class LiveLog {
  rows: Row[] = []
  private coming: Row[] = []
  private known = new Set<string>()
  private next = 0
  held = false

  /** What came while it is held, up to the bound. */
  get waiting() {
    return this.held ? this.coming.length : 0
  }

  /** Takes one request from the stream. */
  add(r: Request) {
    const m = mark(r)
    if (this.known.has(m)) return
    this.known.add(m)
    this.push({ key: this.next++, request: r })
  }

  gap(missed: number) {
    this.push({ key: this.next++, missed })
  }

  private push(row: Row) {
    this.coming.push(row)
    if (this.coming.length > 2 * maxRows) this.forget(this.coming.splice(0, this.coming.length - maxRows))
  }

  private forget(rows: Row[]) {
    for (const row of rows) if (row.request) this.known.delete(mark(row.request))
  }

  /** Shows what has come; false when there is nothing new, or it is held. */
  flush(): boolean {
    if (this.held || this.coming.length === 0) return false
    const all = [...this.coming.reverse(), ...this.rows]
    this.coming = []
    this.forget(all.splice(maxRows))
    this.rows = all
    return true
  }

  /** Puts in requests of before, the newest first: each where it belongs by its end. */
  merge(list: Request[]) {
    const fresh = list.filter((r) => !this.known.has(mark(r)))
    for (const r of fresh) this.known.add(mark(r))
    if (fresh.length === 0) return
    const rows = [...this.rows, ...fresh.map((request) => ({ key: this.next++, request }))]
    const end = (row: Row, i: number) => (row.request ? endOf(row.request) : i > 0 && rows[i - 1]!.request ? endOf(rows[i - 1]!.request!) : Infinity)
    const keyed = rows.map((row, i) => [end(row, i), row] as const).sort((a, b) => b[0] - a[0])
    const all = keyed.map(([, row]) => row)
    this.forget(all.splice(maxRows))
    this.rows = all
  }

  /** How much it holds, for tests. */
  get size() {
    return { rows: this.rows.length, coming: this.coming.length, known: this.known.size }
  }
}

const endOf = (r: Request) => Date.parse(r.time ?? '') + (r.duration_ms ?? 0)

/** From how many milliseconds on a request is called slow. */
const slowFrom = 1000

/** Whether a row is an error or slow: the worse of both. With a status of success, a reason of the server says that its response broke off. */
export function meaningOfRequest(r: Request): { meaning: Meaning; word: 'error' | 'slow' | 'ok' } {
  if ((r.status ?? 0) >= 500 || r.reason?.startsWith('upstream_') || (!r.status && r.reason && r.proto !== 'udp')) return { meaning: 'bad', word: 'error' }
  if ((r.status ?? 0) >= 400) return { meaning: 'warn', word: 'error' }
  if (r.method && (r.duration_ms ?? 0) >= slowFrom) return { meaning: 'warn', word: 'slow' }
  return { meaning: 'good', word: 'ok' }
}

/** The address that a request asked for, with the number of its port unless that is the scheme's own. */
export function addressOf(r: Request, ports: { name?: string; address?: unknown }[]): string {
  const scheme = r.scheme || 'http'
  const number = /:(\d+)$/.exec(String(ports.find((p) => p.name === r.port)?.address ?? ''))?.[1]
  const own = scheme === 'https' ? '443' : '80'
  const named = /:\d+$/.test(r.host ?? '')
  return `${scheme}://${r.host ?? ''}${number && number !== own && !named ? ':' + number : ''}${r.path ?? '/'}${r.query ? '?' + r.query : ''}`
}

/** The filters of the API that the page has, in the order in which it shows them. */
export const filterNames = ['text', 'status', 'host', 'proxy', 'client', 'country', 'asn', 'path', 'method', 'slower_than', 'reason', 'server', 'request_id'] as const
export type Filters = Partial<Record<(typeof filterNames)[number], string>>

export function filtersOf(search: Record<string, unknown>): Filters {
  const out: Filters = {}
  for (const name of filterNames) if (search[name] !== undefined && search[name] !== '') out[name] = String(search[name])
  return out
}

/** A time of milliseconds: 0.02 ms, 0.4 ms, 12 ms, 3.2 s. */
export function took(ms = 0): string {
  if (ms >= 1000) return `${(ms / 1000).toFixed(ms >= 10_000 ? 0 : 1)} s`
  if (ms > 0 && ms < 0.1) return `${Math.max(0.01, ms).toFixed(2)} ms`
  return ms >= 10 ? `${Math.round(ms)} ms` : `${ms.toFixed(1)} ms`
}

/** A count of bytes: 812 B, 14 KB, 3.1 MB. */
export function bytes(n = 0): string {
  const units = ['B', 'KB', 'MB', 'GB', 'TB']
  let i = 0
  while (n >= 1000 && i < units.length - 1) {
    n /= 1000
    i++
  }
  return `${i === 0 || n >= 10 ? Math.round(n) : n.toFixed(1)} ${units[i]}`
}
