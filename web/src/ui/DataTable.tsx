import { Button, TextInput } from '@mantine/core'
import { IconArrowDown, IconArrowUp, IconSearch } from '@tabler/icons-react'
import { useVirtualizer } from '@tanstack/react-virtual'
import { memo, useDeferredValue, useMemo, useRef, type ReactNode } from 'react'
import { t } from '@/text'
import { matches, parseFilter, type Searchable } from './filter'
import { useView } from './view'

export type Column<T> = {
  id: string
  title: string
  /** The width as CSS; without it the column takes a share of what is left. */
  width?: string
  cell: (row: T) => ReactNode
  /** What is compared; without it there is no sort by this column. */
  sort?: (row: T) => string | number
  number?: boolean
  /** Whether a phone shows it. */
  phone?: boolean
  /** From which width of the window on it is shown: columns with a width leave the others no room below. */
  from?: 960 | 1100 | 1280
}

const rowHeight = 57

/**
 * The one table of the console: it draws only the rows that are seen, sorts, and filters
 * by what people type; the filter and the order stand in the address. The name of a row
 * is a link in its first column, so that everything works by keyboard.
 */
export function DataTable<T>({ rows, columns, first = columns[0]!.id, id, searchable, noun, empty, open, tools }: {
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
    const keyed = found.map((row) => [by(row), row] as const)
    keyed.sort(([a], [b]) => (typeof a === 'number' && typeof b === 'number' ? a - b : collator.compare(String(a), String(b))))
    if (down) keyed.reverse()
    return keyed.map(([, row]) => row)
  }, [index, filter, order, columns])

  const scroll = useRef<HTMLDivElement>(null)
  const virtual = useVirtualizer({ count: shown.length, getScrollElement: () => scroll.current, estimateSize: () => rowHeight, overscan: 12, initialRect: { width: 1000, height: 800 } })
  const items = virtual.getVirtualItems()
  const before = items[0]?.start ?? 0
  const after = items.length ? virtual.getTotalSize() - items.at(-1)!.end : 0

  if (rows.length === 0 && empty) return <div className="card">{empty}</div>
  return (
    <div className="card table">
      <div className="card-head" style={{ flexWrap: 'wrap' }}>
        <TextInput value={text} onChange={(e) => setText(e.currentTarget.value)} placeholder={t.table.filter} aria-label={t.table.filter} title={t.table.filterHelp} leftSection={<IconSearch size={15} aria-hidden />} style={{ flex: '1 1 240px', maxWidth: 460 }} />
        {tools}
        <span className="small" role="status" style={{ marginLeft: 'auto' }}>
          {shown.length === rows.length ? `${rows.length.toLocaleString('en')} ${noun[rows.length === 1 ? 0 : 1]}` : `${shown.length.toLocaleString('en')} / ${rows.length.toLocaleString('en')} ${noun[1]}`}
        </span>
      </div>
      <div className="table-scroll" ref={scroll} tabIndex={0} role="region" aria-label={noun[1]}>
        <table aria-rowcount={shown.length + 1}>
          <colgroup>
            {columns.map((c) => (
              <col key={c.id} className={classes({ ...c, number: false })} style={{ width: c.width }} />
            ))}
          </colgroup>
          <thead>
            <tr aria-rowindex={1}>
              {columns.map((c) => {
                const mine = order.replace('-', '') === c.id
                const down = order.startsWith('-')
                return (
                  <th key={c.id} scope="col" className={classes(c)} aria-sort={mine && c.sort ? (down ? 'descending' : 'ascending') : undefined}>
                    {c.sort ? (
                      <button onClick={() => setOrder(mine && !down ? '-' + c.id : c.id)}>
                        {c.title}
                        {mine && (down ? <IconArrowDown size={13} aria-hidden /> : <IconArrowUp size={13} aria-hidden />)}
                      </button>
                    ) : (
                      <span className="head">{c.title}</span>
                    )}
                  </th>
                )
              })}
            </tr>
          </thead>
          <tbody>
            {before > 0 && (
              <tr aria-hidden>
                <td style={{ height: before, padding: 0, border: 0 }} />
              </tr>
            )}
            {items.map((item) => {
              const row = shown[item.index]!
              return <Row key={id(row)} row={row} index={item.index} columns={columns as Column<unknown>[]} open={open as ((row: unknown) => void) | undefined} />
            })}
            {after > 0 && (
              <tr aria-hidden>
                <td style={{ height: after, padding: 0, border: 0 }} />
              </tr>
            )}
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

const classes = (c: Pick<Column<never>, 'number' | 'phone' | 'from'>) => [c.number && 'number', c.phone === false && 'not-phone', c.from && `from-${c.from}`].filter(Boolean).join(' ') || undefined

/** A row is drawn again only when it changes, not whenever others come by scrolling. */
const Row = memo(function Row({ row, index, columns, open }: { row: unknown; index: number; columns: Column<unknown>[]; open?: (row: unknown) => void }) {
  return (
    <tr
      aria-rowindex={index + 2}
      className={open ? 'row link' : 'row'}
      onClick={open && ((e) => !(e.target as Element).closest('a,button,input') && !getSelection()?.toString() && open(row))}
    >
      {columns.map((c) => (
        <td key={c.id} className={classes(c)}>
          {c.cell(row)}
        </td>
      ))}
    </tr>
  )
})

const collator = new Intl.Collator('en', { numeric: true, sensitivity: 'base' })
