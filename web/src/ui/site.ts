import type { AnyObject, Proxy } from '@/api/queries'

type Port = { name?: string; address?: unknown; protocol?: unknown; active?: unknown; state?: unknown }

/** A name that can be opened in a browser: no wildcard, no regular expression. */
export const isPlainHost = (host: string) => !/[*~^$]/.test(host)

const numberOf = (port: Port) => /:(\d+)$/.exec(String(port.address ?? ''))?.[1] ?? ''

/** The ports that serve a proxy and are open: those that it names, else all that speak HTTP. */
export const portsOf = (proxy: Pick<Proxy, 'ports'>, ports: Port[]): Port[] => ports.filter((p) => !proxy.ports?.length || proxy.ports.includes(p.name ?? ''))

const isOpen = (p: Port) => p.active !== false && (p.state === undefined || p.state === 'listening')

/**
 * The address at which visitors reach a host of a proxy: with the scheme and the number of a
 * port that serves it. HTTPS is preferred where a certificate covers the host, or nothing
 * else is open. Undefined is that no port serves it now.
 */
export function siteURL(host: string, proxy: Pick<Proxy, 'ports' | 'active'>, ports: AnyObject[] | Port[], covered: boolean): string | undefined {
  if (proxy.active === false || !isPlainHost(host)) return undefined
  const open = portsOf(proxy, ports as Port[]).filter(isOpen)
  const best = (protocol: string, usual: string) => open.filter((p) => p.protocol === protocol).sort((a, b) => Number(numberOf(b) === usual) - Number(numberOf(a) === usual))[0]
  const secure = best('https', '443')
  const plain = best('http', '80')
  const port = secure && (covered || !plain) ? secure : plain
  if (!port) return undefined
  const scheme = port === secure ? 'https' : 'http'
  const number = numberOf(port)
  return `${scheme}://${host}${number && number !== (scheme === 'https' ? '443' : '80') ? ':' + number : ''}/`
}
