import { expect, it } from 'vitest'
import { siteURL } from './site'

const port = (name: string, protocol: string, number: number, more = {}) => ({ name, protocol, address: `0.0.0.0:${number}`, state: 'listening', ...more })
const test = [port('web', 'http', 8080), port('secure', 'https', 8443), port('quic', 'http3', 8443)]

it('leads to the port that serves a host', () => {
  expect(siteURL('a.test', {}, test, true)).toBe('https://a.test:8443/')
  expect(siteURL('a.test', {}, test, false)).toBe('http://a.test:8080/')
  expect(siteURL('a.test', { ports: ['web'] }, test, true)).toBe('http://a.test:8080/')
  expect(siteURL('a.test', {}, [port('a', 'http', 80), port('b', 'https', 443)], true)).toBe('https://a.test/')
  expect(siteURL('a.test', {}, [port('a', 'http', 8080), port('b', 'http', 80)], true)).toBe('http://a.test/')
  expect(siteURL('a.test', {}, [port('b', 'https', 8443)], false)).toBe('https://a.test:8443/')
})
it('leads nowhere where nothing is served', () => {
  expect(siteURL('a.test', { active: false }, test, true)).toBeUndefined()
  expect(siteURL('*.a.test', {}, test, true)).toBeUndefined()
  expect(siteURL('a.test', { ports: ['other'] }, test, true)).toBeUndefined()
  expect(siteURL('a.test', {}, [port('web', 'http', 80, { state: 'waiting' })], false)).toBeUndefined()
})
