import { Alert, Button } from '@mantine/core'
import { useState } from 'react'
import type { Change } from '@/api/queries'
import type { components } from '@/api/schema'
import { Tag } from '@/ui/basics'
import { t } from '@/text'
import { TrialResult } from './BanTrial'
import type { Edit } from './basket'
import { ChangeCard } from './ChangeCard'
import { hostsOf, visitorsOf, warningsOf, whatIfCounts } from './consequences'

type Decision = components['schemas']['After']

/** How many objects and hosts are shown before somebody asks for the rest. */
const first = 30

/**
 * The plan of a change, as every review shows it: what opens something, what may not be
 * meant, each object with its fields, the hosts, and what would become of recent requests.
 */
export function PlanView({ change, edits = [] }: { change: Change; edits?: Edit[] }) {
  const [all, setAll] = useState(false)
  const changes = change.changes ?? []
  const shown = all ? changes : changes.slice(0, first)
  const hosts = hostsOf(change, edits)
  const impact = change.plan?.impact
  const { danger, warnings } = warningsOf(change)
  const visitors = visitorsOf(change)
  const facts = [
    impact?.need_password && t.plan.needPassword(impact.need_password),
    impact?.need_no_password && t.plan.needNoPassword(impact.need_no_password),
    impact?.connections && t.plan.drains(impact.connections),
  ].filter(Boolean)
  return (
    <>
      {danger.length > 0 && <Sentences list={danger} color="red" title={t.plan.danger} />}
      {shown.map((c) => (
        <ChangeCard key={`${c.kind} ${c.name}`} change={c} edit={edits.find((e) => e.kind === c.kind && e.name === c.name)} />
      ))}
      {changes.length > shown.length && (
        <Button variant="default" onClick={() => setAll(true)}>
          {t.plan.moreChanges(changes.length - shown.length)}
        </Button>
      )}
      {visitors.length > 0 && <Sentences list={visitors.map((text) => ({ text }))} color="teal" title={t.plan.visitors} />}
      {warnings.length > 0 && <Sentences list={warnings} color="yellow" title={t.plan.warnings} />}
      {hosts.names.length > 0 && (
        <div>
          <strong>{t.edit.hosts}</strong>
          <div className="tags" style={{ marginTop: 6 }}>
            {hosts.names.map((h) => (
              <Tag key={h}>
                <bdi>{h}</bdi>
              </Tag>
            ))}
            {hosts.more > 0 && <span className="small">{t.plan.moreHosts(hosts.more)}</span>}
          </div>
        </div>
      )}
      {facts.map((f) => (
        <p key={String(f)} style={{ margin: 0 }}>
          {f}
        </p>
      ))}
      <WhatIf it={change.what_if} />
    </>
  )
}

const Sentences = ({ list, color, title }: { list: { text: string; remedy?: string }[]; color: string; title: string }) => (
  <Alert color={color} title={title}>
    <ul className="plain-list">
      {list.map((s) => (
        <li key={s.text}>
          {s.text}
          {s.remedy ? `; ${s.remedy}` : ''}
        </li>
      ))}
    </ul>
  </Alert>
)

/** What would become of recent requests, with an example of each kind of difference. */
function WhatIf({ it }: { it: Change['what_if'] }) {
  if (!it?.requests) return null
  const counts = whatIfCounts(it)
  const trials = it.bans?.filter((b) => b.changed && b.requests) ?? []
  return (
    <section className="change">
      <div className="change-head">{t.plan.whatIf}</div>
      {trials.map((b) => (
        <div key={b.rule} className="change-text">
          <strong>{t.bans.trialIn(b.rule ?? '')}</strong>
          <TrialResult trial={b} />
        </div>
      ))}
      <div className="change-text">
        {!it.changed ? (
          t.plan.none(it.requests)
        ) : (
          <>
            {t.plan.changed(it.requests, it.changed)} <strong>{counts.map(([name, n]) => t.plan.counts[name]!(n)).join(', ')}</strong>.
            {!!it.password && <span className="small block">{t.plan.passwordHelp}</span>}
          </>
        )}
        {!!it.left && <span className="small block">{t.plan.left(it.left)}</span>}
      </div>
      {!!it.examples?.length && (
        <ul className="change-fields">
          {it.examples.map((e, i) => (
            <li key={i}>
              <code>
                {e.method} {e.url}
              </code>{' '}
              <span className="small">{t.plan.times(e.count ?? 1)}</span>
              <span className="before">
                <span className="small">{t.plan.now}</span> {decided(e.before)}
              </span>
              <span className="after">
                <span className="small">{t.plan.then}</span> {decided(e.after)}
              </span>
            </li>
          ))}
        </ul>
      )}
    </section>
  )
}

/** Where a request goes, in a few words. */
function decided(d?: Decision): string {
  if (!d) return ''
  const end = d.servers?.length
    ? [d.servers[0], d.servers.length > 1 && t.proxies.more(d.servers.length - 1)].filter(Boolean).join(' ')
    : d.status
      ? [t.plan.status(d.status, d.reason || d.by || ''), d.location && t.plan.to(d.location)].filter(Boolean).join(' ')
      : t.plan.noPort
  return [d.proxy && `${d.proxy} ${d.route ?? ''}`.trim(), end].filter(Boolean).join(' → ')
}
