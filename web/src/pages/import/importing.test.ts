import { expect, it } from 'vitest'
import { editsOf, guess, keysOf, parsed, withStored, type Source } from './importing'

const text = `# from nginx
version: 1
ports:
  web: {address: '[::]:80', protocol: http}
  secure: {address: "0.0.0.0:443", protocol: https}
  other: {address: "0.0.0.0:8000", protocol: http}
certificates:
  shop: {cert_file: imported/shop.pem, key_file: imported/shop.key}
  disk: {cert_file: /etc/a.pem, key_file: /etc/a.key}
proxies:
  # the first
  a.b: {virtual_hosts: [a.example], routes: [{path: /}]}
access_log: {enabled: true}
`

it('makes an edit of each object, and of settings as a whole', () => {
  expect(editsOf(parsed(text)!).map((e) => `${e.kind} ${e.name}`)).toEqual(['ports web', 'ports secure', 'ports other', 'certificates shop', 'certificates disk', 'proxies a.b', 'access_log '])
  expect(parsed('a: [')).toBeUndefined()
  expect(parsed('')).toBeUndefined()
})

it('finds certificates that came with their keys, and names them as kept', () => {
  const files = [
    { name: 'imported/shop.pem', data: btoa('CERT') },
    { name: 'imported/shop.key', data: btoa('KEY') },
  ]
  expect(keysOf(text, files)).toEqual([{ name: 'shop', certificate: 'CERT', key: 'KEY' }])
  const kept = withStored(text, ['shop'])
  expect(parsed(kept)!.certificates).toMatchObject({ shop: { stored: 'shop' }, disk: { cert_file: '/etc/a.pem' } })
  expect(keysOf(kept, files)).toEqual([])
})

it('takes the main file for the one that is read, and the others for those that it includes', () => {
  const file = (name: string): Source => ({ name, included: false, size: 1, text: '' })
  const names = (kind: string, ...list: string[]) =>
    guess(kind, list.map(file))
      .filter((f) => !f.included)
      .map((f) => f.name)
  expect(names('nginx', 'conf.d/shop.conf', 'nginx.conf', 'old/nginx.conf')).toEqual(['nginx.conf'])
  expect(names('nginx', 'shop.conf', 'wiki.conf')).toEqual(['shop.conf', 'wiki.conf'])
  expect(names('traefik', 'a.yml', 'nginx.conf')).toEqual(['a.yml', 'nginx.conf'])
})
