import { describe, expect, it } from 'vitest'
import { addressOf, bytes, filtersOf, LiveLog, maxRows, meaningOfRequest, took, type Request } from './livelog'

const request = (n: number, more: Partial<Request> = {}) => ({ request_id: `r${n}`, time: new Date(1_700_000_000_000 + n * 10).toISOString(), proto: 'HTTP/1.1', duration_ms: 1, ...more }) as Request

describe('LiveLog', () => {
  it('shows the newest first, and nothing twice', () => {
    const log = new LiveLog()
    ;[1, 2, 2, 3].forEach((n) => log.add(request(n)))
    expect(log.flush()).toBe(true)
    expect(log.rows.map((r) => r.request!.request_id)).toEqual(['r3', 'r2', 'r1'])
    expect(log.flush()).toBe(false)
  })
  it('does not grow, however much comes', () => {
    const log = new LiveLog()
    // An hour of 55 requests a second.
    for (let n = 0; n < 200_000; n++) {
      log.add(request(n))
      if (n % 97 === 0) log.flush()
    }
    log.flush()
    expect(log.size).toEqual({ rows: maxRows, coming: 0, known: maxRows })
    expect(log.rows[0]!.request!.request_id).toBe('r199999')
  })
  it('does not grow while it is held either', () => {
    const log = new LiveLog()
    log.add(request(0))
    log.flush()
    log.held = true
    for (let n = 1; n < 20_000; n++) log.add(request(n))
    expect(log.flush()).toBe(false)
    expect(log.rows).toHaveLength(1)
    expect(log.size.coming).toBeLessThanOrEqual(2 * maxRows)
    expect(log.size.known).toBe(log.size.coming + 1)
    log.held = false
    log.flush()
    expect(log.size).toEqual({ rows: maxRows, coming: 0, known: maxRows })
  })
  it('puts earlier requests where they belong', () => {
    const log = new LiveLog()
    log.add(request(5))
    log.flush()
    log.merge([request(7), request(5), request(3)])
    expect(log.rows.map((r) => r.request!.request_id)).toEqual(['r7', 'r5', 'r3'])
    expect(log.size.known).toBe(3)
  })
  it('keeps gaps at their place', () => {
    const log = new LiveLog()
    log.add(request(1))
    log.gap(12)
    log.add(request(2))
    log.flush()
    log.merge([request(0)])
    expect(log.rows.map((r) => r.missed ?? r.request!.request_id)).toEqual(['r2', 12, 'r1', 'r0'])
  })
})

it('tells errors and slow ones', () => {
  expect(meaningOfRequest(request(1, { status: 200, method: 'GET' })).word).toBe('ok')
  expect(meaningOfRequest(request(1, { status: 502, method: 'GET' }))).toEqual({ meaning: 'bad', word: 'error' })
  expect(meaningOfRequest(request(1, { status: 200, method: 'GET', reason: 'upstream_reset' }))).toEqual({ meaning: 'bad', word: 'error' })
  expect(meaningOfRequest(request(1, { status: 200, method: 'GET', reason: 'client_closed' })).word).toBe('ok')
  expect(meaningOfRequest(request(1, { status: 404, method: 'GET' })).meaning).toBe('warn')
  expect(meaningOfRequest(request(1, { status: 200, method: 'GET', duration_ms: 1500 })).word).toBe('slow')
  // A connection of TCP lasts long, and that is no fault.
  expect(meaningOfRequest(request(1, { proto: 'tcp', duration_ms: 90_000 })).word).toBe('ok')
})

it('makes the address of a request', () => {
  const ports = [
    { name: 'web', address: '0.0.0.0:8080' },
    { name: 'tls', address: ':443' },
  ]
  expect(addressOf(request(1, { host: 'a.example', path: '/x', query: 'y=1', port: 'web', scheme: 'http' }), ports)).toBe('http://a.example:8080/x?y=1')
  expect(addressOf(request(1, { host: 'a.example', path: '/', port: 'tls', scheme: 'https' }), ports)).toBe('https://a.example/')
  expect(addressOf(request(1, { host: 'a.example:8080', path: '/', port: 'web', scheme: 'http' }), ports)).toBe('http://a.example:8080/')
})

it('reads filters and writes numbers', () => {
  expect(filtersOf({ host: 'a', status: 502, other: 'x', text: '' })).toEqual({ host: 'a', status: '502' })
  expect([took(0), took(0.0004), took(0.022), took(0.42), took(12.3), took(3210), took(45_000)]).toEqual(['0.0 ms', '0.01 ms', '0.02 ms', '0.4 ms', '12 ms', '3.2 s', '45 s'])
  expect([bytes(0), bytes(812), bytes(1400), bytes(14_000), bytes(3_100_000)]).toEqual(['0 B', '812 B', '1.4 KB', '14 KB', '3.1 MB'])
})
