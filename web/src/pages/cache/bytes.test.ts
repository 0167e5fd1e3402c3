import { expect, it } from 'vitest'
import { bytes } from './bytes'

it('writes sizes with the unit that fits', () => {
  expect([0, 1, 1023, 1024, 1536, 1024 * 1023, 1 << 20, 1.5 * 2 ** 40, 2 ** 52].map(bytes)).toEqual(['0 B', '1 B', '1,023 B', '1 KiB', '1.5 KiB', '1,023 KiB', '1 MiB', '1.5 TiB', '4,096 TiB'])
})
