import { t } from '@/text'
import type { components } from './schema'

type ProblemBody = components['schemas']['problem']

/** A request that was refused, in the words of the API (RFC 9457). */
export class Problem extends Error {
  readonly body: ProblemBody
  constructor(body: ProblemBody) {
    super(body.detail || body.title || 'refused')
    // Who may grant access is the one refusal that editors meet every day: it is in their language.
    this.body = body.code === 'access_required' ? { ...body, detail: t.access.required(body.grant ?? ''), remedy: t.access.requiredRemedy } : body
  }
  get code() {
    return this.body.code ?? ''
  }
  get status() {
    return this.body.status ?? 0
  }
  /** All that is wrong, each with its place. */
  get mistakes(): { pointer: string; detail: string; remedy?: string }[] {
    const { problems, pointer, parameter, detail, remedy } = this.body
    if (problems?.length) return problems.map((p) => ({ pointer: p.pointer ?? '', detail: p.detail ?? '', remedy: p.remedy }))
    return [{ pointer: pointer || parameter || '', detail: detail ?? '', remedy }]
  }
}

/** The server could not be reached at all. */
export class Unreachable extends Error {}

/** The server has not answered in the time that the request had. */
export class Late extends Error {}

/** Whether an error says nothing about what was asked for, but that headgate does not answer. */
export const isOutage = (error: unknown) => error instanceof Unreachable || error instanceof Late

/** The error of a query, unless headgate does not answer and there is data of before to show. */
export const failed = (query: { error: unknown; data?: unknown }) => (query.data !== undefined && isOutage(query.error) ? undefined : (query.error ?? undefined))

/** Reads the problem of an answer; one that is none of ours becomes one. */
export async function problemOf(response: Response): Promise<Problem> {
  const text = await response.text().catch(() => '')
  if (response.headers.get('Content-Type')?.includes('json')) {
    try {
      return new Problem(JSON.parse(text))
    } catch {
      // told below
    }
  }
  return new Problem({ type: 'about:blank', title: `HTTP ${response.status}`, status: response.status, code: 'internal', detail: text.slice(0, 300) || `HTTP ${response.status}` })
}

/** A text without the place in a document that is not written yet: `headgate.yaml:12:3: `. */
export const withoutPlace = (text: string) => text.replace(/(?:^|(?<=[\s(]))\S+\.(?:ya?ml|json):\d+(?::\d+)?:? ?/g, '')

/** Says a refusal as a person reads it: what is wrong, and what to do. */
export function sentence(error: unknown): string {
  if (error instanceof Problem) {
    const { detail, remedy } = error.body
    return capital(withoutPlace(remedy ? `${detail}; ${remedy}` : (detail ?? error.message))).replace(/\.?$/, '.')
  }
  return error instanceof Error ? error.message : String(error)
}

const capital = (s: string) => s.charAt(0).toUpperCase() + s.slice(1)

/**
 * The place of a problem as the path of a field: `routes[0].path`. The API gives JSON
 * pointers into the body, and for edits into the configuration; the path of the object is
 * cut off.
 */
export function fieldOf(pointer: string, object = ''): string {
  let path = pointer
  if (pointer.startsWith('/')) {
    path = pointer
      .slice(1)
      .split('/')
      .map((step) => step.replaceAll('~1', '/').replaceAll('~0', '~'))
      .reduce((at, step) => (/^\d+$/.test(step) ? `${at}[${step}]` : !/^[A-Za-z0-9_-]+$/.test(step) ? `${at}[${JSON.stringify(step)}]` : at ? `${at}.${step}` : step), '')
  }
  if (object && path === object) return ''
  if (object && path.startsWith(object)) return path.slice(object.length).replace(/^\./, '')
  return path
}
