import { Link } from '@tanstack/react-router'
import type { AnyObject } from '@/api/queries'
import { Entries } from '@/edit/Entries'
import { Button } from '@mantine/core'
import { PageHeader, StateBadge } from '@/ui/basics'
import { t } from '@/text'
import { Reset } from '../ports/Reset'
import { serversOf } from './streams'

const line = (o: AnyObject) =>
  [
    String(o.address ?? o.port ?? ''),
    [...((o.sni as string[]) ?? []), ...((o.alpn as string[]) ?? [])].join(' '),
    serversOf(o)
      .map((s) => s.address)
      .join(', '),
  ]
    .filter(Boolean)
    .join(' → ')

/** How many of its servers are healthy. */
function healthOf(o: AnyObject): string {
  const h = o.health as { healthy: number; unknown: number; total: number } | undefined
  return h ? t.proxies.serverCount(h.healthy, h.unknown, h.total) : ''
}

/** Connections and datagrams that are passed on as they are. */
export default function StreamsPage() {
  return (
    <>
      <PageHeader title={t.pages.streams} lead={t.ports.streamsLead} />
      <div className="stack">
        {(['tcp', 'udp'] as const).map((kind) => (
          <Entries
            key={kind}
            kind={`${kind}_proxies`}
            title={t.ports[kind]}
            empty={kind === 'tcp' ? t.ports.noTcp : t.ports.noUdp}
            initial={{ address: kind === 'tcp' ? '0.0.0.0:5432' : '0.0.0.0:53', servers: [{ address: kind === 'tcp' ? '10.0.0.7:5432' : '10.0.0.7:53' }] }}
            mark={(o) => (o.state ? <StateBadge state={o.state} /> : null)}
            line={(o) => [line(o), healthOf(o)].filter(Boolean).join(' · ')}
            actions={(o) => (
              <>
                <Button size="compact-sm" variant="subtle" component={Link} to={`/streams/${kind}/${encodeURIComponent(o.name!)}`} aria-label={`${t.pages.charts} ${o.name}`}>
                  {t.pages.charts}
                </Button>
                {!!o.address && <Reset kind={`${kind}_proxies`} name={o.name!} />}
              </>
            )}
          />
        ))}
      </div>
    </>
  )
}
