import { call } from '@/api/client'
import { configTag } from '@/edit/basket'
import type { Change } from '@/api/queries'
import { PlanDrawer } from '@/edit/PlanDrawer'
import { t } from '@/text'

/** The plan of going back to a revision; nothing happens before it is applied. */
export function RollBack({ revision, close }: { revision: number; close: () => void }) {
  const path = `/revisions/${revision}/rollback`
  return (
    <PlanDrawer
      id={`rollback ${revision}`}
      title={t.history.rollBackTitle(revision)}
      lead={t.history.rollBackLead}
      nothing={t.history.rollBackNothing}
      close={close}
      plan={async () => {
        const etag = await configTag()
        return { etag, change: (await call<Change>('POST', path, { body: {}, ifMatch: etag, query: { dry_run: true } })).value }
      }}
      apply={async (etag, options) => (await call<Change>('POST', path, { body: {}, ifMatch: etag, query: { why: options.why, confirm_within: options.within } })).value}
      done={(c) => t.history.done(c.revision ?? '')}
    />
  )
}
