import { Button, Checkbox, TextInput, VisuallyHidden } from '@mantine/core'
import { IconArrowDown, IconArrowUp, IconSearch } from '@tabler/icons-react'
import { useWindowVirtualizer } from '@tanstack/react-virtual'
import { memo, useCallback, useDeferredValue, useLayoutEffect, useMemo, useRef, useState, type CSSProperties, type ReactNode } from 'react'
import { t } from '@/text'
import { languageTag } from '@/text/many'
import { matches, parseFilter, type Searchable } from './filter'
import { useView } from './view'

export type Column<T> = {
  id: string
  title: string
  /** The width as CSS; without it the column takes a share of what is left. */
  width?: string
  /** The width on a phone, where it differs. */
  narrow?: string
  cell: (row: T) => ReactNode
  /** What is compared; without it there is no sort by this column. */
  sort?: (row: T) => string | number
  number?: boolean
  /** Whether the title is for screen readers alone. */
  quiet?: boolean
  /** Whether a phone shows it. */
  phone?: boolean
  /** From which width of the window on it is shown: columns with a width leave the others no room below. */
  from?: 960 | 1100 | 1280 | 1440
}

/** Rows that can be selected, by their ids. */
export type Selection<T> = { chosen: ReadonlySet<string>; set: (chosen: ReadonlySet<string>) => void; label: (row: T) => string; all: string }

const rowHeight = 57
const groupHeight = 38

type Entry<T> = { row: T; group?: undefined } | { group: string; count: number }

/**
 * The one table of the console: it draws only the rows that are seen, sorts, groups, and
 * filters by what people type; the filter and the order are in the address. It scrolls with
 * the page. The name of a row is a link, so that everything works by keyboard.
 */
export function DataTable<T>({
  rows,
  columns,
  first = columns[0]!.id,
  id,
  searchable,
  noun,
  empty,
  open,
  tools,
  selection,
  groupOf,
  bar,
}: {
  rows: T[]
  columns: Column<T>[]
  /** The order before anybody chooses one: a column, with - before it from the last to the first. */
  first?: string
  id: (row: T) => string
  searchable: (row: T) => Searchable
  /** One and many: "proxy", "proxies". */
  noun: [string, string]
  empty?: ReactNode
  open?: (row: T) => void
  tools?: ReactNode
  selection?: Selection<T>
  /** The groups that a row is shown in. */
  groupOf?: (row: T) => string[]
  /** What is shown in place of the tools while rows are selected; it gets those of the filter. */
  bar?: (shown: T[]) => ReactNode
}) {
  const [text, setText] = useView('q')
  const [order, setOrder] = useView('sort', first)
  const filter = useDeferredValue(text)
  const index = useMemo(() => rows.map((row) => ({ row, words: searchable(row) })), [rows, searchable])
  const shown = useMemo(() => {
    const wanted = parseFilter(filter)
    const found = index.filter((e) => matches(wanted, e.words)).map((e) => e.row)
    const down = order.startsWith('-')
    const by = columns.find((c) => c.id === order.replace('-', ''))?.sort
    if (!by) return found
    const collator = new Intl.Collator(languageTag(), { numeric: true, sensitivity: 'base' })
    const keyed = found.map((row) => [by(row), row] as const)
    keyed.sort(([a], [b]) => (typeof a === 'number' && typeof b === 'number' ? a - b : collator.compare(String(a), String(b))))
    if (down) keyed.reverse()
    return keyed.map(([, row]) => row)
  }, [index, filter, order, columns])
  const entries = useMemo(() => (groupOf ? grouped(shown, groupOf) : shown.map((row): Entry<T> => ({ row }))), [shown, groupOf])

  const box = useRef<HTMLDivElement>(null)
  const [margin, setMargin] = useState(0)
  useLayoutEffect(() => {
    const at = box.current ? box.current.getBoundingClientRect().top + scrollY : 0
    if (Math.abs(at - margin) > 1) setMargin(at)
  })
  const virtual = useWindowVirtualizer({
    count: entries.length,
    estimateSize: (i) => (entries[i]?.group === undefined ? rowHeight : groupHeight),
    overscan: 12,
    scrollMargin: margin,
    initialRect: { width: 1000, height: 800 },
  })
  const items = virtual.getVirtualItems()
  const before = items[0] ? items[0].start - margin : 0
  const after = items.length ? virtual.getTotalSize() - (items.at(-1)!.end - margin) : 0
  const toggle = useCallback(
    (key: string) => {
      if (!selection) return
      const next = new Set(selection.chosen)
      if (!next.delete(key)) next.add(key)
      selection.set(next)
    },
    [selection],
  )

  if (rows.length === 0 && empty) return <div className="card">{empty}</div>
  const keys = selection ? shown.map(id) : []
  const chosen = selection ? keys.filter((k) => selection.chosen.has(k)).length : 0
  return (
    <div className="card table">
      <div className="card-head" style={{ flexWrap: 'wrap' }}>
        {chosen > 0 && bar ? (
          bar(shown)
        ) : (
          <>
            <TextInput
              className="table-filter"
              value={text}
              onChange={(e) => setText(e.currentTarget.value)}
              placeholder={t.table.filter}
              aria-label={t.table.filter}
              title={t.table.filterHelp}
              leftSection={<IconSearch size={15} aria-hidden />}
              style={{ flex: '1 1 240px', maxWidth: 460 }}
            />
            {tools}
          </>
        )}
        <span className="small" role="status" style={{ marginLeft: 'auto' }}>
          {t.table.count(shown.length, rows.length, ...noun)}
        </span>
      </div>
      <div className="table-scroll" ref={box} role="region" aria-label={noun[1]}>
        <table aria-rowcount={shown.length + 1}>
          <colgroup>
            {selection && <col style={widths({ width: '44px', narrow: '36px' })} />}
            {columns.map((c) => (
              <col key={c.id} className={classes({ ...c, number: false })} style={widths(c)} />
            ))}
          </colgroup>
          <thead>
            <tr aria-rowindex={1}>
              {selection && (
                <th scope="col">
                  <span className="head">
                    <Checkbox
                      size="xs"
                      aria-label={selection.all}
                      checked={chosen > 0 && chosen === keys.length}
                      indeterminate={chosen > 0 && chosen < keys.length}
                      onChange={() => selection.set(new Set(chosen === keys.length ? [] : keys))}
                    />
                  </span>
                </th>
              )}
              {columns.map((c) => {
                const mine = order.replace('-', '') === c.id
                const down = order.startsWith('-')
                return (
                  <th key={c.id} scope="col" className={classes(c)} aria-sort={mine && c.sort ? (down ? 'descending' : 'ascending') : undefined}>
                    {c.sort ? (
                      <button type="button" onClick={() => setOrder(mine && !down ? '-' + c.id : c.id)}>
                        {c.title}
                        {mine && (down ? <IconArrowDown size={13} aria-hidden /> : <IconArrowUp size={13} aria-hidden />)}
                      </button>
                    ) : (
                      <span className="head">{c.quiet ? <VisuallyHidden>{c.title}</VisuallyHidden> : c.title}</span>
                    )}
                  </th>
                )
              })}
            </tr>
          </thead>
          <tbody>
            {before > 0 && <Space height={before} />}
            {items.map((item) => {
              const entry = entries[item.index]!
              if (entry.group !== undefined)
                return (
                  <tr key={'group ' + entry.group} className="group">
                    <th scope="rowgroup" colSpan={columns.length + (selection ? 1 : 0)}>
                      {entry.group} <span className="small">{entry.count}</span>
                    </th>
                  </tr>
                )
              const key = id(entry.row)
              return (
                <Row
                  key={groupOf ? item.index : key}
                  row={entry.row}
                  index={item.index}
                  columns={columns as Column<unknown>[]}
                  open={open as ((row: unknown) => void) | undefined}
                  select={selection && { id: key, checked: selection.chosen.has(key), label: selection.label(entry.row) }}
                  toggle={toggle}
                />
              )
            })}
            {after > 0 && <Space height={after} />}
          </tbody>
        </table>
        {shown.length === 0 && rows.length > 0 && (
          <div className="empty">
            <p>{t.table.none}</p>
            <Button variant="default" onClick={() => setText('')}>
              {t.table.clear}
            </Button>
          </div>
        )}
      </div>
    </div>
  )
}

