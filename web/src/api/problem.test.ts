import { describe, expect, it } from 'vitest'
import { fieldOf, withoutPlace } from './problem'
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
