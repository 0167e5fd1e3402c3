import type { FieldChange } from '@/api/queries'
import { t } from '@/text'

/** A value of a plan as a person reads it. */
export function shown(v: unknown): string {
  if (v === undefined || v === null) return ''
  if (typeof v === 'string') return v
  if (typeof v === 'boolean') return v ? t.edit.yes : t.edit.no
  if (Array.isArray(v) && v.every((x) => typeof x !== 'object')) return v.join(', ')
  return typeof v === 'object' ? lines(v, 0) : String(v)
}

function lines(v: object, depth: number): string {
  const pad = '  '.repeat(depth)
  return Object.entries(v)
    .map(([key, x]) => {
      const name = Array.isArray(v) ? '-' : label(key) + ':'
      if (Array.isArray(v) && x && typeof x === 'object') return `${pad}- ${lines(x, depth + 1).trimStart()}`
      if (x && typeof x === 'object' && !(Array.isArray(x) && x.every((y) => typeof y !== 'object'))) return `${pad}${name}\n${lines(x, depth + 1)}`
      return `${pad}${name} ${shown(x)}`
    })
    .join('\n')
}

/** Features that are one value: adding one of them is of no use without it. */
export const isFeature = (field: string) => ['request_body_limit', 'request_timeout'].includes(field)

/** The name of a field as a person reads it: request_timeout is "Request timeout". */
export function label(field: string): string {
  if (field === 'redirect_http_to_https') return t.edit.redirectToHTTPS
  const words = field.replaceAll('_', ' ')
  const whole = words.charAt(0).toUpperCase() + words.slice(1)
  return whole.replace(/\b(url|ip|tls|acme|ca|eab|hmac|http3|https|http|cdn|dns|oidc|udp|tcp|id|ttl|hsts|sni|alpn|h2|cors)\b/gi, (w) => w.toUpperCase())
}

/** The word of a kind of object: "proxies" is "Proxy". */
export const kindWord = (kind: string) => t.kinds[kind] ?? label(kind)

/** Where a changed field stands, in words. */
export function place(f: FieldChange): string {
  const field =
    (f.path ?? '')
      .split(/[.[]/)
      .filter((s) => s && !/^\d+\]$/.test(s))
      .pop() ?? ''
  return f.within ? `${f.within} · ${label(field)}` : label(field)
}

/** A label inside of a sentence: small, but for words that are written large. */
export const small = (title: string) => title.replace(/[A-Z][a-z]+/g, (w) => w.toLowerCase())
