import { Button, TextInput } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { useMemo, useState } from 'react'
import { call } from '@/api/client'
import { failed } from '@/api/problem'
import { canEdit, isAdmin, me } from '@/api/queries'
import type { components } from '@/api/schema'
import { Ago, Card, Failure, Loading, PageHeader, StateBadge } from '@/ui/basics'
import { useAct, Wrong } from '@/ui/act'
import { DataTable, type Column } from '@/ui/DataTable'
import { Dialog, ConfirmDialog } from '@/ui/Dialog'
import { Once } from '@/ui/Once'
import { t } from '@/text'
import { shortNumber } from '@/charts/series'
import { took } from '../log/livelog'
import { Command } from './Command'
import { NodeLinks } from './NodeFilter'
import { nodes, pair, shared, traffic, type Node, type Pair, type Traffic } from './queries'

type Invitation = components['schemas']['invitationBody']
type Verb = 'drain' | 'undrain' | 'remove' | 'revoke'

/** The machines that share their state: how each is, and what can be done with it. */
export default function NodesPage() {
  const list = useQuery(nodes)
  const group = useQuery(pair)
  const { data: database } = useQuery(shared)
  const { data: load } = useQuery(traffic((list.data?.length ?? 0) > 1))
  const { data: who } = useQuery(me)
  const [doing, setDoing] = useState<{ verb: Verb; name: string }>()
  const admin = isAdmin(who?.role)
  const edit = canEdit(who?.role)
  const columns = useMemo(() => columnsOf(group.data ?? null, load, admin, edit, (verb, name) => setDoing({ verb, name })), [group.data, load, admin, edit])
  return (
    <>
      <PageHeader title={t.pages.nodes} lead={t.nodes.lead} actions={admin && (group.data || database) && <Invite pair={group.data ?? undefined} />} />
      {failed(list) ? (
        <Failure error={list.error} again={() => void list.refetch()} />
      ) : !list.data ? (
        <Loading />
      ) : (
        <div className="stack">
          {group.data && <PairCard it={group.data} admin={admin} />}
          <DataTable
            rows={list.data}
            columns={columns}
            id={(n) => n.name}
            searchable={(n) => ({ '': [n.name, n.version, n.state].join(' ') })}
            noun={[t.nodes.node, t.nodes.nodes]}
            empty={t.nodes.none}
          />
          {!group.data && database === false && list.data.length === 1 && (
            <Card title={t.nodes.more}>
              <p className="lead">{t.nodes.moreText}</p>
              <Command text="headgate node init --address https://192.0.2.7:9080" />
            </Card>
          )}
        </div>
      )}
      {doing && <Doing {...doing} close={() => setDoing(undefined)} />}
    </>
  )
}

/** The role of a machine in the pair. */
const roleOf = (p: Pair, n: Node) => (p.leader === n.name ? (n.self && p.role === 'waiting' ? 'waiting' : 'leader') : 'follower')

/** How many revisions of the state the follower is behind; the leader never is. */
const lagOf = (p: Pair, n: Node) => (roleOf(p, n) === 'follower' ? t.nodes.behind(p.lag ?? 0) : '')

/** What a machine serves, or why that is not known. */
const Served = ({ of }: { of?: Traffic }) =>
  !of ? null : of.problem ? (
    <span className="small" title={of.problem}>
      {t.nodes.unknown}
    </span>
  ) : (
    <>
      <span>{t.nodes.perSecond(shortNumber(of.requests_per_second))}</span>
      {!!of.errors_5xx_per_second && <span className="small block">{t.nodes.errors(shortNumber(of.errors_5xx_per_second))}</span>}
      {of.p99_ms !== undefined && <span className="small block">p99 {took(of.p99_ms)}</span>}
    </>
  )

