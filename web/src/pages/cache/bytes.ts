import { count } from '@/text/many'

const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB']

/** A number of bytes with three digits: 512 B, 1.21 MiB. */
export function bytes(n: number): string {
  let i = 0
  while (n >= 1024 && i < units.length - 1) {
    n /= 1024
    i++
  }
  return `${count(n, { maximumSignificantDigits: Math.max(3, String(Math.floor(n)).length) })} ${units[i]}`
}
