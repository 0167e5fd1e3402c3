import { Button } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { link, retryNow } from '@/api/events'
import { outage } from '@/api/outage'
import { useStore } from '@/api/store'
import { pair } from '@/pages/nodes/queries'
import { useNow } from '@/ui/basics'
import { marks } from '@/theme/states'
import { t } from '@/text'

/** Whether what a page shows may be old: the connection is lost, or headgate does not answer. */
export function useStale(): boolean {
  const { state } = useStore(link)
  return useStore(outage) || state === 'lost'
}

/** Says that the connection is lost; it is restored by itself. */
export function LinkBanner() {
  const { retryAt } = useStore(link)
  if (!useStale()) return null
  return <Lost retryAt={retryAt ?? 0} />
}

function Lost({ retryAt }: { retryAt: number }) {
  const now = useNow(500)
  return (
    <div className="banner thin" data-meaning="bad" role="status">
      <span aria-hidden>{marks.bad}</span>
      <span>
        {t.link.lost} {t.link.again(Math.ceil((retryAt - now) / 1000))}
      </span>
      <Button size="compact-xs" variant="default" onClick={retryNow}>
        {t.link.now}
      </Button>
    </div>
  )
}

/** Says that this machine follows another one and is read-only, with the way to the leader. */
export function FollowerBanner() {
  const { data: p } = useQuery(pair)
  if (!p || p.role === 'leader') return null
  return (
    <div className="banner" data-meaning="info" role="status">
      <span aria-hidden>{marks.info}</span>
      <span>
        {p.role === 'waiting' ? t.nodes.waiting : t.nodes.readOnly(p.leader ?? '')} {p.role === 'follower' && p.leader_address && <a href={p.leader_address}>{p.leader_address}</a>}
      </span>
    </div>
  )
}
