import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { client, data } from '@/api/client'
import { Card, StateBadge } from '@/ui/basics'
import { When } from '@/ui/time'
import { t } from '@/text'
import { meaningOfRequest, took, type Filters, type Request } from './livelog'

/** The last requests that fit some filters. Where requests are not recorded there are none. */
export const lastRequests = (filters: Filters & { node?: string }, limit: number) => ({
  queryKey: ['log', filters, limit],
  queryFn: () => data(client.GET('/api/v1/logs/access', { params: { query: { ...filters, limit } } })).then((p) => p.items as Request[]),
  refetchInterval: 5_000,
  retry: false,
})

/** A few requests as lines: time, status, path, duration. */
export const RequestLines = ({ list }: { list: Request[] }) => (
  <ul className="rows tight request-lines">
    {list.map((r, i) => {
      const { meaning, word } = meaningOfRequest(r)
      return (
        <li key={`${r.request_id} ${r.time} ${i}`}>
          <When time={r.time!} only="clock" className="mono" />
          <StateBadge state={word} meaning={meaning}>
            {r.status || r.proto}
          </StateBadge>
          <span className="clip" title={`${r.method ?? ''} ${r.host ?? ''}${r.path ?? ''}`}>
            <bdi>{r.path}</bdi>
          </span>
          <span className="small">{took(r.duration_ms)}</span>
        </li>
      )
    })}
  </ul>
)

/** The last requests of a proxy, beside it. */
export function RecentRequests({ filters }: { filters: Filters }) {
  const { data: list, error } = useQuery(lastRequests(filters, 10))
  if (error) return null
  return (
    <Card
      title={t.proxy.recent}
      actions={
        <Link to="/log" search={filters as never}>
          {t.proxy.allRecent}
        </Link>
      }
    >
      {list?.length ? <RequestLines list={list} /> : <p className="small lead">{t.proxy.noRecent}</p>}
    </Card>
  )
}
