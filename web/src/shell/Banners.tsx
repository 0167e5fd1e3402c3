import { Button } from '@mantine/core'
import { link, retryNow } from '@/api/events'
import { useStore } from '@/api/store'
import { useNow } from '@/ui/basics'
import { marks } from '@/theme/states'
import { t } from '@/text'

/** Says that the connection is lost; it mends itself. */
export function LinkBanner() {
  const { state, retryAt } = useStore(link)
  if (state !== 'lost') return null
  return <Lost retryAt={retryAt ?? 0} />
}

function Lost({ retryAt }: { retryAt: number }) {
  const now = useNow(500)
  return (
    <div className="banner" data-meaning="bad" role="status">
      <span aria-hidden>{marks.bad}</span>
      <span>
        {t.link.lost} {t.link.again(Math.ceil((retryAt - now) / 1000))}
      </span>
      <Button size="compact-sm" variant="default" onClick={retryNow}>
        {t.link.now}
      </Button>
    </div>
  )
}
