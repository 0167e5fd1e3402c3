import type { CertificateStatus } from '@/api/queries'

/** The certificate of the first host: the one with its name, or a wildcard for it; one that is there before one that is not. */
export function certificateOf(hosts: string[], certificates: CertificateStatus[] = []): CertificateStatus | undefined {
  const host = hosts[0]?.toLowerCase()
  if (!host) return undefined
  const covers = (name: string) => name === host || (name.startsWith('*.') && host.slice(host.indexOf('.') + 1) === name.slice(2))
  const found = certificates.filter((c) => (c.names ?? []).some((h) => covers(h.toLowerCase())))
  return found.find(isIssued) ?? found[0]
}

/** Whether clients get it: it was issued and has not expired. */
export const isIssued = (c?: CertificateStatus) => !!c?.not_after && c.state !== 'expired' && c.state !== 'missing'
