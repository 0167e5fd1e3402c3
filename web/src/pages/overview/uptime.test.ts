import { expect, it } from 'vitest'
import type { Event } from '@/api/events'
import { uptimes } from './uptime'

const now = Date.parse('2026-11-26T12:00:00Z')
const day = 86_400_000
const event = (type: string, daysAgo: number, server: string) => ({ type, time: new Date(now - daysAgo * day).toISOString(), data: { proxy: 'shop', route: '/', server } }) as unknown as Event

it('counts the time between unhealthy and healthy', () => {
  const list = [
    event('server.healthy', 12, 'a'),
    event('server.unhealthy', 15, 'a'),
    event('server.ejected', 14, 'a'),
    event('server.unhealthy', 6, 'b'),
    event('server.healthy', 40, 'c'),
    event('server.unhealthy', 41, 'c'),
  ].sort((x, y) => (x.time! < y.time! ? 1 : -1))
  const found = uptimes(list, now)
  expect(found.map((u) => [u.server, Math.round(u.share * 1000) / 1000])).toEqual([
    ['b', 0.8],
    ['a', 0.9],
  ])
  expect(found[0]!.days.filter((d) => d === 0)).toHaveLength(6)
})
