import { describe, expect, it } from 'vitest'
import { fieldOf, Problem, sentence, withoutPlace } from './problem'
import { documentPath } from './queries'

describe('the place of a problem', () => {
  it.each([
    ['/proxies/shop/routes/0/path', 'shop', 'routes[0].path'],
    ['/proxies/shop.example.com/virtual_hosts/1', 'shop.example.com', 'virtual_hosts[1]'],
    ['/proxies/a~1b~0c/routes/0/servers/2/url', 'a/b~c', 'routes[0].servers[2].url'],
    ['/proxies/shop', 'shop', ''],
  ])('of %s is a field of its object', (pointer, name, field) => expect(fieldOf(pointer, documentPath('proxies', name))).toBe(field))
  it('is a field of the body where no object is meant', () => expect(fieldOf('/users/0/name')).toBe('users[0].name'))
})

it('leaves out places in documents that are not written yet', () => {
  expect(withoutPlace('headgate.yaml:12:3: unknown key')).toBe('unknown key')
  expect(withoutPlace('needs a server')).toBe('needs a server')
})

it('says who may grant access, and what would be granted', () => {
  const refusal = (grant?: string) => new Problem({ type: 'about:blank', title: '', status: 403, code: 'access_required', detail: 'of the API', remedy: 'of the API', grant })
  expect(sentence(refusal())).toBe('You need the role admin to manage access to applications; ask an admin, or use a token with the role editor and the scope access in the API.')
  expect(refusal('route / of host a').mistakes[0]!.detail).toBe('You need the role admin to grant access to applications (route / of host a)')
})
