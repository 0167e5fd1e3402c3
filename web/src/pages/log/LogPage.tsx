import { ActionIcon, Button, Menu, Popover, Select, TextInput } from '@mantine/core'
import { IconAdjustmentsHorizontal, IconDownload, IconPlayerPause, IconPlayerPlay, IconSearch, IconX } from '@tabler/icons-react'
import { useNavigate, useSearch } from '@tanstack/react-router'
import { useCallback, useEffect, useState } from 'react'
import { Problem } from '@/api/problem'
import { Empty, Failure, Loading, PageHeader, StateBadge } from '@/ui/basics'
import { save } from '@/ui/save'
import { t } from '@/text'
import { count } from '@/text/many'
import { NodeFilter, NodeTag, useNode } from '../nodes/NodeFilter'
import { filterNames, filtersOf, maxRows, type Filters, type Request, type Row } from './livelog'
import { LogTable } from './LogTable'
import { RequestDrawer } from './RequestDrawer'
import { exported, topOf, tops } from './summary'
import { useLog } from './useLog'

/** How far down the page rows are looked at, and do not move. */
const readingFrom = 240

/** Whether the page is scrolled down: then the rows stay where they are. */
function useReading(): boolean {
  const [reading, setReading] = useState(false)
  useEffect(() => {
    const look = () => setReading(scrollY > readingFrom)
    addEventListener('scroll', look, { passive: true })
    return () => removeEventListener('scroll', look)
  }, [])
  return reading
}

/** The live log: filters in the address, follow or hold, a row opens what is known of it. */
export default function LogPage() {
  const search = useSearch({ strict: false }) as Record<string, unknown>
  const filters = filtersOf(search)
  const go = useNavigate()
  const [paused, setHeld] = useState(false)
  const reading = useReading()
  const held = paused || reading
  const [open, setOpen] = useState<Request>()
  const [node] = useNode()
  const log = useLog(filters, held, node)
  const change = useCallback((next: Filters) => void go({ to: '/log', search: Object.fromEntries(Object.entries({ ...next, node }).filter(([, v]) => v)) as never, replace: true }), [go, node])
  const set = (name: keyof Filters, value: string) => change({ ...filters, [name]: value })
  const filtered = Object.keys(filters).length > 0
  const follow = (on: boolean) => {
    setHeld(!on)
    if (on) scrollTo({ top: 0 })
  }
  const refused = log.error instanceof Problem && log.error.status === 400

  return (
    <>
      <PageHeader
        title={t.pages.log}
        badge={
          <>
            <NodeTag node={node} />
            <Standing held={held} link={log.link} off={log.off} />
          </>
        }
        actions={
          log.off ? (
            <NodeFilter />
          ) : (
            <>
              <NodeFilter />
              <Menu position="bottom-end">
                <Menu.Target>
                  <Button variant="default" leftSection={<IconDownload size={16} aria-hidden />} disabled={log.rows.length === 0}>
                    {t.log.export}
                  </Button>
                </Menu.Target>
                <Menu.Dropdown>
                  {(['jsonl', 'csv'] as const).map((as) => (
                    <Menu.Item key={as} onClick={() => save(`headgate-requests.${as}`, exported(log.rows, as))}>
                      {t.log.exportAs[as]}
                    </Menu.Item>
                  ))}
                </Menu.Dropdown>
              </Menu>
              <Button variant={held ? 'filled' : 'default'} leftSection={held ? <IconPlayerPlay size={16} aria-hidden /> : <IconPlayerPause size={16} aria-hidden />} onClick={() => follow(held)}>
                {held ? t.log.resume : t.log.pause}
              </Button>
            </>
          )
        }
      />
      {log.off ? (
        <div className="card">
          <Empty title={t.log.offTitle}>{t.log.off}</Empty>
        </div>
      ) : (
        <div className="log-page">
          <div className="card table">
            <FilterBar filters={filters} set={set} change={change} shown={log.rows.length} error={refused ? (log.error as Problem) : undefined} />
            {log.error && !refused ? (
              <Failure error={log.error} />
            ) : !log.loaded && !refused && log.rows.length === 0 ? (
              <div className="card-body">
                <Loading />
              </div>
            ) : log.rows.length === 0 ? (
              <Empty
                title={filtered ? t.log.noneTitle : t.log.emptyTitle}
                action={
                  filtered && (
                    <Button variant="default" onClick={() => change({})}>
                      {t.log.clear}
                    </Button>
                  )
                }
              >
                {filtered ? t.log.none : t.log.empty}
              </Empty>
            ) : (
              <LogTable
                rows={log.rows}
                open={setOpen}
                top={held && log.waiting > 0 ? <Waiting n={log.waiting} go={() => follow(true)} /> : undefined}
                more={
                  log.older && log.rows.length < maxRows
                    ? () => {
                        setHeld(true)
                        void log.more()
                      }
                    : undefined
                }
              />
            )}
          </div>
          <Tops rows={log.rows} only={(name, value) => change({ ...filters, [name]: value })} />
        </div>
      )}
      <RequestDrawer
        request={open}
        node={node}
        close={() => setOpen(undefined)}
        only={(name, value) => {
          setOpen(undefined)
          change({ ...filters, [name]: value })
        }}
      />
    </>
  )
}

