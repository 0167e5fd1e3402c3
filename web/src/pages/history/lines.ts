/** A line of the difference of two texts; a fold stands for lines that are the same. */
export type Line = { kind: 'same' | 'added' | 'removed'; text: string; before?: number; after?: number } | { kind: 'fold'; count: number }

/** The most that the middle may have before it is not compared any more. */
const most = 4_000_000

/**
 * The difference of two texts by lines: the longest common ones stay. Lines that are the
 * same far from any change are folded. Null where that would take too long.
 */
export function difference(before: string, after: string, around = 3): Line[] | null {
  const a = split(before)
  const b = split(after)
  let start = 0
  while (start < a.length && start < b.length && a[start] === b[start]) start++
  let end = 0
  while (end < a.length - start && end < b.length - start && a[a.length - 1 - end] === b[b.length - 1 - end]) end++
  const n = a.length - start - end
  const m = b.length - start - end
  if (n * m > most) return null

  // length[i*(m+1)+j] is how many lines of a[i…] and b[j…] are in common.
  const length = new Uint32Array((n + 1) * (m + 1))
  for (let i = n - 1; i >= 0; i--)
    for (let j = m - 1; j >= 0; j--)
      length[i * (m + 1) + j] = a[start + i] === b[start + j] ? length[(i + 1) * (m + 1) + j + 1]! + 1 : Math.max(length[(i + 1) * (m + 1) + j]!, length[i * (m + 1) + j + 1]!)

  const all: Exclude<Line, { kind: 'fold' }>[] = []
  for (let i = 0; i < start; i++) all.push({ kind: 'same', text: a[i]!, before: i + 1, after: i + 1 })
  let i = 0
  let j = 0
  while (i < n || j < m) {
    if (i < n && j < m && a[start + i] === b[start + j]) {
      all.push({ kind: 'same', text: a[start + i]!, before: start + i + 1, after: start + j + 1 })
      i++
      j++
    } else if (i < n && (j === m || length[(i + 1) * (m + 1) + j]! >= length[i * (m + 1) + j + 1]!)) {
      all.push({ kind: 'removed', text: a[start + i]!, before: start + i + 1 })
      i++
    } else {
      all.push({ kind: 'added', text: b[start + j]!, after: start + j + 1 })
      j++
    }
  }
  for (let k = 0; k < end; k++) all.push({ kind: 'same', text: a[start + n + k]!, before: start + n + k + 1, after: start + m + k + 1 })
  return fold(all, around)
}

const split = (text: string) => (text === '' ? [] : text.replace(/\n$/, '').split('\n'))

function fold(all: Exclude<Line, { kind: 'fold' }>[], around: number): Line[] {
  const near = new Uint8Array(all.length)
  all.forEach((line, i) => {
    if (line.kind !== 'same') near.fill(1, Math.max(0, i - around), Math.min(all.length, i + around + 1))
  })
  const out: Line[] = []
  for (let i = 0; i < all.length; i++) {
    if (near[i]) {
      out.push(all[i]!)
      continue
    }
    let count = 1
    while (i + count < all.length && !near[i + count]) count++
    out.push({ kind: 'fold', count })
    i += count - 1
  }
  return out
}
