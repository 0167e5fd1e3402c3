import { expect, it } from 'vitest'
import { blank, editsOf, missingPorts, proxyOf, type Known } from './newproxy'

const none: Known = { ports: [], accounts: [], certificates: [], stored: [] }
const entered = { ...blank, hosts: 'https://app.example.com:8443/login?x=1', server: '10.0.0.7:3000/' }

it('cleans what is pasted', () => {
  expect(proxyOf(entered, none)).toEqual({ virtual_hosts: ['app.example.com'], routes: [{ servers: [{ url: 'http://10.0.0.7:3000' }] }] })
})
it('opens the ports and makes the account that HTTPS needs', () => {
  const edits = editsOf({ ...entered, https: 'acme', email: 'ops@example.com' }, 'app', none)
  expect(edits.map((e) => [e.kind, e.name])).toEqual([
    ['ports', 'web'],
    ['ports', 'websecure'],
    ['acme', 'letsencrypt'],
    ['proxies', 'app'],
  ])
  expect(edits[1]!.value).toEqual({ address: '0.0.0.0:443', protocol: 'https' })
  expect(edits[2]!.value).toEqual({ directory: 'letsencrypt', email: 'ops@example.com' })
  expect(edits[3]!.value).toMatchObject({ acme: 'letsencrypt', redirect_http_to_https: true })
})
it('takes what is there already', () => {
  const known: Known = {
    ports: [
      { name: 'web', protocol: 'http' },
      { name: 's', protocol: 'https' },
    ],
    accounts: ['main'],
    certificates: [],
    stored: ['wild'],
  }
  expect(missingPorts({ ...entered, https: 'acme' }, known)).toEqual({ plain: false, secure: false })
  expect(editsOf({ ...entered, https: 'acme' }, 'app', known).map((e) => e.kind)).toEqual(['proxies'])
  expect(editsOf({ ...entered, https: 'own', certificate: 'wild' }, 'app', known).map((e) => [e.kind, e.value?.stored])).toEqual([
    ['certificates', 'wild'],
    ['proxies', undefined],
  ])
})
it('lets in whom it should, and sets what an application needs', () => {
  expect(proxyOf({ ...entered, access: 'network', networks: '10.0.0.0/8, 192.168.0.0/16' }, none).ip_filter).toEqual({ allow: ['10.0.0.0/8', '192.168.0.0/16'] })
  expect(proxyOf({ ...entered, access: 'password', user: 'ada', hash: '$2y$x' }, none).basic_auth).toEqual({ users: [{ name: 'ada', password_hash: '$2y$x' }] })
  expect(proxyOf({ ...entered, recipe: 'immich' }, none)).toMatchObject({ request_body_limit: '50GiB' })
  const matrix = proxyOf({ ...entered, recipe: 'matrix' }, none)
  expect((matrix.routes as { path?: string }[]).map((r) => r.path)).toEqual(['/.well-known/matrix/server', '/.well-known/matrix/client', undefined])
})
