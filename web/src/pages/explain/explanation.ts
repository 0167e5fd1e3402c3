/** What the API tells of a request: the fields of plan.Explanation. */
export type Explanation = {
  port?: string
  address?: string
  notes?: string[]
  host: string
  class?: string
  asked: string
  path?: string
  proxy?: string
  route?: string
  origin?: string
  features?: { feature: string; level: string; policy?: string; place?: string }[]
  client_ip?: string
  peer?: string
  filters?: string[]
  source?: string
  cache?: { use: string; why: string; status?: number; age?: number; ttl?: number; answered: boolean }
  retry?: string
  load_balancing?: string
  servers?: Candidate[]
  answer?: { by: string; status: number; reason?: string; cause?: string; location?: string }
  routes: { proxy: string; route: string; won: boolean; why: string }[]
  other_hosts: number
}
export type Candidate = { url: string; weight: number; total: number; pinned?: boolean; head?: string; backup?: boolean; state?: string; chosen?: boolean }

/** What is asked; it stands in the address of the page. */
export type Asked = { url: string; method: string; from: string; headers: string; http3: boolean }

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
  headers: a.headers.split('\n').map((h) => h.trim()).filter(Boolean),
  http3: a.http3 || undefined,
})

/** The filters up to the one that answers: those after it see nothing of the request. */
export function reached(e: Explanation): { name: string; stops: boolean; beyond: boolean }[] {
  const end = e.answer ? (e.filters ?? []).indexOf(e.answer.by) : -1
  return (e.filters ?? []).map((name, i) => ({ name, stops: i === end, beyond: end >= 0 && i > end }))
}
