import { Button } from '@mantine/core'
import { Link } from '@tanstack/react-router'
import { Empty } from '@/ui/basics'
import { t } from '@/text'

/** What to do where there is no proxy yet: make one, or bring what another proxy has. */
export const FirstSteps = ({ may }: { may: boolean }) => (
  <Empty
    title={t.proxies.emptyTitle}
    action={
      may && (
        <div className="ask" style={{ justifyContent: 'center' }}>
          <Button component={Link} to="/proxies/new">
            {t.proxies.add}
          </Button>
          <Button component={Link} to="/import" variant="default">
            {t.proxies.bring}
          </Button>
        </div>
      )
    }
  >
    {t.proxies.empty}
  </Empty>
)
