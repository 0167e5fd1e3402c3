import { Alert, Button, Radio, Stack } from '@mantine/core'
import { IconChecklist } from '@tabler/icons-react'
import { useQuery } from '@tanstack/react-query'
import { useEffect, useState } from 'react'

import { schema as schemaQuery, type Change } from '@/api/queries'
import { useStore } from '@/api/store'
import { Loading } from '@/ui/basics'
import { Panel, ConfirmDialog } from '@/ui/Dialog'
import { t } from '@/text'
import { ApplyButtons, ApplyOutcome, useApply } from './Apply'
import { apply, basket, body, configTag, conflicts, drop, learn, plan, reviewing, settle, type Conflict, type Edit } from './basket'
import { changedFields, written, type Side } from './object'
import { PlanView } from './PlanView'
import { kindWord, label, shown } from './words'

/** The button of the bar that counts edits. */
export function BasketButton() {
  const edits = useStore(basket)
  const schema = useQuery({ ...schemaQuery, enabled: edits.length > 0 }).data
  useEffect(() => schema && learn(schema), [schema])
  if (edits.length === 0) return null
  return (
    <Button leftSection={<IconChecklist size={16} aria-hidden />} onClick={() => reviewing.set(true)}>
      <span className="not-phone">{t.edit.basket(edits.length)}</span>
      <span className="only-phone">{`${t.edit.basketShort} (${edits.length})`}</span>
    </Button>
  )
}

/** What a review knows: the plan, and who else has changed the same. */
async function look(edits: Edit[]): Promise<{ etag: string; conflicts: Conflict[]; plan?: Change }> {
  const etag = await configTag()
  const found = await conflicts(edits)
  return { etag, conflicts: found, plan: found.length ? undefined : await plan(edits) }
}

/** Always shows the plan before anything is applied. */
export function ReviewDrawer() {
  const edits = useStore(basket)
  const open = useStore(reviewing)
  return (
    <Panel opened={open} close={() => reviewing.set(false)} width={640} title={t.edit.title}>
      {open && (edits.length === 0 ? <p>{t.edit.empty}</p> : <Review edits={edits} />)}
    </Panel>
  )
}

function Review({ edits }: { edits: Edit[] }) {
  const review = useQuery({ queryKey: ['review', JSON.stringify(body(edits)), edits.map((e) => e.base?.etag).join()], queryFn: () => look(edits), gcTime: 0, staleTime: 0, retry: false })
  const { go, ...how } = useApply(async (options) => {
    const done = await apply(edits, review.data!.etag, options)
    basket.set([])
    reviewing.set(false)
    return done.revision ? t.edit.appliedRevision(done.revision) : t.edit.applied
  }, review.refetch)

  if (review.isPending) return <Loading />
  if (review.data?.conflicts.length) return <Conflicts list={review.data.conflicts} />
  const p = review.data?.plan
  // What is taken over as it is makes no difference to traffic, and is a change of the document all the same.
  const taken = p ? edits.filter((e) => e.op === 'set' && e.base?.origin?.provider && !p.changes?.some((c) => c.kind === e.kind && c.name === e.name)) : []
  return (
    <Stack gap="lg">
      <p style={{ margin: 0 }}>{t.edit.lead}</p>
      <ApplyOutcome refused={review.error} failed={how.failed} renewed={how.renewed} />
      {p?.changes?.length === 0 && taken.length === 0 && <p>{t.edit.nothing}</p>}
      {p && <PlanView change={p} edits={edits} />}
      {taken.map((e) => (
        <EditCard key={`${e.kind} ${e.name}`} edit={e} text={t.edit.taken} />
      ))}
      {!p && edits.map((e) => <EditCard key={`${e.kind} ${e.name}`} edit={e} />)}
      {p && p.changes!.length + taken.length > 0 && <ApplyButtons go={go} busy={how.busy} />}
      <Discard n={edits.length} />
    </Stack>
  )
}

/** Asks before all edits go: they are nowhere else. */
function Discard({ n }: { n: number }) {
  const [asking, setAsking] = useState(false)
  return (
    <>
      <Button variant="subtle" color="red" onClick={() => setAsking(true)}>
        {t.edit.discard}
      </Button>
      {asking && <ConfirmDialog title={t.edit.discardTitle} text={t.edit.discardText(n)} yes={t.edit.discard} close={() => setAsking(false)} go={async () => basket.set([])} />}
    </>
  )
}

