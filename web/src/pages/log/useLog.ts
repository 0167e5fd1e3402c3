import { useEffect, useRef, useState, useSyncExternalStore } from 'react'
import { call } from '@/api/client'
import { follow, type Link } from '@/api/sse'
import { Store } from '@/api/store'
import { isOutage, Problem } from '@/api/problem'
import { outage } from '@/api/outage'
import { LiveLog, type Filters, type Request, type Row } from './livelog'

type Page = { items: Request[]; next?: string }
const pageSize = 200

/** How often the rows are drawn again at most, in milliseconds. */
const pace = 250

/** Whether the page is not seen. */
function useHidden(): boolean {
  return useSyncExternalStore(
    (changed) => {
      document.addEventListener('visibilitychange', changed)
      return () => document.removeEventListener('visibilitychange', changed)
    },
    () => document.visibilityState === 'hidden',
  )
}

/** Follows the log of a machine with filters: what was before, then what comes. '' is the one that answers. */
export function useLog(given: Filters, held: boolean, node = '') {
  const filters = node ? { ...given, node } : given
  const key = JSON.stringify(filters)
  const hidden = useHidden()
  const log = useRef(new LiveLog())
  const [shown, show] = useState<{ rows: Row[]; waiting: number; older?: string; link: Link['state']; loaded: boolean }>({ rows: [], waiting: 0, link: 'connecting', loaded: false })
  const [error, setError] = useState<unknown>()

  // Each look at the log of another machine is a question to it: none while no one looks.
  const resting = !!node && hidden
  useEffect(() => {
    if (resting) return
    const query = JSON.parse(key) as Filters
    const it = (log.current = new LiveLog())
    let older: string | undefined
    let over = false
    let loaded = false
    const link = new Store<Link>({ state: 'connecting' })
    const draw = () => !over && show({ rows: it.rows, waiting: it.waiting, older, link: link.get().state, loaded })
    setError(undefined)
    draw()
    const before = () =>
      call<Page>('GET', '/logs/access', { query: { ...query, limit: pageSize } })
        .then((p) => {
          if (over) return
          it.merge(p.value.items)
          older = p.value.next
          loaded = true
          setError(undefined)
          draw()
        })
        .catch((e: unknown) => !over && setError(e))
    const url = new URLSearchParams(query as Record<string, string>)
    const stream = follow(
      '/api/v1/logs/access/stream?' + url.toString(),
      (m) => {
        const value = JSON.parse(m.data) as Request & { missed?: number }
        if (m.event === 'gap') it.gap(value.missed ?? 0)
        else it.add(value)
      },
      link,
    )
    // What ended while the connection was lost is in the list.
    const unsubscribe = link.subscribe(() => {
      // With another machine, the list says why it is lost.
      if (link.get().state === 'open' || (node && link.get().state === 'lost')) void before()
      draw()
    })
    // What looks open after an outage may be dead: it is opened anew.
    const back = outage.subscribe(() => !outage.get() && stream.renew())
    void before()
    let waiting = 0
    const timer = setInterval(() => {
      if (it.flush() || it.waiting !== waiting) draw()
      waiting = it.waiting
    }, pace)
    return () => {
      over = true
      unsubscribe()
      back()
      stream.stop()
      clearInterval(timer)
    }
  }, [key, resting])

  useEffect(() => {
    log.current.held = held
  }, [held, key, resting])

  /** Gets requests from before the last row. The bound holds: the oldest go when new ones come. */
  async function more() {
    const it = log.current
    try {
      const page = await call<Page>('GET', '/logs/access', { query: { ...filters, limit: pageSize, cursor: shown.older } })
      it.merge(page.value.items)
      show((s) => ({ ...s, rows: it.rows, older: page.value.next }))
    } catch (e) {
      setError(e)
    }
  }
  const off = !node && error instanceof Problem && error.status === 404
  return { ...shown, error: isOutage(error) && shown.loaded ? undefined : error, off, more }
}
