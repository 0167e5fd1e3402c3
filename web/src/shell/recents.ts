import { kept } from '@/api/store'

/** A page of an object that was open. */
export type Recent = { path: string; title: string }

const key = 'headgate.recents'
const most = 6

export function recents(): Recent[] {
  try {
    return JSON.parse(kept.get(key) ?? '[]') as Recent[]
  } catch {
    return []
  }
}

/** The list with a page at its head, once. */
export const withRecent = (list: Recent[], r: Recent): Recent[] => [r, ...list.filter((x) => x.path !== r.path)].slice(0, most)

/** Notes that the page of an object was open; other pages are in the navigation. */
export function noteRecent(path: string) {
  const m = /^\/(proxies|certificates|streams\/(?:tcp|udp)|history)\/([^/]+)$/.exec(path)
  if (!m || (m[1] === 'proxies' && m[2] === 'new')) return
  kept.set(key, JSON.stringify(withRecent(recents(), { path, title: decodeURIComponent(m[2]!) })))
}
