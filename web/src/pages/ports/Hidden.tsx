import { Button, CopyButton } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { call } from '@/api/client'
import type { components } from '@/api/schema'
import { failed } from '@/api/problem'
import { Card, Failure, KeyValues, Loading } from '@/ui/basics'
import { t } from '@/text'
import { moment } from '@/ui/time'

type ECH = components['schemas']['ECHState']
const words = t.ports.ech

/** The ports that hide the requested host, with the DNS records to copy. */
export default function Hidden() {
  const list = useQuery({ queryKey: ['ech'], queryFn: ({ signal }) => call<{ items: ECH[] }>('GET', '/ech', { signal }).then((x) => x.value.items), refetchInterval: 10_000 })
  if (failed(list)) return <Failure error={list.error} again={() => void list.refetch()} />
  if (!list.data) return <Loading />
  return list.data.map((e) => <One key={e.port} of={e} />)
}

/** The records that headgate writes and that are not in the DNS, with the reason. */
function Unpublished({ of: e }: { of: ECH }) {
  const open = (e.records ?? []).filter((r) => r.state && r.state !== 'published')
  if (open.length === 0) return null
  return (
    <ul>
      {open.slice(0, 50).map((r) => (
        <li key={r.name}>
          <code>{r.name}</code>: {words.states[r.state!]}
          {r.note ? `: ${r.note}` : ''}
        </li>
      ))}
    </ul>
  )
}

function One({ of: e }: { of: ECH }) {
  const records = (e.records ?? []).map((r) => r.line).join('\n')
  const states = (['published', 'waiting', 'failed', 'skipped'] as const).map((s) => [s, (e.records ?? []).filter((r) => r.state === s).length] as const).filter(([, n]) => n > 0)
  return (
    <Card
      title={
        <>
          {words.title} <code>{e.port}</code>
        </>
      }
    >
      <div className="fields">
        <KeyValues
          rows={[
            [words.public, <code key="name">{e.public_name}</code>],
            ...e.keys.map((k): [string, string] => [`${words.key} ${k.id}`, `${words.uses[k.use]}, ${words.until(moment(k.until))}`]),
            ...(e.dns ? [[words.dns, states.map(([s, n]) => `${words.states[s]}: ${n}`).join(', ') || '–'] as [string, string]] : []),
          ]}
        />
        {(e.issues ?? []).length > 0 && (
          <ul>
            {e.issues!.map((issue) => (
              <li key={issue}>{issue}</li>
            ))}
          </ul>
        )}
        {records && (
          <>
            <p className="small lead">{e.dns ? words.written(e.dns) : words.lead}</p>
            <Unpublished of={e} />
            <pre className="code" tabIndex={0} aria-label={words.records}>
              {records}
            </pre>
            {e.more ? <p className="small lead">{words.more(e.more)}</p> : null}
            <div className="ask">
              <CopyButton value={`${records}\n`}>
                {({ copied, copy }) => (
                  <Button variant="default" onClick={copy} aria-label={`${copied ? t.operators.copied : words.copy}: ${e.port}`}>
                    {copied ? t.operators.copied : words.copy}
                  </Button>
                )}
              </CopyButton>
            </div>
          </>
        )}
      </div>
    </Card>
  )
}
