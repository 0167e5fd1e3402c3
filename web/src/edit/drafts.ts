import type { AnyObject } from '@/api/queries'
import { Store } from '@/api/store'
import type { Value } from './object'
import { schemaOf, type JSONSchema } from './schema'
import { secretIn } from './secrets'

/** What was typed into a form and is in no change yet. */
export type Draft = { kind: string; name: string; value: Value; base?: AnyObject }

const key = 'headgate.drafts'
function restored(): Draft[] {
  try {
    return JSON.parse(sessionStorage.getItem(key) ?? '[]') as Draft[]
  } catch {
    return []
  }
}

/**
 * The drafts of forms that were left: by Escape, by Back, by a reload. They outlive a reload
 * of the tab, but for those with secrets, which no browser is to keep.
 */
export const drafts = new Store<Draft[]>(restored())

const same = (d: Draft, kind: string, name: string) => d.kind === kind && d.name === name

export const draftOf = (list: Draft[], kind: string, name: string) => list.find((d) => same(d, kind, name))

export const dropDraft = (kind: string, name: string) => keep(drafts.get().filter((d) => !same(d, kind, name)))

/** Keeps what was typed. The schema says which fields are secrets: such a draft lives in memory alone. */
export function keepDraft(draft: Draft, root: JSONSchema) {
  keep([...drafts.get().filter((d) => !same(d, draft.kind, draft.name)), draft], root)
}

let known: JSONSchema | undefined
function keep(list: Draft[], root = known) {
  known = root
  drafts.set(list)
  const open = list.filter((d) => known && !secretIn(d.value, schemaOf(d.kind, known), known))
  try {
    sessionStorage.setItem(key, JSON.stringify(open))
  } catch {
    // the browser keeps nothing: the draft lives as long as the page
  }
}
