import { Select } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { lazy, Suspense } from 'react'
import { objects, type Proxy } from '@/api/queries'
import { Loading, PageHeader } from '@/ui/basics'
import { useView } from '@/ui/view'
import { NodeFilter, NodeTag, useNode } from '../nodes/NodeFilter'
import { t } from '@/text'

const Charts = lazy(() => import('@/charts/Charts'))

/** Charts of the whole, of one proxy, or of one of its servers. */
export default function ChartsPage() {
  const proxies = useQuery(objects<Proxy>('proxies'))
  const [proxy, setProxy] = useView('proxy')
  const [node] = useNode()
  const servers = [...new Set((proxies.data?.find((p) => p.name === proxy)?.routes ?? []).flatMap((r) => (r.servers ?? []).map((s) => s.url!)))]
  return (
    <>
      <PageHeader
        title={t.pages.charts}
        badge={<NodeTag node={node} />}
        lead={t.charts.lead}
        actions={
          <>
            <NodeFilter />
            <Select
              aria-label={t.charts.what}
              searchable
              value={proxy}
              onChange={(v) => setProxy(v ?? '')}
              data={[{ value: '', label: t.charts.whole }, ...(proxies.data ?? []).map((p) => ({ value: p.name!, label: p.name! }))]}
              allowDeselect={false}
              limit={50}
              w={220}
            />
          </>
        }
      />
      <Suspense fallback={<Loading />}>
        {/* The key keeps the numbers of one machine from being shown while those of another are read. */}
        <Charts key={node} of={{ node: node || undefined, proxy: proxy || undefined }} servers={servers} />
      </Suspense>
    </>
  )
}
