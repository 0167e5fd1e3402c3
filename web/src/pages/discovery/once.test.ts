import { expect, it } from 'vitest'
import { once } from './once'

it('lists a host that is taken once, with the label to change', () => {
  const own = { code: 'host_taken', container: 'shop', label: 'headgate.host', message: 'the host is taken' }
  const other = { code: 'host_taken', container: 'shop', kind: 'proxies', name: 'site', message: 'shop wants the host too' }
  const alone = { code: 'no_port', container: 'shop', message: 'which port?' }
  expect(once([own, other, alone])).toEqual([own, alone])
})
