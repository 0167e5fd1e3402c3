import 'uplot/dist/uPlot.min.css'
import { useComputedColorScheme } from '@mantine/core'
import { useEffect, useRef } from 'react'
import uPlot from 'uplot'
import { Card } from '@/ui/basics'
import { clock } from '@/ui/time'
import { t } from '@/text'
import { shortNumber, type Curve } from './series'

const height = 160

/** A dashed line where the configuration was changed. */
function drawMark(u: uPlot, mark: { at: number } | undefined, color: string) {
  if (!mark || mark.at < (u.scales.x!.min ?? Infinity) || mark.at > (u.scales.x!.max ?? 0)) return
  const x = u.valToPos(mark.at, 'x', true)
  u.ctx.save()
  u.ctx.strokeStyle = color
  u.ctx.lineWidth = 1.5 * devicePixelRatio
  u.ctx.setLineDash([4 * devicePixelRatio, 3 * devicePixelRatio])
  u.ctx.beginPath()
  u.ctx.moveTo(x, u.bbox.top)
  u.ctx.lineTo(x, u.bbox.top + u.bbox.height)
  u.ctx.stroke()
  u.ctx.restore()
}

/** The time of a tick; with seconds where a chart shows little time. */
function tick(seconds: number, u: uPlot): string {
  const { min = 0, max = 0 } = u.scales.x!
  return clock(seconds * 1000, (max ?? 0) - (min ?? 0) < 300)
}

/**
 * Lines over time. Lines differ in colour and in being dashed; the same numbers stand in
 * a table for those who do not see them. Colours are those of the theme.
 */
export function Chart({ title, unit, times, curves, mark }: { title: string; unit: string; times: number[]; curves: Curve[]; mark?: { at: number; text: string } }) {
  const box = useRef<HTMLDivElement>(null)
  const plot = useRef<uPlot>(null)
  const scheme = useComputedColorScheme('light')
  const shape = curves.map((c) => c.name).join()
  const newest = useRef({ times, curves, mark })
  newest.current = { times, curves, mark }

  useEffect(() => {
    const el = box.current
    if (!el) return
    const style = getComputedStyle(document.documentElement)
    const color = (name: string) => style.getPropertyValue(`--${name}`).trim()
    const axis = { stroke: color('ink-2'), grid: { stroke: color('line'), width: 1 }, ticks: { show: false }, font: '11px system-ui, sans-serif' }
    const { times: x, curves: lines } = newest.current
    const made = new uPlot(
      {
        width: Math.max(200, el.clientWidth),
        height,
        cursor: { drag: { x: false, y: false }, points: { size: 6 } },
        legend: { show: false },
        hooks: { draw: [(u) => drawMark(u, newest.current.mark, color('info'))] },
        // One point alone would get an axis of two days.
        scales: { x: { range: (_, min, max) => (min !== null && min === max ? [min - 300, max] : [min, max]) }, y: { range: (_, __, max) => [0, max > 0 ? max * 1.1 : 1] } },
        axes: [
          { ...axis, space: 80, size: 30, values: (u, v) => v.map((s) => tick(s, u)) },
          { ...axis, size: 46, values: (_, v) => v.map(shortNumber) },
        ],
        series: [
          {},
          ...lines.map((c) => ({ label: c.name, stroke: color(c.tone), width: 1.75, dash: c.dash ? [6, 4] : undefined, fill: c.dash ? undefined : color(`${c.tone}-soft`), points: { size: 4 } })),
        ],
      },
      [x, ...lines.map((c) => c.values)] as uPlot.AlignedData,
      el,
    )
    plot.current = made
    const watch = new ResizeObserver(() => made.setSize({ width: Math.max(200, el.clientWidth), height }))
    watch.observe(el)
    return () => {
      watch.disconnect()
      made.destroy()
      plot.current = null
    }
  }, [scheme, shape])
  useEffect(() => plot.current?.setData([times, ...curves.map((c) => c.values)] as uPlot.AlignedData), [times, curves, mark])
  const marked = mark && mark.at >= (times[0] ?? Infinity) ? mark : undefined

  const last = (c: Curve) => c.values.findLast((v) => v !== null)
  return (
    <Card title={title} actions={<span className="small">{unit}</span>}>
      <div ref={box} className="chart" aria-hidden title={marked?.text} />
      <ul className="legend">
        {curves.map((c) => (
          <li key={c.name}>
            <svg width="18" height="4" aria-hidden>
              <line x1="0" x2="18" y1="2" y2="2" className={`tone-${c.tone}`} strokeWidth="3" strokeDasharray={c.dash ? '5 3' : undefined} />
            </svg>
            {c.name} <strong>{shortNumber(last(c))}</strong>
          </li>
        ))}
        {marked && (
          <li>
            <svg width="4" height="14" aria-hidden>
              <line x1="2" x2="2" y1="0" y2="14" className="tone-info" strokeWidth="2" strokeDasharray="3 2" />
            </svg>
            {marked.text}, {clock(marked.at * 1000, false)}
          </li>
        )}
      </ul>
      <details>
        <summary className="small">{t.charts.table(title)}</summary>
        <div className="chart-table" tabIndex={0} role="region" aria-label={t.charts.table(title)}>
          <table>
            <thead>
              <tr>
                <th scope="col">{t.charts.time}</th>
                {curves.map((c) => (
                  <th scope="col" key={c.name}>
                    {c.name}
                  </th>
                ))}
              </tr>
            </thead>
            <tbody>
              {times.slice(-30).map((x, i) => {
                const at = Math.max(0, times.length - 30) + i
                return (
                  <tr key={x}>
                    <th scope="row">{clock(x * 1000)}</th>
                    {curves.map((c) => (
                      <td key={c.name}>{shortNumber(c.values[at])}</td>
                    ))}
                  </tr>
                )
              })}
            </tbody>
          </table>
        </div>
      </details>
    </Card>
  )
}
