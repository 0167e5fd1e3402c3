import { Store } from './store'

/**
 * Whether headgate does not answer. Requests note it as they end, and while a page is seen a
 * small one every second does: an outage shows within three seconds, and so does its end.
 */
export const outage = new Store<boolean>(false)

export const note = (away: boolean) => outage.get() !== away && outage.set(away)

const every = 1_000
const patience = 1_500

/** Asks again and again whether headgate is there, until stop is called. */
export function watchOutage(): () => void {
  let over = false
  let timer: ReturnType<typeof setTimeout>
  async function look() {
    if (document.visibilityState === 'visible') {
      const there = await fetch('/livez', { cache: 'no-store', signal: AbortSignal.timeout(patience) }).then(
        (r) => r.ok,
        () => false,
      )
      if (over) return
      note(!there)
    }
    timer = setTimeout(look, every)
  }
  const away = () => note(true)
  addEventListener('offline', away)
  timer = setTimeout(look, every)
  return () => {
    over = true
    clearTimeout(timer)
    removeEventListener('offline', away)
  }
}
