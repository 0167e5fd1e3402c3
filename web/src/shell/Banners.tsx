import { Button } from '@mantine/core'
import { link, retryNow } from '@/api/events'
import { outage } from '@/api/outage'
import { useStore } from '@/api/store'
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
