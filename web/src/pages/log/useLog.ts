import { useEffect, useRef, useState } from 'react'
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

/** Follows the log with filters: what was before, then what comes. */
export function useLog(filters: Filters, held: boolean) {
  const key = JSON.stringify(filters)
  const log = useRef(new LiveLog())
  const [shown, show] = useState<{ rows: Row[]; waiting: number; older?: string; link: Link['state']; loaded: boolean }>({ rows: [], waiting: 0, link: 'connecting', loaded: false })
  const [error, setError] = useState<unknown>()

  useEffect(() => {
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
      if (link.get().state === 'open') void before()
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
  }, [key])

  useEffect(() => {
    log.current.held = held
  }, [held, key])

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
  const off = error instanceof Problem && error.status === 404
  return { ...shown, error: isOutage(error) && shown.loaded ? undefined : error, off, more }
}
