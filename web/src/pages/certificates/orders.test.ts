import { expect, it } from 'vitest'
import type { CertificateStatus } from '@/api/queries'
import { meaningOfCertificate, rowsOf, type Order } from './orders'

it('shows the states of the server, and the accounts of certificates by ACME', () => {
  const states: CertificateStatus[] = [
    { name: 'own', source: 'configured', state: 'expiring', names: ['b.example'], days_left: 2 },
    { name: 'a.example', source: 'acme', state: 'failed', names: ['a.example'], problem: 'no such host' },
  ]
  expect(rowsOf(states, [{ name: 'a.example', entry: 'le' } as Order]).map((r) => [r.name, r.state, r.daysLeft, r.entry, r.problem])).toEqual([
    ['own', 'expiring', 2, undefined, undefined],
    ['a.example', 'failed', undefined, 'le', 'no such host'],
  ])
})
it('shows for which proxy a certificate was ordered on demand', () => {
  expect(rowsOf([{ name: 'a.example', source: 'acme', state: 'valid', on_demand: 'tenants' }]).map((r) => r.onDemand)).toEqual(['tenants'])
})
it('calls a failure without a certificate worse than one with', () => {
  expect(meaningOfCertificate('failed')).toBe('bad')
  expect(meaningOfCertificate('blocked', 12)).toBe('warn')
  expect(meaningOfCertificate('expired', -1)).toBe('bad')
  expect(meaningOfCertificate('expiring', 3)).toBe('warn')
  expect(meaningOfCertificate('valid', 40)).toBe('good')
  expect(meaningOfCertificate('ordering')).toBe('info')
})
