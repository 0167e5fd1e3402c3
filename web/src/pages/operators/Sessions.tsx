import { Button } from '@mantine/core'
import { queryOptions, useQuery } from '@tanstack/react-query'
import { call } from '@/api/client'
import { failed } from '@/api/problem'
import { all } from '@/api/queries'
import type { components } from '@/api/schema'
import { Ago, Card, Failure, Loading, StateBadge } from '@/ui/basics'
import { useAct } from '@/ui/act'
import { t } from '@/text'
import { deviceOf } from './device'

type Session = components['schemas']['sessionBody']
const sessions = queryOptions({ queryKey: ['sessions'], queryFn: ({ signal }) => all<Session>('/sessions', signal).then((p) => p.value) })

/** Sessions of all, or of one user; each can be ended. */
export function Sessions({ of, title }: { of?: string; title?: string }) {
  const list = useQuery(sessions)
  const { act, busy } = useAct('sessions', 'audit')
  if (failed(list)) return <Failure error={list.error} again={() => void list.refetch()} />
  if (!list.data) return <Loading />
  const rows = list.data.filter((s) => !of || s.user === of).sort((a, b) => (b.seen ?? '').localeCompare(a.seen ?? ''))
  return (
    <Card title={title ?? t.operators.tabs.sessions}>
      {rows.length === 0 && <p className="small lead">{t.operators.noSessions}</p>}
      <ul className="rows">
        {rows.map((s) => (
          <li key={s.id} className="entry">
            <span className="entry-name">
              {!of && <strong>{s.user} </strong>}
              <span title={s.user_agent}>{deviceOf(s.user_agent)}</span>{' '}
              {s.current && (
                <StateBadge state="current" meaning="good">
                  {t.operators.current}
                </StateBadge>
              )}
              <span className="small block">
                {t.operators.from(s.address ?? '')}, {t.operators.method[s.method ?? ''] ?? s.method}; {t.operators.seen.toLowerCase()} <Ago time={s.seen!} />
              </span>
            </span>
            <Button
              size="compact-sm"
              variant="default"
              disabled={s.current}
              loading={busy === s.id}
              onClick={() => void act(s.id!, () => call('DELETE', `/sessions/${encodeURIComponent(s.id!)}`, { ifMatch: '*' }), t.operators.sessionEnded)}
              aria-label={`${t.operators.endSession} ${s.user} ${deviceOf(s.user_agent)}`}
            >
              {t.operators.endSession}
            </Button>
          </li>
        ))}
      </ul>
    </Card>
  )
}
