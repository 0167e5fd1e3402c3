import { expect, it } from 'vitest'
import { hostPort, reach } from './reach'

it('knows a server by its host and port, however it is written', () => {
  expect(['http://10.0.0.7:3000/base', '10.0.0.7:3000', 'H2C://10.0.0.7:3000'].map(hostPort)).toEqual(Array(3).fill('10.0.0.7:3000'))
  expect(hostPort('https://a.example/x')).toBe('a.example:443')
  expect(hostPort('http://[::1]/')).toBe('[::1]:80')
  expect(hostPort('unix:///run/a.sock')).toBe('unix:///run/a.sock')
})

it('finds every way to a server, from any kind of object', () => {
  const found = reach('http://10.0.0.7:3000', {
    proxies: [
      {
        name: 'shop',
        virtual_hosts: ['shop.example'],
        servers: { healthy: 1 },
        routes: [{ path: '/api', servers: [{ url: 'http://10.0.0.7:3000/v2' }, { url: 'http://10.0.0.8:3000' }] }, { servers: [{ url: 'http://10.0.0.7:3000', backup: true }] }],
      },
      { name: 'wiki', forward_auth: { url: 'http://10.0.0.7:3000/check' }, routes: [{ mirror: { servers: [{ url: 'http://10.0.0.7:30001' }, { url: 'http://10.0.0.7:3000' }] } }] },
    ],
    tcp_proxies: [{ name: 'db', address: '0.0.0.0:3000', servers: [{ address: '10.0.0.7:3000' }] }],
    udp_proxies: [],
  })
  expect(found.map((u) => [u.kind, u.name, u.route, u.as])).toEqual([
    ['proxies', 'shop', '/api', 'server'],
    ['proxies', 'shop', '/', 'backup'],
    ['proxies', 'wiki', undefined, 'forward_auth'],
    ['proxies', 'wiki', '/', 'mirror'],
    ['tcp_proxies', 'db', undefined, 'server'],
  ])
  expect(found[0]!.hosts).toEqual(['shop.example'])
})
