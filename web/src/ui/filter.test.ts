import { expect, it } from 'vitest'
import { matches, parseFilter } from './filter'

const shop = { '': 'shop The Shop shop.example.com http://10.0.0.7:3000', tag: ['web', 'prod'], state: 'active' }
it.each([
  ['', true],
  ['shop', true],
  ['SHOP example', true],
  ['shop -example', false],
  ['tag:web', true],
  ['tag:we', false],
  ['tag:we*', true],
  ['-tag:web', false],
  ['-tag:test', true],
  ['state:act', true],
  ['"the shop"', true],
  ['http://10.0.0.7', true],
  ['-', false],
])('%s', (text, want) => {
  expect(matches(parseFilter(text), shop)).toBe(want)
})
