import { Alert, Button } from '@mantine/core'
import { useState } from 'react'
import type { Change } from '@/api/queries'
import type { components } from '@/api/schema'
import { Ago, Card } from '@/ui/basics'
import { useAct, Wrong } from '@/ui/act'
import { t } from '@/text'
import { basket, plan, type Edit } from './basket'

type Trial = NonNullable<NonNullable<Change['what_if']>['bans']>[number]
type Would = components['schemas']['Would']
const words = t.bans

/** What the rule of a form would have done about recent requests, when somebody asks for it. */
export function BanTrial({ edit }: { edit: Edit }) {
  const [result, setResult] = useState<{ of: unknown; trial?: Trial }>()
  const { act, busy, wrong } = useAct()
  const current = result?.of === edit.value ? result : undefined
  async function run() {
    const planned = await act('try', () => plan([...basket.get().filter((e) => e.kind !== edit.kind || e.name !== edit.name), edit]))
    if (planned) setResult({ of: edit.value, trial: planned.what_if?.bans?.find((b) => b.rule === edit.name) })
  }
  return (
    <Card title={words.trialTitle}>
      <p className="small lead">{words.trialLead}</p>
      <Button variant="default" loading={busy === 'try'} onClick={() => void run()}>
        {words.trial}
      </Button>
      <Wrong wrong={wrong} fields={[]} />
      <div role="status">{current && (current.trial?.requests ? <TrialResult trial={current.trial} /> : <p className="small">{words.trialNone}</p>)}</div>
    </Card>
  )
}

export function TrialResult({ trial: r }: { trial: Trial }) {
  return (
    <>
      <p>
        {words.trialOf(r.requests ?? 0)}
        {r.since && (
          <>
            {' '}
            ({words.sinceWritten} <Ago time={r.since} />)
          </>
        )}
        . {words.trialCounted(r.counted ?? 0)} <strong>{words.trialWould(r.addresses ?? 0, r.refused ?? 0)}</strong>
      </p>
      {!!r.signed_in && <Alert color="yellow">{words.trialSignedIn(r.signed_in)}</Alert>}
      {!!r.unknown && <p className="small">{words.trialUnknown(r.unknown)}</p>}
      <WouldList list={r.would ?? []} />
    </>
  )
}

/** Whom a rule would have banned. */
export const WouldList = ({ list }: { list: Would[] }) =>
  list.length > 0 && (
    <ul className="rows tight">
      {list.map((w) => (
        <li key={w.network}>
          <span style={{ minWidth: 0 }}>
            <strong>{w.network}</strong> {w.signed_in && <span className="tag">{words.signedIn}</span>}
            <span className="small block">
              {w.why} · <Ago time={w.since!} />
              {(w.times ?? 1) > 1 && ` · ${words.wouldTimes(w.times!)}`}
            </span>
          </span>
        </li>
      ))}
    </ul>
  )
