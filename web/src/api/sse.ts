import { Store } from './store'
import { Problem } from './problem'
import { send } from './client'

type Message = { id: string; event: string; data: string }

/** Cuts a text of server-sent events into messages; what is left over waits for more. */
export function parse(text: string): { messages: Message[]; rest: string } {
  const parts = text.split('\n\n')
  const rest = parts.pop() ?? ''
  const messages: Message[] = []
  for (const part of parts) {
    const m: Message = { id: '', event: 'message', data: '' }
    for (const line of part.split('\n')) {
      const at = line.indexOf(':')
      if (at <= 0) continue // a comment keeps the connection
      const name = line.slice(0, at)
      const value = line.slice(at + 1).replace(/^ /, '')
      if (name === 'id') m.id = value
      else if (name === 'event') m.event = value
      else if (name === 'data') m.data += (m.data ? '\n' : '') + value
    }
    if (m.data) messages.push(m)
  }
  return { messages, rest }
}

/** How the connection for news stands. */
export type Link = { state: 'connecting' | 'open' | 'lost'; retryAt?: number }

/** A connection that says nothing for this long is lost; the server beats every 15 s. */
const silence = 40_000
const maxWait = 30_000

/**
 * Follows a stream until stop is called. It goes on after the last event that was seen,
 * and tries again with growing pauses when the connection is lost.
 */
export function follow(path: string, take: (m: Message) => void, link = new Store<Link>({ state: 'connecting' })): { stop: () => void; link: Store<Link>; now: () => void; renew: () => void } {
  let last = ''
  let tries = 0
  let stopped = false
  let abort = new AbortController()
  let wake: () => void = () => {}

  async function once() {
    abort = new AbortController()
    const headers = new Headers({ Accept: 'text/event-stream' })
    if (last) headers.set('Last-Event-ID', last)
    let timer = setTimeout(() => abort.abort(), silence)
    try {
      const response = await send(new Request(new URL(path, location.origin), { headers, signal: abort.signal }))
      link.set({ state: 'open' })
      tries = 0
      const reader = response.body!.pipeThrough(new TextDecoderStream()).getReader()
      let text = ''
      for (;;) {
        const { value, done } = await reader.read()
        if (done) return
        clearTimeout(timer)
        timer = setTimeout(() => abort.abort(), silence)
        const found = parse(text + value)
        text = found.rest
        for (const m of found.messages) {
          if (m.id) last = m.id
          take(m)
        }
      }
    } finally {
      clearTimeout(timer)
    }
  }

  async function run() {
    while (!stopped) {
      try {
        await once()
      } catch (error) {
        if (error instanceof Problem && error.status === 401) return
      }
      if (stopped) return
      const wait = tries === 0 && abort.signal.aborted ? 0 : Math.min(maxWait, 500 * 2 ** tries++) * (0.75 + Math.random() / 2)
      link.set({ state: 'lost', retryAt: Date.now() + wait })
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, wait)
        wake = () => {
          clearTimeout(timer)
          resolve()
        }
      })
    }
  }
  void run()
  return {
    link,
    now: () => wake(),
    /** Opens the connection anew: after an outage one that looks open may be dead. */
    renew: () => {
      tries = 0
      abort.abort()
      wake()
    },
    stop: () => {
      stopped = true
      abort.abort()
      wake()
    },
  }
}
