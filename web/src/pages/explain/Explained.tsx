import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { Fragment, type ReactNode } from 'react'
import { isAdmin, me } from '@/api/queries'
import { label } from '@/edit/words'
import { Card, Detail, KeyValues, StateBadge } from '@/ui/basics'
import type { Meaning } from '@/theme/states'
import { t } from '@/text'
import { reached, type Candidate, type Explanation } from './explanation'

/** The answer of explain: the path first, then what it is made of. */
export function Explained({ it: e }: { it: Explanation }) {
  return (
    <div className="stack" aria-live="polite">
      <Card title={t.explain.path}>
        <Path it={e} />
      </Card>
      <Detail
        aside={
          <>
            <Features it={e} />
            {e.cache && (
              <Card title={t.explain.cache}>
                <StateBadge state={e.cache.use ?? ''} meaning={e.cache.use === 'hit' ? 'good' : 'calm'}>
                  {t.explain.cacheUse[e.cache.use ?? ''] ?? e.cache.use}
                </StateBadge>
                <p className="small">{e.cache.why}</p>
              </Card>
            )}
            {e.retry && (
              <Card title={t.explain.retry}>
                <p className="small lead">{e.retry}</p>
              </Card>
            )}
          </>
        }
      >
        {!!e.notes?.length && (
          <Card title={t.explain.notes}>
            <ul className="plain-list">
              {e.notes.map((n) => (
                <li key={n}>{n}</li>
              ))}
            </ul>
          </Card>
        )}
        {!!e.servers?.length && <Servers it={e} />}
        <Routes it={e} />
      </Detail>
    </div>
  )
}

/** Client, port, host, path, filters in order, and who answers. */
function Path({ it: e }: { it: Explanation }) {
  const steps: { name: string; kind?: string; bad?: boolean; body: ReactNode }[] = [
    {
      name: t.explain.client,
      body: (
        <>
          <strong>{e.client_ip ?? '–'}</strong>
          {e.peer && e.peer !== e.client_ip && <span className="small">{t.explain.peer(e.peer)}</span>}
        </>
      ),
    },
    {
      name: t.explain.port,
      bad: !e.port,
      body: e.port ? (
        <>
          <strong>{e.port}</strong>
          <span className="small">{e.address}</span>
        </>
      ) : (
        t.explain.noPort
      ),
    },
  ]
  if (e.port && e.host)
    steps.push({
      name: t.explain.host,
      bad: !e.class && !e.proxy,
      body: (
        <>
          <strong>
            <bdi>{e.host}</bdi>
          </strong>
          <span className="small">{e.class ? (t.explain.classes[e.class] ?? e.class) : !e.proxy && t.explain.noHost}</span>
        </>
      ),
    })
  if (e.proxy)
    steps.push({
      name: t.explain.route,
      body: (
        <>
          <code>{e.route}</code>
          <span className="small">
            {t.explain.proxy}{' '}
            <Link to="/proxies/$name" params={{ name: e.proxy }}>
              <bdi>{e.proxy}</bdi>
            </Link>
          </span>
          {e.path && e.path !== e.asked && <span className="small">{t.explain.asked(e.asked)}</span>}
        </>
      ),
    })
  else if (e.class)
    steps.push({
      name: t.explain.route,
      bad: true,
      body: (
        <>
          <code>{e.path ?? e.asked}</code>
          <span className="small">{t.explain.noRoute}</span>
        </>
      ),
    })
  if (e.gate)
    steps.push({
      name: t.explain.gate,
      bad: !e.gate.in,
      body: (
        <>
          <strong>
            {e.gate.in ? t.explain.lets : t.explain.refuses} <bdi>{e.gate.as}</bdi>
          </strong>
          <span className="small">{e.gate.rule}</span>
        </>
      ),
    })
  if (e.proxy)
    steps.push({
      name: t.explain.filters,
      body: (
        <>
          {reached(e).map((f) => (
            <span key={f.name} className={f.beyond ? 'beyond' : undefined}>
              {label(f.name)}{' '}
              {f.stops && (
                <StateBadge state="stops" meaning="warn">
                  {t.explain.stops}
                </StateBadge>
              )}
            </span>
          ))}
          {!e.filters?.length && <span className="small">{t.explain.noFilters}</span>}
        </>
      ),
    })
  steps.push(
    e.answer
      ? { name: t.explain.answer, kind: 'servers', bad: e.answer.status >= 500 || e.answer.status === 0, body: <Answer it={e.answer} /> }
      : {
          name: t.explain.servers,
          kind: 'servers',
          body: (e.servers ?? []).slice(0, 6).map((s) => (
            <div key={s.url} className="server">
              <span className="clip">{s.url}</span>
              <Mark server={s} />
            </div>
          )),
        },
  )
  return (
    <div className="flow fits" role="group" aria-label={t.explain.path}>
      {steps.map((s, i) => (
        <Fragment key={s.name}>
          {i > 0 && (
            <span className="arrow" aria-hidden>
              →
            </span>
          )}
          <div className="step" data-kind={s.kind} data-bad={s.bad || undefined}>
            <span className="step-name">{s.name}</span>
            {s.body}
          </div>
        </Fragment>
      ))}
    </div>
  )
}

