import { Alert, Button } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { useState } from 'react'
import { call } from '@/api/client'
import { failed } from '@/api/problem'
import { object, objects, type AnyObject } from '@/api/queries'
import { ObjectEditor } from '@/edit/ObjectEditor'
import { Ago, Card, Detail, Failure, KeyValues, Loading, StateBadge } from '@/ui/basics'
import { useAct } from '@/ui/act'
import { t } from '@/text'
import { EditAllow } from './EditAllow'
import { OpenGate } from './OpenGate'
import { PersonDialogs } from './People'
import { Protect } from './Protect'
import { access, openings, type Access, type Gate, type Opening, type Person } from './queries'

const words = t.access

/** The applications with a gate, and how people sign in. */
export function Applications({ may }: { may: boolean }) {
  const state = useQuery(access)
  const open = useQuery(openings)
  const [adding, setAdding] = useState(false)
  const [person, setPerson] = useState<Person | 'new'>()
  if (failed(state)) return <Failure error={state.error} again={() => void state.refetch()} />
  if (!state.data) return <Loading />
  const gates = state.data.gates
  return (
    <Detail aside={<SignIn state={state.data} may={may} />}>
      {gates.length > 0 && (
        <Card
          title={words.gates}
          actions={
            may && (
              <Button size="compact-sm" variant="default" onClick={() => setAdding(true)}>
                {words.protect}
              </Button>
            )
          }
        >
          {may && state.data.local && !state.data.people && (
            <Alert color="teal" className="lead">
              <div className="ask">
                <span>{words.noPeopleText}</span>
                <Button onClick={() => setPerson('new')}>{words.addPerson}</Button>
              </div>
            </Alert>
          )}
          <ul className="rows">
            {gates.map((g) => (
              <GateRow key={g.proxy} gate={g} may={may} open={(open.data ?? []).filter((o) => g.hosts.some((h) => covers(h, o.host!)))} />
            ))}
          </ul>
        </Card>
      )}
      {gates.length === 0 && !may && (
        <Card title={words.gates}>
          <p className="small lead">{words.noGates}</p>
        </Card>
      )}
      {may && (gates.length === 0 || adding) && <Protect state={state.data} done={() => setAdding(false)} />}
      <PersonDialogs edited={person} set={setPerson} />
    </Detail>
  )
}

const covers = (host: string, name: string) => host.toLowerCase() === name || (host.startsWith('*.') && name.endsWith(host.slice(1)))

/** One application: who may enter, what needs no sign-in, and until when it is open. */
function GateRow({ gate: g, open, may }: { gate: Gate; open: Opening[]; may: boolean }) {
  const { act, busy } = useAct('access', 'audit')
  const [editing, setEditing] = useState(false)
  const [opening, setOpening] = useState(false)
  return (
    <li className="entry">
      <span className="entry-name">
        <Link to="/proxies/$name" params={{ name: g.proxy }} className="row-name">
          {g.proxy}
        </Link>{' '}
        <span className="small">{g.hosts.join(', ')}</span>
        <span className="small block">
          {words.allow}: <bdi>{g.allow.map((a) => a.replace(/^person:/, '')).join(', ')}</bdi>
        </span>
        {g.bypasses.length > 0 && <span className="small block">{words.bypasses(g.bypasses.join(', '))}</span>}
        {open.map((o) => (
          <span key={o.host} className="small block">
            <StateBadge state="opened" meaning="bad">
              {words.opened}
            </StateBadge>{' '}
            {o.host}: {words.openUntil} <Ago time={o.until!} />, {words.openBy(o.who ?? '')}
            {o.why && `: ${o.why}`}
          </span>
        ))}
      </span>
      {may && (
        <span className="entry-actions">
          <Button size="compact-sm" variant="default" aria-label={words.editAllowOf(g.proxy)} onClick={() => setEditing(true)}>
            {words.editAllow}
          </Button>
          <Button size="compact-sm" variant="subtle" aria-label={words.openGateOf(g.proxy)} onClick={() => setOpening(true)}>
            {words.openGate}
          </Button>
          {open.map((o) => (
            <Button
              key={o.host}
              size="compact-sm"
              variant="default"
              loading={busy === o.host}
              aria-label={words.closeOf(o.host!)}
              onClick={() => void act(o.host!, () => call('DELETE', `/gate/openings/${encodeURIComponent(o.host!)}`), words.closed(o.host!))}
            >
              {words.close}
            </Button>
          ))}
        </span>
      )}
      {editing && <EditAllow proxy={g.proxy} close={() => setEditing(false)} />}
      {opening && <OpenGate hosts={g.hosts} close={() => setOpening(false)} />}
    </li>
  )
}

/** The sign-in page, the ways to sign in, and what providers have to know. */
function SignIn({ state: s, may }: { state: Access; may: boolean }) {
  const settings = useQuery(object<AnyObject>('sign_in', '')).data
  const proxies = useQuery(objects('proxies')).data
  const [editing, setEditing] = useState(false)
  if (!s.configured) return null
  const providers = [...new Set(s.redirects.map((r) => r.provider))]
  const page = proxies?.find((p) => ((p.routes as { sign_in?: unknown }[] | undefined) ?? []).some((r) => r.sign_in))
  return (
    <>
      <Card
        title={words.signIn}
        actions={
          may &&
          settings && (
            <Button size="compact-sm" variant="default" onClick={() => setEditing(true)} aria-label={words.editSignIn}>
              {words.editAllow}
            </Button>
          )
        }
      >
        <KeyValues
          rows={[
            [words.ways, [s.local && words.localWay, ...providers].filter(Boolean).join(', ')],
            [
              words.signInPage,
              s.page ? (
                <>
                  <a href={s.page} target="_blank" rel="noopener">
                    {s.page}
                  </a>
                  {page && (
                    <span className="small block">
                      {t.log.proxy}{' '}
                      <Link to="/proxies/$name" params={{ name: page.name! }}>
                        {page.name}
                      </Link>
                    </span>
                  )}
                </>
              ) : (
                words.noPage
              ),
            ],
          ]}
        />
        {s.lost_passkeys > 0 && <p className="small lead">{words.lostPasskeys(s.lost_passkeys)}</p>}
      </Card>
      {s.redirects.length > 0 && (
        <Card title={words.redirects}>
          <p className="small lead">{words.redirectsLead}</p>
          <ul className="rows">
            {s.redirects.map((r) => (
              <li key={r.uri} className="entry">
                <span className="entry-name">
                  <strong>{r.provider}</strong>
                  {r.after_cutover && <span className="small"> {words.afterCutover}</span>}
                  <pre className="code" tabIndex={0}>
                    {r.uri}
                  </pre>
                </span>
              </li>
            ))}
          </ul>
        </Card>
      )}
      {editing && settings && <ObjectEditor kind="sign_in" name="" object={settings} title={words.signIn} onClose={() => setEditing(false)} />}
    </>
  )
}
