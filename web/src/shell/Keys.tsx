import { useNavigate, useRouterState } from '@tanstack/react-router'
import { useQuery } from '@tanstack/react-query'
import { useEffect, useRef, useState } from 'react'
import { canEdit, me } from '@/api/queries'
import { basket, reviewing } from '@/edit/basket'
import { Dialog } from '@/ui/Dialog'
import { t } from '@/text'
import { openPalette } from './Palette'

/** Where the second key of g leads to. */
const places: Record<string, string> = { o: '/', p: '/proxies', l: '/log', c: '/certificates', h: '/history', s: '/settings' }

/** How long g waits for its second key. */
const patience = 1_000

const typing = (e: Element | null) => !!e?.closest('input, textarea, select, [contenteditable=true], .cm-editor')

/** Moves the focus to the row after or before the one that has it. */
function toRow(step: 1 | -1) {
  const rows = [...document.querySelectorAll<HTMLElement>('.main tbody tr.row .row-name, .main tbody tr.row .row-button')].filter((e) => e.checkVisibility())
  const at = rows.findIndex((e) => e === document.activeElement || e.closest('tr')?.contains(document.activeElement))
  rows[Math.min(rows.length - 1, Math.max(0, at < 0 ? 0 : at + step))]?.focus()
}

/** The shortcuts of all pages, and the list of them. */
export function Keys() {
  const [shown, setShown] = useState(false)
  const go = useNavigate()
  const path = useRouterState({ select: (s) => s.location.pathname })
  const { data: who } = useQuery(me)
  const may = canEdit(who?.role)
  const first = useRef(0)
  useEffect(() => {
    const press = (e: KeyboardEvent) => {
      if (e.defaultPrevented || e.ctrlKey || e.metaKey || e.altKey || typing(document.activeElement) || document.querySelector('[role=dialog], [role=menu]')) return
      const act = (what: () => void) => {
        e.preventDefault()
        what()
      }
      if (first.current && Date.now() - first.current < patience && places[e.key]) {
        first.current = 0
        return act(() => void go({ to: places[e.key]! }))
      }
      first.current = e.key === 'g' ? Date.now() : 0
      const filter = document.querySelector<HTMLInputElement>('.main .table-filter input')
      if (e.key === '/') act(() => (filter ? filter.focus() : openPalette()))
      else if (e.key === '?') act(() => setShown(true))
      else if (e.key === 'j') act(() => toRow(1))
      else if (e.key === 'k') act(() => toRow(-1))
      else if (e.key === 'r' && basket.get().length) act(() => reviewing.set(true))
      else if (e.key === 'n' && may) act(() => void go({ to: '/proxies/new' }))
      else if (e.key === 'e' && may && /^\/proxies\/(?!new$)[^/]+$/.test(path)) act(() => void go({ to: '.', search: (old: object) => ({ ...old, edit: '1' }) } as never))
    }
    addEventListener('keydown', press)
    return () => removeEventListener('keydown', press)
  }, [go, path, may])
  return (
    <Dialog opened={shown} close={() => setShown(false)} title={t.shell.keys}>
      <dl className="keys">
        {Object.entries(t.shell.keyHelp).map(([keys, help]) => (
          <div key={keys} style={{ display: 'contents' }}>
            <dt>
              {keys.split(' ').map((k) => (
                <kbd key={k}>{k}</kbd>
              ))}
            </dt>
            <dd>{help}</dd>
          </div>
        ))}
      </dl>
    </Dialog>
  )
}