function Answer({ it: a }: { it: NonNullable<Explanation['answer']> }) {
  const meaning: Meaning = a.status >= 500 || a.status === 0 ? 'bad' : a.status >= 400 ? 'warn' : 'good'
  return (
    <>
      <span>
        <StateBadge state={String(a.status)} meaning={meaning}>
          {a.status ? `${a.status}${a.reason ? ' ' + a.reason : ''}` : t.explain.closed}
        </StateBadge>
      </span>
      <span className="small">{t.explain.answeredBy(label(a.by))}</span>
      {a.cause && <span className="small">{a.cause}</span>}
      {a.location && <span className="small">{t.explain.location(a.location)}</span>}
    </>
  )
}

function Mark({ server: s }: { server: Candidate }) {
  if (s.state) return <StateBadge state={s.state} />
  if (s.chosen)
    return (
      <StateBadge state="chosen" meaning="good">
        {t.explain.chosen}
      </StateBadge>
    )
  if (s.pinned)
    return (
      <StateBadge state="pinned" meaning="good">
        {t.explain.pinned}
      </StateBadge>
    )
  if (s.backup)
    return (
      <StateBadge state="backup" meaning="calm">
        {t.explain.backup}
      </StateBadge>
    )
  return null
}

function Servers({ it: e }: { it: Explanation }) {
  const { data: who } = useQuery(me)
  return (
    <Card title={t.explain.candidates}>
      {e.load_balancing && <p className="small lead">{t.explain.balance(label(e.load_balancing))}</p>}
      <div className="stack tight">
        {e.servers!.map((s) => (
          <div key={s.url}>
            <div className="server">
              <strong className="clip" title={s.url}>
                {s.url}
              </strong>
              <span className="small">{t.explain.share(s.weight, s.total)}</span>
              <Mark server={s} />
            </div>
            {s.head ? (
              <details open={e.servers!.length === 1 || s.chosen || undefined}>
                <summary>{t.explain.head}</summary>
                <pre className="code" tabIndex={0} aria-label={t.explain.headFor(s.url)}>
                  {s.head.replaceAll('\r', '').trimEnd()}
                </pre>
              </details>
            ) : null}
          </div>
        ))}
      </div>
      {who && !isAdmin(who.role) && <p className="small">{t.explain.headAdmins}</p>}
    </Card>
  )
}

function Features({ it: e }: { it: Explanation }) {
  if (!e.proxy) return null
  return (
    <Card title={t.explain.features}>
      {e.features?.length ? (
        <KeyValues
          rows={e.features.map((f) => [
            label(f.feature ?? ''),
            <span key={f.feature} title={f.place}>
              {f.policy ? `${t.explain.level.policy} ${f.policy}` : (t.explain.level[f.level ?? ''] ?? f.level)}
            </span>,
          ])}
        />
      ) : (
        <p className="small lead">{t.explain.noFeatures}</p>
      )}
      {e.origin && (
        <p className="small" title={e.origin}>
          {t.explain.origin(e.origin.split('/').pop()!)}
        </p>
      )}
    </Card>
  )
}

function Routes({ it: e }: { it: Explanation }) {
  return (
    <Card title={t.explain.routes}>
      {e.routes.length === 0 && <p className="small lead">{t.explain.noRoutes}</p>}
      <ul className="rows judged">
        {e.routes.map((r) => (
          <li key={`${r.proxy} ${r.route}`}>
            <StateBadge state={r.won ? 'won' : 'lost'} meaning={r.won ? 'good' : 'calm'}>
              {r.won ? t.explain.won : t.explain.lost}
            </StateBadge>
            <span style={{ minWidth: 0, flex: 1 }}>
              <Link to="/proxies/$name" params={{ name: r.proxy }}>
                <bdi>{r.proxy}</bdi>
              </Link>{' '}
              <code>{r.route}</code>
              <span className="small block">{r.why}</span>
            </span>
          </li>
        ))}
      </ul>
      {e.other_hosts > 0 && <p className="small">{t.explain.others(e.other_hosts)}</p>}
    </Card>
  )
}
