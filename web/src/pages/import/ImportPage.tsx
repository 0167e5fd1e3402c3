import { Radio } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { isAdmin, me } from '@/api/queries'
import { EmptyCard } from '@/edit/Entries'
import { Card, Loading, PageHeader } from '@/ui/basics'
import { useView } from '@/ui/view'
import { t } from '@/text'
import type { Imported } from './importing'
import { Chooser } from './Chooser'
import { Translated } from './Translated'

const words = t.imports

/** The configuration of another proxy: chosen, translated, looked at, taken by a plan. */
export default function ImportPage() {
  const { data: who } = useQuery(me)
  const [kind, setKind] = useView('from')
  const [result, setResult] = useState<{ made: number; it: Imported }>()
  if (!who) return <Loading />
  return (
    <>
      <PageHeader title={t.pages.import} lead={words.lead} />
      {!isAdmin(who.role) ? (
        <EmptyCard title={words.adminsOnly}>{words.adminsOnlyText}</EmptyCard>
      ) : (
        <div className="stack">
          <Card title={words.from}>
            <Radio.Group
              value={kind}
              onChange={(v) => {
                setKind(v)
                setResult(undefined)
              }}
              aria-label={words.from}
            >
              <div className="choices">
                {Object.entries(words.sources).map(([value, [name, about]]) => (
                  <Radio.Card key={value} value={value} className="choice" aria-describedby={`about-${value}`}>
                    <Radio.Indicator size="xs" />
                    <span>
                      <strong>{name}</strong>
                      <span className="small block" id={`about-${value}`}>
                        {about}
                      </span>
                    </span>
                  </Radio.Card>
                ))}
              </div>
            </Radio.Group>
          </Card>
          {kind in words.sources && <Chooser key={kind} kind={kind} again={!!result} done={(it) => setResult({ made: (result?.made ?? 0) + 1, it })} />}
          {result && <Translated key={result.made} it={result.it} />}
        </div>
      )}
    </>
  )
}