const EditCard = ({ edit, text }: { edit: Edit; text?: string }) => (
  <section className="change">
    <div className="change-head">
      <span style={{ flex: 1 }}>
        {kindWord(edit.kind)} <bdi>{edit.name}</bdi>
      </span>
      <Button size="compact-xs" variant="subtle" onClick={() => drop(edit)}>
        {t.edit.drop}
      </Button>
    </div>
    {text && (
      <ul className="change-fields">
        <li>{text}</li>
        <li>
          <span className="after">{shown(edit.value)}</span>
        </li>
      </ul>
    )}
  </section>
)

/** Three ways out for each object that somebody else has changed: theirs, mine, or field by field. */
function Conflicts({ list }: { list: Conflict[] }) {
  const [choices, setChoices] = useState<Record<string, string>>({})
  const [sides, setSides] = useState<Record<string, Record<string, Side>>>({})
  const key = (c: Conflict) => `${c.edit.kind} ${c.edit.name}`
  const open = (c: Conflict) => !choices[key(c)] || (choices[key(c)] === 'fields' && c.fields!.some((f) => !sides[key(c)]?.[f]))
  return (
    <Stack gap="lg">
      <Alert color="yellow" role="alert" title={t.conflict.title}>
        {t.conflict.text}
      </Alert>
      {list.map((c) => {
        const k = key(c)
        const base = c.edit.base && written(c.edit.kind, c.edit.base)
        const theirs = c.theirs && written(c.edit.kind, c.theirs)
        return (
          <section className="change" key={k}>
            <div className="change-head">
              {kindWord(c.edit.kind)} <bdi>{c.edit.name}</bdi>
            </div>
            <div style={{ padding: '12px 14px' }}>
              {c.edit.op === 'rename' ? (
                <p className="lead">{t.conflict.renamed(c.edit.to ?? '')}</p>
              ) : c.edit.op === 'remove' ? (
                <p className="lead">{t.conflict.removed}</p>
              ) : (
                <Differences title={t.conflict.you} before={base} after={c.edit.value} />
              )}
              {theirs ? <Differences title={t.conflict.they} before={base} after={theirs} /> : <p className="lead">{t.conflict.gone}</p>}
              <Radio.Group value={choices[k] ?? ''} onChange={(v) => setChoices({ ...choices, [k]: v })} aria-label={k}>
                <Stack gap="xs" mt="sm">
                  <Radio value="theirs" label={t.conflict.theirs} description={t.conflict.theirsHelp} />
                  <Radio
                    value="mine"
                    label={t.conflict.mine}
                    description={c.theirs || c.edit.op === 'set' ? (c.theirs ? (c.edit.op === 'set' ? t.conflict.mineHelp : t.conflict.mineToo) : t.conflict.mineAgain) : t.conflict.mineNot}
                    disabled={!c.theirs && c.edit.op !== 'set'}
                  />
                  <Radio
                    value="fields"
                    label={t.conflict.both}
                    description={!c.fields ? t.conflict.bothNot : c.fields.length ? t.conflict.bothAsk(c.fields.length) : t.conflict.bothHelp}
                    disabled={!c.fields}
                  />
                </Stack>
              </Radio.Group>
              {choices[k] === 'fields' && c.fields!.length > 0 && (
                <ul className="change-fields" style={{ padding: '8px 0 0 28px' }}>
                  {c.fields!.map((f) => (
                    <li key={f}>
                      <Radio.Group label={label(f)} value={sides[k]?.[f] ?? ''} onChange={(v) => setSides({ ...sides, [k]: { ...sides[k], [f]: v as Side } })}>
                        <Stack gap={6} mt={6}>
                          <Radio value="mine" label={t.conflict.fieldMine} description={<span className="after">{shown(c.edit.value?.[f]) || t.conflict.unset}</span>} />
                          <Radio value="theirs" label={t.conflict.fieldTheirs} description={<span className="after">{shown(theirs?.[f]) || t.conflict.unset}</span>} />
                        </Stack>
                      </Radio.Group>
                    </li>
                  ))}
                </ul>
              )}
            </div>
          </section>
        )
      })}
      <Button disabled={list.some(open)} onClick={() => list.forEach((c) => settle(c, choices[key(c)] as 'mine', sides[key(c)]))}>
        {t.conflict.go}
      </Button>
    </Stack>
  )
}

function Differences({ title, before, after }: { title: string; before?: Record<string, unknown>; after?: Record<string, unknown> }) {
  return (
    <div style={{ marginBottom: 10 }}>
      <strong>{title}</strong>
      {changedFields(before, after).map((f) => (
        <div key={f}>
          {label(f)}
          {before?.[f] !== undefined && <span className="before">− {shown(before[f])}</span>}
          {after?.[f] !== undefined && <span className="after">+ {shown(after[f])}</span>}
        </div>
      ))}
    </div>
  )
}
