import { Button, FileButton, NumberInput, Progress, SegmentedControl, Switch, Textarea, TextInput } from '@mantine/core'
import { useQuery, useQueryClient } from '@tanstack/react-query'
import { useState, type FormEvent } from 'react'
import { call } from '@/api/client'
import { failed } from '@/api/problem'
import { isAdmin, me } from '@/api/queries'
import { EmptyCard } from '@/edit/Entries'
import { Ago, Card, Detail, Failure, Loading, PageHeader, StateBadge } from '@/ui/basics'
import { useAct, Wrong } from '@/ui/act'
import { t } from '@/text'
import type { Request } from '../log/livelog'
import { addresses, comparison, listOf, type Comparison, type Input } from './comparison'
import { Compared } from './Compared'

const words = t.compare

/** The old proxy and headgate are asked the same, and what differs is shown. */
export default function ComparePage() {
  const { data: who } = useQuery(me)
  const last = useQuery({ ...comparison, enabled: isAdmin(who?.role) })
  if (!who) return <Loading />
  if (!isAdmin(who.role))
    return (
      <>
        <PageHeader title={t.pages.compare} lead={words.lead} />
        <EmptyCard title={words.adminsOnly}>{words.adminsOnlyText}</EmptyCard>
      </>
    )
  if (failed(last)) return <Failure error={last.error} again={() => void last.refetch()} />
  if (last.data === undefined) return <Loading />
  const c = last.data
  return (
    <>
      <PageHeader title={t.pages.compare} lead={words.lead} badge={c && <Standing it={c} />} />
      <div className="stack">
        <Detail aside={<Form running={c?.state === 'running'} />}>
          {!c ? (
            <EmptyCard title={words.emptyTitle}>{words.empty}</EmptyCard>
          ) : c.state === 'running' ? (
            <Running it={c} />
          ) : c.report ? (
            <Compared it={c} report={c.report} />
          ) : (
            <EmptyCard title={words.failed}>{words.empty}</EmptyCard>
          )}
        </Detail>
      </div>
    </>
  )
}

function Standing({ it: c }: { it: Comparison }) {
  if (c.state === 'running') return <StateBadge state="running" meaning="info" />
  return (
    <span className="small">
      {words.began} <Ago time={c.began} /> {c.who && words.by(c.who)}
    </span>
  )
}

function Running({ it: c }: { it: Comparison }) {
  const { act, busy } = useAct('compare')
  const part = c.requests ? (100 * c.done) / c.requests : 0
  return (
    <Card
      title={t.pages.compare}
      actions={
        <Button variant="default" loading={busy === 'stop'} onClick={() => void act('stop', () => call('DELETE', '/compare'))}>
          {words.stop}
        </Button>
      }
    >
      <Progress value={part} size="lg" aria-label={t.pages.compare} />
      <p className="lead" role="status" style={{ marginTop: 12 }}>
        {words.running(c.done, c.requests)}
      </p>
    </Card>
  )
}

const sources = ['routes', 'log', 'list'] as const

