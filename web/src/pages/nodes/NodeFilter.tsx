import { Select } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { Tag } from '@/ui/basics'
import { useView } from '@/ui/view'
import { t } from '@/text'
import { nodes } from './queries'

/** The machine that a page shows, from its address; '' is the one that answers. */
export function useNode(): [string, (name: string) => void] {
  const { data } = useQuery({ ...nodes, refetchInterval: 30_000 })
  const [name, set] = useView('node')
  return [data?.some((n) => n.self && n.name === name) ? '' : name, set]
}

/** Selects the machine that a page shows. There is nothing to select where there is one. */
export function NodeFilter() {
  const { data } = useQuery({ ...nodes, refetchInterval: 30_000 })
  const [node, setNode] = useNode()
  const all = data ?? []
  if (all.length < 2 && !node) return null
  const options = all.map((n) =>
    n.self ? { value: '', label: t.nodes.here(n.name) } : { value: n.name, label: n.state === 'ready' ? n.name : t.nodes.inState(n.name, t.nodes.states[n.state] ?? n.state) },
  )
  // A machine in the address that is not known is named, too.
  if (!options.some((o) => o.value === node)) options.push({ value: node, label: node })
  return <Select aria-label={t.nodes.title} value={node} onChange={(v) => setNode(v ?? '')} data={options} allowDeselect={false} searchable={all.length > 10} w={200} />
}

/** Names the machine that a page shows, if it is not the one that answers. */
export const NodeTag = ({ node }: { node: string }) =>
  node ? (
    <Tag>
      <bdi>{node}</bdi>
    </Tag>
  ) : null

/** Links to the pages that show another machine. */
export const NodeLinks = ({ node }: { node: string }) => (
  <span className="small tags">
    {(['overview', 'charts', 'log'] as const).map((page) => (
      <Link key={page} to={{ overview: '/', charts: '/charts', log: '/log' }[page] as '/'} search={{ node } as never} aria-label={`${t.pages[page]}: ${node}`}>
        {t.pages[page]}
      </Link>
    ))}
  </span>
)
