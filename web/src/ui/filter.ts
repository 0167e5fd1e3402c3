/**
 * A filter as people type it: words that must all be found, `-word` that must not, and
 * `field:value` for one field (`tag:web`, `-tag:web`, `state:down`). A value with spaces
 * goes into quotes.
 */
export type Filter = { not: boolean; field: string; text: string }[]

export function parseFilter(text: string): Filter {
  const out: Filter = []
  for (const m of text.matchAll(/(-?)(?:([a-z_]+):)?(?:"([^"]*)"?|(\S+))/gi)) {
    const word = (m[3] ?? m[4] ?? '').toLowerCase()
    if (word) out.push({ not: m[1] === '-', field: (m[2] ?? '').toLowerCase(), text: word })
  }
  return out
}

/** Fields by name; '' is all that words are searched in. Unknown fields are words. */
export type Searchable = Record<string, string | string[]> & { '': string }

export function matches(filter: Filter, s: Searchable): boolean {
  return filter.every(({ not, field, text }) => {
    const value = field in s ? s[field]! : s['']
    const wanted = field && !(field in s) ? `${field}:${text}` : text
    // A list such as tags is matched by whole entries, or their beginning with *.
    const found = Array.isArray(value) ? value.some((v) => (wanted.endsWith('*') ? v.toLowerCase().startsWith(wanted.slice(0, -1)) : v.toLowerCase() === wanted)) : value.toLowerCase().includes(wanted)
    return found !== not
  })
}
