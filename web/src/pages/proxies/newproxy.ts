import type { Edit } from '@/edit/basket'
import type { Value } from '@/edit/object'
import { hostsOf, serverURL } from './names'
import { privateNetworks, recipes } from './recipes'

export type HTTPS = 'acme' | 'own' | 'none'
export type Access = 'everyone' | 'network' | 'password' | 'sign_in'

/** What is entered on the page of a new proxy. */
export type Entered = {
  hosts: string
  server: string
  name: string
  recipe: string
  https: HTTPS
  account: string
  email: string
  certificate: string
  redirect: boolean
  access: Access
  networks: string
  user: string
  /** The hash of the password. */
  hash: string
  authURL: string
  preset: string
  plain: string
  secure: string
}

export const blank: Entered = {
  hosts: '',
  server: '',
  name: '',
  recipe: '',
  https: 'none',
  account: '',
  email: '',
  certificate: '',
  redirect: true,
  access: 'everyone',
  networks: privateNetworks.join('\n'),
  user: '',
  hash: '',
  authURL: '',
  preset: '',
  plain: '0.0.0.0:80',
  secure: '0.0.0.0:443',
}

/** What is there already: ports that speak HTTP, accounts and certificates. */
export type Known = { ports: { name?: string; protocol?: unknown; active?: unknown }[]; accounts: string[]; certificates: { name?: string; stored?: unknown }[]; stored: string[] }

const lines = (text: string) => text.split(/[\s,]+/).filter(Boolean)
const speaks = (known: Known, protocol: string) => known.ports.some((p) => p.protocol === protocol && p.active !== false)

/** Which ports the proxy needs that are not there yet. */
export const missingPorts = (e: Entered, known: Known) => ({
  plain: !speaks(known, 'http') && (e.https !== 'own' || e.redirect || !speaks(known, 'https')),
  secure: e.https !== 'none' && !speaks(known, 'https'),
})

/** The settings of an application, in the form of the documents. */
export const recipeOf = (id: string) => recipes.find((r) => r.id === id)

/** The proxy that was entered; like is the one that it is a copy of. */
export function proxyOf(e: Entered, known: Known, like?: Value): Value {
  const recipe = recipeOf(e.recipe)
  const hosts = hostsOf(e.hosts)
  const server = serverURL(e.server)
  const route: Value = { ...recipe?.route, servers: [{ url: server }] }
  const secure = e.https !== 'none'
  const account = e.account || (known.accounts.includes('letsencrypt') ? 'letsencrypt' : (known.accounts[0] ?? 'letsencrypt'))
  return {
    ...like,
    ...recipe?.proxy,
    virtual_hosts: hosts,
    ...(e.https === 'acme' ? { acme: account } : {}),
    ...(secure && e.redirect ? { redirect_http_to_https: true } : {}),
    ...(e.access === 'network' ? { ip_filter: { allow: lines(e.networks) } } : {}),
    ...(e.access === 'password' ? { basic_auth: { users: [{ name: e.user.trim(), password_hash: e.hash }] } } : {}),
    ...(e.access === 'sign_in' ? { forward_auth: { url: e.authURL.trim(), ...(e.preset ? { preset: e.preset } : {}) } } : {}),
    routes: [...(recipe?.more?.(hosts[0] ?? '') ?? []), ...(like && server === firstServer(like) ? (like.routes as Value[]) : [route])],
  }
}

/** All edits of the page: the ports, the account and the certificate that are missing, and the proxy. */
export function editsOf(e: Entered, name: string, known: Known, like?: Value): Edit[] {
  const value = proxyOf(e, known, like)
  const missing = missingPorts(e, known)
  const out: Edit[] = []
  if (missing.plain) out.push({ kind: 'ports', name: free('web', known), op: 'set', value: { address: e.plain, protocol: 'http' } })
  if (missing.secure) out.push({ kind: 'ports', name: free('websecure', known), op: 'set', value: { address: e.secure, protocol: 'https' } })
  if (e.https === 'acme' && !known.accounts.includes(String(value.acme)))
    out.push({ kind: 'acme', name: String(value.acme), op: 'set', value: { directory: 'letsencrypt', ...(e.email.trim() ? { email: e.email.trim() } : {}) } })
  if (e.https === 'own' && known.stored.includes(e.certificate) && !known.certificates.some((c) => c.stored === e.certificate))
    out.push({ kind: 'certificates', name: e.certificate, op: 'set', value: { stored: e.certificate } })
  out.push({ kind: 'proxies', name, op: 'set', value })
  return out
}

function free(name: string, known: Known): string {
  for (let n = 1; ; n++) {
    const candidate = n === 1 ? name : `${name}-${n}`
    if (!known.ports.some((p) => p.name === candidate)) return candidate
  }
}

export function firstServer(value?: Value): string | undefined {
  const routes = value?.routes as { servers?: { url: string }[] }[] | undefined
  return routes?.find((r) => r.servers?.length)?.servers?.[0]?.url
}
