import { Button } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { schema as schemaQuery, type ObjectChange } from '@/api/queries'
import { StateBadge } from '@/ui/basics'
import { t } from '@/text'
import { drop, type Edit } from './basket'
import { schemaOf } from './schema'
import { masked } from './secrets'
import { kindWord, place, shown } from './words'

/** One object of a plan. */
export function ChangeCard({ change: c, edit }: { change: ObjectChange; edit?: Edit }) {
  const root = useQuery({ ...schemaQuery, enabled: !!edit?.value }).data
  return (
    <section className="change">
      <div className="change-head">
        <StateBadge state={c.change ?? ''}>{t.edit.verb[c.change ?? ''] ?? c.change}</StateBadge>
        <span style={{ flex: 1 }}>
          {kindWord(c.kind ?? '')} <bdi>{c.name}</bdi>
        </span>
        {edit && (
          <Button size="compact-xs" variant="subtle" onClick={() => drop(edit)}>
            {t.edit.drop}
          </Button>
        )}
      </div>
      {(!!c.fields?.length || (c.change === 'added' && edit?.value)) && (
        <ul className="change-fields">
          {(c.fields ?? []).map((f, i) => (
            <li key={i}>
              <strong>{place(f)}</strong> <span className="small">{t.edit.verb[f.change ?? ''] ?? f.change}</span>
              {f.secret && f.before === undefined && f.after === undefined && <span className="small"> – {t.edit.secret}</span>}
              {f.before !== undefined && (
                <span className="before">
                  <span aria-hidden>− </span>
                  {shown(f.before)}
                </span>
              )}
              {f.after !== undefined && (
                <span className="after">
                  <span aria-hidden>+ </span>
                  {shown(f.after)}
                </span>
              )}
            </li>
          ))}
          {!c.fields?.length && c.change === 'added' && edit?.value && root && (
            <li>
              <span className="after">{shown(masked(edit.value, schemaOf(edit.kind, root), root))}</span>
            </li>
          )}
        </ul>
      )}
    </section>
  )
}
