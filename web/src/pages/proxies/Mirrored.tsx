import { useQuery } from '@tanstack/react-query'
import { call } from '@/api/client'
import { failed } from '@/api/problem'
import type { components } from '@/api/schema'
import { Card, Failure, KeyValues, Loading } from '@/ui/basics'
import { t } from '@/text'
import { count, percent } from '@/text/many'
import { took } from '../log/livelog'
import { bytes } from '../cache/bytes'

type Report = components['schemas']['MirrorReport']
type Difference = components['schemas']['ResponseDifference']
type Response = components['schemas']['ComparedResponse']
const words = t.mirrored

/** How the responses of the mirrors of a proxy differ from those of its servers. */
export default function Mirrored({ proxy }: { proxy: string }) {
  const reports = useQuery({
    queryKey: ['status', 'mirrors', proxy],
    queryFn: ({ signal }) => call<{ items?: Report[] }>('GET', '/mirrors', { query: { proxy }, signal }).then((x) => x.value.items ?? []),
    refetchInterval: 10_000,
  })
  if (failed(reports)) return <Failure error={reports.error} again={() => void reports.refetch()} />
  if (!reports.data) return <Loading />
  return reports.data.map((r) => <One key={r.route} report={r} />)
}

function One({ report: r }: { report: Report }) {
  const part = (n: number) => `${count(n)}${r.compared ? ` (${percent(n / r.compared)})` : ''}`
  const rows: [string, string, unknown][] = [
    [words.same, part(r.same), true],
    ...(['status', 'body', 'header'] as const).map((kind): [string, string, unknown] => [words.kinds[kind]!, part(r[kind]), r[kind]]),
    [words.incomplete, part(r.incomplete), r.incomplete],
    [words.skipped, count(r.skipped), r.skipped],
    [words.headers, (r.headers ?? []).map((h) => `${h.name} (${count(h.requests)})`).join(', '), r.headers?.length],
  ]
  return (
    <Card
      title={
        <>
          {words.title} <code>{r.route}</code>
        </>
      }
    >
      {!r.since ? (
        <p className="small lead">{words.none}</p>
      ) : (
        <div className="fields">
          <KeyValues rows={rows.filter(([, , shown]) => shown).map(([key, value]) => [key, value])} />
          <Sides report={r} since={r.since} />
          {(r.samples ?? []).length > 0 && <Samples samples={r.samples!} />}
        </div>
      )}
    </Card>
  )
}

/** The times of both sides. */
function Sides({ report: r, since }: { report: Report; since: string }) {
  return (
    <div className="chart-table">
      <table>
        <caption className="small" style={{ captionSide: 'bottom', textAlign: 'left' }}>
          {words.counted(new Date(since).toLocaleString())}
        </caption>
        <Heads titles={[words.side, 'p50', 'p95', words.failed]} />
        <tbody>
          {(['servers', 'mirror'] as const).map((side) => (
            <tr key={side}>
              <th scope="row">{words[side]}</th>
              <td>{took(r[side].p50_ms)}</td>
              <td>{took(r[side].p95_ms)}</td>
              <td>{count(r[side].failed)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  )
}

/** The latest differences. */
function Samples({ samples }: { samples: Difference[] }) {
  return (
    <div className="chart-table">
      <table>
        <Heads titles={[words.request, words.times, words.difference, words.servers, words.mirror]} />
        <tbody>
          {samples.map((s) => (
            <tr key={`${s.kind} ${s.method} ${s.path}`}>
              <th scope="row">
                <bdi>
                  {s.method} {s.path}
                </bdi>
              </th>
              <td>{count(s.requests)}</td>
              <td>{[words.kinds[s.kind], s.field].filter(Boolean).join(': ')}</td>
              <td>{about(s.servers, s.field)}</td>
              <td>{about(s.mirror, s.field)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  )
}

const Heads = ({ titles }: { titles: string[] }) => (
  <thead>
    <tr>
      {titles.map((title) => (
        <th key={title} scope="col">
          {title}
        </th>
      ))}
    </tr>
  </thead>
)

const about = (r: Response, field?: string) => (r.status ? [r.status, bytes(r.bytes), took(r.ms), field && (r.value ?? '–')].filter(Boolean).join(', ') : words.failed)
