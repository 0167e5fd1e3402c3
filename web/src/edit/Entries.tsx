import { Button, Menu, TextInput } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { useState, type FormEvent, type ReactNode } from 'react'
import { failed } from '@/api/problem'
import { canEdit, me, objects, type AnyObject } from '@/api/queries'
import { useStore } from '@/api/store'
import { Card, Empty, Failure, Loading } from '@/ui/basics'
import { Dialog } from '@/ui/Dialog'
import { RowMenu } from '@/ui/RowMenu'
import { t } from '@/text'
import { basket } from './basket'
import { Pending } from './Badges'
import { useEditing } from './editing'
import type { Value } from './object'
import { ObjectEditor } from './ObjectEditor'
import { TakeOver, useRemove } from './TakeOver'

/**
 * The objects of one kind as a card: each is edited, duplicated and removed from here, and
 * a new one begins with its name. What waits to be reviewed is marked.
 */
export function Entries({
  kind,
  title,
  lead,
  empty,
  emptyTitle,
  initial,
  line,
  mark,
  actions,
}: {
  kind: string
  title: string
  lead?: string
  empty: ReactNode
  /** With one, an empty list is shown large, with the way on. */
  emptyTitle?: string
  /** What a new one has from the beginning. */
  initial?: Value
  /** A second line. */
  line?: (o: AnyObject) => ReactNode
  mark?: (o: AnyObject) => ReactNode
  /** Further buttons of a row. */
  actions?: (o: AnyObject) => ReactNode
}) {
  const list = useQuery(objects(kind))
  const edits = useStore(basket).filter((e) => e.kind === kind)
  const { data: who } = useQuery(me)
  const [editing, setEditing] = useEditing(kind)
  const [begun, setBegun] = useState<{ initial?: Value; like?: string }>()
  const [naming, setNaming] = useState<{ initial?: Value; like?: string }>()
  const remove = useRemove(kind)
  const may = canEdit(who?.role)
  const noun = t.entries.noun[kind] ?? kind
  const rows = list.data ?? []
  const fresh = edits.filter((e) => e.op === 'set' && !rows.some((o) => o.name === e.name))
  const object = rows.find((o) => o.name === editing)
  // Only a new one begins with what the page proposes: an object begins with itself.
  const edited =
    editing === undefined || !list.data
      ? undefined
      : { name: editing, object, initial: object ? undefined : (fresh.find((e) => e.name === editing)?.value ?? begun?.initial ?? initial), like: begun?.like }
  const add = may && (
    <Button size="compact-sm" variant="default" onClick={() => setNaming({ initial })}>
      {t.entries.add}
    </Button>
  )
  return (
    <Card title={title} actions={emptyTitle && list.data && rows.length + fresh.length === 0 ? undefined : add}>
      {lead && <p className="small lead">{lead}</p>}
      {failed(list) ? (
        <Failure error={list.error} again={() => void list.refetch()} />
      ) : !list.data ? (
        <Loading />
      ) : rows.length + fresh.length === 0 && emptyTitle ? (
        <Empty title={emptyTitle} action={may && <Button onClick={() => setNaming({ initial })}>{t.entries.add}</Button>}>
          {empty}
        </Empty>
      ) : rows.length + fresh.length === 0 ? (
        <p className="small lead">{empty}</p>
      ) : (
        <ul className="rows">
          {rows.map((o) => {
            const edit = edits.find((e) => e.name === o.name)
            return (
              <li key={o.name} className="entry">
                <span className="entry-name">
                  <strong>
                    <bdi>{o.name}</bdi>
                  </strong>{' '}
                  {mark?.(o)} <Pending edit={edit} kind={kind} name={o.name!} />
                  <span className="small block">{line?.(o)}</span>
                  {Array.isArray(o.nodes) && o.nodes.length > 0 && <span className="small block">{t.entries.onlyOn(o.nodes.join(', '))}</span>}
                  {!!o.description && (
                    <span className="small block">
                      <bdi>{String(o.description)}</bdi>
                    </span>
                  )}
                  {o.origin?.provider ? (
                    <span className="small block">
                      {[o.origin.container ? t.entries.discovered(o.origin.container) : o.origin.document, o.origin.node && t.entries.onlyOn(o.origin.node)].filter(Boolean).join(', ')}
                    </span>
                  ) : (
                    o.read_only && <span className="small block">{t.entries.locked(o.read_only)}</span>
                  )}
                </span>
                <span className="entry-actions">
                  {actions?.(o)}
                  {may && (
                    <>
                      {o.origin?.provider ? (
                        <TakeOver size="compact-sm" variant="default" kind={kind} name={o.name!} label={`${t.proxy.takeOver} ${o.name}`} />
                      ) : (
                        !o.read_only && (
                          <Button size="compact-sm" variant="default" onClick={() => setEditing(o.name!)} aria-label={`${t.entries.edit} ${o.name}`}>
                            {t.entries.edit}
                          </Button>
                        )
                      )}
                      <RowMenu name={o.name!}>
                        <Menu.Item onClick={() => setNaming({ like: o.name })}>{t.proxy.duplicate}</Menu.Item>
                        {!o.read_only && (
                          <Menu.Item color="red" onClick={() => remove(o)}>
                            {t.proxy.remove}
                          </Menu.Item>
                        )}
                      </RowMenu>
                    </>
                  )}
                </span>
              </li>
            )
          })}
          {fresh.map((e) => (
            <li key={e.name} className="entry">
              <span className="entry-name">
                <strong>
                  <bdi>{e.name}</bdi>
                </strong>{' '}
                <Pending edit={e} kind={kind} name={e.name} />
              </span>
              <span className="entry-actions">
                <Button size="compact-sm" variant="default" onClick={() => setEditing(e.name)}>
                  {t.entries.edit}
                </Button>
              </span>
            </li>
          ))}
        </ul>
      )}
      {naming && (
        <NewName
          noun={noun}
          taken={[...rows.map((o) => o.name!), ...fresh.map((e) => e.name)]}
          close={() => setNaming(undefined)}
          go={(name) => {
            setBegun(naming)
            setNaming(undefined)
            setEditing(name)
          }}
        />
      )}
      {edited && may && (
        <ObjectEditor
          kind={kind}
          name={edited.name}
          object={edited.object}
          initial={edited.initial}
          like={edited.object ? undefined : edited.like}
          title={t.entries.title(noun, edited.name)}
          onClose={() => {
            setBegun(undefined)
            setEditing(undefined)
          }}
        />
      )}
    </Card>
  )
}

/** Asks for the name of a new object; the form follows. */
function NewName({ noun, taken, close, go }: { noun: string; taken: string[]; close: () => void; go: (name: string) => void }) {
  const [name, setName] = useState('')
  const [wrong, setWrong] = useState('')
  function submit(e: FormEvent) {
    e.preventDefault()
    const n = name.trim()
    if (!/^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$/.test(n)) return setWrong(t.entries.badName)
    if (taken.includes(n)) return setWrong(t.entries.takenName)
    go(n)
  }
  return (
    <Dialog close={close} title={t.entries.newTitle(noun)}>
      <form onSubmit={submit} className="fields" noValidate>
        <TextInput label={t.entries.newName} value={name} error={wrong} onChange={(e) => setName(e.currentTarget.value)} data-autofocus autoComplete="off" spellCheck={false} />
        <Button type="submit">{t.entries.goOn}</Button>
      </form>
    </Dialog>
  )
}

/** An empty page that has only a name and a text to say. */
export const EmptyCard = ({ title, children }: { title: string; children: ReactNode }) => (
  <Card>
    <Empty title={title}>{children}</Empty>
  </Card>
)
