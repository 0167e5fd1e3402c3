/** A name for a proxy, from its first host: shop.example.com is shop. */
export function nameFor(host: string, taken: string[]): string {
  const labels = host.toLowerCase().replace(/^\*\./, '').split('.').filter(Boolean)
  const first = labels[0] === 'www' ? labels[1] : labels[0]
  const base = (first ?? '').replace(/[^a-z0-9-]+/g, '-').replace(/^-+|-+$/g, '') || 'proxy'
  if (!taken.includes(base)) return base
  for (let n = 2; ; n++) if (!taken.includes(`${base}-${n}`)) return `${base}-${n}`
}

export const hostsOf = (text: string) => text.split(/[\s,]+/).filter(Boolean)
export const isHost = (h: string) => /^(\*\.)?[^\s/:?#@*]+$/u.test(h) && h.length <= 253

/** A server as people type it: without a scheme it is http. */
export function serverURL(text: string): string {
  const s = text.trim()
  if (!s || /^[a-z0-9+]+:/i.test(s) && !/^[^/]+:\d+(\/|$)/.test(s)) return s
  return 'http://' + s
}
