import { Button, NumberInput, Progress, TextInput } from '@mantine/core'
import { notifications } from '@mantine/notifications'
import { useQuery } from '@tanstack/react-query'
import { useState, type FormEvent, type ReactNode } from 'react'
import { call } from '@/api/client'
import { canEdit, me } from '@/api/queries'
import type { components } from '@/api/schema'
import { useAct, Wrong } from '@/ui/act'
import { Ago, Card, KeyValues, StateBadge } from '@/ui/basics'
import { Dialog } from '@/ui/Dialog'
import type { Meaning } from '@/theme/states'
import { t } from '@/text'
import { count, percent } from '@/text/many'
import { took } from '../log/livelog'

export type Split = components['schemas']['SplitState']
type Verb = keyof typeof words.verbs
const words = t.split
const meanings: Record<Split['phase'], Meaning> = { running: 'good', held: 'warn', returned: 'bad', complete: 'info' }
/** What the form and the status show of it is read again. */
const keys = ['status', 'object', 'objects']
const decide = (s: Split, verb: Verb, more: { to?: number; why?: string } = {}) => call<Split>('POST', `/splits/${verb}`, { body: { proxy: s.proxy, route: s.route, ...more } }).then((x) => x.value)

/** The splits of a proxy: where each is, what was counted of its groups, and the commands. */
export default function Splits({ splits }: { splits: Split[] }) {
  return splits.map((s) => <One key={s.route} split={s} />)
}

function One({ split: s }: { split: Split }) {
  const { data: who } = useQuery(me)
  const [asking, setAsking] = useState<Exclude<Verb, 'hold'>>()
  const { act, busy } = useAct(...keys)
  const may = canEdit(who?.role)
  const hold = () => void act('', () => decide(s, 'hold'), words.held)
  const button = (verb: Verb, go: () => void) => (
    <Button size="compact-md" variant={verb === 'promote' ? 'filled' : 'default'} disabled={!may || !!busy} onClick={go} aria-label={`${words.verbs[verb]}: ${s.route}`}>
      {words.verbs[verb]}
    </Button>
  )
  return (
    <Card
      title={
        <>
          {words.title} <code>{s.route}</code>
        </>
      }
      actions={<StateBadge state={s.phase} meaning={meanings[s.phase]} />}
    >
      <div className="fields">
        <Progress value={s.share} size="lg" aria-label={words.candidate} />
        <Groups split={s} />
        <KeyValues rows={factsOf(s)} />
        <div className="ask">
          {button('promote', () => setAsking('promote'))}
          {s.phase === 'running' && button('hold', hold)}
          {s.phase !== 'returned' && button('return', () => setAsking('return'))}
          {button('restart', () => setAsking('restart'))}
        </div>
        {who && !may && <p className="small lead">{t.edit.readOnly}</p>}
      </div>
      {asking && <Ask split={s} verb={asking} close={() => setAsking(undefined)} />}
    </Card>
  )
}

/** What both groups get, and what this machine has counted of them. */
function Groups({ split: s }: { split: Split }) {
  return (
    <div className="chart-table">
      <table>
        <caption className="small" style={{ captionSide: 'bottom', textAlign: 'left' }}>
          {words.counted(s.window)}
        </caption>
        <thead>
          <tr>
            {[words.group, words.share, t.proxies.requests, t.proxies.errors, 'p95'].map((title) => (
              <th key={title} scope="col">
                {title}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {(['stable', 'candidate'] as const).map((group) => {
            const { requests, errors, p95_ms } = s[group]
            return (
              <tr key={group}>
                <th scope="row">{words[group]}</th>
                <td>{percent((group === 'stable' ? 100 - s.share : s.share) / 100)}</td>
                <td>{count(requests)}</td>
                <td>
                  {count(errors)} {errors > 0 && `(${percent(errors / requests)})`}
                </td>
                <td>{requests > 0 ? took(p95_ms) : '–'}</td>
              </tr>
            )
          })}
        </tbody>
      </table>
    </div>
  )
}

function factsOf(s: Split): [ReactNode, ReactNode][] {
  const steps = (s.steps ?? []).map((n) => percent(n / 100)).join(', ')
  const rows: [ReactNode, ReactNode, unknown][] = [
    [words.why, s.why, s.why],
    [
      words.since,
      <span key="since">
        <Ago time={s.since} /> {s.who && t.overview.by(s.who === 'schedule' ? words.schedule : s.who)}
      </span>,
      true,
    ],
    [words.steps, s.every ? words.each(steps, s.every) : steps, steps],
    [words.next, [percent((s.next ?? 0) / 100), words.waits[s.waits ?? '']].filter(Boolean).join(' '), s.next],
    [words.automatic, !s.rollback ? words.off : s.compared ? words.compared : words.needs(count(s.min_requests)), s.phase !== 'returned'],
  ]
  return rows.filter(([, , shown]) => shown).map(([key, value]) => [key, value])
}

/** Asks before clients are moved. */
function Ask({ split: s, verb, close }: { split: Split; verb: Exclude<Verb, 'hold'>; close: () => void }) {
  const [to, setTo] = useState<number | string>(s.next || (s.phase === 'returned' && s.steps?.[0]) || '')
  const [why, setWhy] = useState('')
  const { act, busy, wrong } = useAct(...keys)
  async function submit(e: FormEvent) {
    e.preventDefault()
    const done = await act(verb, () => decide(s, verb, { to: verb === 'promote' && to !== '' ? Number(to) : undefined, why: why.trim() || undefined }))
    if (!done) return
    notifications.show({ message: words.done(percent(done.share / 100)), color: 'teal' })
    close()
  }
  return (
    <Dialog close={close} title={`${words.verbs[verb]}: ${s.proxy} ${s.route}`}>
      <form onSubmit={submit} className="fields" noValidate>
        <p className="small lead">
          {words.about[verb]} {words.state}
        </p>
        <Wrong wrong={wrong} fields={['to', 'why']} />
        {verb === 'promote' && <NumberInput label={words.to} description={words.toHelp} value={to} error={wrong.to} onChange={setTo} min={1} max={100} allowDecimal={false} data-autofocus />}
        <TextInput label={words.why} value={why} error={wrong.why} onChange={(e) => setWhy(e.currentTarget.value)} maxLength={1024} autoComplete="off" />
        <div className="ask">
          <Button type="submit" loading={busy === verb}>
            {words.verbs[verb]}
          </Button>
          <Button variant="default" onClick={close}>
            {t.edit.cancel}
          </Button>
        </div>
      </form>
    </Dialog>
  )
}
