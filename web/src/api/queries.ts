import { queryOptions, type QueryClient } from '@tanstack/react-query'
import { call, client, data, type Tagged } from './client'
import type { components } from './schema'

type S = components['schemas']
type ObjectState = S['objectState']
export type Proxy = S['proxyState'] & S['Proxy']
export type Change = S['changeBody']
export type ObjectChange = S['ObjectChange']
export type FieldChange = S['FieldChange']
export type Revision = S['revisionBody']

/** An object of any kind, as the API gives it. */
export type AnyObject = ObjectState & Record<string, unknown>

type Page<T> = { items: T[]; next?: string }

/** Gets all pages of a list. */
export async function all<T>(path: string, signal?: AbortSignal): Promise<Tagged<T[]>> {
  const items: T[] = []
  let cursor: string | undefined
  let etag = ''
  do {
    const page = await call<Page<T>>('GET', path, { query: { limit: 1000, cursor }, signal })
    items.push(...page.value.items)
    etag ||= page.etag
    cursor = page.value.next
  } while (cursor)
  return { value: items, etag }
}

/** The path of a kind in the API. Settings are single objects. */
const singles = ['admin', 'access_log', 'defaults', 'upstreams', 'cdn_networks', 'discovery', 'tracing', 'geo', 'sign_in']
export const pathOf = (kind: string, name = '') => (singles.includes(kind) ? `/settings/${kind}` : name ? `/${kind}/${encodeURIComponent(name)}` : `/${kind}`)
export const isSingle = (kind: string) => singles.includes(kind)

/** The path of an object in the documents. */
export function documentPath(kind: string, name: string): string {
  if (isSingle(kind)) return kind
  return /^[A-Za-z0-9_-]+$/.test(name) ? `${kind}.${name}` : `${kind}[${JSON.stringify(name)}]`
}

export const objects = <T = AnyObject>(kind: string) => queryOptions({ queryKey: ['objects', kind], queryFn: ({ signal }) => all<T>(pathOf(kind), signal).then((p) => p.value), staleTime: 5_000 })

export const object = <T = AnyObject>(kind: string, name: string) =>
  queryOptions({ queryKey: ['object', kind, name], queryFn: ({ signal }) => call<T>('GET', pathOf(kind, name), { signal }).then((o) => o.value) })

/** How long a form waits for the object that it begins with. */
const patience = 20_000

/**
 * Reads an object for a form or a change that begins with it. What a page shows may be from
 * before a change, ours or another's, that it has not read yet.
 */
export const readNow = (kind: string, name: string, signal?: AbortSignal) => call<AnyObject>('GET', pathOf(kind, name), { signal, deadline: patience }).then((o) => o.value)

/** The same for a form: one read of its own (`id`), which nothing makes old. */
export const objectForForm = (kind: string, name: string, id: string) =>
  queryOptions({ queryKey: ['begin', id, kind, name], queryFn: ({ signal }) => readNow(kind, name, signal), staleTime: 'static', gcTime: 0, retry: false })

/** The object as a page shows it, or as it is now where the page is known to be behind. */
export const asShown = (queries: QueryClient, kind: string, o: AnyObject) =>
  [
    ['objects', kind],
    ['object', kind, o.name],
  ].some((key) => queries.getQueryState(key)?.isInvalidated)
    ? readNow(kind, o.name!)
    : Promise.resolve(o)

/** Who may write. The server decides; pages only hide what it would refuse. */
export const canEdit = (role?: string) => role === 'admin' || role === 'editor'
export const isAdmin = (role?: string) => role === 'admin'

export const me = queryOptions({ queryKey: ['session'], queryFn: () => data(client.GET('/api/v1/session')), staleTime: 60_000 })
export const setupState = queryOptions({ queryKey: ['setup'], queryFn: () => data(client.GET('/api/v1/setup')) })
export const version = queryOptions({ queryKey: ['version'], queryFn: () => data(client.GET('/api/v1/version')), staleTime: 3_600_000 })
export const schema = queryOptions({ queryKey: ['schema'], queryFn: () => call<import('@/edit/schema').JSONSchema>('GET', '/config/schema').then((s) => s.value), staleTime: Infinity })
export const recentEvents = queryOptions({ queryKey: ['events'], queryFn: () => data(client.GET('/api/v1/events/history', { params: { query: { limit: 30 } } })).then((p) => p.items) })
/** Events of some types, the newest first. */
export const eventsOf = (types: string, limit: number) =>
  queryOptions({ queryKey: ['events', types, limit], queryFn: () => data(client.GET('/api/v1/events/history', { params: { query: { types, limit } } })).then((p) => p.items) })
export const revisions = (limit: number) =>
  queryOptions({ queryKey: ['revisions', limit], queryFn: () => data(client.GET('/api/v1/revisions', { params: { query: { limit } } })).then((p) => p.items) })

/** The key of a query about a machine, '' is the one that answers. Events do not make those of others old: each would ask that machine. */
const of = (node: string, ...key: string[]) => (node ? ['node', node, ...key] : key)

/** The state of headgate. */
export type Status = S['statusBody']
export type ProxyStatus = S['ProxyState']
export type ServerStatus = S['Standing']
export type CertificateStatus = S['CertificateState']

/** A response whose fields are always there, as the server writes it. */
export type Whole<T> = T extends (infer E)[] ? Whole<E>[] : T extends object ? { [K in keyof T]-?: Whole<T[K]> } : T
export type Summary = S['summaryBody']

/** Counts of all proxies, and those that need a look: an overview never lists them all. */
export const summaryOf = (node = '') =>
  queryOptions({ queryKey: of(node, 'status', 'summary'), queryFn: () => data(client.GET('/api/v1/summary', { params: { query: { node: node || undefined } } })), refetchInterval: 10_000 })
export const summary = summaryOf()

/** The status without the proxies, of which there may be very many. */
export const statusOf = (node = '') =>
  queryOptions({
    queryKey: of(node, 'status'),
    queryFn: () => data(client.GET('/api/v1/status', { params: { query: { proxies: false, node: node || undefined } } })),
    refetchInterval: 10_000,
  })
export const status = statusOf()
export const proxyStatus = (name: string) =>
  queryOptions({ queryKey: ['status', name], queryFn: () => data(client.GET('/api/v1/status', { params: { query: { proxy: name } } })), refetchInterval: 5_000 })
