import { Button } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import type { ReactNode } from 'react'
import { objects } from '@/api/queries'
import { KeyValues, StateBadge } from '@/ui/basics'
import { When } from '@/ui/time'
import { Panel } from '@/ui/Dialog'
import { t } from '@/text'
import { addressOf, bytes, meaningOfRequest, took, type Filters, type Request } from './livelog'
import { lastRequests, RequestLines } from './RecentRequests'
import { stagesOf } from './summary'

const order = [
  'time',
  'client_ip',
  'country',
  'asn',
  'method',
  'address',
  'proto',
  'ech',
  'status',
  'reason',
  'cause',
  'port',
  'proxy',
  'route',
  'server',
  'attempts',
  'cache',
  'user',
  'duration_ms',
  'connect_ms',
  'upstream_head_ms',
  'bytes_sent',
  'bytes_received',
  'user_agent',
  'referer',
  'request_id',
]

/** All that is known of one request, and the way from it to explain. */
export function RequestDrawer({ request: r, node, close, only }: { request?: Request; node: string; close: () => void; only: (name: keyof Filters, value: string) => void }) {
  const ports = useQuery({ ...objects('ports'), enabled: !!r })
  return (
    <Panel opened={!!r} close={close} width={560} title={t.log.detail}>
      {r && (
        <div className="stack">
          {r.method && (
            <Button component={Link} to="/explain" search={{ url: addressOf(r, ports.data ?? []), method: r.method === 'GET' ? undefined : r.method, from: r.client_ip } as never}>
              {t.log.explain}
            </Button>
          )}
          <Stages of={r} />
          <KeyValues
            rows={order.flatMap((name) => {
              const value = shown(r, name, addressOf(r, ports.data ?? []))
              return value ? [[t.log.parts[name], value] as [ReactNode, ReactNode]] : []
            })}
          />
          <div style={{ display: 'flex', gap: 8, flexWrap: 'wrap' }}>
            {(
              [
                ['host', r.host],
                ['proxy', r.proxy],
                ['client', r.client_ip],
                ['country', r.country],
                ['asn', r.asn ? `AS${r.asn}` : ''],
                ['server', r.server],
              ] as const
            ).map(
              ([name, value]) =>
                value && (
                  <Button key={name} size="compact-sm" variant="default" onClick={() => only(name, value)}>
                    {t.log.only(t.log.fields[name]!.toLowerCase())}
                  </Button>
                ),
            )}
          </div>
          <SameClient of={r} node={node} />
        </div>
      )}
    </Panel>
  )
}

/** How the time was spent, as a bar and in numbers. */
function Stages({ of }: { of: Request }) {
  const list = stagesOf(of)
  const all = list.reduce((sum, s) => sum + s.ms, 0)
  if (list.length < 2) return null
  return (
    <section>
      <h3>{t.log.stages}</h3>
      <div className="stages" aria-hidden>
        {list.map((s) => (
          <span key={s.name} data-stage={s.name} style={{ flexGrow: Math.max(s.ms / all, 0.01) }} />
        ))}
      </div>
      <ul className="legend">
        {list.map((s) => (
          <li key={s.name}>
            <span className="stage-mark" data-stage={s.name} aria-hidden /> {t.log.stage[s.name]} <strong>{took(s.ms)}</strong>
          </li>
        ))}
      </ul>
    </section>
  )
}

/** What else the client asked for lately. */
function SameClient({ of, node }: { of: Request; node: string }) {
  const client = of.client_ip ?? ''
  const { data } = useQuery({ ...lastRequests({ client, node: node || undefined }, 11), enabled: !!client })
  if (!data) return null
  const others = data.filter((r) => r.request_id !== of.request_id || r.time !== of.time).slice(0, 10)
  return (
    <section>
      <h3>{t.log.same}</h3>
      {others.length ? <RequestLines list={others} /> : <p className="small lead">{t.log.sameNone}</p>}
    </section>
  )
}

function shown(r: Request, name: string, address: string): ReactNode {
  const value = r[name as keyof Request]
  switch (name) {
    case 'time':
      return <When time={r.time!} exact />
    case 'ech':
      return r.ech && 'RFC 9849'
    case 'address':
      return r.method ? <bdi>{address}</bdi> : r.host
    case 'status': {
      const { meaning } = meaningOfRequest(r)
      return r.status ? (
        <StateBadge state={String(r.status)} meaning={meaning}>
          {r.status}
        </StateBadge>
      ) : (
        ''
      )
    }
    case 'proxy':
      return (
        r.proxy &&
        (r.method ? (
          <Link to="/proxies/$name" params={{ name: r.proxy }}>
            <bdi>{r.proxy}</bdi>
          </Link>
        ) : (
          r.proxy
        ))
      )
    case 'asn':
      return value ? `AS${value}` : ''
    case 'duration_ms':
      return took(r.duration_ms)
    case 'connect_ms':
    case 'upstream_head_ms':
      return value ? took(value as number) : ''
    case 'bytes_sent':
    case 'bytes_received':
      return bytes(value as number)
    default:
      return value === undefined || value === '' ? '' : String(value)
  }
}
