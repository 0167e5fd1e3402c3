import { Button, TextInput } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { useState } from 'react'
import { failed, sentence } from '@/api/problem'
import { canEdit, isAdmin, me, objects, status, type AnyObject, type Proxy } from '@/api/queries'
import { apply, configTag, plan, type Edit } from '@/edit/basket'
import { written } from '@/edit/object'
import { PlanDrawer } from '@/edit/PlanDrawer'
import { Card, Detail, Failure, Loading, PageHeader, StateBadge } from '@/ui/basics'
import { meaningOf, type Meaning } from '@/theme/states'
import { orders } from '../certificates/orders'
import { t } from '@/text'
import { comparison, meaningOfPercent } from '../compare/comparison'
import { proposed, reversed, type Move } from './moves'

const words = t.cutover
const key = 'headgate.moved'

/** What moved last from this tab, for the way back. */
const kept = {
  get: (): Move[] => {
    try {
      return JSON.parse(sessionStorage.getItem(key) ?? '[]') as Move[]
    } catch {
      return []
    }
  },
  set: (m: Move[]) => {
    try {
      sessionStorage.setItem(key, JSON.stringify(m))
    } catch {
      // the history has it
    }
  },
}

/** The move of the ports as one change: what must be so before, the plan, and the way back. */
export default function CutoverPage() {
  const ports = useQuery(objects('ports'))
  const { data: who } = useQuery(me)
  const { data: all } = useQuery(status)
  const [typed, setTyped] = useState<Record<string, string>>({})
  const [shown, setShown] = useState<Move[]>()
  if (failed(ports)) return <Failure error={ports.error} again={() => void ports.refetch()} />
  if (!ports.data) return <Loading />
  const moves = proposed(ports.data).map((m) => ({ ...m, to: typed[m.name] ?? m.to }))
  const moving = moves.filter((m) => m.to !== m.from)
  const before = kept.get().filter((m) => ports.data.some((p) => p.name === m.name && p.address === m.to))
  const may = canEdit(who?.role)
  return (
    <>
      <PageHeader
        title={t.pages.cutover}
        lead={words.lead}
        actions={
          may ? (
            <>
              <Button disabled={moving.length === 0 || !!all?.pending} onClick={() => setShown(moving)}>
                {words.plan}
              </Button>
              {before.length > 0 && !all?.pending && (
                <Button variant="default" onClick={() => setShown(reversed(before))}>
                  {words.back}
                </Button>
              )}
            </>
          ) : (
            <span className="small">{t.edit.readOnly}</span>
          )
        }
      />
      <Detail
        aside={
          <Card title={words.steps}>
            <ol className="plain-list">
              {words.step.map((s) => (
                <li key={s} style={{ marginBottom: 8 }}>
                  {s}
                </li>
              ))}
            </ol>
            <p className="small">
              <Link to="/import">{t.pages.import}</Link>, <Link to="/compare">{t.pages.compare}</Link>
            </p>
            <p className="small">
              {words.backText} <Link to="/history">{words.history}</Link>
            </p>
          </Card>
        }
      >
        <Card title={words.moves}>
          {moves.length === 0 ? <p className="small lead">{words.noPorts}</p> : moving.length === 0 && <p className="small lead">{words.none}</p>}
          <ul className="rows">
            {moves.map((m) => (
              <li key={m.name} className="entry" style={{ alignItems: 'center' }}>
                <span className="entry-name">
                  <strong>
                    <bdi>{m.name}</bdi>
                  </strong>{' '}
                  <span className="small">{m.protocol}</span>
                  <span className="block mono">{m.from}</span>
                </span>
                <span aria-hidden>→</span>
                <TextInput
                  aria-label={words.address(m.name)}
                  value={m.to}
                  disabled={!may}
                  onChange={(e) => setTyped({ ...typed, [m.name]: e.currentTarget.value.trim() })}
                  spellCheck={false}
                  autoComplete="off"
                  w={190}
                />
                {m.to === m.from && <span className="small">{words.stays}</span>}
              </li>
            ))}
          </ul>
        </Card>
        <Before moves={moving} ports={ports.data} may={may} admin={isAdmin(who?.role)} />
      </Detail>
      {shown && <MoveDrawer moves={shown} ports={ports.data} close={() => setShown(undefined)} />}
    </>
  )
}

