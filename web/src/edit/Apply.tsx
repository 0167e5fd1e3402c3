import { Alert, Button, Select, TextInput } from '@mantine/core'
import { notifications } from '@mantine/notifications'
import { useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { Problem, sentence, withoutPlace } from '@/api/problem'
import { t } from '@/text'
import { span } from '@/ui/basics'

/** How a reviewed change is applied: what it is for, and the time to confirm it, if any. */
export type Options = { why?: string; within?: string }

/** Applies what was reviewed. Somebody else may have been faster: then the plan is made again, and shown. */
export function useApply(apply: (options: Options) => Promise<string>, again: () => Promise<unknown>) {
  const queries = useQueryClient()
  const [busy, setBusy] = useState(false)
  const [failed, setFailed] = useState<unknown>()
  const [renewed, setRenewed] = useState(false)
  async function go(options: Options) {
    setBusy(true)
    setFailed(undefined)
    try {
      const message = await apply(options)
      notifications.show({ message, color: 'teal' })
      void queries.invalidateQueries()
    } catch (e) {
      if (e instanceof Problem && e.status === 412) {
        await again()
        setRenewed(true)
      } else setFailed(e)
    } finally {
      setBusy(false)
    }
  }
  return { go, busy, failed, renewed }
}

/** Why a plan was refused, why it was not saved, or that it was made again. */
export function ApplyOutcome({ refused, failed, renewed }: { refused: unknown; failed: unknown; renewed: boolean }) {
  return (
    <>
      {!!refused && (
        <Alert color="red" role="alert" title={t.edit.refused}>
          <Mistakes error={refused} />
        </Alert>
      )}
      {failed !== undefined && (
        <Alert color="red" role="alert" title={t.edit.failed}>
          <Mistakes error={failed} />
        </Alert>
      )}
      {renewed && failed === undefined && (
        <Alert color="yellow" role="alert">
          {t.edit.renewed}
        </Alert>
      )}
    </>
  )
}

function Mistakes({ error }: { error: unknown }) {
  if (!(error instanceof Problem) || error.mistakes.length < 2) return <>{sentence(error)}</>
  return (
    <ul style={{ margin: 0, paddingLeft: 18 }}>
      {error.mistakes.map((m, i) => (
        <li key={i}>
          <code>{m.pointer}</code> {withoutPlace(m.detail)}
          {m.remedy ? `; ${m.remedy}` : ''}
        </li>
      ))}
    </ul>
  )
}

/** The times to confirm a change, as the API takes them, and as people read them. */
const times = Object.entries({ '30s': 30, '1m': 60, '2m': 120, '5m': 300, '15m': 900, '1h': 3600 }).map(([value, seconds]) => ({ value, label: span(seconds) }))

/** Below every plan: what it is for, and the buttons that apply it, at once or with the time to confirm it. */
export function ApplyButtons({
  go,
  busy,
  within: first,
  confirmable = true,
}: {
  go: (options: Options) => Promise<void>
  busy: boolean
  /** A change that should be confirmed names the time for it; then that is the first button. */
  within?: string | null
  /** Whether it can wait to be confirmed. */
  confirmable?: boolean
}) {
  const [why, setWhy] = useState('')
  const [within, setWithin] = useState(first ?? '2m')
  const apply = (confirm: boolean) => void go({ why: why || undefined, within: confirm ? within : undefined })
  const now = (
    <Button key="now" size={first ? 'sm' : 'md'} variant={first ? 'default' : 'filled'} loading={busy} onClick={() => apply(false)} data-autofocus={!first || undefined}>
      {t.edit.apply}
    </Button>
  )
  const confirmed = (
    <div key="confirm" className="ask">
      <Select label={t.edit.within} value={within} onChange={(v) => v && setWithin(v)} data={times} w={120} allowDeselect={false} />
      <Button variant={first ? 'filled' : 'default'} loading={busy} onClick={() => apply(true)} style={{ flex: 1 }}>
        {t.edit.applyConfirm}
      </Button>
    </div>
  )
  return (
    <>
      <TextInput label={t.edit.why} value={why} maxLength={500} onChange={(e) => setWhy(e.currentTarget.value)} />
      {!confirmable ? now : first ? [confirmed, now] : [now, confirmed]}
      {confirmable && (
        <p className="small" style={{ margin: 0 }}>
          {t.edit.withinHelp}
        </p>
      )}
    </>
  )
}