/** Rows below the heads of their groups, which are sorted; those of no group come last. */
function grouped<T>(rows: T[], groupOf: (row: T) => string[]): Entry<T>[] {
  const groups = new Map<string, T[]>()
  for (const row of rows)
    for (const g of groupOf(row).length ? groupOf(row) : ['']) {
      const list = groups.get(g)
      if (list) list.push(row)
      else groups.set(g, [row])
    }
  const names = [...groups.keys()].sort((a, b) => Number(a === '') - Number(b === '') || a.localeCompare(b))
  return names.flatMap((g): Entry<T>[] => [{ group: g || t.proxies.untagged, count: groups.get(g)!.length }, ...groups.get(g)!.map((row) => ({ row }))])
}

const Space = ({ height }: { height: number }) => (
  <tr aria-hidden>
    <td style={{ height, padding: 0, border: 0 }} />
  </tr>
)

const widths = (c: Pick<Column<never>, 'width' | 'narrow'>) => ({ '--width': c.width, '--narrow': c.narrow ?? c.width }) as CSSProperties

const classes = (c: Pick<Column<never>, 'number' | 'phone' | 'from'>) => [c.number && 'number', c.phone === false && 'not-phone', c.from && `from-${c.from}`].filter(Boolean).join(' ') || undefined

type RowProps = { row: unknown; index: number; columns: Column<unknown>[]; open?: (row: unknown) => void; select?: { id: string; checked: boolean; label: string }; toggle: (id: string) => void }

/** A row is drawn again only when it changes, not whenever others come by scrolling. */
const Row = memo(
  function Row({ row, index, columns, open, select, toggle }: RowProps) {
    return (
      <tr
        aria-rowindex={index + 2}
        data-selected={select?.checked || undefined}
        className={open ? 'row link' : 'row'}
        onClick={open && ((e) => !(e.target as Element).closest('a,button,input,label,[role=menu]') && !getSelection()?.toString() && open(row))}
      >
        {select && (
          <td className="select">
            <Checkbox size="xs" aria-label={select.label} checked={select.checked} onChange={() => toggle(select.id)} />
          </td>
        )}
        {columns.map((c) => (
          <td key={c.id} className={classes(c)}>
            {c.cell(row)}
          </td>
        ))}
      </tr>
    )
  },
  (a, b) => a.row === b.row && a.index === b.index && a.columns === b.columns && a.open === b.open && a.toggle === b.toggle && a.select?.checked === b.select?.checked && a.select?.id === b.select?.id,
)