function columnsOf(p: Pair | null, load: Map<string, Traffic> | undefined, admin: boolean, edit: boolean, go: (verb: Verb, name: string) => void): Column<Node>[] {
  const paired: Column<Node>[] = p
    ? [
        {
          id: 'role',
          title: t.nodes.role,
          width: '150px',
          cell: (n) => (
            <>
              {t.nodes.roles[roleOf(p, n)]}
              <span className="small block">{lagOf(p, n)}</span>
            </>
          ),
        },
      ]
    : []
  return [
    {
      id: 'name',
      title: t.nodes.title,
      sort: (n) => n.name,
      cell: (n) => (
        <>
          <span className="row-name clip">
            <bdi>{n.name}</bdi>
          </span>
          {n.self && <span className="small block">{t.nodes.self}</span>}
          {!n.self && <NodeLinks node={n.name} />}
          {n.problems?.map((x) => (
            <span key={x} className="small block">
              {x}
            </span>
          ))}
        </>
      ),
    },
    {
      id: 'state',
      title: t.nodes.state,
      width: '138px',
      narrow: '116px',
      sort: (n) => n.state,
      cell: (n) => (
        <>
          <StateBadge state={n.state} meaning={n.state === 'not_ready' ? 'bad' : n.state === 'stopped' ? 'calm' : undefined}>
            {t.nodes.states[n.state] ?? n.state}
          </StateBadge>
          {n.reason && <span className="small block">{n.reason}</span>}
          {n.drained_by && <span className="small block">{t.nodes.drainedBy(n.drained_by, n.drained_why ?? '')}</span>}
        </>
      ),
    },
    ...paired,
    ...(load ? [{ id: 'traffic', title: t.nodes.requests, width: '120px', phone: false, from: 1100 as const, cell: (n: Node) => <Served of={load.get(n.name)} /> }] : []),
    { id: 'revision', title: t.nodes.revision, width: '110px', phone: false, cell: (n) => (n.revision < n.latest_revision ? t.nodes.of(n.revision, n.latest_revision) : String(n.revision)) },
    { id: 'version', title: t.nodes.version, width: '190px', phone: false, from: 1280, cell: (n) => n.version },
    {
      id: 'seen',
      title: t.nodes.seen,
      width: '130px',
      phone: false,
      from: 960,
      cell: (n) => (
        <>
          {n.seen && <Ago time={n.seen} />}
          {n.clock_offset !== '0s' && <span className="small block">{t.nodes.clock(n.clock_offset)}</span>}
        </>
      ),
    },
    {
      id: 'actions',
      title: t.nodes.actions,
      width: '124px',
      narrow: '92px',
      cell: (n) => {
        const verbs: Verb[] = []
        if (edit) verbs.push(n.drained_since ? 'undrain' : 'drain')
        if (admin && !n.self && (n.state === 'stopped' || n.state === 'missing')) verbs.push('remove')
        if (admin && p?.role === 'leader' && !n.self && p.members.some((m) => m.name === n.name)) verbs.push('revoke')
        return verbs.map((verb) => (
          <Button
            key={verb}
            size="compact-sm"
            variant="subtle"
            color={verb === 'remove' || verb === 'revoke' ? 'red' : undefined}
            onClick={() => go(verb, n.name)}
            aria-label={`${t.nodes.verbs[verb]} ${n.name}`}
          >
            {t.nodes.verbs[verb]}
          </Button>
        ))
      },
    },
  ]
}

/** Asks before a machine is changed, and shows the command that does the same. */
function Doing({ verb, name, close }: { verb: Verb; name: string; close: () => void }) {
  const { act } = useAct('nodes', 'pair', 'audit')
  const at = encodeURIComponent(name)
  const requests = {
    drain: () => call('POST', `/nodes/${at}/drain`, { body: {} }),
    undrain: () => call('POST', `/nodes/${at}/undrain`, { body: {} }),
    remove: () => call('DELETE', `/nodes/${at}`, { ifMatch: '*' }),
    revoke: () => call('DELETE', `/pair/members/${at}`, { ifMatch: '*' }),
  }
  return (
    <ConfirmDialog
      title={t.nodes.sure[verb](name)}
      text={
        <>
          {t.nodes.means[verb]} <Command text={`headgate node ${verb} ${name}`} />
        </>
      }
      yes={t.nodes.verbs[verb]}
      close={close}
      go={() => act('', requests[verb], t.nodes.done)}
    />
  )
}

