import { Alert, Progress } from '@mantine/core'
import { Link } from '@tanstack/react-router'
import { useMemo, useState } from 'react'
import { DataTable, type Column } from '@/ui/DataTable'
import { Card, span, StateBadge } from '@/ui/basics'
import { useView } from '@/ui/view'
import { Panel } from '@/ui/Dialog'
import { t } from '@/text'
import { count, percent } from '@/text/many'
import { kindsOf, meaningOfPercent, meaningOfWeight, urlOf, worstOf, type Comparison, type Difference, type Report, type Result } from './comparison'

const words = t.compare
const side = (s: { http?: string; https?: string }) => [s.http, s.https && `https://${s.https}`].filter(Boolean).join(' ')
const tones = { good: 'teal', warn: 'yellow.7', bad: 'red', calm: 'gray', info: 'tide' } as const

/** What was found: the whole, each proxy, the kinds, each request. */
export function Compared({ it: c, report: r }: { it: Comparison; report: Report }) {
  const kinds = useMemo(() => kindsOf(r.results), [r])
  const [q, filter] = useView('q')
  return (
    <>
      {c.state === 'stopped' && <Alert color="yellow">{words.stopped}</Alert>}
      <section className="card">
        <div className="card-body score">
          <span className="score-value">{percent(r.percent / 100)}</span>
          <div style={{ flex: 1, minWidth: 0 }}>
            <strong>{words.alike}</strong>
            <span className="small block">
              {words.ready(r.ready, r.requests)}, {words.took(span(r.took_s))}
            </span>
            <Progress mt={8} value={r.percent} color={tones[meaningOfPercent(r.percent)]} aria-label={words.alike} />
            <span className="small block" style={{ marginTop: 8 }}>
              {words.sides(side(r.old), side(r.new))}
            </span>
          </div>
        </div>
      </section>
      {kinds.length > 0 && (
        <Card title={words.kinds}>
          <p className="small lead">{words.kindsLead}</p>
          <div className="tags">
            {kinds.map((k) => (
              <button
                type="button"
                key={k.kind}
                className="badge kind"
                data-meaning={meaningOfWeight[k.weight]}
                aria-pressed={q === `kind:${k.kind}`}
                title={words.weightHelp[k.weight]}
                onClick={() => filter(q === `kind:${k.kind}` ? '' : `kind:${k.kind}`)}
              >
                <span aria-hidden>{k.weight === 'breaks' ? '■' : k.weight === 'differs' ? '▲' : '○'}</span>
                <span>
                  {words.kind[k.kind] ?? k.kind} · {words.weight[k.weight]} · {count(k.requests)}
                </span>
              </button>
            ))}
          </div>
        </Card>
      )}
      <Card title={words.proxies}>
        <p className="small lead">{words.proxiesLead}</p>
        {r.proxies.map((p) => (
          <details key={p.proxy} className="ready" open={r.proxies.length === 1 || undefined}>
            <summary>
              <StateBadge state="percent" meaning={meaningOfPercent(p.percent)}>
                {words.readyWord(p.percent)}
              </StateBadge>{' '}
              <bdi>{p.proxy || words.none}</bdi> <span className="small">{words.ready(p.ready, p.requests)}</span>
            </summary>
            {p.reasons.length === 0 ? (
              <p className="small lead">{words.all}</p>
            ) : (
              <ul className="rows">
                {p.reasons.map((x, i) => (
                  <li key={i}>
                    <StateBadge state={x.weight} meaning={meaningOfWeight[x.weight]}>
                      {words.weight[x.weight]}
                    </StateBadge>
                    <span style={{ minWidth: 0 }}>
                      <strong>{words.kind[x.kind] ?? x.kind}</strong> {x.text}
                      <span className="small block">{words.such(x.requests, x.example)}</span>
                    </span>
                  </li>
                ))}
              </ul>
            )}
            {p.proxy && (
              <p className="small lead">
                <Link to="/proxies/$name" params={{ name: p.proxy }}>
                  {t.pages.proxy} {p.proxy}
                </Link>
              </p>
            )}
          </details>
        ))}
      </Card>
      {r.notes.length > 0 && (
        <Card title={words.notes}>
          <ul className="plain-list">
            {r.notes.map((n) => (
              <li key={n}>{n}</li>
            ))}
          </ul>
        </Card>
      )}
      {r.results.length > 0 && <Requests results={r.results} />}
    </>
  )
}

const searchable = (r: Result) => ({
  '': [urlOf(r.request), r.request.proxy, ...r.differences.map((d) => d.text)].join(' '),
  kind: r.differences.map((d) => d.kind),
  weight: r.differences.map((d) => d.weight),
  proxy: r.request.proxy ?? '',
})
const status = (a: Result['old']) => a.status || (a.error ? words.noAnswer : '–')

function Requests({ results }: { results: Result[] }) {
  const [open, setOpen] = useState<Result>()
  const columns = useMemo<Column<Result>[]>(
    () => [
      {
        id: 'request',
        title: words.request,
        cell: (r) => (
          <>
            <button type="button" className="row-button" onClick={() => setOpen(r)} title={urlOf(r.request)}>
              <span className="mono">{r.request.method}</span> {urlOf(r.request)}
            </button>
            <span className="small clip">{r.differences.map((d) => d.text).join('; ')}</span>
          </>
        ),
      },
      { id: 'answers', title: words.answers, width: '110px', phone: false, cell: (r) => `${status(r.old)}, ${status(r.new)}` },
      {
        id: 'weight',
        title: words.differs,
        width: '120px',
        sort: (r) => ({ breaks: 0, differs: 1, note: 2 })[worstOf(r.differences)],
        cell: (r) => {
          const w = worstOf(r.differences)
          return (
            <StateBadge state={w} meaning={meaningOfWeight[w]}>
              {words.weight[w]}
            </StateBadge>
          )
        },
      },
    ],
    [],
  )
  return (
    <>
      <h2 style={{ margin: 0 }}>{words.requests}</h2>
      <DataTable rows={results} columns={columns} id={(r) => `${r.request.method} ${urlOf(r.request)}`} searchable={searchable} noun={[words.noun, words.nouns]} open={setOpen} />
      <Panel opened={!!open} close={() => setOpen(undefined)} width={640} title={open && `${open.request.method} ${urlOf(open.request)}`}>
        {open && <One it={open} />}
      </Panel>
    </>
  )
}

/** One request with what both answered. */
function One({ it: r }: { it: Result }) {
  return (
    <div className="stack">
      <p className="lead">
        {words.oldSide} {r.old.status || r.old.error}, {words.newSide.toLowerCase()} {r.new.status || r.new.error}.{' '}
        <Link to="/explain" search={{ url: urlOf(r.request), method: r.request.method }}>
          {words.explain}
        </Link>
      </p>
      {r.differences.map((d: Difference, i) => (
        <section key={i} className="change">
          <div className="change-head">
            <StateBadge state={d.weight} meaning={meaningOfWeight[d.weight]}>
              {words.weight[d.weight]}
            </StateBadge>
            {words.kind[d.kind] ?? d.kind} {d.name && <code>{d.name}</code>}
          </div>
          <ul className="change-fields">
            <li>
              {d.text}
              <span className="before">
                <span className="small">{words.oldSide}</span> {d.old || words.nothing}
              </span>
              <span className="after">
                <span className="small">{words.newSide}</span> {d.new || words.nothing}
              </span>
            </li>
          </ul>
        </section>
      ))}
    </div>
  )
}
