import { compareSync, hashSync } from 'bcryptjs'
import { expect, it } from 'vitest'
import { isHash, tooLong } from './hash'

it('knows a hash, and a password that would be cut', () => {
  expect(['$2y$12$abc', '$argon2id$v=19$m=19456', '$apr1$x$y'].every(isHash)).toBe(true)
  expect(['secret', '$money', '2y$12'].some(isHash)).toBe(false)
  expect([tooLong('x'.repeat(72)), tooLong('x'.repeat(73)), tooLong('ü'.repeat(37))]).toEqual([false, true, true])
})
it('makes hashes that are of the form', () => {
  const hash = hashSync('correct horse', 4)
  expect(isHash(hash)).toBe(true)
  expect(compareSync('correct horse', hash)).toBe(true)
})