/** Makes a token with which a machine joins the pair or, without one, the shared database. */
function Invite({ pair: p }: { pair?: Pair }) {
  const [open, setOpen] = useState(false)
  const [name, setName] = useState('')
  const [address, setAddress] = useState(location.protocol === 'https:' ? location.origin : '')
  const [made, setMade] = useState<Invitation>()
  const { act, busy, wrong } = useAct('pair', 'audit')
  const why = !p ? '' : p.role !== 'leader' ? t.nodes.onlyLeader : p.members.length > 1 ? t.nodes.full : ''
  async function go() {
    const answer = await act('invite', () => call<Invitation>('POST', '/pair/invitations', { body: { ...(name && { name }), ...(!p && { address }) } }))
    if (!answer) return
    setOpen(false)
    setMade(answer.value)
  }
  const join = ['headgate node join --token-file token', p && '--address https://192.0.2.8:9080', name && `--name ${name}`].filter(Boolean).join(' ')
  return (
    <>
      <Button disabled={Boolean(why)} title={why || undefined} onClick={() => setOpen(true)}>
        {t.nodes.invite}
      </Button>
      {open && (
        <Dialog title={t.nodes.invite} close={() => setOpen(false)}>
          <p className="lead">{p ? t.nodes.inviteText : t.nodes.inviteDatabase}</p>
          <TextInput label={t.nodes.inviteName} value={name} onChange={(e) => setName(e.target.value)} error={wrong.name} data-autofocus />
          {!p && <TextInput label={t.nodes.inviteAddress} value={address} onChange={(e) => setAddress(e.target.value)} error={wrong.address} placeholder="https://192.0.2.7:9080" />}
          <Wrong wrong={wrong} fields={['name', 'address']} />
          <div className="ask">
            <Button loading={busy === 'invite'} onClick={() => void go()}>
              {t.nodes.invite}
            </Button>
          </div>
        </Dialog>
      )}
      {made && (
        <Once title={t.nodes.token} value={made.token} close={() => setMade(undefined)}>
          <p className="lead">{t.nodes.tokenText}</p>
          <Command text={join} />
          {!p && <p className="lead">{t.nodes.tokenDatabase}</p>}
        </Once>
      )}
    </>
  )
}

/** The pair as this machine knows it, and promotion where it is possible. */
function PairCard({ it: p, admin }: { it: Pair; admin: boolean }) {
  const [asking, setAsking] = useState(false)
  const { act } = useAct('nodes', 'pair', 'audit')
  const alone = !p.connected
  const promote = admin && p.role !== 'leader' && (
    <Button variant="default" onClick={() => setAsking(true)}>
      {alone ? t.nodes.promoteAlone : t.nodes.promote}
    </Button>
  )
  return (
    <Card title={t.nodes.pair} actions={promote}>
      <p className="lead">
        {t.nodes.roleHere[p.role]} {p.peer && (p.connected ? t.nodes.connected(p.peer) : t.nodes.away(p.peer))} {p.last_contact && p.peer && <Ago time={p.last_contact} />}
      </p>
      {p.sync && <p className="small lead">{t.nodes.sync}</p>}
      {p.problem && (
        <p className="lead" role="alert">
          {p.problem}
        </p>
      )}
      {p.diverged && (
        <p className="lead" role="alert">
          {t.nodes.diverged(p.diverged.changes.length, p.diverged.folder)}
        </p>
      )}
      {asking && (
        <ConfirmDialog
          title={t.nodes.surePromote}
          text={
            <>
              {alone ? t.nodes.promoteAloneText : t.nodes.promoteText} <Command text={alone ? 'headgate promote --alone' : 'headgate promote'} />
            </>
          }
          yes={alone ? t.nodes.promoteAlone : t.nodes.promote}
          close={() => setAsking(false)}
          go={() => act('', () => call('POST', '/pair/promote', { body: { alone } }), t.nodes.promoted)}
        />
      )}
    </Card>
  )
}
