import createClient from 'openapi-fetch'
import { t } from '@/text'
import { Late, problemOf, Unreachable } from './problem'
import { note } from './outage'
import type { paths } from './schema'
import { askToSignIn, secret } from './session'

const header = 'Headgate-Session'

/** Ways that are for those who have not signed in. */
const open = (url: string) => /\/api\/v1\/(setup|session(\/oidc|\/passkey)?)$/.test(new URL(url).pathname)

/**
 * Sends a request with the secret of the session. When the session has ended, the person
 * signs in again in a dialog and the request goes on; nothing typed is lost. Refusals are
 * thrown as Problem. Each attempt has `deadline` milliseconds until its answer is there,
 * body and all; without one it waits as long as the browser does.
 */
export async function send(request: Request, deadline?: number): Promise<Response> {
  for (;;) {
    const attempt = request.clone()
    const used = secret.get()
    if (used) attempt.headers.set(header, used)
    const late = deadline === undefined ? undefined : AbortSignal.timeout(deadline)
    let response: Response
    try {
      response = await fetch(attempt, late && { signal: AbortSignal.any([request.signal, late]) })
      if (late && response.body) response = new Response(await response.blob(), response)
    } catch (error) {
      if (request.signal.aborted) throw error
      if (late?.aborted) throw new Late(t.problem.late(deadline! / 1000))
      note(true)
      throw new Unreachable(t.problem.unreachable)
    }
    note(false)
    if (response.ok || response.status === 304) return response
    const problem = await problemOf(response)
    if (response.status !== 401 || !used || (open(request.url) && request.method !== 'GET')) throw problem
    if (secret.get() === used && !(await askToSignIn())) throw problem
  }
}

/** The typed client: every path and body is that of the OpenAPI document. */
export const client = createClient<paths>({ baseUrl: location.origin, fetch: send })

export type Tagged<T> = { value: T; etag: string }

type Options = { query?: Record<string, string | number | boolean | undefined>; body?: unknown; ifMatch?: string; signal?: AbortSignal; deadline?: number }

/**
 * Calls a path whose kind is known at run time only; `client` is for all others. The
 * ETag comes with the value, and goes back in ifMatch: nothing else handles them.
 */
export async function call<T>(method: string, path: string, options: Options = {}): Promise<Tagged<T>> {
  const url = new URL('/api/v1' + path, location.origin)
  for (const [name, value] of Object.entries(options.query ?? {})) if (value !== undefined && value !== '') url.searchParams.set(name, String(value))
  const headers = new Headers()
  if (options.body !== undefined) headers.set('Content-Type', 'application/json')
  if (options.ifMatch) headers.set('If-Match', options.ifMatch)
  const response = await send(new Request(url, { method, headers, body: options.body === undefined ? undefined : JSON.stringify(options.body), signal: options.signal }), options.deadline)
  const value = response.status === 204 ? (undefined as T) : ((await response.json()) as T)
  return { value, etag: response.headers.get('ETag') ?? '' }
}

/** Takes the data of an answer of the typed client; refusals were thrown before. */
export async function data<T>(answer: Promise<{ data?: T }>): Promise<T> {
  return (await answer).data as T
}
