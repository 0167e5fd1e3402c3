import { expect, it } from 'vitest'
import { difference, type Line } from './lines'

const short = (lines: Line[] | null) => lines?.map((l) => (l.kind === 'fold' ? `~${l.count}` : { same: ' ', added: '+', removed: '-' }[l.kind] + l.text))

it('tells nothing of texts that are the same', () => {
  expect(short(difference('a\nb\n', 'a\nb\n'))).toEqual(['~2'])
  expect(short(difference('', ''))).toEqual([])
})
it('tells what came and what went', () => {
  expect(short(difference('a\nb\nc\n', 'a\nx\nc\nd\n'))).toEqual([' a', '-b', '+x', ' c', '+d'])
  expect(short(difference('', 'a\n'))).toEqual(['+a'])
  expect(short(difference('a\n', ''))).toEqual(['-a'])
})
it('folds what is far from a change', () => {
  const text = Array.from({ length: 20 }, (_, i) => `line ${i}`)
  const other = [...text]
  other[10] = 'changed'
  expect(short(difference(text.join('\n'), other.join('\n'), 1))).toEqual(['~9', ' line 9', '-line 10', '+changed', ' line 11', '~8'])
})
it('counts the lines of both', () => {
  const found = difference('a\nb\n', 'x\na\nb\n')!
  expect(found[1]).toEqual({ kind: 'same', text: 'a', before: 1, after: 2 })
})
it('keeps what is common in the middle', () => {
  expect(short(difference('a\nb\nc\nd', 'b\nd\ne'))).toEqual(['-a', ' b', '-c', ' d', '+e'])
})
it('does not begin what would take too long', () => {
  const many = (x: string) => Array.from({ length: 3000 }, (_, i) => x + i).join('\n')
  expect(difference(many('a'), many('b'))).toBeNull()
})
