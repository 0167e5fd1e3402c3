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

function One({ of: e }: { of: ECH }) {
  const records = (e.records ?? []).map((r) => r.line).join('\n')
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
          rows={[[words.public, <code key="name">{e.public_name}</code>], ...e.keys.map((k): [string, string] => [`${words.key} ${k.id}`, `${words.uses[k.use]}, ${words.until(moment(k.until))}`])]}
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
            <p className="small lead">{words.lead}</p>
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
