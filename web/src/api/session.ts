import { kept, Store } from './store'

const key = 'headgate.session'

/**
 * The secret of the session that goes into the field Headgate-Session. The other one is
 * in a cookie that no script sees; one alone opens nothing.
 */
export const secret = new Store<string | null>(kept.get(key))

export function keepSecret(value: string | null) {
  kept.set(key, value)
  secret.set(value)
}

/** Whether a request waits for somebody to sign in again. */
export const signInWanted = new Store<boolean>(false)

let waiting: { resolve: (again: boolean) => void; promise: Promise<boolean> } | null = null

/** Asks the person to sign in again; many requests ask once. False: they left. */
export function askToSignIn(): Promise<boolean> {
  if (!waiting) {
    let resolve!: (again: boolean) => void
    const promise = new Promise<boolean>((r) => (resolve = r))
    waiting = { resolve, promise }
    signInWanted.set(true)
  }
  return waiting.promise
}

/** Lets the waiting requests go on. */
export function signedInAgain(again: boolean) {
  waiting?.resolve(again)
  waiting = null
  signInWanted.set(false)
}
