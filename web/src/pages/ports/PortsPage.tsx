import { useQuery } from '@tanstack/react-query'
import { lazy, Suspense } from 'react'
import { status } from '@/api/queries'
import { Entries } from '@/edit/Entries'
import { Card, PageHeader, StateBadge } from '@/ui/basics'
import { t } from '@/text'
import { Reset } from './Reset'

const Hidden = lazy(() => import('./Hidden'))

/** The ports with how they stand, and what keeps one from listening. */
export default function PortsPage() {
  const { data: all } = useQuery(status)
  const live = all?.ports ?? []
  const wrong = live.filter((p) => p.reason)
  return (
    <>
      <PageHeader title={t.pages.ports} lead={t.ports.lead} />
      <div className="stack">
        {wrong.length > 0 && (
          <Card title={t.ports.attention}>
            <ul className="rows">
              {wrong.map((p) => (
                <li key={p.name}>
                  <StateBadge state={p.state} />
                  <span>
                    <strong>{p.name}</strong> {p.address}
                    <span className="block">{p.reason}</span>
                    {p.hint && (
                      <span className="small block">
                        {t.ports.hint}: {p.hint}
                      </span>
                    )}
                  </span>
                </li>
              ))}
            </ul>
          </Card>
        )}
        <Entries
          kind="ports"
          title={t.ports.title}
          empty={t.ports.none}
          emptyTitle={t.ports.noneTitle}
          initial={{ address: '0.0.0.0:80', protocol: 'http' }}
          actions={(o) => live.some((p) => p.name === o.name) && <Reset kind="ports" name={o.name!} />}
          mark={(o) => {
            const now = live.find((p) => p.name === o.name)
            return <StateBadge state={now?.state ?? o.state ?? ''} />
          }}
          line={(o) => {
            const now = live.find((p) => p.name === o.name)
            return [String(o.address ?? ''), String(o.protocol ?? ''), now && t.ports.connections(now.connections, now.accepted)].filter(Boolean).join(' · ')
          }}
        />
        {(all?.ech ?? []).length > 0 && (
          <Suspense>
            <Hidden />
          </Suspense>
        )}
      </div>
    </>
  )
}
