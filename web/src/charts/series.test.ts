import { expect, it } from 'vitest'
import { curves, shortNumber, type Series } from './series'

const names = { all: 'all', e4: '4', e5: '5', p50: 'p50', p99: 'p99', sent: 's', received: 'r', hits: 'h' }

it('makes rates of counts, and breaks the line of durations where there was nothing', () => {
  const s = {
    step: 10,
    points: [
      { time: '2026-01-01T00:00:00Z', requests: 50, errors_5xx: 5, p50_ms: 3, p99_ms: 20, bytes_sent: 1000 },
      { time: '2026-01-01T00:00:10Z', requests: 0, p50_ms: 0, p99_ms: 0 },
    ],
  } as Series
  const c = curves(s, names)
  expect(c.times).toEqual([1767225600, 1767225610])
  expect(c.requests[0]!.values).toEqual([5, 0])
  expect(c.errors[1]!.values).toEqual([0.5, 0])
  expect(c.duration.map((x) => x.values)).toEqual([
    [3, null],
    [20, null],
  ])
  expect(c.bytes[0]!.values).toEqual([100, 0])
})
it('survives no points', () => expect(curves({} as Series, names).times).toEqual([]))
it('writes numbers in short form', () => {
  expect([0, 0.0123, 0.5, 3.25, 42.4, 1234, 56_789, 2_500_000, 7e9, null].map(shortNumber)).toEqual(['0', '0.012', '0.5', '3.3', '42', '1.2k', '56.8k', '2.5M', '7G', '–'])
})
