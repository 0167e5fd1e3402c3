import { SegmentedControl, Select } from '@mantine/core'
import { keepPreviousData, useQuery } from '@tanstack/react-query'
import { useMemo } from 'react'
import { failed } from '@/api/problem'
import { revisions } from '@/api/queries'
import { Failure, Loading } from '@/ui/basics'
import { useView } from '@/ui/view'
import { t } from '@/text'
import { Chart } from './Chart'
import { curves, series, shown, type Of } from './series'

/**
 * The charts of the whole, a proxy or a server; with `servers` one of them can be chosen,
 * and `marked` shows when the configuration was changed last. It is loaded when it is drawn:
 * `const Charts = lazy(() => import('@/charts/Charts'))`.
 */
export default function Charts({ of: given, stream, marked, servers = [] }: { of: Of; stream?: boolean; marked?: boolean; servers?: string[] }) {
  const [period, setPeriod] = useView('period', '1h')
  const [server, setServer] = useView('server')
  const of = servers.includes(server) ? { ...given, server } : given
  const found = useQuery({ ...series(of, period), placeholderData: keepPreviousData })
  const { data: newest } = useQuery({ ...revisions(1), enabled: !!marked })
  const change = newest?.[0]
  const mark = useMemo(() => (change?.when ? { at: Date.parse(change.when) / 1000, text: t.charts.lastChange(String(change.number)) } : undefined), [change?.when, change?.number])
  const c = useMemo(() => found.data && curves(found.data, t.charts), [found.data])
  if (failed(found)) return <Failure error={found.error} again={() => void found.refetch()} />
  if (!c) return <Loading />
  return (
    <div className="stack">
      <div className="ask">
        <SegmentedControl value={period} onChange={setPeriod} data={Object.entries(t.charts.periods).map(([value, label]) => ({ value, label }))} aria-label={t.charts.period} />
        {servers.length > 1 && (
          <Select
            aria-label={t.charts.server}
            value={servers.includes(server) ? server : ''}
            onChange={(v) => setServer(v ?? '')}
            data={[{ value: '', label: t.charts.allServers }, ...servers.map((s) => ({ value: s, label: s }))]}
            allowDeselect={false}
            w={260}
          />
        )}
      </div>
      {!shown(c.requests) && <p className="small lead">{t.charts.none}</p>}
      <div className="charts" hidden={!shown(c.requests)}>
        <Chart title={!stream ? t.charts.requests : of.udp_proxy ? t.charts.sessions : t.charts.connections} unit={t.charts.perSecond} times={c.times} curves={c.requests} mark={mark} />
        {!stream && shown(c.errors) && <Chart title={t.charts.errors} unit={t.charts.perSecond} times={c.times} curves={c.errors} mark={mark} />}
        {shown(c.duration) && <Chart title={t.charts.duration} unit={t.charts.ms} times={c.times} curves={c.duration} mark={mark} />}
        {shown(c.bytes) && <Chart title={t.charts.bytes} unit={t.charts.perSecond} times={c.times} curves={c.bytes} mark={mark} />}
        {!stream && shown(c.cache) && <Chart title={t.charts.cache} unit={t.charts.perSecond} times={c.times} curves={c.cache} mark={mark} />}
      </div>
    </div>
  )
}
