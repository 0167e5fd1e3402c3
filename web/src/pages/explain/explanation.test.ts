import { describe, expect, it } from 'vitest'
import { addressOf, bodyOf, reached, type Explanation } from './explanation'

describe('addressOf', () => {
  it('takes whole addresses as they are', () => {
    expect(addressOf(' http://a.example/x?y=1 ')).toBe('http://a.example/x?y=1')
    expect(addressOf('HTTPS://a.example')).toBe('HTTPS://a.example')
  })
  it('takes a host alone as https', () => expect(addressOf('a.example/api')).toBe('https://a.example/api'))
  it('refuses other schemes and words', () => {
    expect(addressOf('ftp://a.example')).toBe('')
    expect(addressOf('two words')).toBe('')
    expect(addressOf('')).toBe('')
  })
})

it('sends only what is said', () => {
  expect(bodyOf({ url: 'a.example', method: '', from: ' ', headers: ' accept: text/html \n\n', http3: false, as: '' })).toEqual({
    url: 'https://a.example',
    method: 'GET',
    from: undefined,
    headers: ['accept: text/html'],
    http3: undefined,
  })
})

it('marks the filter that answers, and those that come too late', () => {
  const e = { filters: ['ip_filter', 'basic_auth', 'headers'], answer: { by: 'basic_auth', status: 401 } } as Explanation
  expect(reached(e)).toEqual([
    { name: 'ip_filter', stops: false, beyond: false },
    { name: 'basic_auth', stops: true, beyond: false },
    { name: 'headers', stops: false, beyond: true },
  ])
  expect(reached({ filters: ['headers'] } as Explanation)).toEqual([{ name: 'headers', stops: false, beyond: false }])
})
