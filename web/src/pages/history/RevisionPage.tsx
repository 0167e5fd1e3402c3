import { Button, SegmentedControl, Select } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { useNavigate, useParams } from '@tanstack/react-router'
import { useState } from 'react'
import { call } from '@/api/client'
import { failed } from '@/api/problem'
import { canEdit, isAdmin, me, revisions, status, type Revision } from '@/api/queries'
import type { components } from '@/api/schema'
import { ChangeCard } from '@/edit/ChangeCard'
import { Ago, Card, Crumbs, Detail, Empty, Failure, KeyValues, Loading, PageHeader, StateBadge } from '@/ui/basics'
import { When } from '@/ui/time'
import { useView } from '@/ui/view'
import { t } from '@/text'
import { difference } from './lines'
import { RollBack } from './RollBack'

/** What one revision changed, in words and as text, and the way back to it. */
export default function RevisionPage() {
  const { number } = useParams({ strict: false }) as { number: string }
  const n = Number(number)
  const list = useQuery(revisions(1000))
  const { data: all } = useQuery(status)
  const { data: who } = useQuery(me)
  const [against, setAgainst] = useView('against', 'before')
  const [view, setView] = useView('view', 'words')
  const [back, setBack] = useState(false)
  const go = useNavigate()
  if (failed(list)) return <Failure error={list.error} again={() => void list.refetch()} />
  if (!list.data) return <Loading />
  const r = list.data.find((x) => x.number === n)
  const before = list.data.find((x) => (x.number ?? 0) < n)
  const now = Number(all?.revision) || list.data[0]?.number
  const crumbs = <Crumbs to="/history" title={t.pages.history} here={t.history.title(n)} />
  if (!r)
    return (
      <>
        <PageHeader title={t.history.title(n)} crumbs={crumbs} />
        <Card>
          <Empty title={t.history.notFound} action={<Button onClick={() => void go({ to: '/history' })}>{t.pages.history}</Button>}>
            {t.history.notFoundText}
          </Empty>
        </Card>
      </>
    )
  const current = n === now
  // The older of two comes first, so that what was added later is added.
  const other = Number(against)
  const [from, to] = against === 'now' ? [String(n), 'current'] : other ? [String(Math.min(n, other)), String(Math.max(n, other))] : [String(before?.number ?? ''), String(n)]
  return (
    <>
      <PageHeader
        title={t.history.title(n)}
        crumbs={crumbs}
        badge={
          current ? (
            <StateBadge state="current" meaning="good">
              {t.history.current}
            </StateBadge>
          ) : (
            <StateBadge state={r.state ?? ''} meaning={r.state === 'rolled_back' ? 'warn' : 'calm'} />
          )
        }
        lead={r.why && <bdi>{r.why}</bdi>}
        actions={canEdit(who?.role) && !current && <Button onClick={() => setBack(true)}>{t.history.rollBack}</Button>}
      />
      <Detail
        aside={
          <Card title={t.history.about}>
            <KeyValues
              rows={[
                [
                  t.history.when,
                  <span key="w">
                    <Ago time={r.when!} />
                    <span className="small block">
                      <When time={r.when!} exact />
                    </span>
                  </span>,
                ],
                [t.history.who, r.who || t.history.nobody],
                [t.history.via, t.history.doors[r.via!] ?? r.via],
                [
                  t.history.document,
                  (r.documents ?? []).map((d) => (
                    <span key={d.name} className="block">
                      {d.name?.split('/').pop()}
                    </span>
                  )),
                ],
              ]}
            />
          </Card>
        }
      >
        <Card
          title={t.history.changed}
          actions={
            <div className="ask">
              <Select
                aria-label={t.history.against}
                value={against}
                onChange={(v) => setAgainst(v ?? 'before')}
                allowDeselect={false}
                data={[
                  { value: 'before', label: t.history.before },
                  { value: 'now', label: t.history.now },
                  ...list.data
                    .filter((x) => x.number !== n)
                    .slice(0, 200)
                    .map((x) => ({ value: String(x.number), label: t.history.title(x.number!) })),
                ]}
                w={200}
                searchable
              />
              <SegmentedControl
                value={view}
                onChange={setView}
                data={[
                  { value: 'words', label: t.history.inWords },
                  { value: 'text', label: t.history.asText },
                ]}
                aria-label={t.history.changed}
              />
            </div>
          }
        >
          {against === 'before' && !before ? (
            <p className="small lead">{t.history.first}</p>
          ) : view === 'words' ? (
            <Words from={from} to={to} />
          ) : !isAdmin(who?.role) ? (
            <p className="small lead">{t.history.textAdmins}</p>
          ) : (
            <Texts from={Number(from)} to={to === 'current' ? now! : Number(to)} />
          )}
        </Card>
      </Detail>
      {back && <RollBack revision={n} close={() => setBack(false)} />}
    </>
  )
}

function Words({ from, to }: { from: string; to: string }) {
  const diff = useQuery({
    queryKey: ['revisions', 'diff', from, to],
    queryFn: () => call<components['schemas']['differenceBody']>('GET', `/revisions/${from}/diff/${to}`).then((d) => d.value),
    retry: false,
  })
  if (failed(diff)) return <Failure error={diff.error} again={() => void diff.refetch()} />
  if (!diff.data) return <Loading />
  if (!diff.data.changes?.length) return <p className="small lead">{t.history.nothing}</p>
  return (
    <div className="stack tight">
      {diff.data.changes.map((c) => (
        <ChangeCard key={`${c.kind} ${c.name}`} change={c} />
      ))}
    </div>
  )
}

const text = (n: number) => ({ queryKey: ['revisions', 'text', n], queryFn: () => call<Revision>('GET', `/revisions/${n}`).then((r) => r.value), staleTime: Infinity, retry: false })

function Texts({ from, to }: { from: number; to: number }) {
  const a = useQuery(text(from))
  const b = useQuery(text(to))
  const error = a.error ?? b.error
  if (error) return <Failure error={error} />
  if (!a.data || !b.data) return <Loading />
  const names = [...new Set([...a.data.documents!, ...b.data.documents!].map((d) => d.name!))]
  const textOf = (r: Revision, name: string) => r.documents?.find((d) => d.name === name)?.text ?? ''
  return (
    <div className="stack tight">
      {names.map((name) => (
        <TextDifference key={name} name={name} before={textOf(a.data, name)} after={textOf(b.data, name)} />
      ))}
    </div>
  )
}

function TextDifference({ name, before, after }: { name: string; before: string; after: string }) {
  const lines = difference(before, after)
  return (
    <section className="change">
      <div className="change-head">{name.split('/').pop()}</div>
      {lines === null ? (
        <p className="small" style={{ padding: '0 14px' }}>
          {t.history.tooLong}
        </p>
      ) : lines.every((l) => l.kind === 'fold') ? (
        <p className="small" style={{ padding: '0 14px' }}>
          {t.history.sameText}
        </p>
      ) : (
        <div className="diff" tabIndex={0} role="region" aria-label={name}>
          {lines.map((l, i) =>
            l.kind === 'fold' ? (
              <div key={i} className="fold">
                {t.history.skipped(l.count)}
              </div>
            ) : (
              <div key={i} data-kind={l.kind}>
                <span className="line-number">{l.before ?? ''}</span>
                <span className="line-number">{l.after ?? ''}</span>
                <span className="sign">{{ same: ' ', added: '+', removed: '−' }[l.kind]}</span>
                <span className="line-text">{l.text}</span>
              </div>
            ),
          )}
        </div>
      )}
    </section>
  )
}