/** What should be so before the ports move, as far as it is known. */
function Before({ moves, ports, may, admin }: { moves: Move[]; ports: AnyObject[]; may: boolean; admin: boolean }) {
  const compared = useQuery({ ...comparison, enabled: admin }).data
  // The plan of the move opens the addresses and lets go of them: it knows who holds them.
  const free = useQuery({ queryKey: ['cutover', moves], queryFn: () => plan(editsOf(moves, ports)), enabled: may && moves.length > 0, retry: false, refetchInterval: 5_000, gcTime: 0 })
  const { data: all } = useQuery(status)
  const { data: list } = useQuery(orders)
  const { data: proxies } = useQuery(objects<Proxy>('proxies'))
  const blocked = (list ?? []).filter((o) => !o.not_after)
  const down = (proxies ?? []).filter((p) => meaningOf(p.state ?? '') === 'bad')
  const closed = (all?.ports ?? []).filter((p) => p.reason)
  const rows: { meaning: Meaning; title: string; text: React.ReactNode; link?: string }[] = [
    ...(moves.length === 0
      ? []
      : [
          {
            meaning: (free.error ? 'bad' : free.data ? 'good' : 'info') as Meaning,
            title: words.addresses(moves.map((m) => m.to).join(', ')),
            text: free.error ? sentence(free.error) : free.data ? words.areFree : words.freeText,
          },
        ]),
    {
      meaning: blocked.length ? 'warn' : 'good',
      title: words.certificates,
      text: !list?.length ? (
        words.noCertificates
      ) : (
        <>
          {words.certificatesReady(list.length - blocked.length)}
          {blocked.length > 0 && `, ${words.certificatesBlocked(blocked.length)}`}
          {blocked.slice(0, 5).map((o) => (
            <span key={o.name} className="small block">
              {o.name}: {o.trouble?.message ?? t.certificates.word[o.state!] ?? o.state}
            </span>
          ))}
          {blocked.length > 0 && <span className="small block">{words.certificatesNote}</span>}
        </>
      ),
      link: '/certificates',
    },
    {
      meaning: closed.length ? 'warn' : 'good',
      title: words.listening,
      text: closed.length ? (
        <>
          {words.notListening(closed.length)}
          {closed.map((p) => (
            <span key={p.name} className="small block">
              {p.name}: {p.reason}. {p.hint}
            </span>
          ))}
        </>
      ) : (
        words.allListening
      ),
      link: '/ports',
    },
    { meaning: down.length ? 'warn' : 'good', title: words.servers, text: down.length ? words.serversDown(down.length) : words.serversFine, link: '/proxies' },
    ...(admin
      ? [
          {
            meaning: (compared?.report ? meaningOfPercent(compared.report.percent) : 'info') as Meaning,
            title: t.compare.before,
            text: compared?.report ? t.compare.beforeReady(compared.report.percent) : t.compare.beforeNone,
            link: '/compare',
          },
        ]
      : []),
    { meaning: all?.pending ? 'bad' : 'good', title: words.pending, text: all?.pending ? words.isPending : '' },
  ]
  const word: Record<Meaning, string> = { good: words.good, warn: words.wait, bad: words.bad, info: words.wait, calm: words.wait }
  return (
    <Card title={words.ready}>
      <ul className="rows judged">
        {rows.map((r) => (
          <li key={r.title}>
            <StateBadge state={r.meaning} meaning={r.meaning}>
              {word[r.meaning]}
            </StateBadge>
            <span style={{ minWidth: 0 }}>
              <strong>{r.link ? <Link to={r.link as '/'}>{r.title}</Link> : r.title}</strong>
              <span className="block">{r.text}</span>
            </span>
          </li>
        ))}
      </ul>
    </Card>
  )
}

const editsOf = (moves: Move[], ports: AnyObject[]): Edit[] =>
  moves.map((m) => {
    const base = ports.find((p) => p.name === m.name)!
    return { kind: 'ports', name: m.name, op: 'set', base, value: { ...written('ports', base), address: m.to } }
  })

function MoveDrawer({ moves, ports, close }: { moves: Move[]; ports: AnyObject[]; close: () => void }) {
  return (
    <PlanDrawer
      id={`cutover ${JSON.stringify(moves)}`}
      title={words.planTitle}
      lead={words.planLead}
      nothing={words.nothing}
      within="2m"
      close={close}
      plan={async () => ({ etag: await configTag(), change: await plan(editsOf(moves, ports)) })}
      apply={async (etag, options) => {
        const change = await apply(editsOf(moves, ports), etag, options)
        kept.set(moves)
        return change
      }}
      done={() => words.done}
    />
  )
}
