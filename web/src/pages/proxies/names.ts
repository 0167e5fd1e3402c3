/** A name for a proxy, from its first host: shop.example.com is shop. */
export function nameFor(host: string, taken: string[]): string {
  const labels = host.toLowerCase().replace(/^\*\./, '').split('.').filter(Boolean)
  const first = labels[0] === 'www' ? labels[1] : labels[0]
  const base = (first ?? '').replace(/[^a-z0-9-]+/g, '-').replace(/^-+|-+$/g, '') || 'proxy'
  if (!taken.includes(base)) return base
  for (let n = 2; ; n++) if (!taken.includes(`${base}-${n}`)) return `${base}-${n}`
}

/** Hosts as people write or paste them: the host of a whole URL, without its port. */
export const hostsOf = (text: string) =>
  text
    .split(/[\s,]+/)
    .filter(Boolean)
    .map((h) =>
      h
        .replace(/^[a-z]+:\/\//i, '')
        .replace(/[/?#].*$/, '')
        .replace(/^[^@]*@/, '')
        .replace(/:\d+$/, '')
        .replace(/\.$/, ''),
    )
    .filter(Boolean)
export const isHost = (h: string) => /^(\*\.)?[^\s/:?#@*]+$/u.test(h) && h.length <= 253

/** A server as people type or paste it: without a scheme it is http; what follows the path is cut off. */
export function serverURL(text: string): string {
  const s = text.trim().replace(/[?#].*$/, '')
  if (!s) return s
  const whole = /^[a-z0-9+]+:/i.test(s) && !/^[^/]+:\d+(\/|$)/.test(s) ? s : 'http://' + s
  return whole.replace(/^(https?:\/\/[^/]+)\/$/i, '$1')
}
