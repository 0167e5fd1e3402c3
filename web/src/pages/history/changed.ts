import type { Revision } from '@/api/queries'
import { kindWord, small } from '@/edit/words'
import { t } from '@/text'

/** An object that a revision changed: "proxies/shop" is "proxy shop". */
function changedObject(change: string): string {
  if (change === '*') return t.history.veryMany
  const [kind = '', ...name] = change.split('/')
  return [small(kindWord(kind)), ...name].join(' ').trim()
}

/** The objects that a revision changed, in few words. */
export function changedObjects(r: Revision): string {
  const list = (r.changes ?? []).map(changedObject)
  return list.slice(0, 3).join(', ') + (list.length > 3 ? ` ${t.proxies.more(list.length - 3)}` : '')
}
