import { Button } from '@mantine/core'
import { useVirtualizer } from '@tanstack/react-virtual'
import { useRef, type ReactNode } from 'react'
import { StateBadge } from '@/ui/basics'
import { clock, When } from '@/ui/time'
import { t } from '@/text'
import { bytes, meaningOfRequest, took, type Request, type Row } from './livelog'

const rowHeight = 50

/** The rows of the log; only those that are seen are drawn. */
export function LogTable({ rows, open, top, more }: { rows: Row[]; open: (r: Request) => void; top?: ReactNode; more?: () => void }) {
  const scroll = useRef<HTMLDivElement>(null)
  const virtual = useVirtualizer({ count: rows.length, getScrollElement: () => scroll.current, estimateSize: () => rowHeight, getItemKey: (i) => rows[i]!.key, overscan: 12, initialRect: { width: 1000, height: 800 } })
  const items = virtual.getVirtualItems()
  const before = items[0]?.start ?? 0
  const after = items.length ? virtual.getTotalSize() - items.at(-1)!.end : 0
  return (
    <div className="table-scroll" ref={scroll} tabIndex={0} role="region" aria-label={t.pages.log}>
      {top}
      <table aria-rowcount={rows.length + 1} className="log">
        <colgroup>
          <col className="not-phone" style={{ width: 132 }} />
          <col style={{ width: 92 }} />
          <col />
          <col className="not-phone from-960" style={{ width: '20%' }} />
          <col className="not-phone from-1280" style={{ width: '12%' }} />
          <col className="not-phone" style={{ width: 96 }} />
          <col className="not-phone from-1100" style={{ width: 84 }} />
        </colgroup>
        <thead>
          <tr aria-rowindex={1}>
            {[t.log.time, t.log.status, t.log.request].map((x, i) => (
              <th key={x} scope="col" className={i === 0 ? 'not-phone' : undefined}>
                <span className="head">{x}</span>
              </th>
            ))}
            <th scope="col" className="not-phone from-960"><span className="head">{t.log.server}</span></th>
            <th scope="col" className="not-phone from-1280"><span className="head">{t.log.client}</span></th>
            <th scope="col" className="not-phone number"><span className="head">{t.log.duration}</span></th>
            <th scope="col" className="not-phone from-1100 number"><span className="head">{t.log.size}</span></th>
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
  return (
    <tr className="row link" data-meaning={meaning === 'good' ? undefined : meaning} aria-rowindex={index} onClick={() => !getSelection()?.toString() && open(r)}>
      <td className="not-phone">
        <When time={r.time!} only="clock" className="mono" />
      </td>
      <td>
        <StateBadge state={word} meaning={meaning}>
          {r.status || r.proto}
        </StateBadge>
      </td>
      <td>
        <button className="row-button clip" onClick={(e) => { e.stopPropagation(); open(r) }} title={`${r.method ?? r.proto} ${r.host ?? ''}${r.path ?? ''}${r.query ? '?' + r.query : ''}`}>
          <span className="mono">{r.method}</span> <bdi>{r.host}</bdi>
          <bdi className="path">{r.path}{r.query ? '?' + r.query : ''}</bdi>
          {!r.method && t.log.stream(bytes(r.bytes_sent))}
        </button>
        <span className="small clip only-phone">{[clock(r.time!), took(r.duration_ms), r.reason].filter(Boolean).join(' · ')}</span>
        {(r.reason || r.cause || word === 'slow') && <span className="small clip not-phone" title={r.cause}>{[word === 'slow' && t.log.slow + ', ' + took(r.duration_ms), r.reason, r.cause].filter(Boolean).join(' – ')}</span>}
      </td>
      <td className="not-phone from-960">
        <span className="clip" title={r.server}>{r.server?.replace(/^http:\/\//, '') ?? '–'}</span>
        {r.proxy && <span className="small clip"><bdi>{r.proxy}</bdi></span>}
      </td>
      <td className="not-phone from-1280"><span className="clip mono" title={r.client_ip}>{r.client_ip}</span></td>
      <td className="not-phone number">{took(r.duration_ms)}</td>
      <td className="not-phone from-1100 number">{bytes(r.bytes_sent)}</td>
    </tr>
  )
}
