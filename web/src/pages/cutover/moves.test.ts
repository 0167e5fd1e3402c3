import { expect, it } from 'vitest'
import { numberOf, proposed } from './moves'

const ports = [
  { name: 'web', address: '0.0.0.0:8080', protocol: 'http' },
  { name: 'tls', address: '[::]:8443', protocol: 'https' },
  { name: 'quic', address: ':8443', protocol: 'http3' },
  { name: 'other', address: '127.0.0.1:9000', protocol: 'http' },
]

it('moves test ports to the real ones, and leaves others', () => {
  expect(proposed(ports).map((m) => [m.name, m.to])).toEqual([
    ['web', '0.0.0.0:80'],
    ['tls', '[::]:443'],
    ['quic', ':443'],
    ['other', '127.0.0.1:9000'],
  ])
})
it('reads numbers', () => expect([numberOf('[::1]:443'), numberOf(':80'), numberOf('x'), numberOf(undefined)]).toEqual(['443', '80', '', '']))
