import { Button } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { call } from '@/api/client'
import type { components } from '@/api/schema'
import { Ago, Card, Failure, KeyValues, StateBadge } from '@/ui/basics'
import { useAct } from '@/ui/act'
import { clock } from '@/ui/time'
import { t } from '@/text'
import { count } from '@/text/many'

type State = components['schemas']['queueState']

/** The state of a webhook or notice, and the messages that could not be delivered. */
export function Delivery({ kind, name, may }: { kind: 'webhooks' | 'notices'; name: string; may: boolean }) {
  const path = `/${kind}/${encodeURIComponent(name)}`
  const { data: s, error } = useQuery({ queryKey: [kind, name], queryFn: () => call<State>('GET', path + '/state').then((x) => x.value), refetchInterval: 10_000, retry: false })
  const { act, busy } = useAct(kind)
  if (error) return <Failure error={error} />
  if (!s) return null
  const [state, meaning, word] =
    s.paused_until && Date.parse(s.paused_until) > Date.now()
      ? (['paused', 'warn', t.webhooks.paused] as const)
      : s.failures
        ? (['failed', 'bad', t.webhooks.failing(s.failures)] as const)
        : s.last_try
          ? (['ok', 'good', t.webhooks.ok] as const)
          : (['unused', 'calm', t.webhooks.unused] as const)
  const letters = s.dead ?? []
  return (
    <Card
      title={<bdi>{name}</bdi>}
      actions={
        <StateBadge state={state} meaning={meaning}>
          {word}
        </StateBadge>
      }
    >
      <KeyValues
        rows={[
          [t.webhooks.sent, count(s.sent ?? 0)],
          ...(s.node ? [[t.webhooks.sender, <bdi key="n">{s.node}</bdi>] as [string, React.ReactNode]] : []),
          ...(s.last_try ? [[t.webhooks.last, <Ago key="l" time={s.last_try} />] as [string, React.ReactNode]] : []),
          ...(s.last_error ? [[t.webhooks.lastError, s.last_error] as [string, React.ReactNode]] : []),
          ...(s.held ? [[t.notices.held, t.notices.heldUntil(s.held, s.release ? clock(s.release) : '')] as [string, React.ReactNode]] : []),
          ...(s.waiting?.length ? [[t.webhooks.waiting, String(s.waiting.length)] as [string, React.ReactNode]] : []),
        ]}
      />
      {!!s.missed && <p className="small">{t.webhooks.missed(s.missed)}</p>}
      {!!s.lost && <p className="small">{t.webhooks.lost(s.lost)}</p>}
      {letters.length > 0 && (
        <>
          <h3>{t.webhooks.dead}</h3>
          <p className="small lead">{t.webhooks.deadText}</p>
          <ul className="rows">
            {letters.map((l) => (
              <li key={l.event?.id} className="entry">
                <span className="entry-name">
                  <strong>{t.events.types[l.event?.type ?? ''] ?? l.event?.type}</strong> {l.event?.text} {!!l.more && t.notices.more(l.more)}
                  <span className="small block">
                    <Ago time={l.first!} />, {t.webhooks.attempts(l.attempts ?? 0)}: {l.error}
                  </span>
                </span>
                {may && (
                  <Button
                    size="compact-sm"
                    variant="default"
                    loading={busy === String(l.event?.id)}
                    onClick={() => void act(String(l.event?.id), () => call('POST', path + '/resend', { body: { event: l.event?.id } }), t.webhooks.resent)}
                  >
                    {t.webhooks.resend}
                  </Button>
                )}
              </li>
            ))}
          </ul>
        </>
      )}
    </Card>
  )
}
