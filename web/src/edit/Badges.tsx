import { useStore } from '@/api/store'
import { StateBadge } from '@/ui/basics'
import { t } from '@/text'
import type { Edit } from './basket'
import { draftOf, drafts } from './drafts'

/** What waits for an object: a change that is not applied yet, its removal, a draft. */
export function Pending({ edit, kind, name }: { edit?: Edit; kind: string; name: string }) {
  const draft = draftOf(useStore(drafts), kind, name)
  return (
    <>
      {edit && <StateBadge state="pending">{edit.op === 'remove' ? t.entries.goes : t.edit.unsaved}</StateBadge>}
      {draft && <StateBadge state="draft">{t.edit.draft}</StateBadge>}
    </>
  )
}
