import { Alert, Button } from '@mantine/core'
import { notifications } from '@mantine/notifications'
import { useQueries, useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { lazy, Suspense, useMemo, useState } from 'react'
import { call } from '@/api/client'
import { objects, schema as schemaQuery } from '@/api/queries'
import { apply, configTag, plan } from '@/edit/basket'
import { PlanDrawer } from '@/edit/PlanDrawer'
import { kindWord } from '@/edit/words'
import { Card, Detail, Loading, StateBadge } from '@/ui/basics'
import { DataTable, type Column } from '@/ui/DataTable'
import { useView } from '@/ui/view'
import type { Meaning } from '@/theme/states'
import { useAct, Wrong } from '@/ui/act'
import { Panel } from '@/ui/Dialog'
import { t } from '@/text'
import { count } from '@/text/many'
import { editsOf, keysOf, parsed, withStored, type Entry, type Imported, type Verdict } from './importing'

const YamlEditor = lazy(() => import('@/edit/YamlEditor'))
const words = t.imports
const meanings: Record<Verdict, Meaning> = { same: 'good', close: 'warn', ignored: 'calm', not_possible: 'bad' }

/** How many edits the API takes in one change. */
const most = 1000

/** What a source became: the verdicts, the document, and the way to take it. */
export function Translated({ it }: { it: Imported }) {
  const [text, setText] = useState(it.document)
  // The editor has a text of its own: one that is changed beside it is a new one.
  const [version, setVersion] = useState(0)
  const replace = (text: string) => {
    setText(text)
    setVersion(version + 1)
  }
  return (
    <>
      <Verdicts it={it} />
      <Detail aside={<Take it={it} text={text} change={replace} />}>
        <Written key={version} it={it} text={text} change={setText} />
      </Detail>
      <Report entries={it.report.entries} />
    </>
  )
}

/** The counts of the verdicts, and what a person should look at first. */
function Verdicts({ it }: { it: Imported }) {
  const [q, filter] = useView('q')
  return (
    <Card title={words.result}>
      <p className="lead" role="status">
        {words.resultOf(words.sources[it.report.source]?.[0] ?? it.report.source, it.report.entries.length)}
      </p>
      <div className="tags">
        {(Object.keys(meanings) as Verdict[]).map((v) => (
          <button
            type="button"
            key={v}
            className="badge kind"
            data-meaning={meanings[v]}
            title={words.verdictHelp[v]}
            aria-pressed={q === `verdict:${v}`}
            onClick={() => filter(q === `verdict:${v}` ? '' : `verdict:${v}`)}
          >
            {count(it.report.counts[v] ?? 0)} {words.verdict[v]}
          </button>
        ))}
      </div>
      {!!it.report.check?.length && (
        <Alert color="yellow" title={words.check} mt="md">
          <ul className="plain-list">
            {it.report.check.map((c) => (
              <li key={c}>{c}</li>
            ))}
          </ul>
        </Alert>
      )}
      {it.problems.length > 0 && (
        <Alert color="red" title={words.problems} mt="md">
          <ul className="plain-list">
            {it.problems.map((p, i) => (
              <li key={i}>
                {[p.object, p.what].filter(Boolean).join(': ')}
                {p.remedy ? `; ${p.remedy}` : ''} {p.field && <code>{p.field}</code>}
              </li>
            ))}
          </ul>
        </Alert>
      )}
    </Card>
  )
}

/** The document, to be read, changed and kept. */
function Written({ it, text, change }: { it: Imported; text: string; change: (text: string) => void }) {
  const root = useQuery(schemaQuery)
  const copy = () => void navigator.clipboard.writeText(text).then(() => notifications.show({ message: words.copied }))
  function save() {
    const url = URL.createObjectURL(new Blob([text], { type: 'application/yaml' }))
    const a = document.createElement('a')
    a.href = url
    a.download = `headgate-from-${it.report.source}.yaml`
    a.click()
    setTimeout(() => URL.revokeObjectURL(url), 60_000)
  }
  return (
    <Card
      title={words.document}
      actions={
        <span className="entry-actions">
          {!!navigator.clipboard && (
            <Button size="compact-sm" variant="default" onClick={copy}>
              {words.copy}
            </Button>
          )}
          <Button size="compact-sm" variant="default" onClick={save}>
            {words.download}
          </Button>
        </span>
      }
    >
      <p className="small lead">{words.documentLead}</p>
      {root.data ? (
        <Suspense fallback={<Loading />}>
          <YamlEditor text={text} schema={root.data} root={root.data} errors={{}} label={words.yaml} onText={change} />
        </Suspense>
      ) : (
        <Loading />
      )}
    </Card>
  )
}

const mapped = ['ports', 'proxies', 'tcp_proxies', 'udp_proxies', 'certificates', 'acme', 'policies']

/** Takes the document into the configuration, by a plan. */
function Take({ it, text, change }: { it: Imported; text: string; change: (text: string) => void }) {
  const lists = useQueries({ queries: mapped.map((kind) => objects(kind)) })
  const [shown, setShown] = useState(false)
  const [done, setDone] = useState(false)
  const { act, busy, wrong } = useAct('stored', 'audit')
  const given = useMemo(() => parsed(text), [text])
  const edits = useMemo(() => (given ? editsOf(given) : []), [given])
  const keys = useMemo(() => keysOf(text, it.files), [text, it.files])
  const here = (kind: string) => lists[mapped.indexOf(kind)]?.data ?? []
  const replaced = edits.filter((e) => here(e.kind).some((o) => o.name === e.name))
  const stay = mapped.flatMap((kind) =>
    here(kind)
      .filter((o) => !edits.some((e) => e.kind === kind && e.name === o.name))
      .map((o) => `${kindWord(kind).toLowerCase()} ${o.name}`),
  )
  const firstOf = (list: string[]) => [...list.slice(0, 4), ...(list.length > 4 ? [t.proxies.more(list.length - 4)] : [])].join(', ')

  async function keep() {
    const names = await act(
      'keep',
      async () => {
        for (const k of keys) await call('POST', '/certificates/upload', { body: k })
        return keys.map((k) => k.name)
      },
      words.kept,
    )
    if (names) change(withStored(text, names))
  }

  return (
    <Card title={words.take}>
      <div className="fields">
        {!given ? (
          <p className="lead" role="alert" style={{ color: 'var(--bad)' }}>
            {words.bad}
          </p>
        ) : (
          <p className="lead">{words.takeLead(edits.length)}</p>
        )}
        {replaced.length > 0 && <p className="small lead">{words.replaces(firstOf(replaced.map((e) => `${kindWord(e.kind).toLowerCase()} ${e.name}`)))}</p>}
        <p className="small lead">{words.leaves(firstOf(stay))}</p>
        {keys.length > 0 && (
          <Alert color="teal">
            <p className="lead">{words.keys(keys.length)}</p>
            <Wrong wrong={wrong} fields={[]} />
            <Button size="compact-sm" loading={busy === 'keep'} onClick={() => void keep()}>
              {words.keep}
            </Button>
          </Alert>
        )}
        {edits.length > most && (
          <p className="lead" role="alert">
            {words.tooMany(edits.length)}
          </p>
        )}
        <Button disabled={!given || edits.length === 0 || edits.length > most} onClick={() => setShown(true)}>
          {words.plan}
        </Button>
        {done && (
          <Button component={Link} to="/compare" variant="default">
            {words.next}
          </Button>
        )}
      </div>
      {shown && (
        <PlanDrawer
          id={`import ${text.length} ${JSON.stringify(edits).length}`}
          title={words.take}
          lead={words.planLead}
          nothing={words.none}
          close={() => setShown(false)}
          plan={async () => ({ etag: await configTag(), change: await plan(edits) })}
          apply={async (etag, options) => {
            const made = await apply(edits, etag, options)
            setDone(true)
            return made
          }}
          done={() => words.done}
        />
      )}
    </Card>
  )
}

const searchable = (e: Entry) => ({ '': [e.file, e.directive, e.note].join(' '), verdict: e.verdict, file: e.file })

/** Every directive with what became of it, in the order of the source. */
function Report({ entries }: { entries: Entry[] }) {
  const [open, setOpen] = useState<Entry>()
  const rows = useMemo(() => entries.map((e, i) => ({ ...e, i })), [entries])
  const columns = useMemo<Column<Entry & { i: number }>[]>(
    () => [
      {
        id: 'directive',
        title: words.directive,
        sort: (e) => e.i,
        cell: (e) => (
          <>
            <button type="button" className="row-button mono" onClick={() => setOpen(e)} title={e.directive}>
              {e.directive}
            </button>
            <span className="small clip">{[`${e.file}:${e.line}`, e.note].filter(Boolean).join(' – ')}</span>
          </>
        ),
      },
      {
        id: 'verdict',
        title: words.became,
        width: '166px',
        sort: (e) => ['not_possible', 'close', 'ignored', 'same'].indexOf(e.verdict),
        cell: (e) => (
          <StateBadge state={e.verdict} meaning={meanings[e.verdict]}>
            {words.verdict[e.verdict]}
          </StateBadge>
        ),
      },
    ],
    [],
  )
  return (
    <>
      <h2 style={{ margin: 0 }}>{words.report}</h2>
      <DataTable rows={rows} columns={columns} id={(e) => String(e.i)} searchable={searchable} noun={[words.noun, words.nouns]} open={setOpen} />
      <Panel opened={!!open} close={() => setOpen(undefined)} width={560} title={words.directive}>
        {open && (
          <div className="stack">
            <pre className="code">{open.directive}</pre>
            <p className="lead">
              <StateBadge state={open.verdict} meaning={meanings[open.verdict]}>
                {words.verdict[open.verdict]}
              </StateBadge>{' '}
              {words.verdictHelp[open.verdict]}
            </p>
            {open.note && <p className="lead">{open.note}</p>}
            <p className="small lead mono">
              {open.file}:{open.line}
            </p>
          </div>
        )}
      </Panel>
    </>
  )
}
