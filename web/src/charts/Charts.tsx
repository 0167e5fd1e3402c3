import { SegmentedControl } from '@mantine/core'
import { keepPreviousData, useQuery } from '@tanstack/react-query'
import { useMemo } from 'react'
import { Failure, Loading } from '@/ui/basics'
import { useView } from '@/ui/view'
import { t } from '@/text'
import { Chart } from './Chart'
import { curves, series, type Of } from './series'

/**
 * The charts of the whole, a proxy or a server. It is loaded when it is drawn:
 * `const Charts = lazy(() => import('@/charts/Charts'))`.
 */
export default function Charts({ of, stream }: { of: Of; stream?: boolean }) {
  const [period, setPeriod] = useView('period', '1h')
  const found = useQuery({ ...series(of, period), placeholderData: keepPreviousData })
  const c = useMemo(() => found.data && curves(found.data, t.charts), [found.data])
  if (found.error) return <Failure error={found.error} again={() => void found.refetch()} />
  if (!c) return <Loading />
  return (
    <div className="stack">
      <SegmentedControl value={period} onChange={setPeriod} data={Object.entries(t.charts.periods).map(([value, label]) => ({ value, label }))} aria-label={t.charts.period} style={{ alignSelf: 'flex-start' }} />
      <div className="charts">
        <Chart title={t.charts.requests} unit={t.charts.perSecond} times={c.times} curves={c.requests} />
        {!stream && <Chart title={t.charts.errors} unit={t.charts.perSecond} times={c.times} curves={c.errors} />}
        <Chart title={t.charts.duration} unit={t.charts.ms} times={c.times} curves={c.duration} />
        <Chart title={t.charts.bytes} unit={t.charts.perSecond} times={c.times} curves={c.bytes} />
        {!stream && <Chart title={t.charts.cache} unit={t.charts.perSecond} times={c.times} curves={c.cache} />}
      </div>
    </div>
  )
}
