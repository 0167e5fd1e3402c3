import type { Request, Row } from './livelog'

export const tops = ['host', 'client', 'country', 'asn', 'path', 'reason'] as const
export type Top = (typeof tops)[number]

const valueOf: Record<Top, (r: Request) => string | undefined> = {
  host: (r) => r.host,
  client: (r) => r.client_ip,
  country: (r) => r.country,
  asn: (r) => (r.asn ? `AS${r.asn}` : undefined),
  path: (r) => r.path,
  reason: (r) => r.reason,
}

/** How often the most frequent values come, of the rows that are there. */
export function topOf(rows: Row[], top: Top, limit = 6): [string, number][] {
  const counts = new Map<string, number>()
  for (const { request } of rows) {
    const value = request && valueOf[top](request)
    if (value) counts.set(value, (counts.get(value) ?? 0) + 1)
  }
  return [...counts].sort((a, b) => b[1] - a[1]).slice(0, limit)
}

/** One stage of a request and its time in milliseconds. */
export type Stage = { name: 'before' | 'connect' | 'wait' | 'rest'; ms: number }

/** How the time of a request is spent, as far as it was measured. */
export function stagesOf(r: Request): Stage[] {
  const all = r.duration_ms ?? 0
  const head = Math.min(r.upstream_head_ms ?? 0, all)
  const connect = Math.min(r.connect_ms ?? 0, all - head)
  const rest = Math.max(0, all - head - connect)
  const list: Stage[] = [
    { name: 'connect', ms: connect },
    { name: 'wait', ms: head },
    { name: 'rest', ms: rest },
  ]
  return list.filter((s) => s.ms > 0)
}

const columns = [
  'time',
  'status',
  'method',
  'scheme',
  'host',
  'path',
  'query',
  'proxy',
  'route',
  'server',
  'client_ip',
  'country',
  'asn',
  'user',
  'duration_ms',
  'connect_ms',
  'upstream_head_ms',
  'bytes_sent',
  'bytes_received',
  'reason',
  'cause',
  'request_id',
  'user_agent',
] as const

/** The rows as a file: a line of JSON each, or CSV that a spreadsheet does not calculate with. */
export function exported(rows: Row[], as: 'jsonl' | 'csv'): string {
  const list = rows.flatMap((r) => (r.request ? [r.request] : []))
  if (as === 'jsonl') return list.map((r) => JSON.stringify(r) + '\n').join('')
  const cell = (v: unknown) => {
    let text = v === undefined ? '' : String(v)
    if (/^[=+\-@\t\r]/.test(text) && typeof v !== 'number') text = "'" + text
    return /[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text
  }
  return [columns.join(','), ...list.map((r) => columns.map((c) => cell(r[c])).join(','))].join('\r\n') + '\r\n'
}
