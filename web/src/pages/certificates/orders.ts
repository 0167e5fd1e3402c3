import { queryOptions } from '@tanstack/react-query'
import { call } from '@/api/client'
import { all, type CertificateStatus } from '@/api/queries'
import type { components } from '@/api/schema'
import type { Meaning } from '@/theme/states'

export type Order = components['schemas']['orderBody']
export type Attempt = components['schemas']['attemptBody']
export type Trouble = components['schemas']['troubleBody']
export type Preflight = components['schemas']['preflightBody']

export const orders = queryOptions({ queryKey: ['acme', 'orders'], queryFn: ({ signal }) => all<Order>('/orders', signal).then((p) => p.value), refetchInterval: 15_000 })
export const order = (name: string) => queryOptions({ queryKey: ['acme', 'order', name], queryFn: ({ signal }) => call<Order>('GET', `/orders/${encodeURIComponent(name)}`, { signal }).then((o) => o.value), refetchInterval: 5_000, retry: false })

/** A certificate of the list: ordered, or from files. */
export type Row = { name: string; hosts: string[]; state: string; daysLeft?: number; notAfter?: string; entry?: string; problem?: string; order?: Order }

/** Days that are left, rounded down; below zero it has ended. */
export const daysLeft = (notAfter: string, now = Date.now()) => Math.floor((Date.parse(notAfter) - now) / 86_400_000)

/** All certificates: those that are ordered, and those that stand in files. */
export function rowsOf(orders: Order[], status: CertificateStatus[], now = Date.now()): Row[] {
  const out: Row[] = orders.map((o) => ({
    name: o.name!,
    hosts: o.names ?? [],
    state: o.state ?? '',
    daysLeft: o.not_after ? (o.days_left ?? daysLeft(o.not_after, now)) : undefined,
    notAfter: o.not_after,
    entry: o.entry,
    problem: o.trouble?.message,
    order: o,
  }))
  const known = new Set(out.map((r) => r.name))
  for (const c of status) if (!known.has(c.name)) out.push({ name: c.name, hosts: c.names ?? [], state: c.state, notAfter: c.not_after, daysLeft: c.not_after ? daysLeft(c.not_after, now) : undefined, problem: c.problem })
  return out
}

/** What the state means, with a look at the time that is left. */
export function standing(r: Row): { word: string; meaning: Meaning } {
  const has = r.daysLeft !== undefined
  if (has && r.daysLeft! < 0) return { word: 'expired', meaning: 'bad' }
  switch (r.state) {
    case 'blocked':
    case 'failed':
      return { word: r.state, meaning: has ? 'warn' : 'bad' }
    case 'preflight':
    case 'pending':
    case 'ready':
    case 'processing':
      return { word: r.state, meaning: 'info' }
    case 'valid':
      return has && r.daysLeft! < 3 && !renewsInTime(r) ? { word: 'expiring', meaning: 'warn' } : { word: 'valid', meaning: 'good' }
    case 'expiring':
      return { word: 'expiring', meaning: 'warn' }
    case 'missing':
    case 'expired':
      return { word: r.state, meaning: 'bad' }
    default:
      return { word: r.state, meaning: r.state === 'self_signed' ? 'warn' : 'calm' }
  }
}

/** Whether it is renewed before it ends: those that live for days are always near their end. */
const renewsInTime = (r: Row, now = Date.now()) => !!r.order?.next_try && !!r.notAfter && Date.parse(r.order.next_try) > now && Date.parse(r.order.next_try) < Date.parse(r.notAfter)
