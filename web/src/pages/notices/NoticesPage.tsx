import { Button } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { call } from '@/api/client'
import { canEdit, me, objects, type AnyObject } from '@/api/queries'
import type { components } from '@/api/schema'
import { Entries } from '@/edit/Entries'
import { services, serviceOf } from '@/edit/services'
import { Delivery } from '@/pages/webhooks/Delivery'
import { PageHeader } from '@/ui/basics'
import { useAct } from '@/ui/act'
import { t } from '@/text'

type Tested = components['schemas']['queueTest']

/** The notices to people, what each service answered to a test, and what could not be delivered. */
export default function NoticesPage() {
  const list = useQuery(objects('notices'))
  const { data: who } = useQuery(me)
  const { act } = useAct('notices')
  const [testing, setTesting] = useState('')
  const [tested, setTested] = useState<Record<string, Tested>>({})
  async function test(name: string) {
    setTesting(name)
    const answer = await act('', () => call<Tested>('POST', `/notices/${encodeURIComponent(name)}/test`, { body: {} }))
    setTesting('')
    if (answer) setTested((all) => ({ ...all, [name]: answer.value }))
  }
  return (
    <>
      <PageHeader title={t.pages.notices} lead={t.notices.lead} />
      <div className="stack">
        <Entries
          kind="notices"
          title={t.pages.notices}
          empty={t.notices.none}
          emptyTitle={t.notices.noneTitle}
          initial={{ email: {} }}
          line={(o) => (
            <>
              {summary(o)}
              {tested[o.name!] && <Answer result={tested[o.name!]!} />}
            </>
          )}
          actions={(o) =>
            canEdit(who?.role) && (
              <Button size="compact-sm" variant="default" loading={testing === o.name} onClick={() => void test(o.name!)}>
                {t.webhooks.test}
              </Button>
            )
          }
        />
        {(list.data ?? []).map((o) => (
          <Delivery key={o.name} kind="notices" name={o.name!} may={canEdit(who?.role)} />
        ))}
      </div>
    </>
  )
}

/** The service of a notice and what it is sent for, in one line. */
function summary(o: AnyObject): string {
  const service = serviceOf(o)
  const events =
    Array.isArray(o.events) && o.events.length ? (o.events as string[]).map((e) => t.events.types[e] ?? t.events.every(t.events.objects[e.replace('.*', '')] ?? e)).join(', ') : t.events.all
  return [service && (t.notices.services[service] ?? services[service]), t.notices.levels[String(o.level ?? 'warning')], events].filter(Boolean).join(' · ')
}

/** What the other side answered to a test. */
function Answer({ result }: { result: Tested }) {
  return (
    <span role="status" className="block wrap" style={{ color: result.taken ? 'var(--good)' : 'var(--bad)' }}>
      {result.taken ? t.webhooks.tested(result.status ?? 0, result.duration_ms ?? 0) : t.webhooks.testFailed(result.error || String(result.status))}
      {result.taken && result.answer && ` ${t.notices.answered(result.answer)}`}
    </span>
  )
}
