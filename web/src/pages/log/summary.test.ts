import { expect, it } from 'vitest'
import type { Row } from './livelog'
import { exported, stagesOf, topOf } from './summary'

const rows: Row[] = [
  { key: 1, request: { time: '2026-11-26T10:00:00Z', proto: 'HTTP/1.1', host: 'a.test', path: '/x', status: 200, bytes_sent: 1, bytes_received: 0, duration_ms: 3 } },
  { key: 2, missed: 4 },
  { key: 3, request: { time: '2026-11-26T10:00:01Z', proto: 'HTTP/1.1', host: 'a.test', path: '=cmd,"', reason: 'no_route', status: 404, bytes_sent: 1, bytes_received: 0, duration_ms: 3 } },
  {
    key: 4,
    request: {
      time: '2026-11-26T10:00:02Z',
      proto: 'HTTP/1.1',
      client_ip: '192.0.2.1',
      country: 'DE',
      asn: 64500,
      host: 'b.test',
      path: '/x',
      status: 200,
      bytes_sent: 1,
      bytes_received: 0,
      duration_ms: 3,
    },
  },
]

it('counts what is most frequent', () => {
  expect(topOf(rows, 'host')).toEqual([
    ['a.test', 2],
    ['b.test', 1],
  ])
  expect(topOf(rows, 'country')).toEqual([['DE', 1]])
  expect(topOf(rows, 'asn')).toEqual([['AS64500', 1]])
  expect(topOf(rows, 'reason')).toEqual([['no_route', 1]])
})
it('splits the time of a request', () => {
  expect(stagesOf({ duration_ms: 10, connect_ms: 2, upstream_head_ms: 5 } as never)).toEqual([
    { name: 'connect', ms: 2 },
    { name: 'wait', ms: 5 },
    { name: 'rest', ms: 3 },
  ])
  expect(stagesOf({ duration_ms: 1 } as never)).toEqual([{ name: 'rest', ms: 1 }])
})
it('exports rows; a cell is never a formula', () => {
  expect(exported(rows, 'jsonl').trim().split('\n')).toHaveLength(3)
  const csv = exported(rows, 'csv').split('\r\n')
  expect(csv).toHaveLength(5)
  expect(csv[2]).toContain(`"'=cmd,"""`)
})
