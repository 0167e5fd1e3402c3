import type { AnyObject } from '@/api/queries'

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

/** The way back from a move. */
export const reversed = (moves: Move[]): Move[] => moves.map((m) => ({ ...m, from: m.to, to: m.from }))
