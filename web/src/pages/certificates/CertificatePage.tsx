import { Alert, Button } from '@mantine/core'
import { notifications } from '@mantine/notifications'
import { useQuery, useQueryClient } from '@tanstack/react-query'
import { useNavigate, useParams } from '@tanstack/react-router'
import { useState, type ReactNode } from 'react'
import { call } from '@/api/client'
import { failed, Problem, sentence } from '@/api/problem'
import { canEdit, me, status } from '@/api/queries'
import { Ago, Card, Crumbs, Detail, Empty, Failure, KeyValues, Loading, PageHeader, StateBadge, Tag } from '@/ui/basics'
import { moment, When, withOffset } from '@/ui/time'
import { marks, meaningOf } from '@/theme/states'
import { Dialog } from '@/ui/Dialog'
import { t } from '@/text'
import { CertificateBadge } from './CertificateBadge'
import { order, type Attempt, type Preflight, type Trouble } from './orders'

const words = t.certificates.detail

/** How many looks an order gets to come through the checks before it. */
const patience = 20

/** One certificate by ACME: its state, why there is none, and the steps of its orders. */
export default function CertificatePage() {
  const { name } = useParams({ strict: false }) as { name: string }
  const one = useQuery(order(name))
  const { data: who } = useQuery(me)
  const { data: all } = useQuery(status)
  const queries = useQueryClient()
  const go = useNavigate()
  const [busy, setBusy] = useState('')
  const [looked, setLooked] = useState<Preflight>()
  const [asking, setAsking] = useState(false)

  async function act(what: 'order' | 'renew' | 'preflight') {
    setAsking(false)
    setBusy(what)
    try {
      const answer = await call<Preflight>('POST', `/orders/${encodeURIComponent(name)}/${what}`, { body: {} })
      if (what === 'preflight') setLooked(answer.value)
      else await follow()
    } catch (e) {
      notifications.show({ message: sentence(e), color: 'red' })
    } finally {
      setBusy('')
      void queries.invalidateQueries({ queryKey: ['acme'] })
    }
  }

  /** Shows how the order goes on: one that is blocked or fails before it is placed says so, with its reason. */
  async function follow() {
    for (let i = 0; i < patience; i++) {
      await new Promise((r) => setTimeout(r, 500))
      const { data: now } = await one.refetch()
      if (now?.state === 'blocked' || now?.state === 'failed') return void notifications.show({ title: words.orderedFailed, message: now.trouble?.message, color: 'red' })
      if (now?.state && now.state !== 'preflight' && now.state !== 'idle') break
    }
    notifications.show({ message: words.ordered, color: 'teal' })
  }

  if (one.error instanceof Problem && one.error.status === 404)
    return (
      <>
        <PageHeader title={<bdi>{name}</bdi>} />
        <Card>
          <Empty title={words.notFound} action={<Button onClick={() => void go({ to: '/certificates' })}>{t.pages.certificates}</Button>} />
        </Card>
      </>
    )
  if (failed(one)) return <Failure error={one.error} again={() => void one.refetch()} />
  if (!one.data) return <Loading />
  const o = one.data
  const state = all?.certificates?.find((c) => c.source === 'acme' && c.name === o.name)?.state ?? o.state ?? ''
  const facts: [ReactNode, ReactNode][] = [
    [t.certificates.left, o.days_left === undefined ? t.certificates.noDays : t.certificates.days(o.days_left)],
    [words.until, o.not_after && <When time={o.not_after} />],
    [words.from, o.not_before && <When time={o.not_before} />],
    [words.directory, o.directory],
    [words.entry, o.entry],
    [words.onDemand, o.on_demand],
    [words.profile, o.profile],
    [
      words.renewal,
      o.renewal?.start && o.renewal.end && <span title={`${withOffset(o.renewal.start)} – ${withOffset(o.renewal.end)}`}>{words.between(moment(o.renewal.start), moment(o.renewal.end))}</span>,
    ],
    [words.planned, o.renewal?.at && <Ago time={o.renewal.at} />],
    [words.since, o.since && <Ago time={o.since} />],
    [words.failures, o.failures || ''],
    [words.nextTry, o.next_try && <Ago time={o.next_try} />],
  ]
  return (
    <>
      <PageHeader
        title={<bdi>{o.names?.[0] ?? name}</bdi>}
        crumbs={<Crumbs to="/certificates" title={t.pages.certificates} here={o.names?.[0] ?? name} />}
        badge={<CertificateBadge state={state} daysLeft={o.days_left} />}
        actions={
          canEdit(who?.role) ? (
            <>
              {o.state === 'valid' ? (
                <Button loading={busy === 'renew'} onClick={() => setAsking(true)}>
                  {words.renew}
                </Button>
              ) : (
                <Button loading={busy === 'order'} onClick={() => void act('order')}>
                  {words.order}
                </Button>
              )}
              <Button variant="default" loading={busy === 'preflight'} onClick={() => void act('preflight')}>
                {words.preflight}
              </Button>
            </>
          ) : (
            <span className="small">{t.edit.readOnly}</span>
          )
        }
      />
      <Detail
        aside={
          <Card title={words.about}>
            <KeyValues rows={facts.filter(([, v]) => v)} />
          </Card>
        }
      >
        {looked && (
          <Alert
            color={looked.blocked ? 'red' : 'teal'}
            role="status"
            title={looked.blocked ? words.wouldFail : words.fine}
            withCloseButton
            closeButtonLabel={t.edit.cancel}
            onClose={() => setLooked(undefined)}
          >
            {looked.blocked ? <TroubleText it={looked.trouble} /> : <p className="lead">{words.fineText}</p>}
            <ul className="plain-list">
              {(looked.challenges ?? []).map((c) => (
                <li key={c.name}>{words.challenge(c.name!, c.challenge!)}</li>
              ))}
              {(looked.warnings ?? []).map((w) => (
                <li key={w}>{w}</li>
              ))}
            </ul>
          </Alert>
        )}
        {o.trouble && (
          <Card title={o.not_after ? words.troubleRenewal : words.trouble}>
            <TroubleText it={o.trouble} />
          </Card>
        )}
        {!!o.warnings?.length && (
          <Card title={words.warnings}>
            <ul className="plain-list">
              {o.warnings.map((w) => (
                <li key={w}>{w}</li>
              ))}
            </ul>
          </Card>
        )}
        <Card title={words.names}>
          <div className="tags">
            {(o.names ?? []).map((n) => (
              <Tag key={n}>{n}</Tag>
            ))}
          </div>
          {!!o.has?.length && o.has.join() !== o.names?.join() && (
            <p className="small">
              {words.has}: {o.has.join(', ')}
            </p>
          )}
        </Card>
        <Card title={words.timeline}>
          {!o.timeline?.length && <p className="small lead">{words.noTimeline}</p>}
          <div className="stack">
            {[...(o.timeline ?? [])].reverse().map((a, i) => (
              <AttemptCard key={a.began ?? i} it={a} open={i === 0} />
            ))}
          </div>
        </Card>
      </Detail>
      <Dialog opened={asking} close={() => setAsking(false)} title={words.renew}>
        <p className="lead">{words.renewConfirm}</p>
        <Button data-autofocus onClick={() => void act('renew')}>
          {words.renew}
        </Button>
      </Dialog>
    </>
  )
}