function Standing({ held, link, off }: { held: boolean; link: string; off: boolean }) {
  if (off) return null
  if (held)
    return (
      <StateBadge state="paused" meaning="calm">
        {t.log.paused}
      </StateBadge>
    )
  if (link === 'open')
    return (
      <StateBadge state="following" meaning="good">
        {t.log.following}
      </StateBadge>
    )
  return (
    <StateBadge state={link} meaning={link === 'lost' ? 'bad' : 'info'}>
      {link === 'lost' ? t.log.lost : t.log.connecting}
    </StateBadge>
  )
}

const Waiting = ({ n, go }: { n: number; go: () => void }) => (
  <div className="log-waiting" role="status">
    <Button size="compact-sm" variant="light" onClick={go}>
      {t.log.waiting(n)}
    </Button>
  </div>
)

/** What is most frequent among the rows; a click filters by it. */
function Tops({ rows, only }: { rows: Row[]; only: (name: keyof Filters, value: string) => void }) {
  return (
    <aside className="card log-tops" aria-label={t.log.top}>
      {tops.map((top) => {
        const list = topOf(rows, top)
        if (list.length === 0) return null
        return (
          <section key={top}>
            <h2>{t.log.tops[top]}</h2>
            <ul>
              {list.map(([value, n]) => (
                <li key={value}>
                  <button type="button" className="link-row" title={value} onClick={() => only(top, value)}>
                    <span className="clip">
                      <bdi>{value}</bdi>
                    </span>
                    <span className="small">{count(n)}</span>
                  </button>
                </li>
              ))}
            </ul>
          </section>
        )
      })}
    </aside>
  )
}

function FilterBar({ filters, set, change, shown, error }: { filters: Filters; set: (name: keyof Filters, v: string) => void; change: (f: Filters) => void; shown: number; error?: Problem }) {
  const others = filterNames.filter((n) => n !== 'text' && n !== 'status')
  const chips = others.filter((n) => filters[n])
  const wrong = (name: string) => error?.mistakes.find((m) => m.pointer.replace(/^\//, '') === name)?.detail
  return (
    <>
      <div className="card-head" style={{ flexWrap: 'wrap' }}>
        <Late value={filters.text ?? ''} set={(v) => set('text', v)}>
          {(value, onChange, now) => (
            <TextInput
              value={value}
              onChange={(e) => onChange(e.currentTarget.value)}
              onKeyDown={(e) => e.key === 'Enter' && now()}
              placeholder={t.log.filter}
              aria-label={t.log.filter}
              leftSection={<IconSearch size={15} aria-hidden />}
              style={{ flex: '1 1 220px', maxWidth: 460 }}
            />
          )}
        </Late>
        <Select
          aria-label={t.log.status}
          value={filters.status && !(filters.status in t.log.statuses) ? null : (filters.status ?? '')}
          placeholder={filters.status}
          onChange={(v) => set('status', v ?? '')}
          data={Object.entries(t.log.statuses).map(([value, label]) => ({ value, label }))}
          allowDeselect={false}
          w={170}
        />
        <Popover width={320} position="bottom-end" trapFocus returnFocus shadow="md">
          <Popover.Target>
            <Button variant="default" leftSection={<IconAdjustmentsHorizontal size={16} aria-hidden />}>
              {t.log.more}
            </Button>
          </Popover.Target>
          <Popover.Dropdown>
            <div className="fields">
              {others.map((name) => (
                <Late key={name} value={filters[name] ?? ''} set={(v) => set(name, v)}>
                  {(value, onChange, now) => (
                    <TextInput
                      size="xs"
                      label={t.log.fields[name]}
                      placeholder={t.log.help[name]}
                      value={value}
                      error={wrong(name)}
                      onChange={(e) => onChange(e.currentTarget.value)}
                      onBlur={now}
                      onKeyDown={(e) => e.key === 'Enter' && now()}
                    />
                  )}
                </Late>
              ))}
            </div>
          </Popover.Dropdown>
        </Popover>
        <span className="small" role="status" style={{ marginLeft: 'auto' }}>
          {t.log.shown(shown)}
        </span>
      </div>
      {(chips.length > 0 || error) && (
        <div className="chips">
          {chips.map((name) => (
            <span key={name} className="tag chip-filter" data-bad={!!wrong(name) || undefined}>
              {t.log.fields[name]}: <strong>{filters[name]}</strong>
              <ActionIcon size={24} variant="subtle" color="gray" aria-label={t.log.without(t.log.fields[name]!)} onClick={() => set(name, '')}>
                <IconX size={13} />
              </ActionIcon>
            </span>
          ))}
          {chips.length > 1 && (
            <Button size="compact-xs" variant="subtle" onClick={() => change({})}>
              {t.log.clear}
            </Button>
          )}
          {error && (
            <span role="alert" style={{ color: 'var(--bad)' }} className="small">
              {error.mistakes.map((m) => `${m.detail}; ${m.remedy ?? ''}`).join('. ')}
            </span>
          )}
        </div>
      )}
    </>
  )
}

/** A text that goes on shortly after the last key, not at each. */
function Late({ value, set, children }: { value: string; set: (v: string) => void; children: (value: string, onChange: (v: string) => void, now: () => void) => React.ReactNode }) {
  const [text, setText] = useState(value)
  useEffect(() => setText(value), [value])
  useEffect(() => {
    if (text === value) return
    const timer = setTimeout(() => set(text.trim()), 600)
    return () => clearTimeout(timer)
    // set is made anew at each drawing; what counts is the text.
  }, [text, value])
  return <>{children(text, setText, () => text !== value && set(text.trim()))}</>
}
