import { call, client, data } from '@/api/client'
import { Problem } from '@/api/problem'
import { documentPath, pathOf, readNow, type AnyObject, type Change } from '@/api/queries'
import { Store } from '@/api/store'
import { contested, equal, merge, written, type Side, type Value } from './object'
import { schemaOf, type JSONSchema } from './schema'
import { secretIn } from './secrets'

/** One edit of an object that waits to be reviewed. */
export type Edit = {
  kind: string
  name: string
  op: 'set' | 'remove' | 'rename'
  /** The new name, of a rename. */
  to?: string
  /** What the document shall say; of a set. */
  value?: Value
  /** The object as it was when the edit began; absent for a new one. */
  base?: AnyObject
}

const key = 'headgate.edits'
function restored(): Edit[] {
  try {
    return JSON.parse(sessionStorage.getItem(key) ?? '[]') as Edit[]
  } catch {
    return []
  }
}

/**
 * The edits that are gathered to one change. They outlive a reload of the page, but for
 * those with secrets, which no browser is to keep: leaving the page warns of them.
 */
export const basket = new Store<Edit[]>(restored())

/**
 * Which fields are secrets is known by the schema; before it is there no value is kept but
 * those that were kept before.
 */
let known: JSONSchema | undefined
const kept = new Set(basket.get())
export function learn(schema: JSONSchema) {
  known = schema
  keep()
}
const mayKeep = (e: Edit) => e.value === undefined || kept.has(e) || (known !== undefined && !secretIn(e.value, schemaOf(e.kind, known), known))

function keep() {
  try {
    sessionStorage.setItem(key, JSON.stringify(basket.get().filter(mayKeep)))
  } catch {
    // the browser keeps nothing: leaving the page warns
  }
}
basket.subscribe(keep)
/** Whether all edits would be there again after a reload. */
export const isKept = () => restored().length === basket.get().length

/** Whether the drawer is open that shows them. */
export const reviewing = new Store<boolean>(false)

const same = (a: Edit, b: Edit) => a.kind === b.kind && a.name === b.name

/** Puts an edit into the basket; an earlier one of the object goes, its base stays. */
export function put(edit: Edit) {
  const earlier = basket.get().find((e) => same(e, edit))
  const next = earlier ? { ...edit, base: earlier.base } : edit
  const rest = basket.get().filter((e) => !same(e, edit))
  // A discovered object that is taken over says the same, but in a document.
  const nothing = !next.base?.origin?.provider && next.op === 'set' && next.base && equal(written(next.kind, next.base), next.value)
  const gone = next.op === 'remove' && !next.base // it was only in the basket
  basket.set(nothing || gone ? rest : [...rest, next])
}

/** Makes an object of the document of a discovered one: the plan is shown, nothing is applied. */
export async function takeOver(kind: string, name: string) {
  const o = await readNow(kind, name)
  put({ kind, name, op: 'set', base: o, value: written(kind, o) })
  reviewing.set(true)
}

export const drop = (edit: Edit) => basket.set(basket.get().filter((e) => !same(e, edit)))
export const editOf = (edits: Edit[], kind: string, name: string) => edits.find((e) => e.kind === kind && e.name === name)

/** The edits as the API takes them. */
export const body = (edits: Edit[]) => ({
  edits: edits.map((e) => ({ op: e.op, path: documentPath(e.kind, e.name), ...(e.op === 'set' ? { value: e.value } : e.op === 'rename' ? { to: e.to } : {}) })),
})

/** An object that somebody else has changed since the edit began. */
export type Conflict = {
  edit: Edit
  /** The object as it is now; absent when it was removed. */
  theirs?: AnyObject
  /** The fields that both changed, each otherwise. It is absent where no field can be chosen. */
  fields?: string[]
}

/** Finds edits whose object is not any more what it was. */
export async function conflicts(edits: Edit[]): Promise<Conflict[]> {
  const found: Conflict[] = []
  for (const edit of edits) {
    let theirs: AnyObject | undefined
    try {
      theirs = (await call<AnyObject>('GET', pathOf(edit.kind, edit.name))).value
    } catch (e) {
      if (!(e instanceof Problem) || e.status !== 404) throw e
    }
    const was = edit.base && written(edit.kind, edit.base)
    const now = theirs && written(edit.kind, theirs)
    if (equal(was, now)) continue
    if (edit.op === 'remove' && !theirs) {
      drop(edit) // both removed it
      continue
    }
    found.push({ edit, theirs, fields: edit.op === 'set' && was && now && edit.value ? contested(was, edit.value, now) : undefined })
  }
  return found
}

/** Settles a conflict: the edit goes on from the object as it is now, or is left out. */
export function settle(c: Conflict, choice: 'mine' | 'theirs' | 'fields', sides: Record<string, Side> = {}) {
  if (choice === 'theirs') return drop(c.edit)
  basket.set(basket.get().map((e) => (same(e, c.edit) ? { ...e, base: c.theirs, value: choice === 'fields' ? merged(c, sides) : e.value } : e)))
}

const merged = ({ edit: e, theirs }: Conflict, sides: Record<string, Side>) => (e.base && theirs && e.value && merge(written(e.kind, e.base), e.value, written(e.kind, theirs), sides)) || e.value

/** The ETag of the configuration as it is now. */
export const configTag = async () => (await call('GET', '/proxies', { query: { limit: 1 } })).etag

export const plan = (edits: Edit[]): Promise<Change> => data(client.POST('/api/v1/config/plan', { body: body(edits) as never }))

export async function apply(edits: Edit[], etag: string, options: { why?: string; within?: string }): Promise<Change> {
  return (await call<Change>('POST', '/config/edits', { body: body(edits), ifMatch: etag, query: { why: options.why, confirm_within: options.within } })).value
}
