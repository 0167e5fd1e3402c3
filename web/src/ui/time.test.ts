import { expect, it } from 'vitest'
import { clock, withOffset } from './time'

it('tells the offset from UTC beside a time', () => {
  const at = new Date('2026-11-23T10:05:12Z')
  const off = -at.getTimezoneOffset()
  const hours = `${off < 0 ? '−' : '+'}${String(Math.floor(Math.abs(off) / 60)).padStart(2, '0')}`
  expect(withOffset(at)).toContain(`(UTC${hours}:`)
  expect(withOffset(at.toISOString())).toContain(clock(at))
})

it('leaves seconds out where they do not matter', () => {
  expect(clock('2026-11-23T10:05:12Z')).toMatch(/:05:12/)
  expect(clock('2026-11-23T10:05:12Z', false)).not.toContain('12:')
  expect(clock('2026-11-23T10:05:47Z', false)).not.toContain('47')
})
