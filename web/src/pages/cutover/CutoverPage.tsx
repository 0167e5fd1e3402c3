import { Button, Switch, TextInput } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { useState } from 'react'
import { failed, sentence } from '@/api/problem'
import { canEdit, isAdmin, me, objects, status, type Proxy } from '@/api/queries'
import { configTag } from '@/edit/basket'
import { PlanDrawer } from '@/edit/PlanDrawer'
import { Card, Detail, Failure, Loading, PageHeader, StateBadge } from '@/ui/basics'
import { meaningOf, type Meaning } from '@/theme/states'
import { orders } from '../certificates/orders'
import { t } from '@/text'
import { clock, moment } from '@/ui/time'
import { comparison, meaningOfPercent } from '../compare/comparison'
import { goBack, lastCutover, planned, plannedReturn, proposed, start, type Cutover, type Move } from './moves'

const words = t.cutover
/** The move of the ports as one change: what must be so before, the plan, and the way back. */
export default function CutoverPage() {
  const ports = useQuery(objects('ports'))
  const { data: who } = useQuery(me)
  const { data: all } = useQuery(status)
  const [typed, setTyped] = useState<Record<string, string>>({})
  const { data: last } = useQuery(lastCutover)
  const [shown, setShown] = useState<Move[] | 'back'>()
  if (failed(ports)) return <Failure error={ports.error} again={() => void ports.refetch()} />
  if (!ports.data) return <Loading />
  const moves = proposed(ports.data).map((m) => ({ ...m, to: typed[m.name] ?? m.to }))
  const moving = moves.filter((m) => m.to !== m.from)
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
              {last?.state === 'confirmed' && !all?.pending && (
                <Button variant="default" onClick={() => setShown('back')}>
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
        {last && <Last cutover={last} />}
        <Before moves={moving} may={may} admin={isAdmin(who?.role)} />
      </Detail>
      {shown === 'back' && <ReturnDrawer close={() => setShown(undefined)} />}
      {Array.isArray(shown) && <MoveDrawer moves={shown} close={() => setShown(undefined)} />}
    </>
  )
}

/** What should be so before the ports move, as far as it is known. */
function Before({ moves, may, admin }: { moves: Move[]; may: boolean; admin: boolean }) {
  const compared = useQuery({ ...comparison, enabled: admin }).data
  // The plan of the move opens the addresses and lets go of them: it knows who holds them.
  const free = useQuery({
    queryKey: ['cutover', 'plan', moves],
    queryFn: async () => planned(moves, await configTag()),
    enabled: may && moves.length > 0,
    retry: false,
    refetchInterval: 5_000,
    gcTime: 0,
  })
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
    { meaning: down.length ? 'warn' : 'good', title: words.servers, text: down.length ? t.overview.down(down.length) : words.serversFine, link: '/proxies' },
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

/** The state of the last cutover: what moved, what its watch has counted, and what still holds the addresses. */
function Last({ cutover: c }: { cutover: Cutover }) {
  const state = words.state[c.state as keyof typeof words.state]
  const w = c.watch
  const gone = c.state === 'reverted' || c.state === 'returned'
  return (
    <Card title={words.last}>
      <p style={{ marginTop: 0 }}>
        <StateBadge state={c.state} meaning={c.state === 'confirmed' ? 'good' : c.state === 'pending' ? 'warn' : 'info'}>
          {state}
        </StateBadge>{' '}
        {words.by(c.who ?? '', moment(c.when))}
      </p>
      <ul className="rows">
        {c.moves.map((m) => (
          <li key={m.port}>
            <strong>
              <bdi>{m.port}</bdi>
            </strong>{' '}
            <span className="mono">
              {m.from} → {m.to}
            </span>
          </li>
        ))}
      </ul>
      {w && <p className="small">{words.counted(w.responses, w.errors_5xx, w.healthy, w.healthy_before)}</p>}
      {w && !w.result && <p className="small">{words.watching(clock(w.until, false))}</p>}
      {w?.reason && <p className="small">{w.reason}</p>}
      {gone && <p className="small">{c.held.length ? words.held(c.held.join(', ')) : words.released}</p>}
    </Card>
  )
}

function MoveDrawer({ moves, close }: { moves: Move[]; close: () => void }) {
  const [watch, setWatch] = useState(false)
  return (
    <PlanDrawer
      id={`cutover ${JSON.stringify(moves)}`}
      title={words.planTitle}
      lead={words.planLead}
      nothing={words.nothing}
      within="2m"
      close={close}
      plan={async () => {
        const etag = await configTag()
        return { etag, change: await planned(moves, etag) }
      }}
      apply={(etag, options) => start(moves, etag, { ...options, watch })}
      done={() => (watch ? words.doneWatched : words.done)}
    >
      <Switch label={words.watch} description={words.watchHelp} checked={watch} onChange={(e) => setWatch(e.currentTarget.checked)} />
    </PlanDrawer>
  )
}

function ReturnDrawer({ close }: { close: () => void }) {
  return (
    <PlanDrawer
      id="cutover back"
      title={words.back}
      lead={words.returnLead}
      nothing={words.nothing}
      confirmable={false}
      close={close}
      plan={async () => ({ etag: await configTag(), change: await plannedReturn() })}
      apply={(_, options) => goBack(options.why)}
      done={() => words.returned}
    />
  )
}
