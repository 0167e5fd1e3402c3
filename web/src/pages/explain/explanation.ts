import type { components } from '@/api/schema'

type S = components['schemas']
export type Explanation = S['Explanation']
export type Candidate = S['Candidate']

/** The question; it is in the address of the page. */
export type Asked = { url: string; method: string; from: string; headers: string; http3: boolean; as: string }

/** Makes an address of what people type: a host alone means https. */
export function addressOf(text: string): string {
  const url = text.trim()
  if (!url || /^https?:\/\//i.test(url)) return url
  return url.includes('://') || /\s/.test(url) ? '' : 'https://' + url
}

export const bodyOf = (a: Asked) => ({
  url: addressOf(a.url),
  method: a.method || 'GET',
  from: a.from.trim() || undefined,
  headers: a.headers
    .split('\n')
    .map((h) => h.trim())
    .filter(Boolean),
  http3: a.http3 || undefined,
  as: a.as.trim() || undefined,
})

/** The filters up to the one that answers: those after it see nothing of the request. */
export function reached(e: Explanation): { name: string; stops: boolean; beyond: boolean }[] {
  const end = e.answer ? (e.filters ?? []).indexOf(e.answer.by) : -1
  return (e.filters ?? []).map((name, i) => ({ name, stops: i === end, beyond: end >= 0 && i > end }))
}
