import { expect, it } from 'vitest'
import { daysLeft, rowsOf, standing, type Order } from './orders'

const now = Date.parse('2026-01-10T00:00:00Z')

it('counts whole days', () => {
  expect(daysLeft('2026-01-12T12:00:00Z', now)).toBe(2)
  expect(daysLeft('2026-01-09T23:00:00Z', now)).toBe(-1)
})
it('puts ordered ones and files into one list, none twice', () => {
  const rows = rowsOf(
    [{ name: 'a.example', names: ['a.example'], state: 'valid', not_after: '2026-02-10T00:00:00Z', days_left: 31, entry: 'le' } as Order],
    [{ name: 'a.example', state: 'valid' }, { name: 'own', state: 'expiring', names: ['b.example'], not_after: '2026-01-12T00:00:00Z' }],
    now,
  )
  expect(rows.map((r) => [r.name, r.daysLeft, r.entry])).toEqual([['a.example', 31, 'le'], ['own', 2, undefined]])
})
it('calls a failure without a certificate worse than one with', () => {
  const row = { name: 'a', hosts: [], state: 'failed' }
  expect(standing(row).meaning).toBe('bad')
  expect(standing({ ...row, daysLeft: 12 }).meaning).toBe('warn')
  expect(standing({ ...row, daysLeft: -1 })).toEqual({ word: 'expired', meaning: 'bad' })
  expect(standing({ ...row, state: 'valid', daysLeft: 40 })).toEqual({ word: 'valid', meaning: 'good' })
  expect(standing({ ...row, state: 'processing' }).meaning).toBe('info')
})
it('does not warn of one that lives for days and is renewed in time', () => {
  const at = (days: number) => new Date(Date.now() + days * 86_400_000).toISOString()
  const row = { name: 'a', hosts: ['a'], state: 'valid', daysLeft: 2, notAfter: at(2.5) }
  expect(standing({ ...row, order: { next_try: at(1) } as Order }).word).toBe('valid')
  expect(standing({ ...row, order: { next_try: at(4) } as Order }).word).toBe('expiring')
  expect(standing({ ...row, order: { next_try: at(-1) } as Order }).word).toBe('expiring')
  expect(standing(row).word).toBe('expiring')
})
