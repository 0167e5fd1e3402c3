import { Button, Skeleton } from '@mantine/core'
import { Link } from '@tanstack/react-router'
import { useEffect, useState, type ReactNode } from 'react'
import { marks, meaningOf, type Meaning } from '@/theme/states'
import { t } from '@/text'
import { Problem, sentence, Unreachable } from '@/api/problem'
import { withOffset } from './time'

/** A state: a word and a mark, and a colour that says the same. */
export function StateBadge({ state, children, meaning = meaningOf(state) }: { state: string; children?: ReactNode; meaning?: Meaning }) {
  return (
    <span className="badge" data-meaning={meaning}>
      <span aria-hidden>{marks[meaning]}</span>
      <span>{children ?? t.state[state] ?? state}</span>
    </span>
  )
}

export const Tag = ({ children }: { children: ReactNode }) => <span className="tag">{children}</span>

/** The head of every page: one h1, a sentence, what can be done. */
export function PageHeader({ title, badge, lead, actions, crumbs }: { title: ReactNode; badge?: ReactNode; lead?: ReactNode; actions?: ReactNode; crumbs?: ReactNode }) {
  return (
    <div className="page-head">
      <div>
        {crumbs}
        <h1>
          {title}
          {badge}
        </h1>
        {lead && <p>{lead}</p>}
      </div>
      {actions && <div className="actions">{actions}</div>}
    </div>
  )
}

/** Where a page is: the list that it belongs to, and its name. */
export const Crumbs = ({ to, title, here }: { to: string; title: string; here: ReactNode }) => (
  <nav aria-label={t.shell.breadcrumbs} className="crumbs">
    <Link to={to as '/'}>{title}</Link>
    <span aria-hidden>/</span>
    <span aria-current="page">
      <bdi>{here}</bdi>
    </span>
  </nav>
)

/** A part of a page with a title. */
export function Card({ title, actions, children, flush }: { title?: ReactNode; actions?: ReactNode; children: ReactNode; flush?: boolean }) {
  return (
    <section className="card">
      {title && (
        <div className="card-head">
          <h2>{title}</h2>
          {actions}
        </div>
      )}
      {flush ? children : <div className="card-body">{children}</div>}
    </section>
  )
}

/** The page of one object: what it is at the left, facts at the right. */
export function Detail({ children, aside }: { children: ReactNode; aside?: ReactNode }) {
  return (
    <div className="columns">
      <div className="stack">{children}</div>
      <aside className="stack">{aside}</aside>
    </div>
  )
}

export function KeyValues({ rows }: { rows: [ReactNode, ReactNode][] }) {
  return (
    <dl className="kv">
      {rows.map(([key, value], i) => (
        <div key={i} style={{ display: 'contents' }}>
          <dt>{key}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  )
}

type Moment = { id: string | number; meaning: Meaning; time: string; text: ReactNode; note?: ReactNode }

/** What happened, the newest first. */
export function Timeline({ moments, empty }: { moments: Moment[]; empty: string }) {
  if (moments.length === 0) return <p className="small">{empty}</p>
  return (
    <ol className="timeline">
      {moments.map((m) => (
        <li key={m.id}>
          <span className="mark" data-meaning={m.meaning} aria-hidden>
            {marks[m.meaning]}
          </span>
          <div>{m.text}</div>
          <div className="small">
            <Ago time={m.time} />
            {m.note && <> · {m.note}</>}
          </div>
        </li>
      ))}
    </ol>
  )
}

/** An empty place that teaches what could be here. */
export function Empty({ title, children, action }: { title: string; children?: ReactNode; action?: ReactNode }) {
  return (
    <div className="empty">
      <h2>{title}</h2>
      {children && <p>{children}</p>}
      {action}
    </div>
  )
}

/** A refusal in the words of the API, with a way on. */
export function Failure({ error, again }: { error: unknown; again?: () => void }) {
  const text = error instanceof Unreachable ? t.problem.unreachable : sentence(error)
  return (
    <div className="card" role="alert">
      <Empty
        title={error instanceof Problem ? (error.body.title ?? t.problem.title) : t.problem.title}
        action={
          again && (
            <Button variant="default" onClick={again}>
              {t.problem.again}
            </Button>
          )
        }
      >
        {text}
      </Empty>
    </div>
  )
}

export const Loading = () => (
  <div className="stack" role="group" aria-busy="true" aria-label={t.table.loading}>
    <Skeleton height={30} width={220} />
    <Skeleton height={120} />
    <Skeleton height={240} />
  </div>
)

/** A number of seconds in words: 5 s, 3 min, 2 h, 4 d. */
export function span(seconds: number): string {
  if (seconds < 60) return `${Math.max(1, Math.round(seconds))} s`
  if (seconds < 3600) return `${Math.round(seconds / 60)} min`
  if (seconds < 86400 * 2) return `${Math.round(seconds / 3600)} h`
  return `${Math.round(seconds / 86400)} d`
}

/** How long ago, in words; the exact time is in the title. */
export function Ago({ time }: { time: string }) {
  useNow(15_000)
  const at = new Date(time)
  const past = (Date.now() - at.getTime()) / 1000
  const words = Math.abs(past) < 5 ? t.time.now : past > 0 ? t.time.ago(span(past)) : t.time.in(span(-past))
  return (
    <time dateTime={time} title={withOffset(time)}>
      {words}
    </time>
  )
}

/** The time, again and again. */
export function useNow(every: number): number {
  const [now, set] = useState(Date.now())
  useEffect(() => {
    const timer = setInterval(() => set(Date.now()), every)
    return () => clearInterval(timer)
  }, [every])
  return now
}

export const Logo = ({ size = 26 }: { size?: number }) => <img src="/icon.svg" width={size} height={size} alt="" />
