import { Button } from '@mantine/core'
import { notifications } from '@mantine/notifications'
import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { call } from '@/api/client'
import { canEdit, me, objects } from '@/api/queries'
import type { components } from '@/api/schema'
import { Entries } from '@/edit/Entries'
import { PageHeader } from '@/ui/basics'
import { useAct } from '@/ui/act'
import { t } from '@/text'
import { Delivery } from './Delivery'

type Tested = components['schemas']['queueTest']
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
          <Delivery key={o.name} kind="webhooks" name={o.name!} may={canEdit(who?.role)} />
        ))}
      </div>
    </>
  )
}
