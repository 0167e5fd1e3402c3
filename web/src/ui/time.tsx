/**
 * Times as people read them: in the language and the form of the browser, with 12 or 24
 * hours as its locale has it, and in its time zone. Which that is, is in the title.
 */
const locale = undefined
const second = new Intl.DateTimeFormat(locale, { dateStyle: 'medium', timeStyle: 'medium' })
const minute = new Intl.DateTimeFormat(locale, { dateStyle: 'medium', timeStyle: 'short' })
const seconds = new Intl.DateTimeFormat(locale, { timeStyle: 'medium' })
const minutes = new Intl.DateTimeFormat(locale, { timeStyle: 'short' })

type Time = string | number | Date

/** A time of the day; with seconds unless they do not matter. */
export const clock = (time: Time, exact = true) => (exact ? seconds : minutes).format(new Date(time))

/** A day and a time without seconds. */
export const moment = (time: Time) => minute.format(new Date(time))

/** A day and a time with seconds and the offset from UTC: 23 Nov 2026, 10:05:12 (UTC+02:00). */
export function withOffset(time: Time): string {
  const at = new Date(time)
  const off = -at.getTimezoneOffset()
  const two = (n: number) => String(Math.floor(n)).padStart(2, '0')
  return `${second.format(at)} (UTC${off < 0 ? '−' : '+'}${two(Math.abs(off) / 60)}:${two(Math.abs(off) % 60)})`
}

/** A moment: its day and time, or its time alone. */
export const When = ({ time, only, exact = only === 'clock', className }: { time: Time; only?: 'clock'; exact?: boolean; className?: string }) => (
  <time dateTime={new Date(time).toISOString()} title={withOffset(time)} className={className}>
    {only ? clock(time, exact) : (exact ? second : minute).format(new Date(time))}
  </time>
)
