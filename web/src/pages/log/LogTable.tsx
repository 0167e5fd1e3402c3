import { Button } from '@mantine/core'
import { useWindowVirtualizer } from '@tanstack/react-virtual'
import { useLayoutEffect, useRef, useState, type ReactNode } from 'react'
import { StateBadge } from '@/ui/basics'
import { exact, exactTitle } from '@/ui/time'
import { t } from '@/text'
import { bytes, meaningOfRequest, took, type Request, type Row } from './livelog'

const rowHeight = 26

/** The rows of the log, one line each; only those that are seen are drawn. It scrolls with the page. */
export function LogTable({ rows, open, top, more }: { rows: Row[]; open: (r: Request) => void; top?: ReactNode; more?: () => void }) {
  const box = useRef<HTMLDivElement>(null)
  const [margin, setMargin] = useState(0)
  useLayoutEffect(() => {
    const at = box.current ? box.current.getBoundingClientRect().top + scrollY : 0
    if (Math.abs(at - margin) > 1) setMargin(at)
  })
  const virtual = useWindowVirtualizer({
    count: rows.length,
    estimateSize: () => rowHeight,
    getItemKey: (i) => rows[i]!.key,
    overscan: 20,
    scrollMargin: margin,
    initialRect: { width: 1000, height: 800 },
  })
  const items = virtual.getVirtualItems()
  const before = items[0] ? items[0].start - margin : 0
  const after = items.length ? virtual.getTotalSize() - (items.at(-1)!.end - margin) : 0
  return (
    <div className="table-scroll" ref={box} role="region" aria-label={t.pages.log}>
      {top}
      <table aria-rowcount={rows.length + 1} className="log">
        <colgroup>
          <col className="not-phone" style={{ width: 116 }} />
          <col style={{ width: 74 }} />
          <col />
          <col className="not-phone from-1100" style={{ width: '16%' }} />
          <col className="not-phone from-1440" style={{ width: '13%' }} />
          <col className="not-phone" style={{ width: 84 }} />
          <col className="not-phone from-1440" style={{ width: 80 }} />
        </colgroup>
        <thead>
          <tr aria-rowindex={1}>
            {[t.log.time, t.log.status, t.log.request].map((x, i) => (
              <th key={x} scope="col" className={i === 0 ? 'not-phone' : undefined}>
                <span className="head">{x}</span>
              </th>
            ))}
            <th scope="col" className="not-phone from-1100">
              <span className="head">{t.log.server}</span>
            </th>
            <th scope="col" className="not-phone from-1440">
              <span className="head">{t.log.client}</span>
            </th>
            <th scope="col" className="not-phone number">
              <span className="head">{t.log.duration}</span>
            </th>
            <th scope="col" className="not-phone from-1440 number">
              <span className="head">{t.log.size}</span>
            </th>
          </tr>
        </thead>
        <tbody>
          {before > 0 && <Space height={before} />}
          {items.map((item) => {
            const row = rows[item.index]!
            return row.request ? <Line key={row.key} index={item.index + 2} request={row.request} open={open} /> : <Gap key={row.key} missed={row.missed ?? 0} />
          })}
          {after > 0 && <Space height={after} />}
        </tbody>
      </table>
      {more && (
        <div style={{ padding: 14, textAlign: 'center' }}>
          <Button variant="default" onClick={more}>
            {t.log.older}
          </Button>
        </div>
      )}
    </div>
  )
}

const Space = ({ height }: { height: number }) => (
  <tr aria-hidden>
    <td style={{ height, padding: 0, border: 0 }} />
  </tr>
)

const Gap = ({ missed }: { missed: number }) => (
  <tr>
    <td colSpan={3} className="small" style={{ textAlign: 'center' }}>
      {t.log.gap(missed)}
    </td>
  </tr>
)

function Line({ request: r, index, open }: { request: Request; index: number; open: (r: Request) => void }) {
  const { meaning, word } = meaningOfRequest(r)
  const why = [r.reason, r.cause].filter(Boolean).join(' – ')
  return (
    <tr className="row link" data-meaning={meaning === 'good' ? undefined : meaning} aria-rowindex={index} onClick={() => !getSelection()?.toString() && open(r)}>
      <td className="not-phone">
        <time dateTime={r.time} title={exactTitle(r.time!)} className="mono">
          {exact(r.time!)}
        </time>
      </td>
      <td>
        <StateBadge state={word} meaning={meaning}>
          {r.status || r.proto}
        </StateBadge>
      </td>
      <td>
        <button
          type="button"
          className="row-button clip"
          onClick={(e) => {
            e.stopPropagation()
            open(r)
          }}
          title={`${r.method ?? r.proto} ${r.host ?? ''}${r.path ?? ''}${r.query ? '?' + r.query : ''}${why ? `\n${why}` : ''}`}
        >
          <span className="mono">{r.method}</span> <bdi>{r.host}</bdi>
          <bdi className="path">
            {r.path}
            {r.query ? '?' + r.query : ''}
          </bdi>
          {!r.method && t.log.stream(bytes(r.bytes_sent))}
          {why && (
            <span className="why" data-meaning={meaning}>
              {' '}
              {why}
            </span>
          )}
          {word === 'slow' && (
            <span className="why" data-meaning={meaning}>
              {' '}
              {t.log.slow}
            </span>
          )}
        </button>
      </td>
      <td className="not-phone from-1100">
        <span className="clip" title={[r.proxy, r.server].filter(Boolean).join('\n')}>
          {r.server?.replace(/^https?:\/\//, '') ?? (r.proxy ? <bdi>{r.proxy}</bdi> : '–')}
        </span>
      </td>
      <td className="not-phone from-1440">
        <span className="clip mono" title={r.client_ip}>
          {r.client_ip}
        </span>
      </td>
      <td className="not-phone number">{took(r.duration_ms)}</td>
      <td className="not-phone from-1440 number">{bytes(r.bytes_sent)}</td>
    </tr>
  )
}
