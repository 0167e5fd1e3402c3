import { Button } from '@mantine/core'
import { notifications } from '@mantine/notifications'
import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { call } from '@/api/client'
import { canEdit, me, objects } from '@/api/queries'
import type { components } from '@/api/schema'
import { Entries } from '@/edit/Entries'
import { Ago, Card, Failure, KeyValues, PageHeader, StateBadge } from '@/ui/basics'
import { useAct } from '@/ui/act'
import { t } from '@/text'
import { count } from '@/text/many'

type State = components['schemas']['webhookState']
type Tested = components['schemas']['webhookTest']
const path = (name: string) => `/webhooks/${encodeURIComponent(name)}`

/** The webhooks, how each stands, and the messages that nobody took. */
export default function WebhooksPage() {
  const list = useQuery(objects('webhooks'))
  const { data: who } = useQuery(me)
  const { act } = useAct('webhooks')
  const [testing, setTesting] = useState('')
  async function test(name: string) {
    setTesting(name)
    const answer = await act('', () => call<Tested>('POST', path(name) + '/test', { body: {} }))
    setTesting('')
    if (answer)
      notifications.show(
        answer.value.taken
          ? { message: t.webhooks.tested(answer.value.status ?? 0, answer.value.duration_ms ?? 0), color: 'teal' }
          : { message: t.webhooks.testFailed(answer.value.error || String(answer.value.status)), color: 'red', autoClose: 12_000 },
      )
  }
  return (
    <>
      <PageHeader title={t.pages.webhooks} lead={t.webhooks.lead} />
      <div className="stack">
        <Entries
          kind="webhooks"
          title={t.webhooks.title}
          empty={t.webhooks.none}
          emptyTitle={t.webhooks.noneTitle}
          initial={{ events: ['config.*', 'certificate.*', 'acme.*', 'server.*'] }}
          line={(o) =>
            [
              o.url,
              Array.isArray(o.events) && o.events.length ? (o.events as string[]).map((e) => t.events.types[e] ?? t.events.every(t.events.objects[e.replace('.*', '')] ?? e)).join(', ') : t.events.all,
            ]
              .filter(Boolean)
              .join(' · ')
          }
          actions={(o) =>
            canEdit(who?.role) && (
              <Button size="compact-sm" variant="default" loading={testing === o.name} onClick={() => void test(o.name!)}>
                {t.webhooks.test}
              </Button>
            )
          }
        />
        {(list.data ?? []).map((o) => (
          <Standing key={o.name} name={o.name!} may={canEdit(who?.role)} />
        ))}
      </div>
    </>
  )
}

function Standing({ name, may }: { name: string; may: boolean }) {
  const { data: s, error } = useQuery({ queryKey: ['webhooks', name], queryFn: () => call<State>('GET', path(name) + '/state').then((x) => x.value), refetchInterval: 10_000, retry: false })
  const { act, busy } = useAct('webhooks')
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
          ...(s.last_try ? [[t.webhooks.last, <Ago key="l" time={s.last_try} />] as [string, React.ReactNode]] : []),
          ...(s.last_error ? [[t.webhooks.lastError, s.last_error] as [string, React.ReactNode]] : []),
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
                  <strong>{t.events.types[l.event?.type ?? ''] ?? l.event?.type}</strong> {l.event?.text}
                  <span className="small block">
                    <Ago time={l.first!} />, {t.webhooks.attempts(l.attempts ?? 0)}: {l.error}
                  </span>
                </span>
                {may && (
                  <Button
                    size="compact-sm"
                    variant="default"
                    loading={busy === String(l.event?.id)}
                    onClick={() => void act(String(l.event?.id), () => call('POST', path(name) + '/resend', { body: { event: l.event?.id } }), t.webhooks.resent)}
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