/** What is compared: two addresses are enough. */
function Form({ running }: { running: boolean }) {
  const queries = useQueryClient()
  const { act, busy, wrong, setWrong } = useAct('compare', 'audit')
  const [old, setOld] = useState('')
  const [ours, setOurs] = useState('')
  const [from, setFrom] = useState<(typeof sources)[number]>('routes')
  const [list, setList] = useState('')
  const [host, setHost] = useState('')
  const [limit, setLimit] = useState<number | string>(1000)
  const [rate, setRate] = useState<number | string>(20)
  const [timeout, setTimeout] = useState<number | string>(10)
  const [unsafe, setUnsafe] = useState(false)
  const [noDNS, setNoDNS] = useState(false)

  async function submit(e: FormEvent) {
    e.preventDefault()
    let text = from === 'list' ? list : ''
    if (from === 'log') {
      const recent = await act('go', () => call<{ items: Request[] }>('GET', '/logs/access', { query: { limit: 1000 } }))
      if (!recent) return
      text = listOf(recent.value.items)
    }
    if (from !== 'routes' && !text.trim()) return setWrong({ list: from === 'log' ? words.emptyLog : t.edit.needed })
    const body: Input = {
      old: addresses(old),
      new: ours ? addresses(ours) : undefined,
      list: text || undefined,
      host: host || undefined,
      limit: Number(limit) || undefined,
      rate: Number(rate) || undefined,
      timeout_s: Number(timeout) || undefined,
      unsafe: unsafe || undefined,
      no_dns: noDNS || undefined,
    }
    const begun = await act('go', () => call<Comparison>('POST', '/compare', { body }))
    if (begun) queries.setQueryData(comparison.queryKey, begun.value)
  }

  return (
    <Card title={words.what}>
      <form onSubmit={(e) => void submit(e)} className="fields" noValidate>
        <Wrong wrong={wrong} fields={['old', 'new', 'list', 'host', 'limit', 'rate', 'timeout_s']} />
        <TextInput
          label={words.old}
          description={words.oldHelp}
          placeholder="127.0.0.1"
          value={old}
          error={wrong.old}
          onChange={(e) => setOld(e.currentTarget.value)}
          autoComplete="off"
          spellCheck={false}
        />
        <TextInput
          label={words.new}
          description={words.newHelp}
          placeholder={words.newPlaceholder}
          value={ours}
          error={wrong.new}
          onChange={(e) => setOurs(e.currentTarget.value)}
          autoComplete="off"
          spellCheck={false}
        />
        <div>
          <SegmentedControl
            orientation="vertical"
            fullWidth
            value={from}
            onChange={(v) => setFrom(v as typeof from)}
            data={sources.map((value) => ({ value, label: words.from[value] }))}
            aria-label={words.which}
          />
          <p className="small" style={{ margin: '6px 0 0' }}>
            {words.fromHelp[from]}
          </p>
          {from === 'log' && wrong.list && (
            <p role="alert" style={{ color: 'var(--bad)', margin: '6px 0 0' }}>
              {wrong.list}
            </p>
          )}
        </div>
        {from === 'list' && (
          <>
            <div>
              <Textarea
                label={words.list}
                placeholder={words.listPlaceholder}
                value={list}
                error={wrong.list}
                onChange={(e) => setList(e.currentTarget.value)}
                autosize
                minRows={3}
                maxRows={10}
                spellCheck={false}
              />
              <FileButton onChange={(f) => void f?.text().then(setList)} accept=".log,.txt,.json,text/plain">
                {(props) => (
                  <Button {...props} size="compact-sm" variant="subtle">
                    {words.file}
                  </Button>
                )}
              </FileButton>
            </div>
            <TextInput label={words.host} description={words.hostHelp} value={host} error={wrong.host} onChange={(e) => setHost(e.currentTarget.value)} autoComplete="off" spellCheck={false} />
          </>
        )}
        <details open={[wrong.limit, wrong.rate, wrong.timeout_s].some(Boolean) || undefined}>
          <summary>{words.more}</summary>
          <div className="fields" style={{ paddingTop: 10 }}>
            <div className="ask">
              <NumberInput label={words.limit} value={limit} error={wrong.limit} onChange={setLimit} min={1} max={10_000} w={100} />
              <NumberInput label={words.rate} value={rate} error={wrong.rate} onChange={setRate} min={1} max={1000} w={86} />
              <NumberInput label={words.timeout} value={timeout} error={wrong.timeout_s} onChange={setTimeout} min={1} max={60} w={130} />
            </div>
            <Switch label={words.noDNS} description={words.noDNSHelp} checked={noDNS} onChange={(e) => setNoDNS(e.currentTarget.checked)} />
            <Switch label={words.unsafe} description={words.unsafeHelp} checked={unsafe} onChange={(e) => setUnsafe(e.currentTarget.checked)} />
          </div>
        </details>
        <Button type="submit" loading={busy === 'go' || running}>
          {words.go}
        </Button>
      </form>
    </Card>
  )
}
