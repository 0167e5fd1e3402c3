import { SegmentedControl, Select } from '@mantine/core'
import { keepPreviousData, useQuery } from '@tanstack/react-query'
import { useMemo } from 'react'
import { Failure, Loading } from '@/ui/basics'
import { useView } from '@/ui/view'
import { t } from '@/text'
import { Chart } from './Chart'
import { curves, series, type Of } from './series'

/**
 * The charts of the whole, a proxy or a server; with `servers` one of them can be chosen,
 * and `few` are those of an overview. It is loaded when it is drawn:
 * `const Charts = lazy(() => import('@/charts/Charts'))`.
 */
export default function Charts({ of: given, stream, few, servers = [] }: { of: Of; stream?: boolean; few?: boolean; servers?: string[] }) {
  const [period, setPeriod] = useView('period', '1h')
  const [server, setServer] = useView('server')
  const of = servers.includes(server) ? { ...given, server } : given
  const found = useQuery({ ...series(of, period), placeholderData: keepPreviousData })
  const c = useMemo(() => found.data && curves(found.data, t.charts), [found.data])
  if (found.error) return <Failure error={found.error} again={() => void found.refetch()} />
  if (!c) return <Loading />
  return (
    <div className="stack">
      <div className="ask">
        <SegmentedControl value={period} onChange={setPeriod} data={Object.entries(t.charts.periods).map(([value, label]) => ({ value, label }))} aria-label={t.charts.period} />
        {servers.length > 1 && <Select aria-label={t.charts.server} value={servers.includes(server) ? server : ''} onChange={(v) => setServer(v ?? '')} data={[{ value: '', label: t.charts.allServers }, ...servers.map((s) => ({ value: s, label: s }))]} allowDeselect={false} w={260} />}
      </div>
      <div className="charts">
        <Chart title={!stream ? t.charts.requests : of.udp_proxy ? t.charts.sessions : t.charts.connections} unit={t.charts.perSecond} times={c.times} curves={few ? [...c.requests, ...c.errors] : c.requests} />
        {!stream && !few && <Chart title={t.charts.errors} unit={t.charts.perSecond} times={c.times} curves={c.errors} />}
        <Chart title={t.charts.duration} unit={t.charts.ms} times={c.times} curves={c.duration} />
        {!few && <Chart title={t.charts.bytes} unit={t.charts.perSecond} times={c.times} curves={c.bytes} />}
        {!stream && !few && <Chart title={t.charts.cache} unit={t.charts.perSecond} times={c.times} curves={c.cache} />}
      </div>
    </div>
  )
}