/** Why something fails: the API's sentence, its meaning, and the authority's own words. */
function TroubleText({ it }: { it?: Trouble }) {
  if (!it) return null
  const p = it.problem
  return (
    <>
      <p className="lead">
        <strong>{it.message}</strong>
      </p>
      {it.hint && <p className="lead">{it.hint}</p>}
      {p && (
        <details open>
          <summary>{words.authority}</summary>
          <pre className="code">{[words.error(p.status ?? 0, p.type ?? ''), p.detail, ...(p.subproblems ?? []).map((x) => `${x.name}: ${x.detail}`)].filter(Boolean).join('\n')}</pre>
        </details>
      )}
    </>
  )
}

function AttemptCard({ it: a, open }: { it: Attempt; open: boolean }) {
  const state = a.issued ? 'issued' : a.trouble ? 'failed' : 'running'
  return (
    <details open={open || undefined} className="attempt">
      <summary>
        <StateBadge state={state} meaning={a.issued ? 'good' : a.trouble ? 'bad' : 'info'}>
          {words[state]}
        </StateBadge>{' '}
        <Ago time={a.began!} /> <span className="small">{[a.directory && words.at(a.directory), a.staging && words.staging].filter(Boolean).join(', ')}</span>
      </summary>
      <ol className="timeline">
        {(a.steps ?? []).map((s, i) => {
          const meaning = meaningOf(s.state ?? '')
          return (
            <li key={i}>
              <span className="mark" data-meaning={meaning} aria-hidden>
                {marks[meaning]}
              </span>
              <div>{s.text || s.state}</div>
              <div className="small">
                <When time={s.at!} only="clock" /> {t.certificates.word[s.state ?? ''] ?? s.state}
              </div>
            </li>
          )
        })}
      </ol>
      {a.trouble && <TroubleText it={a.trouble} />}
    </details>
  )
}
