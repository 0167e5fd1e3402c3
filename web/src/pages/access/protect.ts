import type { AnyObject } from '@/api/queries'
import type { Edit } from '@/edit/basket'
import { written, type Value } from '@/edit/object'

/** What is entered to protect an application. */
export type Entered = {
  proxy: string
  /** The host of the sign-in page; '' where there is one. */
  page: string
  group: string
  /** The address of the https port that is missing; '' where there is one. */
  secure: string
}

/** What is there already. */
export type Known = { signIn?: AnyObject; proxy: AnyObject; names: string[]; ports: { name?: string }[] }

const hosts = (p: AnyObject) => (p.virtual_hosts as string[] | undefined) ?? []

/** Whether a gate can be added: it needs names, and nothing of the kind is there. */
export const canHaveGate = (p: AnyObject, gated: string[]) =>
  !gated.includes(p.name!) && !p.read_only && hosts(p).length > 0 && hosts(p).every((h) => !h.startsWith('~')) && !((p.routes as { sign_in?: unknown }[] | undefined) ?? []).some((r) => r.sign_in)

/** A host for the sign-in page, beside that of an application. */
export function pageFor(host: string): string {
  const labels = host.replace(/^\*\./, '').split('.')
  const rest = host.startsWith('*.') || labels.length < 3 ? labels : labels.slice(1)
  return labels.length < 2 && !host.startsWith('*.') ? '' : ['login', ...rest].join('.')
}

export const isGroup = (text: string) => /^[a-z0-9][a-z0-9._-]{0,63}$/.test(text)

/** The edits that put a gate before an application, with a sign-in page where there is none. */
export function protectEdits(e: Entered, known: Known): Edit[] {
  const out: Edit[] = []
  const app = written('proxies', known.proxy)
  if (e.secure)
    out.push({
      kind: 'ports',
      name: free(
        'websecure',
        known.ports.map((p) => p.name!),
      ),
      op: 'set',
      value: { address: e.secure, protocol: 'https' },
    })
  const signIn: Value = known.signIn ? written('sign_in', known.signIn) : {}
  if (!signIn.local && !Object.keys((signIn.providers as Value | undefined) ?? {}).length) out.push({ kind: 'sign_in', name: '', op: 'set', base: known.signIn, value: { ...signIn, local: true } })
  if (e.page) {
    const shared = Object.fromEntries(['acme', 'ports', 'client_ip'].filter((k) => app[k] !== undefined).map((k) => [k, app[k]]))
    out.push({ kind: 'proxies', name: free('login', known.names), op: 'set', value: { virtual_hosts: [e.page], ...shared, routes: [{ path: '/', sign_in: {} }] } })
  }
  out.push({ kind: 'proxies', name: e.proxy, op: 'set', base: known.proxy, value: { ...app, gate: { allow: [`group:${e.group}`] } } })
  return out
}

function free(name: string, taken: string[]): string {
  for (let n = 1; ; n++) {
    const candidate = n === 1 ? name : `${name}-${n}`
    if (!taken.includes(candidate)) return candidate
  }
}
