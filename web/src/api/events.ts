import type { QueryClient } from '@tanstack/react-query'
import { outage, watchOutage } from './outage'
import { Store } from './store'
import { follow, type Link } from './sse'
import type { components } from './schema'

export type Event = components['schemas']['eventBody']

/** How the connection for events stands; the banner shows it. */
export const link = new Store<Link>({ state: 'connecting' })

let retry: () => void = () => {}
export const retryNow = () => retry()

/** The first parts of query keys that an event makes old. */
export function touched(type: string): string[] {
  const object = type.split('.')[0]
  switch (object) {
    case 'config':
      return ['objects', 'object', 'status', 'revisions', 'pending', 'discovery', 'access']
    case 'server':
    case 'proxy':
    case 'port':
    case 'split':
      return ['objects', 'object', 'status']
    case 'certificate':
    case 'acme':
      return ['objects', 'object', 'status', 'acme', 'stored']
    case 'auth':
    case 'user':
    case 'token':
    case 'session':
      return ['users', 'tokens', 'sessions', 'audit', 'session']
    case 'person':
      return ['access', 'audit']
    case 'discovery':
      return ['discovery', 'objects', 'object', 'status']
    case 'webhook':
      return ['webhooks']
    case 'node':
    case 'store':
      return ['nodes', 'pair', 'status']
    case 'notice':
      return ['notices']
    case 'process':
      return ['status', 'version']
    default:
      return ['status']
  }
}

/** Follows events: each makes the queries old that it is about, a few times a second at most. */
export function followEvents(queries: QueryClient): () => void {
  const old = new Set<string>()
  let timer: ReturnType<typeof setTimeout> | undefined
  const flush = () => {
    timer = undefined
    const keys = [...old, 'events']
    old.clear()
    for (const key of keys) void queries.invalidateQueries({ queryKey: [key] })
  }
  const { stop, now, renew } = follow(
    '/api/v1/events',
    (m) => {
      touched(m.event).forEach((key) => old.add(key))
      timer ??= setTimeout(flush, 250)
    },
    link,
  )
  retry = now
  let before = link.get().state
  const unsubscribe = link.subscribe(() => {
    const state = link.get().state
    // What happened while the connection was lost may be more than the server keeps.
    if (before === 'lost' && state === 'open') void queries.invalidateQueries()
    before = state
  })
  const unwatch = watchOutage()
  const back = outage.subscribe(() => {
    if (outage.get()) return
    renew()
    void queries.invalidateQueries()
  })
  return () => {
    stop()
    unwatch()
    back()
    unsubscribe()
    clearTimeout(timer)
  }
}
