import { queryOptions } from '@tanstack/react-query'
import { call } from '@/api/client'
import { all, type CertificateStatus } from '@/api/queries'
import type { components } from '@/api/schema'
import { meaningOf, type Meaning } from '@/theme/states'

export type Order = components['schemas']['orderBody']
export type Attempt = components['schemas']['attemptBody']
export type Trouble = components['schemas']['troubleBody']
export type Preflight = components['schemas']['preflightBody']

export const orders = queryOptions({ queryKey: ['acme', 'orders'], queryFn: ({ signal }) => all<Order>('/orders', signal).then((p) => p.value), refetchInterval: 15_000 })
export const order = (name: string) =>
  queryOptions({
    queryKey: ['acme', 'order', name],
    queryFn: ({ signal }) => call<Order>('GET', `/orders/${encodeURIComponent(name)}`, { signal }).then((o) => o.value),
    refetchInterval: 5_000,
    retry: false,
  })

/** A certificate of the list; one by ACME has its order. */
export type Row = {
  name: string
  hosts: string[]
  state: string
  daysLeft?: number
  notAfter?: string
  nextTry?: string
  problem?: string
  hint?: string
  acme: boolean
  entry?: string
  onDemand?: string
}

/** All certificates with the states that the server gives them, and by ACME with their accounts. */
export function rowsOf(states: CertificateStatus[], orders: Order[] = []): Row[] {
  const entries = new Map(orders.map((o) => [o.name, o.entry]))
  return states.map((c) => ({
    name: c.name,
    hosts: c.names ?? [],
    state: c.state,
    daysLeft: c.days_left,
    notAfter: c.not_after,
    nextTry: c.next_try,
    problem: c.problem,
    hint: c.hint,
    acme: c.source === 'acme',
    entry: c.source === 'acme' ? entries.get(c.name) : undefined,
    onDemand: c.on_demand,
  }))
}

/** What a state means: a failure counts less while there is a certificate that is valid. */
export function meaningOfCertificate(state: string, daysLeft?: number): Meaning {
  if (state === 'failed' || state === 'blocked') return daysLeft !== undefined && daysLeft >= 0 ? 'warn' : 'bad'
  return meaningOf(state)
}
