import { queryOptions } from '@tanstack/react-query'
import { call } from '@/api/client'
import { Problem } from '@/api/problem'
import type { AnyObject, Change, Whole } from '@/api/queries'
import type { components } from '@/api/schema'

/** Where the usual test ports go. */
const real: Record<string, string> = { '8080': '80', '8443': '443' }

/** The number of a port's address, '' where there is none. */
export const numberOf = (address: unknown) => /:(\d+)$/.exec(String(address ?? ''))?.[1] ?? ''

/** The address with another number; the host stays. */
const withNumber = (address: string, number: string) => address.replace(/:\d+$/, ':' + number)

export type Move = { name: string; from: string; to: string; protocol: string }

/** What would move: 8080 to 80, 8443 to 443, TCP and QUIC alike. */
export function proposed(ports: AnyObject[]): Move[] {
  return ports.map((p) => {
    const from = String(p.address ?? '')
    const to = real[numberOf(from)]
    return { name: p.name!, from, to: to ? withNumber(from, to) : from, protocol: String(p.protocol ?? '') }
  })
}

type S = components['schemas']
export type Cutover = Whole<Omit<S['cutoverBody'], 'watch' | 'change' | 'who'>> & { who?: string; watch?: Whole<Omit<S['Watch'], 'result' | 'reason'>> & { result?: string; reason?: string } }
type Limits = S['cutoverWatch']

/** The last cutover; null is that there was none. */
export const lastCutover = queryOptions({
  queryKey: ['cutover'],
  queryFn: async (): Promise<Cutover | null> => {
    try {
      return (await call<Cutover>('GET', '/cutover')).value
    } catch (e) {
      if (e instanceof Problem && e.status === 404) return null
      throw e
    }
  },
  refetchInterval: (q) => (q.state.data?.state === 'pending' || q.state.data?.held?.length ? 1_000 : 10_000),
})

/** The limits of a watched cutover, as those of the command line. */
const limits: Limits = { max_errors_percent: 5, min_healthy_percent: 50 }

type Options = { why?: string; within?: string; watch?: boolean }

const send = async (method: 'POST' | 'DELETE', query: Record<string, string | boolean | undefined>, ifMatch?: string, body?: object) =>
  (await call<Cutover & { change: Change }>(method, '/cutover', { query, ifMatch, body })).value

const moved = (moves: Move[]) => moves.map((m) => ({ port: m.name, to: m.to }))

/** What a cutover would change. */
export const planned = async (moves: Move[], etag: string) => (await send('POST', { dry_run: true }, etag, { moves: moved(moves) })).change

/** Moves ports. With a time limit for confirmation, headgate can watch the result. */
export const start = async (moves: Move[], etag: string, o: Options) =>
  (await send('POST', { why: o.why, confirm_within: o.within }, etag, { moves: moved(moves), watch: o.watch && o.within ? limits : undefined })).change

/** What moving the ports of the last cutover back would change. */
export const plannedReturn = async () => (await send('DELETE', { dry_run: true })).change

/** Moves the ports of the last cutover back. */
export const goBack = async (why?: string) => (await send('DELETE', { why })).change
