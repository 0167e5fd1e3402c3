import { Alert, Button } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { useMemo, useState } from 'react'
import { call } from '@/api/client'
import { failed } from '@/api/problem'
import { all, canEdit, me, objects } from '@/api/queries'
import type { components } from '@/api/schema'
import { Ago, Card, Failure, Loading, PageHeader } from '@/ui/basics'
import { DataTable, type Column } from '@/ui/DataTable'
import { ConfirmDialog } from '@/ui/Dialog'
import { useAct } from '@/ui/act'
import { t } from '@/text'
import { count } from '@/text/many'
import { AddBan, type Ban } from './AddBan'
import { BanRules } from './BanRules'

type Rules = components['schemas']['banRulesBody']
const words = t.bans

/** Ends the bans of an address; with never, rules cannot ban it again. */
const lift = (address: string, more: { never?: boolean; again?: boolean } = {}) => call('POST', '/banned/lift', { body: { address, ...more } })

/** Who is banned and why, the rules, and who is exempt. */
export default function BansPage() {
  const { data: who } = useQuery(me)
  const may = canEdit(who?.role)
  const bans = useQuery({ queryKey: ['banned'], queryFn: ({ signal }) => all<Ban>('/banned', signal).then((p) => p.value), refetchInterval: 10_000 })
  const rules = useQuery({ queryKey: ['banned', 'rules'], queryFn: () => call<Rules>('GET', '/banned/rules').then((x) => x.value), refetchInterval: 10_000 })
  const written = useQuery(objects('bans')).data
  const [adding, setAdding] = useState(false)
  return (
    <>
      <PageHeader title={t.pages.bans} lead={words.lead} actions={may && !!written?.length && <Button onClick={() => setAdding(true)}>{words.add}</Button>} />
      <div className="stack">
        {rules.data?.issues?.map((i) => (
          <Alert key={i.code} color="yellow">
            {[i.message, i.hint].filter(Boolean).join('; ')}
          </Alert>
        ))}
        {failed(bans) ? <Failure error={bans.error} again={() => void bans.refetch()} /> : !bans.data ? <Loading /> : written?.length === 0 ? null : <Active list={bans.data} may={may} />}
        <BanRules states={rules.data?.rules ?? []} may={may} />
        <Exempt list={rules.data?.never ?? []} may={may} />
      </div>
      {adding && <AddBan close={() => setAdding(false)} />}
    </>
  )
}

const id = (b: Ban) => `${b.network} ${b.source}`
const searchable = (b: Ban) => ({ '': [b.network, b.why, b.rule, b.who].join(' '), rule: b.rule ?? '', who: b.who ?? '' })

/** The bans in force. */
function Active({ list, may }: { list: Ban[]; may: boolean }) {
  const { act, busy } = useAct('banned', 'addresses', 'audit')
  const [exempting, setExempting] = useState('')
  const columns = useMemo((): Column<Ban>[] => {
    const shown: Column<Ban>[] = [
      {
        id: 'client',
        title: words.client,
        sort: (b) => b.network ?? '',
        cell: (b) => (
          <>
            <Link to="/log" search={{ client: b.network } as never} className="row-name clip">
              {b.network}
            </Link>
            <span className="small clip">{[b.source === 'header' && words.header, words.times(b.times ?? 1), b.answer === 'reject' && words.rejected].filter(Boolean).join(', ')}</span>
          </>
        ),
      },
      {
        id: 'why',
        title: words.why,
        sort: (b) => b.why ?? '',
        cell: (b) => (
          <>
            <span className="clip" title={b.why}>
              {b.why || '–'}
            </span>
            <span className="small clip">{b.rule ? words.trialIn(b.rule) : words.byHand(b.who ?? '')}</span>
          </>
        ),
      },
      { id: 'since', title: words.since, width: '120px', phone: false, from: 960, sort: (b) => b.since ?? '', cell: (b) => <Ago time={b.since!} /> },
      { id: 'until', title: words.until, width: '120px', phone: false, sort: (b) => b.until ?? '', cell: (b) => <Ago time={b.until!} /> },
      { id: 'refused', title: words.refused, width: '90px', number: true, phone: false, sort: (b) => b.refused ?? 0, cell: (b) => <span title={words.refusedHelp}>{count(b.refused ?? 0)}</span> },
    ]
    if (may)
      shown.push({
        id: 'actions',
        title: t.entries.actionsTitle,
        quiet: true,
        width: '210px',
        cell: (b) => (
          <span className="entry-actions">
            <Button
              size="compact-sm"
              variant="default"
              loading={busy === id(b)}
              aria-label={words.liftOf(b.network!)}
              onClick={() => void act(id(b), () => lift(b.network!), words.lifted(b.network!))}
            >
              {words.lift}
            </Button>
            <Button size="compact-sm" variant="subtle" aria-label={words.neverOf(b.network!)} onClick={() => setExempting(b.network!)}>
              {words.never}
            </Button>
          </span>
        ),
      })
    return shown
  }, [may, act, busy])
  return (
    <section aria-label={words.active}>
      <DataTable rows={list} columns={columns} first="-since" id={id} searchable={searchable} noun={[words.noun, words.nouns]} empty={<div className="card-body small">{words.none}</div>} />
      {exempting && (
        <ConfirmDialog
          title={words.neverTitle(exempting)}
          text={words.neverText}
          yes={words.never}
          go={() => act('', () => lift(exempting, { never: true }), words.neverDone(exempting))}
          close={() => setExempting('')}
        />
      )}
    </section>
  )
}

/** The networks that no rule bans, because an operator said so. */
function Exempt({ list, may }: { list: NonNullable<Rules['never']>; may: boolean }) {
  const { act, busy } = useAct('banned', 'audit')
  if (list.length === 0) return null
  return (
    <Card title={words.exempt}>
      <p className="small lead">{words.exemptLead}</p>
      <ul className="rows">
        {list.map((p) => {
          const network = String(p.network).replace(/\/(32|128)$/, '')
          return (
            <li key={network} className="entry">
              <span className="entry-name">
                <strong>{network}</strong>
                <span className="small block">
                  <Ago time={p.since!} /> {words.byHand(p.who ?? '')}
                  {p.why && `: ${p.why}`}
                </span>
              </span>
              {may && (
                <Button
                  size="compact-sm"
                  variant="default"
                  loading={busy === network}
                  aria-label={words.againOf(network)}
                  onClick={() => void act(network, () => lift(network, { again: true }), words.againDone(network))}
                >
                  {words.again}
                </Button>
              )}
            </li>
          )
        })}
      </ul>
    </Card>
  )
}
