import { beforeEach, expect, it } from 'vitest'
import { basket } from '@/edit/basket'
import { changeAll, documentOf, removeAll, withActive, withWord, type Target } from './changes'

const target = (name: string, more: object = {}): Target => ({ kind: 'proxies', object: { name, etag: '"1"', virtual_hosts: [name + '.test'], ...more } as never })
beforeEach(() => basket.set([]))

it('changes many objects as one set of edits, on top of what waits', () => {
  const all = [target('a'), target('b', { tags: ['web'] }), target('c', { read_only: 'found' })]
  expect(changeAll(all, withWord('tags', 'web'))).toBe(2)
  expect(changeAll(all, withActive(false))).toBe(2)
  expect(basket.get().map((e) => e.value)).toEqual(
    [
      { virtual_hosts: ['b.test'], tags: ['web'], active: false },
      { virtual_hosts: ['a.test'], tags: ['web'], active: false },
    ].reverse(),
  )
  changeAll(all, withActive(true))
  expect(basket.get().find((e) => e.name === 'b')).toBeUndefined() // it is as it was
})
it('removes, and exports what is written', () => {
  const all = [target('a'), target('c', { read_only: 'found' })]
  expect(removeAll(all)).toBe(1)
  expect(basket.get()).toMatchObject([{ name: 'a', op: 'remove' }])
  expect(documentOf([target('a')])).toEqual({ version: 1, proxies: { a: { virtual_hosts: ['a.test'] } } })
})
