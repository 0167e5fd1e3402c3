import { expect, it } from 'vitest'
import { find, isAddress, kinds } from './found'

it('finds objects by what people know of them', () => {
  const list = [
    { name: 'shop', virtual_hosts: ['shop.example.com'], tags: ['prod'] },
    { name: 'wiki', description: 'The Wiki' },
  ]
  expect(find(kinds[0]!, list, ['prod', 'shop']).map((e) => e.to)).toEqual(['/proxies/shop'])
  expect(find(kinds[0]!, list, ['the']).map((e) => e.label)).toEqual(['wiki'])
  expect(find(kinds[1]!, [{ name: 'a/b', address: '127.0.0.1:5432' }], ['5432'])[0]).toMatchObject({ to: '/streams/tcp/a%2Fb', description: '127.0.0.1:5432' })
})
it('stops at a bound', () =>
  expect(
    find(
      kinds[0]!,
      Array.from({ length: 500 }, (_, i) => ({ name: `p${i}` })),
      ['p'],
    ),
  ).toHaveLength(20))
it('knows an address', () => {
  expect(['https://a.example/x', 'shop.example.com', 'a.b:8080/x'].every(isAddress)).toBe(true)
  expect(['shop', 'two words.x y', ''].some(isAddress)).toBe(false)
})
